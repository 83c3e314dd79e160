"""What a function of this very process is made of, spelled so that every process spells it alike.

Code and constants are spelled, never addresses or hash order. What has no spelling is named, so that
nothing is reused that it may have changed. The source of a module covers what its functions read by a
global name. A function in no file, as in a notebook, has none: what it reads is spelled too, with the
functions of other cells, and modules of the project are named for who knows their source.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import os
import sys
import types
from collections.abc import Iterator

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


def innermost(function: object) -> object:
    """The function inside of partial ones."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


class Spelling:
    """One value on the way to its digest, with what was met there."""

    def __init__(self) -> None:
        self.unspelled: set[str] = set()
        self.modules: set[str] = set()  # whose source decides too
        self._begun: set[int] = set()  # functions and classes, which may contain themselves

    def digest(self, value: object) -> str:
        """A digest that is equal in every process."""
        return hashlib.sha256(self._spelled(value).encode("utf-8", "surrogatepass")).hexdigest()

    def _spelled(self, value: object) -> str:
        match value:
            case None | bool() | int() | float() | complex() | str() | bytes():
                return f"{type(value).__name__}:{value!r}"
            case tuple():
                return f"({','.join(self._spelled(item) for item in value)})"
            case frozenset():
                return f"{{{','.join(sorted(self._spelled(item) for item in value))}}}"
            case types.CodeType():
                parts = (value.co_code, value.co_names, value.co_varnames, value.co_freevars)
                return self._spelled((*parts, value.co_flags, value.co_consts))
            case types.FunctionType():
                return self._function(value)
            case types.MethodType():
                return self._spelled(value.__func__)
            case types.BuiltinFunctionType() | type():
                return f"{value.__module__}.{value.__qualname__}"
            case types.ModuleType():
                return f"module:{value.__name__}"
            case functools.partial():
                keywords = tuple(sorted(value.keywords.items()))
                return self._spelled((value.func, value.args, keywords))
            case _:
                kind = f"{type(value).__module__}.{type(value).__qualname__}"
                if value is not Ellipsis:
                    self.unspelled.add(f"a value of type '{kind}'")
                return f"<{kind}>"

    def _function(self, function: types.FunctionType) -> str:
        self._begun.add(id(function))
        cells = tuple(_content(cell) for cell in function.__closure__ or ())
        # A function that captures itself ends here: only its code is spelled inside.
        inner = tuple(
            cell.__code__ if isinstance(cell, types.FunctionType) else cell for cell in cells
        )
        keywords = tuple(sorted((function.__kwdefaults__ or {}).items()))
        spelled = self._spelled((function.__code__, function.__defaults__, keywords, inner))
        if os.path.isfile(function.__code__.co_filename):
            return spelled
        read = sorted(set(_read(function.__code__)) & function.__globals__.keys())
        return spelled + "".join(
            f";{name}={self._global(function.__globals__[name])}" for name in read
        )

    def _global(self, value: object) -> str:
        """What a function in no file reads by a global name."""
        value = _bare(value)
        if id(value) in self._begun:
            return "again"
        if isinstance(value, types.ModuleType):
            self.modules.add(value.__name__)
        elif isinstance(value, types.FunctionType | type) and _has_file(value.__module__):
            self.modules.add(value.__module__)
        elif isinstance(value, type):
            return self._class(value)
        return self._spelled(value)

    def _class(self, found: type) -> str:
        """A class in no file: its functions, with those that a dataclass is given, and its constants."""
        self._begun.add(id(found))
        constants = (types.FunctionType, str, int, float, bool, bytes, type(None))
        parts = {
            name: _bare(value)
            for name, value in vars(found).items()
            if name not in {"__doc__", "__module__", "__firstlineno__"}
        }
        spelled = (
            f";{name}={self._spelled(parts[name])}"
            for name in sorted(parts)
            if isinstance(parts[name], constants)
        )
        bases = "".join(f";{self._global(base)}" for base in found.__bases__)
        return f"{found.__qualname__}{bases}{''.join(spelled)}"


def _bare(value: object) -> object:
    """A function without what is wrapped around it."""
    value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    return inspect.unwrap(value) if callable(value) else value


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
