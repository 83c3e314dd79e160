"""The arguments of a tool call, checked against its schema before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from holdfast.errors import BugError
from holdfast.model.digest import Json

_WIDEST = 200  # characters of what is said about a wrong one

TEXT: dict[str, Json] = {"type": "string", "minLength": 1, "maxLength": 4096}
CURSOR: dict[str, Json] = {
    "type": "string",
    "maxLength": 12,
    "description": "The cursor of the answer before, for what follows.",
}
SELECT: dict[str, Json] = {
    "type": "array",
    "items": TEXT,
    "maxItems": 100,
    "description": "Only these steps: step, +step (with its needs), step+ (with what needs it), "
    "state:failed, agent:NAME, changed, wildcards.",
}


def schema(required: tuple[str, ...] = (), **properties: Json) -> dict[str, Json]:
    """The schema of arguments: these and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def described(words: str, **keys: Json) -> dict[str, Json]:
    """A property with what it means."""
    return {**keys, "description": words}


def flaw(wanted: Mapping[str, Json], arguments: Mapping[str, Json]) -> str:
    """What is wrong with arguments, the most telling first; empty if nothing is."""
    error = best_match(Draft202012Validator(wanted).iter_errors(arguments))
    if error is None:
        return ""
    name = ".".join(str(part) for part in error.absolute_path)
    words = error.message if len(error.message) <= _WIDEST else f"it is not {error.validator_value}"
    return f"'{name}': {words:.{_WIDEST}}" if name else f"{words:.{_WIDEST}}"


@dataclass(frozen=True, slots=True)
class Given:
    """Arguments that were checked."""

    values: Mapping[str, Json] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A text that is there."""
        found = self.maybe(name)
        if found is None:
            raise BugError(f"the argument '{name}' was not checked")
        return found

    def maybe(self, name: str) -> str | None:
        """A text, if there is one."""
        found = self.values.get(name)
        return found if isinstance(found, str) else None

    def number(self, name: str) -> float | None:
        """A number, if there is one."""
        found = self.values.get(name)
        return float(found) if isinstance(found, int | float) else None

    def flag(self, name: str) -> bool:
        """Whether something is said."""
        return self.values.get(name) is True

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; none is an empty one."""
        found = self.values.get(name)
        return tuple(map(str, found)) if isinstance(found, list) else ()
