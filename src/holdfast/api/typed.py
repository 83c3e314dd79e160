"""Types of steps: the JSON Schema that a return annotation stands for, and values to and from JSON.

Dataclasses, TypedDicts, models of pydantic, enumerations, literals, and lists, mappings, tuples and
unions of them. Text, bytes and paths are no JSON and have no schema.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from holdfast.errors import UsageError
from holdfast.model.digest import Json

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
    """The annotations of a function, without those with a name that only type checkers know."""
    try:
        return get_type_hints(function)
    except (NameError, AttributeError, TypeError):
        return _some_hints(function)


def _some_hints(function: Callable[..., object]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in _annotations(function).items():
        alone = types.SimpleNamespace(__annotations__={name: kind})
        try:
            found |= get_type_hints(alone, getattr(function, "__globals__", {}))
        except (NameError, AttributeError, TypeError):
            continue
    return found


def _annotations(function: Callable[..., object]) -> Mapping[str, object]:
    """The annotations as they are written, as far as they are known."""
    if sys.version_info >= (3, 14):
        library = importlib.import_module("annotationlib")
        known = library.get_annotations(function, format=library.Format.FORWARDREF)
        return cast("Mapping[str, object]", known)
    return cast("Mapping[str, object]", getattr(function, "__annotations__", {}))


def wants_file(kind: object) -> bool:
    """Whether a parameter of this type gets the file of an artifact, or its bytes."""
    return _is_path(_one(kind)) or _one(kind) is bytes


def manner_of(kind: object) -> object:
    """How an artifact is handed over: as bytes, a file, the JSON that it is, or text."""
    if kind in (Any, object):
        return object
    if not wants_file(kind):
        return str
    return bytes if _one(kind) is bytes else Path


def _meant(kind: object) -> object:
    """The type that another name was given to, by `type` or NewType."""
    while not isinstance(kind, type):
        inner = getattr(kind, "__value__", None) or getattr(kind, "__supertype__", None)
        if inner is None:
            break
        kind = inner
    return kind


def _one(kind: object) -> object:
    """The type of what may be missing."""
    kind = _meant(kind)
    if get_origin(kind) not in _UNIONS:
        return kind
    there = [item for item in get_args(kind) if item is not type(None)]
    return there[0] if len(there) == 1 else kind


# --- schemas ----------------------------------------------------------------------------------------------


def schema_of(kind: object) -> Json:
    """The JSON Schema of a type; None if it says nothing that a schema could."""
    kind = _meant(kind)
    if (
        kind in _ANY
        or kind in (dict, list, tuple, set, frozenset, Mapping, Sequence)
        or _is_path(kind)
    ):
        return None
    if _holds_pydantic(kind):
        adapter = importlib.import_module("pydantic").TypeAdapter
        return cast("Json", adapter(kind).json_schema())
    return _schema(kind, ())


def is_structured(kind: object) -> bool:
    """Whether a type says which fields there are; a function is trusted with numbers and lists."""
    kind = _meant(kind)
    if _dataclass(kind) is not None or _pydantic(kind):
        return True
    return is_typeddict(kind) or any(is_structured(item) for item in get_args(kind))


def _holds_pydantic(kind: object) -> bool:
    """Whether a model of pydantic is in it; then that library knows the schema of it all."""
    return bool(_pydantic(kind)) or any(_holds_pydantic(item) for item in get_args(kind))


def _schema(kind: object, above: tuple[object, ...]) -> dict[str, Json]:
    kind = _meant(kind)
    if kind in above:
        raise UsageError(
            f"the type '{_name(kind)}' contains itself, and has no JSON Schema here",
            hint="give schema=…, or use a model of pydantic",
        )
    if kind in _PLAIN:
        return dict(cast("Mapping[str, Json]", _PLAIN[kind]))
    if kind in (Any, object, dict, Mapping):
        return {} if kind in (Any, object) else {"type": "object"}
    if kind in (list, tuple, set, frozenset, Sequence):
        return {"type": "array"}
    inner = (*above, kind)
    if _is_enum(kind):
        return {"enum": [cast("Json", plain(item)) for item in cast("type[enum.Enum]", kind)]}
    if (made := _dataclass(kind)) is not None:
        fields, hints = dataclasses.fields(made), _hints(kind)
        must = [item.name for item in fields if _must(item)]
        return _object({item.name: hints[item.name] for item in fields}, must, inner)
    if _is_named_tuple(kind):
        return _tuple(tuple(get_type_hints(kind).values()), inner)
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
        return _tuple(items, above)
    if origin in {dict, Mapping} and items[0] is str:
        return {"type": "object", "additionalProperties": _schema(items[1], above)}
    raise UsageError(
        f"the type '{_name(kind)}' has no JSON Schema here",
        hint="use dataclasses, TypedDicts, lists and mappings, or give schema=…",
    )


def _tuple(items: Sequence[object], above: tuple[object, ...]) -> dict[str, Json]:
    first: list[Json] = [_schema(item, above) for item in items]
    return {"type": "array", "prefixItems": first, "minItems": len(items), "items": False}


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


def _dataclass(kind: object) -> Any:  # noqa: ANN401 - any class
    """The dataclass that a type is, also with other types filled in; None if it is none."""
    found = get_origin(kind) or kind
    return found if isinstance(found, type) and dataclasses.is_dataclass(found) else None


def _hints(kind: object) -> dict[str, Any]:
    """The types of the fields of a dataclass, with what is filled in for their variables."""
    found = get_type_hints(get_origin(kind) or kind)
    variables = getattr(get_origin(kind), "__parameters__", ())
    filled = dict(zip(variables, get_args(kind), strict=False))
    return {name: _substituted(hint, filled) for name, hint in found.items()}


def _substituted(hint: Any, filled: Mapping[object, object]) -> object:  # noqa: ANN401 - any type
    if hint in filled:
        return filled[hint]
    inside = getattr(hint, "__parameters__", ())
    if isinstance(hint, type) or not filled or not inside:
        return hint
    return hint[tuple(filled.get(item, item) for item in inside)]


def _is_named_tuple(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


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
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=_sorting)
    return value


def _sorting(item: object) -> str:
    return json.dumps(item, sort_keys=True, default=str)


def given(kind: object, value: object) -> object:
    """An argument as a parameter of this type wants it; text is JSON where it cannot be text."""
    if wants_file(kind):
        return _file(_one(kind), value)
    if isinstance(value, str) and not _is_text(kind, value):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    return typed(kind, value)


def _file(kind: object, value: object) -> object:
    if not isinstance(value, str):
        return value
    return value.encode() if kind is bytes else Path(value)


def _is_text(kind: object, value: str) -> bool:
    """Whether a text is a value of a type as it stands."""
    kind = _meant(kind)
    if kind in (Any, object, str, None):
        return True
    if get_origin(kind) in _UNIONS:
        if value == "null" and type(None) in get_args(kind):
            return False  # nothing was given, rather than this word
        return any(_is_text(item, value) for item in get_args(kind) if item is not type(None))
    if get_origin(kind) is typing.Annotated:
        return _is_text(get_args(kind)[0], value)
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return _is_enum(kind) and any(item.value == value for item in cast("type[enum.Enum]", kind))


def _is_enum(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def typed(kind: object, value: object) -> object:
    """A JSON value as an object of a type; TypeError or ValueError if it is none."""
    kind = _meant(kind)
    if model := _pydantic(kind):
        return value if isinstance(value, kind) else model.model_validate(value)  # type: ignore[arg-type]
    if (made := _dataclass(kind)) is not None:
        if not isinstance(value, Mapping):
            return value
        hints, own = _hints(kind), {item.name for item in dataclasses.fields(made) if not item.init}
        return made(
            **{name: typed(hints.get(name), x) for name, x in value.items() if name not in own}
        )
    if _is_enum(kind):
        return cast("type[enum.Enum]", kind)(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
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
        return origin(made) if origin in {tuple, set, frozenset} else made
    if isinstance(value, list) and kind in (tuple, set, frozenset):
        return cast("type[tuple[object, ...]]", kind)(value)
    if isinstance(value, list) and _is_named_tuple(kind):
        hints = get_type_hints(kind)
        return cast("Any", kind)(*map(typed, hints.values(), value))
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
