"""Runs a plan again whenever something it reads has changed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

from holdfast.cli.ahead import look_ahead, reading
from holdfast.cli.place import Place
from holdfast.cli.report import report
from holdfast.cli.say import talk
from holdfast.core.views import cost_limit
from holdfast.engine.journals import read_state
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.event import Options
from holdfast.model.money import dollars
from holdfast.ports import RunRow

_LOOK_UP_MS = 500
_WATCHING = "watching; Ctrl-C ends"
_NEVER = (".git", ".holdfast", "__pycache__")


class Spending:
    """What all runs of a watch may spend together, in micro-dollars; None is no bound."""

    def __init__(self, where: Place, most: int | None) -> None:
        self._where = where
        self._most = most
        self._lines: set[str] = set()  # the plan may be given another name
        self._before = {row.run for row in self._rows()}

    def left_to(self, line: str) -> int | None:
        """What the next run may spend, which is of this line."""
        self._lines.add(line)
        return None if self._most is None else max(0, self._most - self._spent())

    def is_over(self) -> bool:
        """Whether the last run came to this bound, not to a smaller one; that is said."""
        rows = [row.run for row in self._rows() if row.line in self._lines]
        if self._most is None or not rows:
            return False
        with reading(self._where) as store:
            state = read_state(store, rows[-1])
        if state is None or state.rest is None or state.rest.because != ("cost",):
            return False
        spent = self._spent()
        if cost_limit(state) != max(0, self._most - spent + state.spent.cost):
            return False
        told = f"{dollars(spent)} of {dollars(self._most)}"
        talk(f"the runs of this watch spent {told}; --max-cost bounds them together, so it ends")
        return True

    def _spent(self) -> int:
        from holdfast.engine.outlays import spent_in

        own = [r.run for r in self._rows() if r.line in self._lines and r.run not in self._before]
        with reading(self._where) as store:
            return spent_in(store, [f"run:{run}" for run in own], 0)

    def _rows(self) -> list[RunRow]:
        if self._most is None:
            return []
        with reading(self._where) as store:
            return list(store.runs())


def watch(where: Place, options: Options, run: Callable[[], int], spending: Spending) -> int:
    """Run, then wait for a change of the project that gives work to do, and so on until Ctrl-C.

    It also ends when its runs have spent what they may spend together.
    """
    watched = _Watched(where, options)
    code = watched.run(run)
    if spending.is_over():
        return code
    _rest()
    try:
        for _ in _changes(where.root):
            if not watched.has_work():
                continue
            code = watched.run(run)
            if spending.is_over():
                break
            _rest()
    except KeyboardInterrupt:
        talk("")
    return code


def _rest() -> None:
    """Let go of what a run left, while nobody waits: by itself Python would keep that of many runs."""
    gc.collect()
    talk(_WATCHING)


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
