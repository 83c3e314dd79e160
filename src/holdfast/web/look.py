"""What every screen looks at: the store, and runs that are folded once and then kept up with.

A `Look` lives in one thread of its own (see `screens.screen`), so nothing in it is locked. `state(run)` gives
the fold of a run as its journal is now: the first time it is read whole, afterwards only what is new is
applied. Never keep a state over a request, and never change one. What is made of a state and costs more
than a glance is kept with `made(state, name, make)` until the run has another event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast

import click

from holdfast import wire
from holdfast.cli.place import Place, keep_line
from holdfast.cli.since import answered_in
from holdfast.cli.view import View
from holdfast.core.fold import apply
from holdfast.core.state import State
from holdfast.engine.journals import has_ended, read_state
from holdfast.engine.lines import line_journal
from holdfast.errors import UsageError
from holdfast.model.plan import RunId, StepId
from holdfast.ports import RunRow, Store

MOST_STEPS = 400_000  # of all states that are kept, about 2 kB each
MOST_RUNS = (
    256  # a run costs some 17 kB however few steps it has, and a page may be open for months
)

T = TypeVar("T")


@dataclass(slots=True)
class _Kept:
    state: State
    made: dict[str, tuple[int, object]] = field(default_factory=dict)


class Look:
    """The store as the page sees it; `where` is the place that `holdfast ui` was started for."""

    def __init__(
        self,
        where: Place,
        meta: Mapping[str, object] | None = None,
        *,
        read_only: bool = False,
        most_runs: int = MOST_RUNS,
    ) -> None:
        self.where = where
        self.read_only = read_only
        self._most_runs = most_runs
        self._meta = dict(meta or {})
        self._store: Store | None = None
        self._kept: OrderedDict[RunId, _Kept] = OrderedDict()

    @property
    def store(self) -> Store:
        """The store, to be read; one that is not there yet is empty."""
        if self._store is None:
            if not self.where.exists():
                return wire.empty_store()
            self._store = self.where.open(readonly=True)
        return self._store

    @property
    def now(self) -> int:
        """Milliseconds since 1970."""
        return wire.now_ms()

    def rows(self) -> Sequence[RunRow]:
        """All runs of all lines, oldest first."""
        return self.store.runs(imported=True)

    def row(self, run: RunId) -> RunRow:
        """The row of a run; UsageError if it was removed meanwhile."""
        found = next((row for row in self.rows() if row.run == run), None)
        if found is None:
            raise UsageError(f"there is no run '{run}'", hint="holdfast history --all")
        return found

    def find(self, given: str) -> State:
        """A run by its id or the beginning of it; UsageError if there is none, or more than one."""
        found = [row.run for row in self.rows() if row.run.startswith(given)]
        if len(found) == 1 and (state := self.state(found[0])) is not None:
            return state
        raise UsageError(f"there is no run '{given}'", hint="holdfast history --all")

    def state(self, run: RunId) -> State | None:
        """A run as its journal is now; None if it has none."""
        kept = self._kept.get(run)
        if kept is not None:
            last = self.store.last(f"run:{run}")
            if last < kept.state.seq:  # it was removed
                del self._kept[run]
                kept = None
            elif last > kept.state.seq:
                for recorded in self.store.read(f"run:{run}", kept.state.seq):
                    apply(kept.state, recorded)
        if kept is None:
            state = read_state(self.store, run)
            if state is None:
                return None
            kept = self._kept[run] = _Kept(state)
            self._forget()
        self._kept.move_to_end(run)
        return kept.state

    def open_runs(self) -> Iterator[State]:
        """The runs that have not ended, newest first; of each line only the last can be one."""
        seen: set[tuple[str, str]] = set()
        for row in reversed(self.store.runs()):
            if (row.project, row.line) in seen:
                continue
            seen.add((row.project, row.line))
            if has_ended(self.store, row.run):
                continue
            state = self.state(row.run)
            if state is not None and not state.ended:
                yield state

    def waiting(self) -> int:
        """How many steps wait for a person, in all runs that have not ended."""
        return sum(map(self.waiting_in, self.open_runs()))

    def waiting_in(self, state: State) -> int:
        """How many steps of a run wait for a person who has not decided yet."""
        return state.counts["waiting"] - len(self.answered(state))

    def answered(self, state: State) -> Mapping[StepId, str]:
        """The steps that wait although somebody decided, with what was said."""
        if not state.counts["waiting"]:
            return {}
        said = self.store.last(line_journal(state.project, state.line))
        mark = hash((state.seq, said))
        return self.made(state, "answered", lambda: answered_in(self.store, state), until=mark)

    def made(
        self, state: State, name: str, make: Callable[[], T], *, until: int | None = None
    ) -> T:
        """What is made of a run, made again after another event; with `until`, when that number changes."""
        kept = self._kept.get(state.run)
        if kept is None or kept.state is not state:
            return make()
        mark = state.seq if until is None else until
        if name not in kept.made or kept.made[name][0] != mark:
            kept.made[name] = (mark, make())
        return cast("T", kept.made[name][1])

    def is_driven(self, state: State) -> bool:
        """Whether a live engine has the run."""
        return wire.is_driven(self.store, state)

    def _forget(self) -> None:
        """Let go of the runs that nobody looked at for longest."""
        while len(self._kept) > self._most_runs:
            self._kept.popitem(last=False)
        while len(self._kept) > 1 and self._size() > MOST_STEPS:
            self._kept.popitem(last=False)

    def _size(self) -> int:
        return sum(len(kept.state.steps) for kept in self._kept.values())

    @contextmanager
    def speaking(self, line: str = "", file: str = "") -> Iterator[None]:
        """Words of the command, for people who look at a page; commands name the line that is meant.

        `file` is the plan file of a run of it, if that is known.
        """
        context = click.Context(click.Command("ui"), obj=View())
        context.meta.update(self._meta)
        with context.scope(cleanup=False):
            if line:
                keep_line(self.where, line, file)
            yield

    def close(self) -> None:
        """Let go of the store."""
        if self._store is not None:
            self._store.close()
