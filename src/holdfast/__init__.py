"""Holdfast: Make for agent work."""

from __future__ import annotations

from holdfast.model import version

__version__ = version.VERSION

TYPE_CHECKING = False  # as `typing` has it, which takes as long to load as all else here
if TYPE_CHECKING:
    from holdfast.api import Guarded, Plan, Result, add, guard, load, plan, run, step

__all__ = [
    "Guarded",
    "Plan",
    "Result",
    "__version__",
    "add",
    "guard",
    "load",
    "plan",
    "run",
    "step",
]


def __getattr__(name: str) -> object:
    """Load the Python API on first use, so that the command starts fast."""
    if name in __all__:
        from holdfast import api  # noqa: PLC0415 - keeps `import holdfast` cheap

        return getattr(api, name)
    message = f"module 'holdfast' has no attribute {name!r}"
    raise AttributeError(message)
