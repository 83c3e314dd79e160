"""What decides the result of a command or a function, beside what its step says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from holdfast.generators.imports import Imports
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.process.room import named_files, shell_words


def shell_identity(step: Step, root: str) -> Mapping[str, Json]:
    """The project files that the command names, except those that it makes."""
    words = step.run or shell_words(step.shell)
    return named_files(words, root, but=step.produces)


def python_identity(imports: Imports) -> Callable[[Step, str], Mapping[str, Json]]:
    """The source of the module and of every project module that it imports."""
    return lambda step, root: imports.of_module(target_of(step).partition(":")[0], root)


def target_of(step: Step) -> str:
    """The function of a python step, as module:function."""
    return step.run[0] if step.run else ""


def tools_identity(imports: Imports) -> Callable[[Step, str], Mapping[str, Json]]:
    """The source of the functions that a model may use, and of every project module that they import."""

    def identity(step: Step, root: str) -> Mapping[str, Json]:
        found: dict[str, dict[str, Json] | list[str]] = {}
        for tool in step.tools:
            part = imports.of_module(tool.partition(":")[0], root)
            for key, value in part.items():
                if isinstance(value, Mapping):
                    found.setdefault(key, {}).update(value)  # type: ignore[union-attr]  # as the first
                else:
                    names = cast("list[str]", found.setdefault(key, []))
                    names += [name for name in cast("list[str]", value) if name not in names]
        return cast("Mapping[str, Json]", found)

    return identity
