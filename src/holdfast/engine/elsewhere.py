"""What a run of another store had learned: it comes with the run, and counts for that run alone.

The journal of a run has what its own attempts told. What came with the artifacts that it reused, and what
people said, stands in the journal of its line, which an export of one run leaves behind. So both are
written down beside it, and stand in the fact that the run was imported.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.state import State
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.lines import line_journal
from holdfast.model.event import Recorded
from holdfast.model.line import HandoffGiven, LedgerSaid, RunImported, SaidThen, ToldThen
from holdfast.ports import Store


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


def came_with(store: Store, state: State) -> RunImported | None:
    """The fact that a run was imported."""
    for recorded in store.read(line_journal(state.project, state.line)):
        if isinstance(recorded.event, RunImported) and recorded.event.run == state.run:
            return recorded.event
    return None


def learned(store: Store, state: State) -> tuple[tuple[ToldThen, ...], tuple[SaidThen, ...]]:
    """What goes with a run that leaves its store; what stands in it comes last."""
    came = came_with(store, state)
    if came is not None:
        return came.told, came.said
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
    return told, tuple(
        SaidThen(seq, at, e.word, e.by, e.entry, e.other, e.text, e.because)
        for seq, at, e in journal
        if isinstance(e, LedgerSaid)
    )


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
