"""What decides a guard's verdict, beside what the plan says: files that it reads, source that it runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from holdfast.errors import GuardBroken
from holdfast.guards.candidate import name_of
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.process.room import named_files

Closure = Callable[[str, str], Mapping[str, Json]]


def _no_modules(module: str, root: str) -> Mapping[str, Json]:
    del root
    return {"unresolved": [module]}


def guard_identity(guard: Guard, root: str, closure: Closure = _no_modules) -> Mapping[str, Json]:
    """The part of a key that one guard makes up; `closure` finds the source files of a module."""
    match guard.kind:
        case "command":
            return command_identity(guard, root)
        case "python":
            return closure(str(guard.config).partition(":")[0], root)
        case "json-schema":
            return schema_identity(guard, root)
        case "all" | "any" | "majority":
            items: list[Json] = [guard_identity(item, root, closure) for item in guard.items]
            return {"items": items} if any(items) else {}
        case _:
            return {}


def command_identity(guard: Guard, root: str) -> Mapping[str, Json]:
    """The project files that the command names."""
    return named_files(argv_of(guard), root)


def schema_identity(guard: Guard, root: str) -> Mapping[str, Json]:
    """The file of the schema, if it is one."""
    if not isinstance(guard.config, str):
        return {}
    return named_files([guard.config], root) or {"unresolved": [guard.config]}


def argv_of(guard: Guard) -> tuple[str, ...]:
    """The command of a command guard."""
    config = guard.config
    if isinstance(config, str):
        return tuple(shlex.split(config))
    if isinstance(config, list | tuple) and all(isinstance(word, str) for word in config):
        return tuple(str(word) for word in config)
    raise GuardBroken(f"'{name_of(guard)}' needs an argv list")
