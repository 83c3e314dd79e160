"""The source files of the project that a Python module runs, found by parsing, never by importing.

A name is looked for in the order in which a child process finds it: the standard library, the
project root, installed distributions. Only what lies in the project enters the key. What cannot be
told is named under `unresolved`, which disables reuse; a module that is missing where the code is
prepared for that (`try: import x` with `except ImportError`) is named under `absent`, so that its
later arrival is noticed.
"""

from __future__ import annotations

import ast
import errno
import hashlib
import importlib.machinery
import importlib.util
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.errors import outside_fault
from holdfast.model.digest import Json
from holdfast.model.fixed import frozen

# A file younger than this could change once more without its time stamp telling.
SETTLED_NS = 100_000_000
_NOTHING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_IMPORT_CALLS = frozenset({"__import__", "import_module"})
_UNTOLD_CALLS = frozenset({"spec_from_file_location", "run_path", "run_module"})
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@frozen
class _Wanted:
    """One import as written. `names` are those of a `from` import, `*` among them perhaps."""

    module: str
    level: int = 0
    names: tuple[str, ...] = ()
    expected: bool = True  # false where the code is prepared for its absence


@frozen
class _Source:
    """What one file says: its digest, what it imports, what it does not say."""

    digest: str
    wanted: tuple[_Wanted, ...] = ()
    exported: tuple[str, ...] | None = ()  # `__all__`; None if it is computed
    untold: tuple[str, ...] = ()


@frozen
class _Found:
    """Where a dotted name ends in the project: files on the way, and the last place."""

    files: tuple[tuple[str, str, bool], ...]  # dotted name, path, is a package
    folder: str | None  # where submodules are, if it may have any
    is_namespace: bool = False


