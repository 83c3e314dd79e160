"""What a run of another store had learned: it comes with the run, and counts for that run alone.

The journal of a run has what its own attempts told. What came with the artifacts that it reused, and what
people said, stands in the journal of its line, which an export of one run leaves behind. So both are
written down beside it, and stand in the fact that the run was imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from holdfast.core.briefing import quoted
from holdfast.core.ledger import Ledger
from holdfast.core.state import State
from holdfast.core.told import findings
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.journals import read_state
from holdfast.engine.lines import line_journal
from holdfast.engine.words import attempts_of, kept_text, maker
from holdfast.model.digest import Digest
from holdfast.model.event import Recorded
from holdfast.model.line import HandoffGiven, LedgerSaid, PageThen, RunImported, SaidThen, ToldThen
from holdfast.model.plan import RunId, StepId
from holdfast.ports import RunRow, Store


def handoffs_of(store: Store, state: State) -> Handoffs:
    """What is known to a run: of its line, or if it was imported of the line that it comes from."""
    came = came_with(store, state)
    if came is None:
        handoffs = Handoffs(store, state.project, state.line)
        handoffs.refresh()
    else:
        handoffs = Handoffs(store, state.project, state.line, alone=state.run)
        handoffs.take(_recorded(came))
        handoffs.prefer(_given(one) for one in came.told)
    return handoffs


def came_with(store: Store, run: State | RunRow) -> RunImported | None:
    """The fact that a run was imported."""
    for recorded in _arrivals(store, run.project, run.line):
        if isinstance(recorded.event, RunImported) and recorded.event.run == run.run:
            return recorded.event
    return None


class Brought(NamedTuple):
    """Who brought a run here, when, and from which store."""

    by: str
    at: int
    store: str


def brought_in(store: Store, project: str, line: str) -> dict[RunId, Brought]:
    """The runs of a line that a person brought from another store, so that they count here."""
    return {
        event.run: Brought(event.by, at, event.store)
        for _, at, event in _arrivals(store, project, line)
        if isinstance(event, RunImported) and event.store
    }


def _arrivals(store: Store, project: str, line: str) -> Iterator[Recorded]:
    journal = line_journal(project, line)
    return (recorded for _, recorded in store.told([journal], [RunImported]))


def learned(store: Store, state: State, leaving: RunImported) -> RunImported:
    """A run that leaves its store with what goes with it; what stands in it comes last."""
    came = came_with(store, state)
    if came is not None:
        return replace(leaving, told=came.told, said=came.said, pages=came.pages)
    handoffs = Handoffs(store, state.project, state.line)
    handoffs.refresh()
    stands = {one.place for one in handoffs.told_by(state, state.steps)}
    every = sorted(handoffs.all_of(state), key=lambda one: one.seq in stands)
    told = tuple(
        ToldThen(
            one.seq,
            one.at,
            one.event.run,
            one.event.step,
            one.event.attempt,
            one.event.input_ref,
            one.event.digest,
            one.event.handoff,
        )
        for one in every
    )
    journal = store.read(line_journal(state.project, state.line))
    said = tuple(
        SaidThen(seq, at, e.word, e.by, e.entry, e.other, e.text, e.because)
        for seq, at, e in journal
        if isinstance(e, LedgerSaid)
    )
    given = Given(store, state)
    pages = ((step_id, given.page(step_id)) for step_id in state.graph.order)
    found = tuple(PageThen(step_id, page) for step_id, page in pages if page is not None)
    return replace(leaving, told=told, said=said, pages=found)


class Given:
    """What the attempts were told whose artifacts stand in a run, wherever it came from."""

    def __init__(self, store: Store, state: State) -> None:
        self._store = store
        self._state = state
        self._told: dict[RunId, dict[tuple[StepId, int], Digest]] = {}
        self._forks: dict[RunId, Given | None] = {}
        came = came_with(store, state)
        self._came = {} if came is None else {one.step: one.page for one in came.pages}

    def page(self, step_id: StepId) -> Digest | None:
        """The page of a step; None if it was told nothing, or nobody knows any more."""
        here = self._state.steps.get(step_id)
        if here is None or here.phase not in {"done", "reused"}:
            return None
        if step_id in self._came:
            return self._came[step_id]
        made = maker(self._store, self._state, step_id)
        if made is None:
            return None
        if not made.attempt:
            origin = self._origin(made.run)
            return None if origin is None else origin.page(step_id)
        if made.run not in self._told:
            self._told[made.run] = {
                (event.step, event.attempt): event.context
                for event in attempts_of(self._store, made.run)
                if event.context is not None
            }
        return self._told[made.run].get((step_id, made.attempt))

    def _origin(self, fork: RunId) -> Given | None:
        """The run from which a fork took what it began with."""
        if fork not in self._forks:
            begun = read_state(self._store, fork)
            origin = None if begun is None or begun.forked is None else begun.forked
            state = None if origin is None else read_state(self._store, origin)
            self._forks[fork] = None if state is None else Given(self._store, state)
        return self._forks[fork]


def stale_steps(store: Store, state: State, ledger: Ledger) -> dict[StepId, tuple[str, ...]]:
    """The steps that were told something which fell since, in full or summed up, with the ids of it."""
    every = (*ledger.evidence, *ledger.past)
    doubtful = [one.id for one in every if (one.contested or one.stale) and one.handoff]
    if not doubtful:
        return {}
    told_in: dict[str, set[str]] = {name: set() for name in doubtful}
    for told in (*ledger.handoffs, *ledger.superseded):
        for name, _ in findings(told):
            if name in told_in:
                told_in[name].add(told.id)
    given = Given(store, state)
    found = {}
    for step_id in state.graph.order:
        page = quoted(kept_text(given.page(step_id), store.get))
        held = tuple(
            name
            for name in doubtful
            if name in page.entries or not page.summed.isdisjoint(told_in[name])
        )
        if held:
            found[step_id] = held
    return found


def _recorded(came: RunImported) -> Iterator[Recorded]:
    told = (
        Recorded(
            one.seq,
            one.at,
            _given(one),
        )
        for one in came.told
    )
    said = (
        Recorded(
            one.seq,
            one.at,
            LedgerSaid(one.word, one.by, one.entry, one.other, one.text, one.because),
        )
        for one in came.said
    )
    yield from sorted((*told, *said), key=lambda one: one.seq)


def _given(one: ToldThen) -> HandoffGiven:
    return HandoffGiven(one.run, one.step, one.attempt, one.input_ref, one.digest, one.handoff)
