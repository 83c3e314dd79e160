"""Params of a plan: what is declared in the file, and the values that were given for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Table
from shlex import quote
from typing import cast, get_args

from holdfast.errors import EditError, UsageError
from holdfast.formats.nodes import FORBIDDEN_VALUE, Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Problems, quoted
from holdfast.formats.reading import Find, Param, ParamType, Reading
from holdfast.formats.records import Key, record, record_schema
from holdfast.formats.shapes import Shape, as_is, inside, pairs, prose, word
from holdfast.model.digest import EncodingError, Json, canonical
from holdfast.model.expression import PARAM_NAME

TYPES = get_args(ParamType)
_WORDS = {
    "string": "text",
    "int": "a whole number",
    "bool": "true or false",
    "files": "a glob",
    "list": "a list",
}
_INT = re.compile(r"[-+]?[0-9]{1,4000}\Z")

PARAM: dict[str, Key] = {
    "type": Key(
        word(*TYPES),
        words="What the value is; files is a glob that stands for its paths, list is written as JSON.",
    ),
    "default": Key(
        Shape(as_is, {"type": ["string", "integer", "boolean", "array"]}),
        words="The value if none is given; without it the param must be given.",
    ),
}


def params_schema() -> Json:
    """The mapping of names to params, for the JSON Schema."""
    return {
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,127}$"},
        "additionalProperties": {"$ref": "#/$defs/param"},
    }


def param_schema() -> Json:
    """One param, for the definitions of the JSON Schema."""
    return record_schema(PARAM, ("type",))


def read_params(
    reading: Reading,
    node: Node | None,
    given: Table[str, Json],
    find: Find | None,
    *,
    inner: bool = False,
) -> dict[str, Param]:
    """The params with their values. A value that nobody asked for, or of another type, is a UsageError.

    Those of an `inner` plan come from the step that uses it, not from a command.
    """
    declared: dict[str, Param] = {}
    if node is not None and not isinstance(node, Mapping):
        reading.wrong_type("params", node, "a mapping of names to {type, default}")
    elif node is not None:
        for name, (key, value) in node.pairs.items():
            declared[name] = _declared(reading, name, key, value, given, inner=inner)
    _refuse_unknown(given, declared, reading.problems)
    return {name: _resolved(reading, param, find) for name, param in declared.items()}


def _declared(
    reading: Reading,
    name: str,
    key: Scalar,
    node: Node,
    asked: Table[str, Json],
    *,
    inner: bool,
) -> Param:
    problems = reading.problems
    if not PARAM_NAME.match(name):
        hint = "start with a letter or _, then letters, digits, _ and -; at most 128"
        problems.add("P046", key, f"{quoted(name)} is not the name of a param", hint)
    known = record(reading, f"params.{name}", node, PARAM)
    if known is None or "type" not in known:
        if isinstance(node, Mapping) and "type" not in node.pairs:
            hint = f"write type: {', '.join(TYPES)}"
            problems.add("P033", key, f"the param {quoted(name)} has no 'type'", hint)
        return Param(name, key, "string")
    kind = cast("ParamType", known["type"])
    default = _default(reading, name, kind, cast("Node | None", known.get("default")))
    if name in asked:
        return Param(name, key, kind, taken(name, kind, asked[name], inner=inner))
    is_open = isinstance(node, Mapping) and "default" not in node.pairs
    if is_open and PARAM_NAME.match(name):  # another name has to be changed first
        message = f"the param {quoted(name)} has no default and was not given"
        problems.add("P062", key, message, _WITH if inner else f"--param {name}=…")
    return Param(name, key, kind, default)


def _default(reading: Reading, name: str, kind: ParamType, node: Node | None) -> Json:
    if node is None:
        return None
    value: Json = node.value if isinstance(node, Scalar) else None
    if kind == "list" and isinstance(node, Listing):
        return _texts(reading, node)
    if not _fits(kind, value):
        reading.wrong_type(f"default' of the param '{name}", node, _WORDS[kind])
        return None
    if isinstance(value, str):
        value = prose(reading, "default", node)
    if kind == "files" and isinstance(value, str):
        parts = inside(reading, "default", node, value)
        return "/".join(parts) if parts else None
    return value


def _texts(reading: Reading, node: Node) -> Json:
    """A default as JSON; what stands for the text of an expression in it is that text."""
    if isinstance(node, Mapping):
        return {name: _texts(reading, item) for name, item in pairs(reading, node)}
    if isinstance(node, Listing):
        return [_texts(reading, item) for item in node.items]
    return prose(reading, "default", node) if isinstance(node.value, str) else node.value


def _fits(kind: ParamType, value: Json) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "list":
        return isinstance(value, list)
    return isinstance(value, str)


def taken(name: str, kind: ParamType, value: Json, *, inner: bool = False) -> Json:
    """A value from the command line is text, one from a program has its type already."""
    if isinstance(value, str) and kind == "int" and _INT.match(value):
        return int(value)
    if kind == "bool" and value in {"true", "false"}:
        return value == "true"
    if kind == "list" and isinstance(value, str):
        value = _parsed(value)
    if not _fits(kind, value):
        shown = quoted(value) if isinstance(value, str) else f"'{json.dumps(value)}'"
        message = f"the param '{name}' is {_WORDS[kind]}, and {shown} is not"
        if isinstance(value, str) and not inner:
            raise UsageError(message, hint=f"--param {quote(name)}={_EXAMPLES[kind]}")
        raise UsageError(message, hint=_WITH if inner else f"give it {_WORDS[kind]}")
    if isinstance(value, str) and (odd := FORBIDDEN_VALUE.search(value)):
        raise UsageError(
            f"the value of the param '{name}' holds the character U+{ord(odd.group()):04X}"
        )
    return value


_WITH = "give it in 'with' of the step that uses this plan"
_EXAMPLES = {"int": "N", "bool": "true", "list": '\'["a", "b"]\''}


def _parsed(text: str) -> Json:
    """A list as it is written on a command line; the text itself if it is none."""
    try:
        found = json.loads(text)
        canonical(found)
    except (ValueError, RecursionError, EncodingError):
        return text
    return cast("Json", found) if isinstance(found, list) else text


def _refuse_unknown(
    given: Table[str, Json], declared: Table[str, Param], problems: Problems
) -> None:
    for name in given:
        if name not in declared:
            known = f"params of this plan: {', '.join(declared)}" if declared else "it has none"
            hint = problems.did_you_mean(name, declared) or known
            raise UsageError(f"the plan has no param {quoted(name)}", hint=hint)


def _resolved(reading: Reading, param: Param, find: Find | None) -> Param:
    """With the value that it stands for: itself, or the paths that a glob matches."""
    if param.type != "files" or param.given is None:
        return Param(param.name, param.key, param.type, param.given, param.given)
    problems = reading.problems
    parts = inside(reading, f"params.{param.name}", param.key, str(param.given))
    if parts is None:
        return Param(param.name, param.key, param.type)
    glob, paths = "/".join(parts), list[str]()
    try:
        paths = find(str(reading.root), glob) if find else []
    except EditError as error:
        problems.add("P045", param.key, f"the param '{param.name}': {error.message}")
    odd = next((path for path in paths if FORBIDDEN_VALUE.search(path)), None)
    if odd is not None:
        message = f"the param '{param.name}' matches {quoted(odd)}, a name that a plan cannot hold"
        problems.add("P045", param.key, message, "rename the file")
        return Param(param.name, param.key, param.type)
    if not paths:
        message = f"no file matches {quoted(glob)}, the value of the param '{param.name}'"
        problems.add("P045", param.key, message, f"--param {quote(param.name)}=GLOB")
    return Param(param.name, param.key, param.type, glob, paths)
