"""Effects outside that may have happened: what a run says about one that nobody confirmed.

A step that may be done only once is never done again unasked. Its effect is open from the moment it
is started until it is confirmed, or a person gave its result.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.state import COMPLETE, State
from holdfast.model.plan import StepId

UNCONFIRMED: Final = "effect_unconfirmed"
REJECTED: Final = "rejected_by_person"


def is_open(state: State, step_id: StepId) -> bool | None:
    """Whether a run left an effect that may have happened; None if earlier runs have to be asked.

    Nobody knows it either if a person rejected the step, or went on without it. What was made and waits
    for a person is done, and has no artifact yet. A command that ended by itself, without a result, left
    nothing open.
    """
    here = state.steps.get(step_id)
    if here is None:
        return None
    code = here.reason.code if here.reason is not None else ""
    if here.phase == "waiting" and (code == UNCONFIRMED or here.parked is not None):
        return True
    if is_settled(state, step_id):
        return False
    if not here.attempts:
        return None
    return here.effect is not None and not here.effect_failed


def is_settled(state: State, step_id: StepId) -> bool:
    """Whether a step has its artifact in a run: what was open before is not any more."""
    return state.steps[step_id].phase in COMPLETE and step_id not in state.gaps


def is_cut_off(state: State, step_id: StepId) -> bool:
    """Whether nobody would know what an attempt that runs has done, if its engine is gone."""
    started = state.running.get(step_id)
    return started is not None and started.reguard is None and state.plan.steps[step_id].done_once
