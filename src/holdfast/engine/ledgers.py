"""The ledger of a run: the handoffs of its steps, folded with what its plan says of hypotheses."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.core.ledger import Ledger, folded
from holdfast.core.likeness import Alike
from holdfast.core.premises import standings
from holdfast.core.said import Said
from holdfast.core.state import State
from holdfast.engine.handoffs import Handoffs
from holdfast.model.plan import StepId


def ledger_of(
    state: State,
    handoffs: Handoffs,
    alike: Alike,
    said: Sequence[Said] = (),
    *,
    audit: bool = False,
) -> Ledger:
    """What a run has learned so far; with `audit` also what counts no more."""
    now = handoffs.told_by(state, state.steps)
    before = handoffs.before(state, now) if audit else ()
    return folded(now, alike, standings(state.plan, state.running), said, before)


def ledger_up_to(
    state: State,
    handoffs: Handoffs,
    alike: Alike,
    steps: Collection[StepId],
    said: Sequence[Said] = (),
) -> Ledger:
    """What some steps of a run told, whatever the others do."""
    return folded(handoffs.told_by(state, steps), alike, standings(state.plan), said)
