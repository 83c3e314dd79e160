"""Runs a plan again whenever something it reads has changed."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.cli.place import Place
from holdfast.cli.preview import look_ahead
from holdfast.cli.say import talk
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.event import Options

_LOOK_UP_MS = 500
_NEVER = (".git", ".holdfast", "__pycache__")


def watch(where: Place, options: Options, run: Callable[[], int]) -> int:
    """Run, then wait for a change of the project that gives work to do, and so on until Ctrl-C."""
    try:
        from watchfiles import watch as changes
    except ImportError as error:
        raise UsageError(
            "--watch needs watchfiles", hint="pip install 'holdfast[watch]'"
        ) from error

    code = _once(run)
    talk("watching; Ctrl-C ends")
    unsure = True  # something may have changed before the watch was set up
    for seen in changes(
        where.root,
        watch_filter=_counts,
        raise_interrupt=False,
        rust_timeout=_LOOK_UP_MS,
        yield_on_timeout=True,
    ):
        if not (seen or unsure):
            continue
        unsure = False
        if not _has_work(where, options):
            continue
        code = _once(run)
        talk("watching; Ctrl-C ends")
    return code


def _counts(_: object, path: str) -> bool:
    return not any(f"/{name}/" in path or path.endswith(f"/{name}") for name in _NEVER)


def _once(run: Callable[[], int]) -> int:
    """One run; what is wrong with the plan can be mended while this goes on."""
    try:
        return run()
    except HoldfastError as error:
        talk(f"error: {error}")
        return error.exit_code


def _has_work(where: Place, options: Options) -> bool:
    try:
        found = look_ahead(where, where.load(), options).outlooks.values()
    except HoldfastError as error:
        talk(f"error: {error}")
        return False
    return any(outlook.is_work and outlook.decision != "wait" for outlook in found)
