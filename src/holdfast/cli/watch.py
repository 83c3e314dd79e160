"""Runs a plan again whenever something it reads has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.cli.place import Place
from holdfast.cli.preview import look_ahead
from holdfast.cli.report import report
from holdfast.cli.say import talk
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.event import Options

_LOOK_UP_MS = 500
_NEVER = (".git", ".holdfast", "__pycache__")


def watch(where: Place, options: Options, run: Callable[[], int]) -> int:
    """Run, then wait for a change of the project that gives work to do, and so on until Ctrl-C."""
    watched = _Watched(where, options)
    code = watched.run(run)
    try:
        for _ in _changes(where.root):
            if watched.has_work():
                code = watched.run(run)
    except KeyboardInterrupt:
        talk("")
    return code


def _changes(root: str) -> Iterator[None]:
    """Once at first, as something may have changed before the watch was set up; then at each change."""
    try:
        from watchfiles import watch as changes
    except ImportError as error:
        raise UsageError(
            "--watch needs watchfiles", hint="pip install 'holdfast[watch]'"
        ) from error
    unsure = True
    for seen in changes(
        root, watch_filter=_counts, rust_timeout=_LOOK_UP_MS, yield_on_timeout=True
    ):
        if seen or unsure:
            unsure = False
            yield


def _counts(_: object, path: str) -> bool:
    return not any(f"/{name}/" in path or path.endswith(f"/{name}") for name in _NEVER)


class _Watched:
    """A plan under watch. What is wrong with it is said once, and can be mended while this goes on."""

    def __init__(self, where: Place, options: Options) -> None:
        self._where = where
        self._options = options
        self._said = ""

    def run(self, run: Callable[[], int]) -> int:
        """One run."""
        try:
            code = run()
        except HoldfastError as error:
            code = self._tell(error)
        talk("watching; Ctrl-C ends")
        return code

    def has_work(self) -> bool:
        """Whether a run would do something now."""
        try:
            found = look_ahead(self._where, self._where.load(), self._options).outlooks.values()
        except HoldfastError as error:
            self._tell(error)
            return False
        self._said = ""
        return any(outlook.is_work and outlook.decision != "wait" for outlook in found)

    def _tell(self, error: HoldfastError) -> int:
        if str(error) != self._said:
            self._said = str(error)
            report(error, (), ())
            talk("still watching")
        return error.exit_code
