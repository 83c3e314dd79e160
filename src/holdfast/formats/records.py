"""Mappings with a closed set of keys."""

from __future__ import annotations

from collections.abc import Mapping as Table

from holdfast.formats.nodes import Mapping, Node
from holdfast.formats.problems import quoted
from holdfast.formats.reading import Reading
from holdfast.formats.shapes import Shape
from holdfast.model.digest import Json
from holdfast.model.fixed import frozen


@frozen
class Key:
    """A key: its shape, nothing if it is reserved; the field it fills if of another name; its meaning."""

    shape: Shape[object] | None
    field: str = ""
    words: str = ""


RESERVED = Key(None)


def record(
    reading: Reading, what: str, node: Node, table: Table[str, Key]
) -> dict[str, object] | None:
    """Read a mapping by its table; what could not be read is reported and left out."""
    if not isinstance(node, Mapping):
        reading.wrong_type(what, node, "a mapping")
        return None
    given: dict[str, object] = {}
    for name, (place, value) in node.pairs.items():
        key = table.get(name)
        if key is None:
            guess = reading.problems.did_you_mean(name, table)
            hint = guess or f"known here: {', '.join(k for k in table if table[k].shape)}"
            message = f"{quoted(name)} is not a key of {_owner(reading, what)}"
            reading.problems.add("P030", place, message, hint)
        elif key.shape is None:
            message = f"'{name}' is not available in this version"
            reading.problems.add("P031", place, message)
        else:
            found = key.shape.read(reading, name, value)
            if found is not None:
                given[key.field or name] = found
    return given


def record_schema(table: Table[str, Key], required: tuple[str, ...] = ()) -> dict[str, Json]:
    """The same table as JSON Schema."""
    known = {name: key_schema(key) for name, key in table.items() if key.shape}
    schema: dict[str, Json] = {"type": "object", "properties": known, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return schema


def key_schema(key: Key) -> Json:
    """The schema of one key, with its meaning for whoever completes or explains it."""
    schema = key.shape.schema if key.shape else {}
    return (
        {**schema, "description": key.words} if isinstance(schema, Table) and key.words else schema
    )


def _owner(reading: Reading, what: str) -> str:
    if not reading.step:
        return f"'{what}'" if what != "plan" else "a plan"
    step = quoted(reading.step)
    return f"step {step}" if what == "step" else f"'{what}' of {step}"
