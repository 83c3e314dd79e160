"""What a function of this very process is made of, spelled so that every process spells it alike.

Code and constants are spelled, never addresses or hash order. What has no spelling is named, so that
nothing is reused that it may have changed. The source of a module covers what its functions read by a
global name. A function in no file, as in a notebook, has none: what it reads is spelled too, with the
functions of other cells, and modules of the project are named for who knows their source.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import hashlib
import inspect
import os
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_CONSTANTS = frozenset({type(None), bool, int, float, complex, str, bytes})
_OWN = __name__.partition(".")[0]
# Of a class: what says nothing of what it does, or is spelled otherwise.
_IDLE = frozenset(
    {
        "__abstractmethods__",
        "__annotations__",
        "__annotations_cache__",
        "__classcell__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
    }
)
_FIELD = ("name", "type", "default", "default_factory", "init", "repr", "hash", "compare")
_SENTINELS = frozenset({"_MISSING_TYPE", "_HAS_DEFAULT_FACTORY_CLASS"})
_CACHE = type(functools.cache(len))
_REPRS = frozenset({"dataclasses", "reprlib"})  # wrap the `__repr__` of a dataclass


def innermost(function: object) -> object:
    """The function inside of partial ones."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def undecorated(function: object) -> object:
    """The function without what this package put around it; what others did belongs to it."""
    if hasattr(type(function), "__holdfast_call__"):
        function = cast("Any", function).__holdfast_call__
    while _module_of(function).partition(".")[0] == _OWN and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _module_of(function: object) -> str:
    """Where the code of a function is; its `__module__` may be that of one that it wraps."""
    if not isinstance(function, types.FunctionType):
        return ""
    return str(function.__globals__.get("__name__", ""))


