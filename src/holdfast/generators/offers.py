"""Functions as tools of a model: what it is told of them, found by parsing, never by importing.

The schema of the arguments follows from the annotations. One that says nothing, or something that JSON
does not have, lets any value through: the function itself must cope with it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.errors import AttemptError
from holdfast.generators.imports import module_file
from holdfast.model.call import Offer
from holdfast.model.digest import Json
from holdfast.model.strict import strict_json
from holdfast.ports import Flaw

_PLAIN: Mapping[str, Json] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "list": {"type": "array"},
    "dict": {"type": "object"},
    "Sequence": {"type": "array"},
    "Mapping": {"type": "object"},
}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
_MOST_WORDS = 4000
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def tool_flaw(target: str, root: str) -> Flaw | None:
    """Why a function cannot be a tool."""
    try:
        offer_of(target, root)
    except AttemptError as error:
        return Flaw(error.message, hint=error.hint or "")
    return None


def offer_of(target: str, root: str) -> Offer:
    """What a model is told of `module:function`; AttemptError if that cannot be told."""
    module, _, name = target.partition(":")
    file = module_file(root, module)
    if file is None or not file.endswith(".py"):
        raise _refused(f"there is no source of '{module}' in the project for the tool '{target}'")
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(
            f"the source of '{module}' cannot be read for the tool '{target}'"
        ) from error
    found = [node for node in tree.body if isinstance(node, _Function) and node.name == name]
    if not found:
        raise _refused(f"'{module}' has no function '{name}' that can be a tool")
    return Offer(name, _words(found[-1]), _schema(found[-1], target))


def _refused(message: str) -> AttemptError:
    return AttemptError(message, reason="command_failed")


def _words(function: _Function) -> str:
    return (ast.get_docstring(function) or "")[:_MOST_WORDS]


def _schema(function: _Function, target: str) -> Json:
    given = function.args
    if given.posonlyargs:
        name = given.posonlyargs[0].arg
        raise _refused(f"the parameter '{name}' of the tool '{target}' cannot be given by name")
    optional = len(given.args) - len(given.defaults)
    defaults: list[ast.expr | None] = [*([None] * optional), *given.defaults, *given.kw_defaults]
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for parameter, default in zip((*given.args, *given.kwonlyargs), defaults, strict=True):
        about = dict(_annotated(parameter.annotation))
        if default is None:
            required.append(parameter.arg)
        elif isinstance(default, ast.Constant) and isinstance(
            default.value, str | int | float | None
        ):
            about["default"] = default.value
        properties[parameter.arg] = about
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": given.kwarg is not None,
    }


def _annotated(node: ast.expr | None) -> Mapping[str, Json]:
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            try:
                return _annotated(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError):
                return {}
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return cast("Mapping[str, Json]", _PLAIN.get(name, {}))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _either([left, right])
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _subscripted(name, inner)
        case _:
            return {}


def _subscripted(name: str, inner: ast.expr) -> Mapping[str, Json]:
    items = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    match name:
        case "Literal":
            return {"enum": [item.value for item in items if isinstance(item, ast.Constant)]}  # type: ignore[misc]  # JSON by grammar
        case "list" | "Sequence":
            return {"type": "array", "items": _annotated(items[0])}
        case "dict" | "Mapping" if len(items) == 2:  # noqa: PLR2004 - keys and values
            return {"type": "object", "additionalProperties": _annotated(items[1])}
        case "Optional":
            return _either([items[0], ast.Constant(None)])
        case "Union":
            return _either(items)
        case "Annotated":
            return _annotated(items[0])
        case _:
            return {}


def _either(nodes: Sequence[ast.expr]) -> Mapping[str, Json]:
    forms: list[Json] = []
    for node in nodes:
        about = _annotated(node)
        if not about:
            return {}
        forms.extend(cast("list[Json]", about["anyOf"]) if "anyOf" in about else [about])
    return {"anyOf": forms}


def arguments_of(text: str, schema: Json) -> dict[str, Json]:
    """What a model gave, if a tool takes it; ValueError says in words what is wrong with it."""
    try:
        given = strict_json(text or "{}")
    except ValueError as error:
        raise ValueError(f"the arguments are not JSON: {error}") from error
    if not isinstance(given, dict):
        raise ValueError("the arguments are not a JSON object")  # noqa: TRY004 - the model's fault
    wrong = _wrong(given, cast("Mapping[str, Json]", schema), "the arguments")
    if wrong:
        raise ValueError(wrong)
    return given


def _wrong(value: Json, schema: Mapping[str, Json], what: str) -> str:
    """Why a value does not fit a schema that was made here; empty if it does."""
    if "anyOf" in schema:
        forms = cast("Sequence[Mapping[str, Json]]", schema["anyOf"])
        if all(_wrong(value, form, what) for form in forms):
            return f"{what}: {_wrong(value, forms[0], what).removeprefix(f'{what} ')}"
        return ""
    if "enum" in schema:
        allowed = cast("list[Json]", schema["enum"])
        return "" if value in allowed else f"{what} must be one of {json.dumps(allowed)}"
    kind = str(schema.get("type", ""))
    if kind and not _is(value, kind):
        return f"{what} must be of type {kind}"
    if isinstance(value, list) and isinstance(items := schema.get("items"), Mapping):
        found = (_wrong(item, items, f"item {at} of {what}") for at, item in enumerate(value))
        return next(filter(None, found), "")
    return _wrong_inside(value, schema, what) if isinstance(value, dict) else ""


def _is(value: Json, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind])


def _wrong_inside(value: dict[str, Json], schema: Mapping[str, Json], what: str) -> str:
    for name in cast("Sequence[str]", schema.get("required", ())):
        if name not in value:
            return f"'{name}' is missing"
    known = cast("Mapping[str, Mapping[str, Json]]", schema.get("properties", {}))
    more = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            wrong = _wrong(item, known[name], f"'{name}'")
        elif more is False:
            names = ", ".join(known) or "none"
            wrong = f"there is no argument '{name}'; there are: {names}"
        else:
            inner = more if isinstance(more, Mapping) else {}
            wrong = _wrong(item, inner, f"'{name}' of {what}")
        if wrong:
            return wrong
    return ""
