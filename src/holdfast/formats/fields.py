"""Fields that expressions read, compared with what the needed steps say that they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.formats.problems import Problems, quoted
from holdfast.formats.reading import Use
from holdfast.model.digest import Json
from holdfast.model.fixed import frozen

# Any of these may bring fields that `properties` does not name.
_OPEN = frozenset(
    {
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "not",
        "patternProperties",
        "dependentSchemas",
        "additionalProperties",
    }
)


@frozen
class Promise:
    """What a step says about its artifact: keys it must have, a schema, the file of that schema."""

    outputs: tuple[str, ...] = ()
    schema: Json = None
    file: str = ""

    def names(self) -> tuple[str, ...]:
        """The fields of the artifact itself, empty if nothing is said about them."""
        known = _names(self.schema)
        if known is None:
            says_more = isinstance(self.schema, Mapping) and not _OPEN.isdisjoint(self.schema)
            return () if says_more else self.outputs
        return tuple(dict.fromkeys((*known, *self.outputs)))


def check_fields(
    step: str, uses: Iterable[Use], promises: Mapping[str, Promise], problems: Problems
) -> None:
    """Report fields that a needed step does not have, as far as it says what it has."""
    for use in uses:
        reference = use.reference
        promise = promises.get(reference.name)
        if reference.root != "steps" or promise is None or not reference.fields:
            continue
        depth, known = _missing(reference.fields, promise)
        if not depth:
            continue
        field, above = reference.fields[depth - 1], ".".join(reference.fields[: depth - 1])
        message = f"{quoted(step)} reads a field that {quoted(reference.name)} does not give"
        said = promise.file or ("its schema" if promise.schema is not None else "its outputs")
        inside = f"'{above}' in the" if above else "the"
        note = f"{inside} artifact of {quoted(reference.name)} ({said}) has: {', '.join(known)}"
        hint = problems.did_you_mean(field, known)
        at = use.place(depth)
        problems.add("P012", at, message, hint, mark=f"no field {quoted(field)}", note=note)


def _missing(fields: tuple[str, ...], promise: Promise) -> tuple[int, tuple[str, ...]]:
    """How deep the first field that is not there stands, and what is there; 0 if nothing is missing."""
    names = promise.names()
    if names and fields[0] not in names:
        return 1, names
    schema = _inner(promise.schema, fields[0])
    for depth, field in enumerate(fields[1:], 2):
        known = _names(schema)
        if known and field not in known:
            return depth, known
        schema = _inner(schema, field)
    return 0, ()


def _names(schema: Json) -> tuple[str, ...] | None:
    """The fields that a schema allows; None if it does not say."""
    if not isinstance(schema, Mapping):
        return None
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    if not is_closed and not _OPEN.isdisjoint(schema):
        return None
    required = schema.get("required")
    more = [str(name) for name in required] if isinstance(required, list) else []
    return tuple(dict.fromkeys((*properties, *more)))


def _inner(schema: Json, field: str) -> Json:
    if not isinstance(schema, Mapping):
        return None
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and field in properties:
        return properties[field]
    return schema.get("items") if field.isdecimal() else None
