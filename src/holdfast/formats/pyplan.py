"""Plans in Python files: `FILE.py` is the one plan that it holds, `FILE.py:NAME` one of several.

The file is imported as a child process would import it, and its plan function called, which only notes
the calls of steps. What a module prints while it is loaded goes to stderr: it is no result.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Protocol, cast

from holdfast.errors import PlanError, Problem, UsageError
from holdfast.formats.heading import python_part
from holdfast.formats.made import Made, load_made, placed
from holdfast.formats.params import taken
from holdfast.formats.planfile import Asked, Loaded, read_file
from holdfast.formats.reading import ParamType
from holdfast.model.digest import Json

_SITE = ("site-packages", "dist-packages")
_ALONE = threading.Lock()  # an import changes what the whole process finds


class PlanObject(Protocol):
    """A plan function, as the decorators make one."""

    def __holdfast_params__(self) -> Mapping[str, Mapping[str, Json]]:
        """The params that it declares."""

    def __holdfast_made__(self, values: Mapping[str, Json]) -> Made:
        """The plan with these values."""


def load_python(path: str, asked: Asked) -> Loaded:
    """The plan of a Python file; PlanError with the file and the line if it cannot be loaded."""
    file, name = python_part(path)
    _, root = read_file(file, walls=asked.walls)
    with _ALONE, _importing(root):
        found = _chosen(_module(file), file, name)
        made = _made(found, asked.params, file)
    if made.inline:
        first = next(iter(made.inline))
        raise UsageError(
            f"the step '{first}' is inline: it runs only in the program that makes the plan",
            hint="leave out inline=True, or run the plan with .run()",
        )
    return load_made(made, file, asked)


def _module(file: str) -> ModuleType:
    name = Path(file).stem
    if not name.isidentifier() or name in sys.stdlib_module_names:
        raise UsageError(f"'{file}' cannot be imported under its name", hint="rename the file")
    before = sys.modules.get(name)
    if before is not None and not _is_file(before, file):
        raise UsageError(f"another module '{name}' is loaded already", hint=f"rename '{file}'")
    if before is not None:
        return before
    try:
        module = importlib.import_module(name)
    except PlanError:
        raise
    except (Exception, SystemExit) as error:
        raise _refused(file, "it cannot be imported", error) from error
    if not _is_file(module, file):
        raise UsageError(
            f"another module '{name}' is found before '{file}'", hint="rename the file"
        )
    return module


def _is_file(module: ModuleType, file: str) -> bool:
    place = getattr(module, "__file__", None)
    return isinstance(place, str) and _is_same(place, file)


def _chosen(module: ModuleType, file: str, name: str) -> PlanObject:
    all_of_it = {
        key: cast("PlanObject", value)
        for key, value in vars(module).items()
        if callable(getattr(type(value), "__holdfast_made__", None))
    }
    if name:
        if name not in all_of_it:
            known = ", ".join(f"{file}:{key}" for key in all_of_it)
            raise UsageError(
                f"'{file}' has no plan '{name}'", hint=known or "decorate it with @plan"
            )
        return all_of_it[name]
    own = {k: v for k, v in all_of_it.items() if getattr(v, "__module__", "") == module.__name__}
    plans = list({id(value): value for value in (own or all_of_it).values()}.values())
    if not plans:
        raise UsageError(f"'{file}' has no plan", hint="decorate a function with @plan")
    if len(plans) > 1:
        known = ", ".join(f"{file}:{key}" for key in own or all_of_it)
        raise UsageError(f"'{file}' has {len(plans)} plans", hint=f"name one of them: {known}")
    return plans[0]


def _made(found: PlanObject, given: Mapping[str, Json], file: str) -> Made:
    """What the plan function makes of the params; those that it does not have are refused by a load."""
    try:
        declared = found.__holdfast_params__()
    except UsageError as error:
        raise PlanError((_told(file, found, error),)) from error
    values = {
        name: taken(name, cast("ParamType", param["type"]), given[name])
        for name, param in declared.items()
        if name in given
    }
    try:
        return found.__holdfast_made__(values)
    except UsageError as error:
        raise PlanError((_told(file, found, error),)) from error
    except Exception as error:
        raise _refused(file, "its plan cannot be made", error) from error


def _told(file: str, found: PlanObject, error: UsageError) -> Problem:
    """What is wrong with a plan function, where it happened, else where the function begins."""
    place = _place(file, error)
    code = getattr(getattr(found, "function", None), "__code__", None)
    if place == (0, 0) and code is not None and _is_same(code.co_filename, file):
        place = placed(file, code.co_firstlineno)
    return Problem(error.message, file, *place, error.hint or "", "P099")


def _refused(file: str, what: str, error: BaseException) -> PlanError:
    """What a module raised, at the line of the file where it happened."""
    words = traceback.format_exception_only(error)[-1].strip()
    place, hint = _place(file, error), ""
    if isinstance(error, UsageError):
        words, hint = error.message, error.hint or ""
    elif isinstance(error, ImportError) and "relative import" in words:
        hint = "a plan file is imported by itself: name whole modules, or start it with python -m"
    if isinstance(error, SyntaxError) and _is_same(error.filename or "", file):
        place = placed(file, error.lineno or 0)
    return PlanError((Problem(f"{what}: {words}", file, *place, hint, "P099"),))


def _place(file: str, error: BaseException) -> tuple[int, int]:
    """The last place in a file that an error came through; 0 if it came from elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 0 for frame in frames if _is_same(frame.filename, file)]
    return placed(file, lines[-1]) if lines else (0, 0)


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


@contextlib.contextmanager
def _importing(root: str) -> Iterator[None]:
    """The project after the standard library and before what is installed; nothing is written."""
    path, written = list(sys.path), sys.dont_write_bytecode
    places = (at for at, place in enumerate(path) if place.endswith(_SITE))
    sys.path.insert(next(places, len(path)), root)
    finder = _Finder(os.path.realpath(root) + os.sep)
    sys.meta_path.insert(0, finder)
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    known = set(sys.modules)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.meta_path.remove(finder)
        sys.path[:], sys.dont_write_bytecode = path, written
        _forget(set(sys.modules) - known, os.path.realpath(root) + os.sep)


class _Source(SourceFileLoader):
    """Compiles what a file holds now. Bytecode beside it is matched by its second and size alone."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder:
    """Finds modules as ever, and has those of the project compiled anew."""

    def __init__(self, root: str) -> None:
        self._root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target)
        if found is not None and type(found.loader) is SourceFileLoader:
            place = found.loader.path
            inside = os.path.realpath(place)
            if inside.startswith(self._root) and not set(_SITE) & set(inside.split(os.sep)):
                found.loader = _Source(name, place)
        return found


def _forget(names: set[str], root: str) -> None:
    """Let the next load import the modules of the project again: they may have changed by then."""
    for name in names:
        place = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(place, str) and os.path.realpath(place).startswith(root):
            del sys.modules[name]