class Spelling:
    """One value on the way to its digest, with what was met there; the source of `covered` is known."""

    def __init__(self, covered: str = "") -> None:
        self._covered = covered
        self.unspelled: set[str] = set()
        self.modules: set[str] = set()  # whose source decides too
        self.files: set[str] = set()  # and these
        self._begun: dict[int, int] = {}  # functions and classes, which may contain themselves

    def digest(self, value: object) -> str:
        """A digest that is equal in every process."""
        whole = self._function if isinstance(value, types.FunctionType) else self._spelled
        return hashlib.sha256(whole(value).encode("utf-8", "surrogatepass")).hexdigest()  # type: ignore[arg-type]

    def _spelled(self, value: object) -> str:
        if type(value) in _CONSTANTS:
            return f"{type(value).__name__}:{value!r}"
        if type(value) is tuple:
            return f"({','.join(self._spelled(item) for item in value)})"
        if type(value) is frozenset:
            return f"{{{','.join(sorted(self._spelled(item) for item in value))}}}"
        value = undecorated(value)
        if isinstance(value, types.FunctionType | type):
            return self._once(value)
        spelled = self._callable(value) or self._described(value)
        if spelled is None:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            self.unspelled.add(f"a value of type '{kind}'")
            return f"<{kind}>"
        return spelled

    def _callable(self, value: object) -> str | None:
        """Code, and what can be called; with the object that it belongs to."""
        match value:
            case types.CodeType():
                parts = (value.co_code, value.co_names, value.co_varnames, value.co_freevars)
                return self._spelled((*parts, value.co_flags, value.co_consts))
            case types.MethodType():
                return "method:" + self._spelled((value.__func__, value.__self__))
            case types.BuiltinFunctionType():
                owner = value.__self__
                if owner is None or isinstance(owner, types.ModuleType):
                    return f"{value.__module__}.{value.__qualname__}"
                return f"builtin:{value.__name__}:{self._spelled(owner)}"
            case types.MethodDescriptorType() | types.WrapperDescriptorType():
                return f"{self._spelled(value.__objclass__)}.{value.__name__}"
            case functools.partial() if type(value) is functools.partial:
                keywords = tuple(sorted(value.keywords.items()))
                return "partial:" + self._spelled((value.func, value.args, keywords))
            case types.MemberDescriptorType():
                return f"slot:{value.__name__}"
            case _:
                return self._wrapped(value)

    def _wrapped(self, value: object) -> str | None:
        """What is around a function; of these very types, for another may hold more."""
        kind = type(value)
        if kind is property:
            found = cast("property", value)
            return "property:" + self._spelled((found.fget, found.fset, found.fdel))
        if kind is functools.cached_property:
            return "cached:" + self._spelled(cast("Any", value).func)
        if kind in {staticmethod, classmethod, _CACHE}:
            return f"{kind.__name__}:{self._spelled(cast('Any', value).__wrapped__)}"
        return None

    def _described(self, value: object) -> str | None:
        """Modules, types that are no classes, members, and parts of dataclasses."""
        kind = type(value)
        if isinstance(value, types.ModuleType):
            if not _has_file(value.__name__) and not hasattr(value, "__path__"):
                return None
            self.modules.add(value.__name__)
            return f"module:{value.__name__}"
        if value is Ellipsis or value is NotImplemented:
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"member:{value.name}:{self._spelled(kind)}"
        if typing.get_origin(value) is not None:
            items = (tuple(x) if type(x) is list else x for x in typing.get_args(value))
            return "of:" + self._spelled((typing.get_origin(value), *items))
        if kind.__module__ == "typing":
            return f"typing:{value!r}"
        if isinstance(value, dataclasses.Field):
            parts = tuple(getattr(value, name) for name in _FIELD)
            return f"field:{self._spelled(parts)}{self._named(value.metadata)}"
        if kind.__module__ == "dataclasses" and kind.__name__ in _SENTINELS:
            return f"dataclasses:{kind.__name__}"
        if kind.__module__ == "dataclasses" and kind.__name__ == "_DataclassParams":
            return repr(value)
        return None

    def _named(self, parts: Mapping[str, object], names: Iterable[str] | None = None) -> str:
        wanted = sorted(parts if names is None else names)
        return "".join(f";{name}={self._spelled(parts[name])}" for name in wanted)

    def _once(self, value: types.FunctionType | type) -> str:
        """A function or class: by its name if the source of its module covers it, else whole, once."""
        if _is_found(value):
            file = str(getattr(sys.modules[value.__module__], "__file__", ""))
            if value.__module__ == "__main__":  # which is not found by this name
                self.files.add(file)
            elif file != self._covered:
                self.modules.add(value.__module__)
            return f"{value.__module__}.{value.__qualname__}"
        if id(value) in self._begun:
            return f"again:{self._begun[id(value)]}"
        if isinstance(value, type):
            return self._class(value)
        if _module_of(value) in _REPRS and hasattr(value, "__wrapped__"):
            return self._spelled(value.__wrapped__)
        self.files.add(value.__code__.co_filename)
        return self._function(value)

    def _function(self, function: types.FunctionType) -> str:
        self._begun[id(function)] = len(self._begun)
        cells = tuple(_content(cell) for cell in function.__closure__ or ())
        keywords = tuple(sorted((function.__kwdefaults__ or {}).items()))
        spelled = self._spelled((function.__code__, function.__defaults__, keywords, cells))
        spelled += self._named(vars(function))
        hints = _hints(function)
        if os.path.isfile(function.__code__.co_filename):
            made = [name for name, hint in hints.items() if isinstance(hint, type)]
            return spelled + self._named(hints, made)
        names = set(_read(function.__code__))
        for hint in hints.values():
            names |= _words(hint) if isinstance(hint, str) else set()
        read = names & function.__globals__.keys()
        return spelled + self._named(hints) + self._named(function.__globals__, read)

    def _class(self, found: type) -> str:
        """A class that no source covers: all that is in it, and what it is made of."""
        self._begun[id(found)] = len(self._begun)
        parts = {name: value for name, value in vars(found).items() if name not in _IDLE}
        hints = _hints(found)
        spelled = self._spelled((found.__qualname__, found.__bases__, type(found)))
        fields = cast("dict[str, object]", parts.pop("__dataclass_fields__", {}))
        if issubclass(found, enum.Enum):
            members = {name: item.value for name, item in found.__members__.items()}
            own = {n: v for n, v in parts.items() if isinstance(v, types.FunctionType | property)}
            return f"enum:{spelled}{self._named(members)}{self._named(own)}"
        return f"{spelled}{self._named(parts)}{self._named(fields)}{self._named(hints)}"


def _is_found(value: Any) -> bool:  # noqa: ANN401 - any function or class
    """Whether the module of a function or class has it under its name, and has a source."""
    module = value.__module__
    if not isinstance(module, str) or not _has_file(module):
        return False
    found: object = sys.modules.get(module)
    for part in value.__qualname__.split("."):
        found = inspect.getattr_static(found, part, None)
    return undecorated(found) is value


def _hints(value: object) -> Mapping[str, object]:
    """The annotations; none if they name what is not there."""
    try:
        return cast("Mapping[str, object]", getattr(value, "__annotations__", {}))
    except (NameError, AttributeError, TypeError):
        return {}


def _words(hint: str) -> set[str]:
    """The names in an annotation that is written as text."""
    try:
        return set(compile(hint, "", "eval").co_names)
    except (SyntaxError, ValueError):
        return set()


def _read(code: types.CodeType) -> Iterator[str]:
    """The global names that code reads, and the functions and comprehensions inside it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READS:
            yield str(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _read(inner)


def _has_file(module: str) -> bool:
    """Whether a module has source of its own, or is a part of Python."""
    found = sys.modules.get(module)
    return module in sys.builtin_module_names or isinstance(getattr(found, "__file__", None), str)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None
