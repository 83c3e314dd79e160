"""Runs and plans as the store tells them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from holdfast.core.fold import fold
from holdfast.core.state import State
from holdfast.core.waves import Graph
from holdfast.engine.lines import line_journal
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import Event, PlanExtended, RunEnded, RunStarted
from holdfast.model.plan import Plan, RunId, plan_from_bytes
from holdfast.ports import Facts, RunRow, Store


def read_state(store: Facts, run: RunId) -> State | None:
    """A run as its journal tells it; None if there is no such journal."""
    events = list(store.read(f"run:{run}"))
    if not events:
        return None
    first = events[0].event
    if not isinstance(first, RunStarted):
        raise IntegrityError(f"the journal of run '{run}' does not begin with its start")
    later = [r.event.plan for r in events if isinstance(r.event, PlanExtended)]
    plan = read_plan(store, first.plan)
    graph = next((known.graph for known in _lately if known.plan is plan), None)
    if not later:
        return fold(plan, events, partial(read_plan, store), graph)
    whole = read_plan(store, later[-1])  # it has all steps of those before it
    state = fold(plan, events, lambda _: whole, graph)
    state.plans = partial(read_plan, store)
    return state


def start_of(store: Store, run: RunId) -> RunStarted | None:
    """How a run began; None if its journal is gone."""
    first = next(iter(store.read(f"run:{run}")), None)
    return first.event if first is not None and isinstance(first.event, RunStarted) else None


def runs_of(store: Store, project: str, line: str) -> list[RunRow]:
    """The runs of a line in a project, oldest first."""
    return [row for row in store.runs(line) if row.project == project]


def has_ended(store: Store, run: RunId) -> bool:
    """Whether a run can never change again."""
    return _end(store, run) is not None


def is_complete(store: Store, run: RunId) -> bool:
    """Whether a run came to its end with all its steps."""
    end = _end(store, run)
    return end is not None and end.status == "completed"


def _end(store: Store, run: RunId) -> RunEnded | None:
    """How a run ended; only the last event of its journal is read."""
    journal = f"run:{run}"
    last = store.read(journal, max(0, store.last(journal) - 1))
    return next((one.event for one in last if isinstance(one.event, RunEnded)), None)


def overlapping(
    store: Store, project: str, line: str, joined: dict[RunId, bool]
) -> Iterator[RunId]:
    """The runs that may have been open at one time with whoever drives the line now, newest first.

    Who begins alone ends all that was before it, so nobody looks further. `joined` remembers who did not.
    """
    for row in reversed(runs_of(store, project, line)):
        yield row.run
        if row.run not in joined:
            start = start_of(store, row.run)
            joined[row.run] = start is not None and start.options.joined
        if not joined[row.run]:
            return


class Followed:
    """The runs that may be open beside one of a line, and what they record as it comes.

    Their journals have no gaps. Rows of the index may come into sight in another order than their numbers
    have. What they recorded before the first look is told only if they are read `whole`.
    """

    def __init__(
        self, store: Store, project: str, line: str, run: RunId, *, whole: bool = False
    ) -> None:
        self._store = store
        self._project = project
        self._line = line
        self._run = run
        self._whole = whole
        self._joined: dict[RunId, bool] = {}
        self._read_to: dict[RunId, int] = {}
        self._line_end = -1  # of the line's journal at the last look at all

    def has_grown(self) -> bool:
        """Whether the line's journal grew since the last look: runs that began are followed from now on."""
        end = self._store.last(line_journal(self._project, self._line))
        if end == self._line_end:
            return False
        is_first, known = self._line_end < 0, {self._run, *self._joined}
        self._line_end = end
        for run in overlapping(self._store, self._project, self._line, self._joined):
            if run in known or (is_first and self._whole and has_ended(self._store, run)):
                continue
            skips = is_first and not self._whole  # only whether they have ended
            self._read_to[run] = max(0, self._store.last(f"run:{run}") - 1) if skips else 0
        return True

    def news(self) -> Iterator[tuple[RunId, Event]]:
        """What they recorded since the last look."""
        for run, after in [*self._read_to.items()]:
            for recorded in self._store.read(f"run:{run}", after):
                self._read_to[run] = recorded.seq
                if isinstance(recorded.event, RunEnded):
                    del self._read_to[run]
                yield run, recorded.event


def read_plan(store: Facts, digest: Digest) -> Plan:
    """A plan by its digest. Runs of a line mostly share one, which is parsed once."""
    content = store.get(digest)
    found = next((known.plan for known in _lately if known.digest == digest), None)
    if found is None:
        found = plan_from_bytes(content)
        _remember(_Known(digest, found))
    return found


@contextmanager
def knowing(content: bytes, plan: Plan, graph: Graph) -> Iterator[None]:
    """While runs are read that are mostly of this plan: neither it nor its order is worked out again.

    No longer, as whoever gave the plan may change what is in it.
    """
    known = _Known(digest_bytes(content), plan, graph)
    _remember(known)
    try:
        yield
    finally:
        _lately[:] = [one for one in _lately if one is not known]


class _Known(NamedTuple):
    digest: Digest
    plan: Plan
    graph: Graph | None = None


def _remember(known: _Known) -> None:
    _lately[:] = [known, *_lately[:1]]


_lately: list[_Known] = []
