"""The ledger of a run: the handoffs of its steps, folded with what its plan says of hypotheses."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.core.ledger import Ledger, Silent, folded
from holdfast.core.likeness import Alike
from holdfast.core.premises import standings
from holdfast.core.said import Said
from holdfast.core.state import COMPLETE, State
from holdfast.core.told import Told
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
    """What a run has learned so far, as it stands now; with `audit` also what counts no more."""
    now = handoffs.told_since(state, state.steps)
    before = handoffs.before(state, now) if audit else ()
    quiet = _silent(state, now, state.steps)
    premises = standings(state.plan, state.running)
    past = handoffs.past(state.run, state.steps)
    return folded(now, alike, premises, said, before, quiet, state.plan.steps, past)


def ledger_up_to(
    state: State,
    handoffs: Handoffs,
    alike: Alike,
    steps: Collection[StepId],
    said: Sequence[Said] = (),
) -> Ledger:
    """What some steps of a run told, whatever the others do."""
    told = handoffs.told_by(state, steps)
    quiet = _silent(state, told, steps)
    past, all_steps = handoffs.past(state.run, steps), state.plan.steps
    return folded(told, alike, standings(state.plan), said, (), quiet, all_steps, past)


def _silent(state: State, told: Sequence[Told], steps: Collection[StepId]) -> dict[StepId, Silent]:
    """The steps that are done and tested hypotheses, and told nothing; a synthesis tests nothing."""
    heard, asked = {one.step for one in told}, {*steps}
    return {
        step_id: Silent(state.graph.wave[step_id], state.plan.steps[step_id].hypotheses)
        for step_id in state.graph.order
        if step_id not in heard
        and state.plan.steps[step_id].hypotheses
        and state.plan.steps[step_id].type != "synthesize"
        and step_id in asked
        and state.steps[step_id].phase in COMPLETE
    }
