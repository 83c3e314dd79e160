"""What a step's generator and guards add to its key, found out without running anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from holdfast.errors import AttemptError, GuardBroken
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step
from holdfast.process.room import is_beneath

Part = Mapping[str, Json]


class Basis(NamedTuple):
    """Files that guards decide by, each with its digest: named by their commands, and their source."""

    files: Mapping[str, str]
    code: Mapping[str, str]

    def changed(self, after: Basis) -> list[str]:
        """The files that are not what they were; a command may name one that a step makes first."""
        other = {path for path, digest in self.files.items() if after.files.get(path) != digest}
        return sorted(other | {path for path, _ in self.code.items() ^ after.code.items()})


class Identities:
    """Answers for the generators and guards of a plan, by `uses` and by kind."""

    def __init__(
        self,
        generators: Mapping[str, Callable[[Step, str], Part]],
        guards: Callable[[Guard, str], Part],
    ) -> None:
        self._generators = generators
        self._guards = guards

    def identity(self, step: Step, root: str) -> Part:
        """What decides the step's result beside its own keys."""
        return joined_identity(
            step, lambda: self._made(step, root), lambda guard: self._guards(guard, root)
        )

    def _made(self, step: Step, root: str) -> Part:
        found = self._generators.get(step.uses)
        if found is None:
            raise AttemptError(f"nothing here runs '{step.uses}' steps", reason="command_failed")
        return found(step, root)


def implied(step: Step) -> tuple[Guard, ...]:
    """The guards that `outputs` and `schema` of a step stand for."""
    guards = []
    if step.outputs:
        guards.append(Guard("outputs", list(step.outputs), name="outputs"))
    if step.schema is not None:
        guards.append(Guard("json-schema", step.schema, name="schema"))
    return tuple(guards)


def joined_identity(
    step: Step, generator: Callable[[], Part], guard: Callable[[Guard], Part]
) -> Part:
    """The generator's part, `guards` in their order, and all that is `unresolved` in either."""
    try:
        made = generator()
        if not step.is_judged:
            return made
        found = dict(made)
        guards = _parts(step, guard)
    except (AttemptError, GuardBroken) as error:
        return {"unresolved": [error.message]}
    if any(guards):
        found["guards"] = guards
    if unresolved := sorted(set(_unresolved(found))):
        found["unresolved"] = unresolved
    return found


def judged_by(step: Step, guard: Callable[[Guard, str], Part], folder: str, root: str) -> Basis:
    """What the guards of a step decide by: a command where the step works, a module in the project."""
    if not step.is_judged:
        return Basis({}, {})
    return Basis(
        _files("files", _parts(step, lambda item: guard(item, folder))),
        _files("code", _parts(step, lambda item: guard(item, root))),
    )


def files_of(part: Part) -> set[str]:
    """The files of the project that a part of a key names: modules, scripts, schemas."""
    parts = [part, {"items": part.get("guards", [])}]
    return {*_files("code", parts), *_files("files", parts)}


def _files(key: str, parts: Sequence[Json]) -> dict[str, str]:
    """Everything named under a key, at any depth, with its digest."""
    found: dict[str, str] = {}
    pending = list(parts)
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            named, items = part.get(key), part.get("items")
            if isinstance(named, Mapping):
                found |= {path: str(digest) for path, digest in named.items()}
            pending += items if isinstance(items, list) else []
    return found


def _parts(step: Step, guard: Callable[[Guard], Part]) -> list[Json]:
    return [_trimmed(guard(item), step.produces) for item in (*implied(step), *step.guards)]


def _trimmed(part: Mapping[str, Json], produces: Sequence[str]) -> dict[str, Json]:
    """A guard's part of the key without the step's own outputs: they cannot decide themselves."""
    kept: dict[str, Json] = {}
    for key, value in part.items():
        if key == "files" and isinstance(value, Mapping):
            files = {
                path: digest
                for path, digest in value.items()
                if not is_beneath(os.path.normpath(path), produces)
            }
            if files:
                kept[key] = files
        elif key == "items" and isinstance(value, list):
            kept[key] = [_trimmed(i, produces) if isinstance(i, Mapping) else i for i in value]
        else:
            kept[key] = value
    return kept


def _unresolved(part: Json) -> list[str]:
    """Everything named under `unresolved`, at any depth."""
    if isinstance(part, list | tuple):
        return [name for item in part for name in _unresolved(item)]
    if not isinstance(part, Mapping):
        return []
    own = part.get("unresolved")
    names = [str(name) for name in own] if isinstance(own, list | tuple) else []
    return names + [name for item in part.values() for name in _unresolved(item)]
