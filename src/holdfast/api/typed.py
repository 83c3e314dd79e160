"""Types of steps: the JSON Schema that a return annotation stands for, and values to and from JSON.

Dataclasses, TypedDicts, models of pydantic, enumerations, literals, and lists, mappings, tuples and
unions of them. Text, bytes and paths are no JSON and have no schema.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from holdfast.errors import UsageError
from holdfast.model.digest import Json

INPUTS = "HOLDFAST_INPUTS/"  # of a need, for who wants its file
_PLAIN: dict[object, Json] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
}
_ANY = (Any, object, None, type(None), str, bytes)
_UNIONS = (Union, types.UnionType)


def hints_of(function: Callable[..., object]) -> dict[str, Any]:
    """The annotations of a function; nothing where a name is known to type checkers only."""
    try:
        return get_type_hints(function)
    except (NameError, AttributeError, TypeError):
        return {}


# --- schemas ----------------------------------------------------------------------------------------------


def schema_of(kind: object) -> Json:
    """The JSON Schema of a type; None if it says nothing that a schema could."""
    if kind in _ANY or kind in (dict, list, tuple, Mapping, Sequence) or _is_path(kind):
        return None
    if _holds_pydantic(kind):
        adapter = importlib.import_module("pydantic").TypeAdapter
        return cast("Json", adapter(kind).json_schema())
    return _schema(kind, ())


def is_structured(kind: object) -> bool:
    """Whether a type says which fields there are; a function is trusted with numbers and lists."""
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or _pydantic(kind)):
        return True
    return is_typeddict(kind) or any(is_structured(item) for item in get_args(kind))


def _holds_pydantic(kind: object) -> bool:
    """Whether a model of pydantic is in it; then that library knows the schema of it all."""
    return bool(_pydantic(kind)) or any(_holds_pydantic(item) for item in get_args(kind))


def _schema(kind: object, above: tuple[object, ...]) -> dict[str, Json]:
    if kind in above:
        raise UsageError(f"the type '{_name(kind)}' contains itself, and has no JSON Schema here")
    if kind in _PLAIN:
        return dict(cast("Mapping[str, Json]", _PLAIN[kind]))
    if kind in (Any, object, dict, Mapping):
        return {} if kind in (Any, object) else {"type": "object"}
    if kind in (list, tuple, Sequence):
        return {"type": "array"}
    inner = (*above, kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [cast("Json", plain(item)) for item in kind]}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        fields = dataclasses.fields(kind)
        must = [item.name for item in fields if _must(item)]
        return _object({item.name: _hint(kind, item.name) for item in fields}, must, inner)
    if is_typeddict(kind):
        found = get_type_hints(kind)
        required = cast("frozenset[str]", getattr(kind, "__required_keys__", frozenset()))
        return _object(found, [name for name in found if name in required], inner)
    return _generic(kind, inner)


def _generic(kind: object, above: tuple[object, ...]) -> dict[str, Json]:
    origin, items = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(items)}
    if origin in _UNIONS:
        return {"anyOf": [_schema(item, above) for item in items]}
    if origin is typing.Annotated:
        return _schema(items[0], above)
    if origin in {list, Sequence, set, frozenset} or _is_open_tuple(origin, items):
        return {"type": "array", "items": _schema(items[0], above)}
    if origin is tuple:
        first: list[Json] = [_schema(item, above) for item in items]
        return {"type": "array", "prefixItems": first, "minItems": len(items), "items": False}
    if origin in {dict, Mapping} and items[0] is str:
        return {"type": "object", "additionalProperties": _schema(items[1], above)}
    raise UsageError(
        f"the type '{_name(kind)}' has no JSON Schema here",
        hint="use dataclasses, TypedDicts, lists and mappings, or give schema=…",
    )


def _object(
    fields: Mapping[str, object], must: Sequence[str], above: tuple[object, ...]
) -> dict[str, Json]:
    found: dict[str, Json] = {
        "type": "object",
        "properties": {name: _schema(kind, above) for name, kind in fields.items()},
        "additionalProperties": False,
    }
    return {**found, "required": list(must)} if must else found


def _must(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _hint(kind: type, name: str) -> object:
    return get_type_hints(kind)[name]


def _is_path(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath)


def _is_open_tuple(origin: object, items: tuple[object, ...]) -> bool:
    return origin is tuple and len(items) == 2 and items[1] is Ellipsis  # noqa: PLR2004 - T and …


def _pydantic(kind: object) -> Any:  # noqa: ANN401 - a class of a library that may not be there
    """The type itself if it is a model of pydantic, which is not loaded to find out."""
    return kind if isinstance(kind, type) and hasattr(kind, "model_json_schema") else None


def _name(kind: object) -> str:
    return str(getattr(kind, "__name__", kind))


# --- values -----------------------------------------------------------------------------------------------


def plain(value: object) -> object:
    """A value as JSON knows it; anything that is no object of a known kind as it is."""
    if _pydantic(type(value)):
        return cast("Any", value).model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def given(kind: object, value: object) -> object:
    """An argument as a parameter of this type wants it; text is JSON where it cannot be text."""
    if _is_path(kind) or kind is bytes:
        return _file(kind, value)
    if isinstance(value, str) and not _takes_text(kind):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    return typed(kind, value)


def _file(kind: object, value: object) -> object:
    if not isinstance(value, str):
        return value
    place = value
    if value.startswith(INPUTS):
        place = os.path.join(os.environ["HOLDFAST_INPUTS"], value.removeprefix(INPUTS))
        if kind is bytes:
            return Path(place).read_bytes()
    return value.encode() if kind is bytes else Path(place)


def _takes_text(kind: object) -> bool:
    if kind in (Any, object, str, None):
        return True
    if get_origin(kind) in _UNIONS or get_origin(kind) is typing.Annotated:
        return any(_takes_text(item) for item in get_args(kind) if item is not type(None))
    if get_origin(kind) is Literal:
        return any(isinstance(item, str) for item in get_args(kind))
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def typed(kind: object, value: object) -> object:
    """A JSON value as an object of a type; TypeError or ValueError if it is none."""
    if model := _pydantic(kind):
        return value if isinstance(value, kind) else model.model_validate(value)  # type: ignore[arg-type]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if not isinstance(value, Mapping):
            return value
        fields = {item.name: _hint(kind, item.name) for item in dataclasses.fields(kind)}
        return kind(**{name: typed(fields.get(name), item) for name, item in value.items()})
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if is_typeddict(kind) and isinstance(value, Mapping):
        hints = get_type_hints(kind)
        return {name: typed(hints.get(name), item) for name, item in value.items()}
    return _filled(kind, value)


def _filled(kind: object, value: object) -> object:
    origin, items = get_origin(kind), get_args(kind)
    if origin is typing.Annotated:
        return typed(items[0], value)
    if origin in _UNIONS:
        return _one_of(items, value)
    if isinstance(value, list) and items:
        if origin is tuple and not _is_open_tuple(origin, items):
            return tuple(typed(one, item) for one, item in zip(items, value, strict=True))
        made = [typed(items[0], item) for item in value]
        return tuple(made) if origin is tuple else made
    if isinstance(value, Mapping) and len(items) == 2:  # noqa: PLR2004 - keys and values
        return {name: typed(items[1], item) for name, item in value.items()}
    return value


def _one_of(kinds: Sequence[object], value: object) -> object:
    """The value as the first type of a union that it fits."""
    for kind in kinds:
        if kind is type(None):
            if value is None:
                return None
            continue
        try:
            made = typed(kind, value)
        except (TypeError, ValueError, KeyError):
            continue
        if made is not value or not isinstance(kind, type) or isinstance(value, kind):
            return made
    return value