class Imports:
    """Follows imports under project roots; files are parsed again only when their stat changes."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[tuple[int, ...], _Source]] = {}
        self._installed: set[str] = set()

    def of_module(self, module: str, root: str) -> dict[str, Json]:
        """The part of a key that a module and all it imports from the project make up."""
        walk = _Walk(self, os.path.realpath(root))
        walk.want(_Wanted(module), package="")
        return walk.finish()

    def of_file(self, path: str, root: str) -> dict[str, Json] | None:
        """The same for a file; None if it is not in the project."""
        top, place = os.path.realpath(root), os.path.realpath(path)
        if not place.startswith(top + os.sep) or not Path(place).is_file():
            return None
        parts = Path(place).relative_to(top).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        walk = _Walk(self, top)
        walk.add(name, place, is_package=is_package)
        return walk.finish()

    def source(self, path: str) -> _Source | None:
        """What a file says; None if it cannot be read."""
        try:
            found = os.stat(path)
            key = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            cached = self._sources.get(path)
            if cached is not None and cached[0] == key:
                return cached[1]
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            if (fault := outside_fault(error)) is not None:
                raise fault from error
            return None
        source = _parse(content, is_python=path.endswith(".py"))
        if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > SETTLED_NS:
            self._sources[path] = (key, source)
        return source

    def is_installed(self, name: str) -> bool:
        """Whether a top-level name is found outside the project; nothing is imported."""
        if name in self._installed:
            return True
        try:
            spec = importlib.util.find_spec(name)
        except (ValueError, ImportError):
            spec = None
            found = name in sys.modules
        else:
            found = spec is not None and spec.origin is not None
        if found:
            self._installed.add(name)
        return found


def module_file(root: str, module: str) -> str | None:
    """Where the source of a module of the project is; None if it is not there."""
    found = _find(os.path.realpath(root), module)
    return found.files[-1][1] if found and found.files and not found.is_namespace else None


class _Walk:
    """One closure on the way: a work list, so that cycles end and depth costs no stack."""

    def __init__(self, imports: Imports, root: str) -> None:
        self._imports = imports
        self._root = root
        self._code: dict[str, str] = {}
        self._unresolved: set[str] = set()
        self._absent: set[str] = set()
        self._pending: list[tuple[str, str, bool]] = []

    def finish(self) -> dict[str, Json]:
        while self._pending:
            name, path, is_package = self._pending.pop()
            self._read(name, path, is_package=is_package)
        found: dict[str, Json] = {"code": dict(sorted(self._code.items()))}
        if self._unresolved:
            found["unresolved"] = sorted(self._unresolved)
        if self._absent:
            found["absent"] = sorted(self._absent)
        return found

    def add(self, name: str, path: str, *, is_package: bool) -> None:
        relative = path[len(self._root) + 1 :]
        if relative not in self._code:
            self._code[relative] = ""
            self._pending.append((name, path, is_package))

    def want(self, wanted: _Wanted, package: str) -> None:
        name = _absolute(wanted, package)
        if name is None:
            self._miss("." * wanted.level + wanted.module, wanted)
            return
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names:
            return
        found = _find(self._root, name)
        if found is None or not (found.files or self._is_ours(top)):
            if wanted.level or not self._imports.is_installed(top) or self._is_ours(top):
                self._miss(name, wanted)
            return
        for item in found.files:
            self.add(item[0], item[1], is_package=item[2])
        self._want_names(name, found, wanted)

    def _want_names(self, name: str, found: _Found, wanted: _Wanted) -> None:
        """The submodules among the names of a `from` import; the others are attributes."""
        if found.folder is None:
            return
        for attribute in self._spread(name, found, wanted.names):
            inner = _find(self._root, f"{name}.{attribute}")
            if inner is not None:
                for item in inner.files:
                    self.add(item[0], item[1], is_package=item[2])
            elif found.is_namespace:
                self._miss(f"{name}.{attribute}", wanted)

    def _spread(self, name: str, found: _Found, names: Iterable[str]) -> Iterator[str]:
        """Names with `*` replaced by what the package exports."""
        for attribute in names:
            if attribute != "*":
                yield attribute
                continue
            source = self._imports.source(found.files[-1][1]) if not found.is_namespace else None
            if source is None or source.exported is None:
                self._unresolved.add(f"{name}.*")
            else:
                yield from source.exported

    def _read(self, name: str, path: str, *, is_package: bool) -> None:
        relative = path[len(self._root) + 1 :]
        source = self._imports.source(path)
        if source is None:
            del self._code[relative]
            self._unresolved.add(f"{relative}: cannot be read")
            return
        self._code[relative] = source.digest
        self._unresolved.update(f"{relative}: {untold}" for untold in source.untold)
        package = name if is_package else name.rpartition(".")[0]
        for wanted in source.wanted:
            self.want(wanted, package)

    def _miss(self, name: str, wanted: _Wanted) -> None:
        (self._unresolved if wanted.expected else self._absent).add(name)

    def _is_ours(self, top: str) -> bool:
        """Whether a top-level name is the project's; an installed module hides a bare folder."""
        found = _find(self._root, top)
        if found is None:
            return False
        return bool(found.files) or not self._imports.is_installed(top)


def _absolute(wanted: _Wanted, package: str) -> str | None:
    """The dotted name that an import means in its package; None if it climbs out of the root."""
    if not wanted.level:
        return wanted.module
    parts = package.split(".") if package else []
    up = wanted.level - 1
    if up >= len(parts):
        return None
    base = parts[: len(parts) - up]
    return ".".join([*base, wanted.module] if wanted.module else base)


def _find(root: str, name: str) -> _Found | None:
    """Where a dotted name is in the project; None if it is not there."""
    files: list[tuple[str, str, bool]] = []
    folder: str | None = root
    is_namespace = False
    dotted = ""
    for part in name.split("."):
        if folder is None or not part:
            return None
        dotted = f"{dotted}.{part}" if dotted else part
        place = f"{folder}/{part}"
        package = f"{place}/__init__.py"
        is_namespace = False
        if stat.S_ISREG(_mode(package)):
            files.append((dotted, package, True))
            folder = place
        elif module := _module_file(place):
            files.append((dotted, module, False))
            folder = None
        elif stat.S_ISDIR(_mode(place)):
            folder, is_namespace = place, True
        else:
            return None
    return _Found(tuple(files), folder, is_namespace)


