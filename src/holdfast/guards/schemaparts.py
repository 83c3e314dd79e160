"""JSON Schemas without a library: their parts, and which of them are plainly right.

Most schemas of a plan use a few keywords in the usual way. Those are known to be right from here; the
library, which takes longer to load than a whole plan, is asked only about others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from holdfast.model.digest import Json

Placed = tuple[tuple[str | int, ...], Mapping[str, Json]]

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_NAMED = frozenset({"$defs", "definitions", "properties", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)


def parts(schema: Json, path: tuple[str | int, ...] = ()) -> Iterator[Placed]:
    """A schema and every schema in it, each with the keys that lead to it."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for key, value in schema.items():
        if key in _SINGLE:
            yield from parts(value, (*path, key))
        elif key in _NAMED and isinstance(value, Mapping):
            for name, part in value.items():
                yield from parts(part, (*path, key, name))
        elif key in _LISTED and isinstance(value, list):
            for number, part in enumerate(value):
                yield from parts(part, (*path, key, number))


def is_plain(schema: Json) -> bool:
    """Whether a schema is right for certain; if not, it may be right or wrong."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, Mapping):
        return False
    return all(key in _RIGHT and _RIGHT[key](value) for key, value in schema.items())


def _is_type(value: Json) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _is_names(value) and value != [] and all(item in TYPES for item in value)  # type: ignore[union-attr]


def _is_names(value: Json) -> bool:
    is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return is_texts and len(set(value)) == len(value)  # type: ignore[arg-type]  # texts, as said


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_flag(value: Json) -> bool:
    return isinstance(value, bool)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value: Json) -> bool:
    return isinstance(value, list)


def _is_anything(_value: Json) -> bool:
    return True


def _are_named(value: Json) -> bool:
    return isinstance(value, Mapping) and all(is_plain(part) for part in value.values())


def _are_listed(value: Json) -> bool:
    return isinstance(value, list) and value != [] and all(is_plain(part) for part in value)


# Patterns and references are not here: they need more than a look.
_RIGHT: Mapping[str, Callable[[Json], bool]] = {
    "type": _is_type,
    "required": _is_names,
    "enum": _is_list,
    "examples": _is_list,
    "uniqueItems": _is_flag,
    "const": _is_anything,
    "default": _is_anything,
    **dict.fromkeys(("title", "description", "format", "$comment"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("$defs", "properties"), _are_named),
    **dict.fromkeys(_LISTED, _are_listed),
    **dict.fromkeys(_SINGLE, is_plain),
}
