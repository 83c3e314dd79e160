"""What a step's generator and guards add to its key, found out without running anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from holdfast.errors import AttemptError, GuardBroken
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step
from holdfast.process.room import is_beneath

Part = Mapping[str, Json]


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


def has_guards(step: Step) -> bool:
    """Whether anything judges what the step makes."""
    return bool(step.guards or step.outputs) or step.schema is not None


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
        if not has_guards(step):
            return made
        found = dict(made)
        guards = [_trimmed(guard(item), step.produces) for item in (*implied(step), *step.guards)]
    except (AttemptError, GuardBroken) as error:
        return {"unresolved": [error.message]}
    if any(guards):
        found["guards"] = guards
    if unresolved := sorted(set(_unresolved(found))):
        found["unresolved"] = unresolved
    return found


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
