"""Where functions are at home: the module under which a child process finds one, and the project."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import cast

from holdfast.errors import UsageError


def main_name() -> str:
    """The name under which the program that was started can be imported; nothing if it cannot."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return str(spec.name).removesuffix(".__main__")
    stem, end = os.path.splitext(os.path.basename(getattr(main, "__file__", "") or ""))
    return stem if end == ".py" and stem.isidentifier() else ""


def root_of(function: object) -> str:
    """The project of a function: the directory from which its module is imported."""
    name = str(getattr(function, "__module__", ""))
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str):
        return os.getcwd()
    name = main_name() if name == "__main__" else name
    folder = os.path.dirname(os.path.abspath(file))
    packages = name.count(".") + (os.path.basename(file) == "__init__.py")
    for _ in range(packages):
        folder = os.path.dirname(folder)
    return folder


def target_of(thing: object, root: str) -> str:
    """`module:function` for a child process; UsageError if it would find nothing, or something else."""
    function = getattr(thing, "function", thing)
    shown = str(getattr(function, "__name__", function))
    qualname, module = str(getattr(function, "__qualname__", "")), str(function.__module__)
    home = sys.modules.get(module)
    name = _bound(home, thing, qualname) if home is not None else ""
    if not name.isidentifier():
        raise UsageError(
            f"no other process can find '{shown}': it is no function of a module",
            hint="put it at the top of a file; a step may say inline=True",
        )
    if module == "__main__":
        module = main_name()
        if not module or os.path.realpath(root_of(function)) != os.path.realpath(root):
            raise UsageError(
                f"no other process can import '{shown}', which is in the program itself",
                hint="put it into a file of the project; a step may say inline=True",
            )
    return f"{module}:{name}"


def _bound(home: ModuleType, thing: object, qualname: str) -> str:
    """The name that a module has for a thing."""
    found: object = home
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is thing:
        return qualname
    names = cast("dict[str, object]", vars(home))
    return next((name for name, value in names.items() if value is thing), "")


def is_loading(module: str) -> bool:
    """Whether a module is being imported just now, so that its code runs for whoever imports it."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


class EnoughError(UsageError):
    """A program began to use its plan while the process of a step imports it: all is there by now."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(f"the process of a step imported '{module.__name__}' as far as it needs")
        self.__holdfast_module__ = module  # for the process of the step


def stop_import() -> None:
    """In the process of a step, let the import of a program end where it begins to use its plan.

    A script may do that without asking for its `__name__`: what it defined before is what its steps had.
    """
    if "HOLDFAST_STEP" not in os.environ:
        return
    frame = sys._getframe()  # noqa: SLF001 - who asks
    while frame.f_back is not None:
        frame = frame.f_back
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name == "<module>" and is_loading(module):
            raise EnoughError(sys.modules[module])
