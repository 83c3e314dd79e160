"""The schema of an answer in the forms that vendors take; none of them says anything else than the plan does.

A provider wants an object at the root, so anything else is put into one and taken out of it again. Its one
property has a name that the schema does not know, so that no other object is taken for it. Strict mode of
OpenAI, which holds a model to a schema while it writes, takes only a part of JSON Schema. Some vendors close
every object, which is harmless only where the schema says what may be in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from holdfast.model.digest import Json

CLOSES_OBJECTS = (
    "closes_objects"  # in the profile of a model: it lets no object have more than it names
)
_FORKS = ("anyOf", "oneOf", "allOf")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = (*_FORKS, "prefixItems", "items")
_SINGLE = (
    *("items", "additionalProperties", "additionalItems", "contains", "propertyNames", "not"),
    *("if", "then", "else", "unevaluatedItems", "unevaluatedProperties"),
)
_NO_ROOT = (*_FORKS, "enum", "not", "$ref")  # what no provider takes beside the type of the root
_STRICT = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum"),
        *(
            "const",
            "$ref",
            "$defs",
            "definitions",
            "description",
            "pattern",
            "format",
            "multipleOf",
        ),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
    )
)
_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)
_TYPED = ("type", "$ref", "anyOf", "enum", "const")
_SHARED = re.compile(r"#/(\$defs|definitions)/[^/]+\Z")
_OWN = re.compile(r"#(\Z|/(?!\$defs/|definitions/))")
_DEEPEST = 10  # objects and arrays within each other, in strict mode
_MOST_PROPERTIES = 5000
Node = Mapping[str, Json]


def is_object(schema: Json) -> bool:
    """Whether a schema can stand at the root as it is."""
    return (
        isinstance(schema, Mapping)
        and schema.get("type") == "object"
        and not any(word in schema for word in _NO_ROOT)
    )


def rooted(schema: Json) -> dict[str, object]:
    """A schema whose root is an object; `unrooted` takes the answer out again."""
    if is_object(schema):
        return cast("dict[str, object]", schema)
    shared: dict[str, object] = {}
    name = _wrapper(schema)
    inner = _moved(schema, name)
    if isinstance(inner, dict):  # refs to these count from the top
        shared = {word: inner.pop(word) for word in ("$defs", "definitions") if word in inner}
    return {
        "type": "object",
        "properties": {name: inner},
        "required": [name],
        "additionalProperties": False,
        **shared,
    }


def unrooted(text: str, schema: Json) -> str:
    """The answer as its model wrote it, without what `rooted` put around it."""
    if is_object(schema):
        return text
    opening = re.match(rf'\s*\{{\s*"{_wrapper(schema)}"\s*:\s*', text)
    if opening is None:
        return text
    try:
        _, end = json.JSONDecoder().raw_decode(text, opening.end())
    except (ValueError, RecursionError):
        return text  # the guard says what is wrong
    return text[opening.end() : end] if text[end:].strip() == "}" else text


def _wrapper(schema: Json) -> str:
    """The property that takes an answer which is no object."""
    known, name = json.dumps(schema, default=dict), "answer"
    while f'"{name}"' in known:
        name += "_"
    return name


def is_strict(schema: Json) -> bool:
    """Whether strict mode takes a schema as it is."""
    nodes = list(_nodes(schema))
    properties = sum(
        len(_map(node, "properties")) for node, _ in nodes if isinstance(node, Mapping)
    )
    return (
        is_object(schema)
        and properties <= _MOST_PROPERTIES
        and all(
            isinstance(node, Mapping) and depth <= _DEEPEST and _is_strict_node(node)
            for node, depth in nodes
        )
    )


def can_be_closed(schema: Json) -> bool:
    """Whether nothing that a schema asks for is lost if each of its objects has only what it names."""
    return all(isinstance(node, Mapping) and _can_be_closed(node) for node, _ in _nodes(schema))


def _is_strict_node(node: Node) -> bool:
    kinds = _kinds(node)
    if not node.keys() <= _STRICT or not any(word in node for word in _TYPED):
        return False
    if "format" in node and node["format"] not in _FORMATS:
        return False
    if "(?" in str(node.get("pattern", "")):  # looks around itself
        return False
    ref = node.get("$ref")
    if ref is not None and (len(node) > 1 or not (ref == "#" or _SHARED.match(str(ref)))):
        return False
    if "array" in kinds and not isinstance(node.get("items"), Mapping):
        return False
    if "object" not in kinds:
        return "properties" not in node and "required" not in node
    required = node.get("required")
    return (
        "properties" in node
        and node.get("additionalProperties") is False
        and isinstance(required, list | tuple)
        and set(required) == set(_map(node, "properties"))
    )


def _can_be_closed(node: Node) -> bool:
    if not any(word in node for word in ("type", "$ref", "anyOf", "oneOf")):
        return False
    if any(word in node for word in ("allOf", "patternProperties", "definitions")):
        return False
    if not _SHARED.match(str(node.get("$ref", "#/$defs/x"))):
        return False
    if "object" not in _kinds(node):
        return "properties" not in node and "required" not in node
    required = cast("list[str]", node.get("required") or [])
    return (
        node["type"] == "object"
        and "properties" in node
        and node.get("additionalProperties", False) is False
        and set(required) <= set(_map(node, "properties"))
    )


def _kinds(node: Node) -> tuple[Json, ...]:
    kind = node.get("type")
    return tuple(kind) if isinstance(kind, list | tuple) else (kind,)


def _map(node: Node, word: str) -> Node:
    found = node.get(word)
    return found if isinstance(found, Mapping) else {}


def _nodes(schema: Json, depth: int = 0) -> Iterator[tuple[Json, int]]:
    """A schema and every schema in it, with how many objects and arrays are around it."""
    yield schema, depth
    if not isinstance(schema, Mapping):
        return
    for word in _NAMED:
        for each in _map(schema, word).values():
            yield from _nodes(each, depth + 1)
    for word in _LISTED:
        listed = schema.get(word)
        for each in listed if isinstance(listed, list | tuple) else ():
            yield from _nodes(each, depth)
    for word in _SINGLE:
        single = schema.get(word)
        if isinstance(single, Mapping) or (isinstance(single, bool) and word == "items"):
            yield from _nodes(single, depth + 1)


def _moved(schema: Json, name: str) -> object:
    """A copy for a property of another schema: what refers to the root refers to that place."""
    if not isinstance(schema, Mapping):
        return schema
    copy: dict[str, object] = dict(schema)
    ref = schema.get("$ref")
    if isinstance(ref, str) and _OWN.match(ref):
        copy["$ref"] = f"#/properties/{name}{ref[1:]}"
    for word in _NAMED:
        if isinstance(schema.get(word), Mapping):
            copy[word] = {key: _moved(each, name) for key, each in _map(schema, word).items()}
    for word in (*_LISTED, *_SINGLE):
        found = schema.get(word)
        if isinstance(found, list | tuple):
            copy[word] = [_moved(each, name) for each in found]
        elif isinstance(found, Mapping):
            copy[word] = _moved(found, name)
    return copy