def _module_file(place: str) -> str:
    suffixes = (*importlib.machinery.EXTENSION_SUFFIXES, ".py")
    return next((place + end for end in suffixes if stat.S_ISREG(_mode(place + end))), "")


def _mode(path: str) -> int:
    """What stands at a path, links followed; 0 if nothing does."""
    try:
        return os.stat(path).st_mode
    except OSError as error:
        if error.errno not in _NOTHING:
            raise
    except ValueError:  # no path at all
        pass
    return 0


def _parse(content: bytes, *, is_python: bool) -> _Source:
    digest = hashlib.sha256(content).hexdigest()
    if not is_python:
        return _Source(digest)
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Source(digest, exported=None, untold=("cannot be parsed",))
    reader = _Reader()
    reader.read(tree)
    return _Source(digest, tuple(reader.wanted), _exported(tree), tuple(sorted(reader.untold)))


class _Reader:
    """Collects the imports of one file, with whether each is expected to be found."""

    def __init__(self) -> None:
        self.wanted: list[_Wanted] = []
        self.untold: set[str] = set()
        self._calls = set(_IMPORT_CALLS)

    def read(self, tree: ast.Module) -> None:
        pending: list[tuple[ast.AST, bool]] = [(tree, True)]
        calls: list[tuple[ast.Call, bool]] = []
        while pending:
            node, expected = pending.pop()
            match node:
                case ast.Import():
                    self.wanted += [_Wanted(item.name, expected=expected) for item in node.names]
                case ast.ImportFrom():
                    self._read_from(node, expected=expected)
                case ast.Call():
                    calls.append((node, expected))
                case _:
                    pass
            pending.extend(_inside(node, expected=expected))
        for call, expected in calls:
            self._read_call(call, expected=expected)

    def _read_from(self, node: ast.ImportFrom, *, expected: bool) -> None:
        names = tuple(item.name for item in node.names)
        self.wanted.append(_Wanted(node.module or "", node.level, names, expected))
        for item in node.names:
            if node.module == "importlib" and item.name == "import_module" and item.asname:
                self._calls.add(item.asname)

    def _read_call(self, call: ast.Call, *, expected: bool) -> None:
        match call.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                pass
            case _:
                return
        if name in _UNTOLD_CALLS:
            self.untold.add(f"line {call.lineno}: {name}(…)")
        if name not in self._calls:
            return
        match call.args:
            case [ast.Constant(value=str(module)), *_]:
                bare = module.lstrip(".")
                self.wanted.append(_Wanted(bare, len(module) - len(bare), expected=expected))
            case _:
                self.untold.add(f"line {call.lineno}: {name}(…) of a computed name")


def _inside(node: ast.AST, *, expected: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes inside, each with whether its imports are expected to succeed."""
    for field, value in ast.iter_fields(node):
        prepared = field == "body" and (
            (isinstance(node, ast.Try) and any(_catches(item) for item in node.handlers))
            or (isinstance(node, ast.If) and _is_type_checking(node.test))
        )
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield item, expected and not prepared


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is there for a failed import."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or _name(kind) in _IMPORT_ERRORS for kind in kinds)


def _is_type_checking(test: ast.expr) -> bool:
    return _name(test) == "TYPE_CHECKING"


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _exported(tree: ast.Module) -> tuple[str, ...] | None:
    """The names of `__all__`; none if there is none, None if it is computed."""
    names: tuple[str, ...] = ()
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                pass
            case ast.AugAssign(target=ast.Name(id="__all__")):
                return None
            case _:
                continue
        try:
            names = tuple(str(name) for name in ast.literal_eval(value))
        except (ValueError, TypeError):
            return None
    return names
