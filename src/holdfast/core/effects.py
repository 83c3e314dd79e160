"""Effects outside that may have happened: what a run says about one that nobody confirmed.

A step that may be done only once is never done again unasked. Its effect is open from the moment it
is started until it is confirmed, or a person gave its result.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.state import COMPLETE, State
from holdfast.model.plan import StepId

UNCONFIRMED: Final = "effect_unconfirmed"
BY_PEOPLE: Final = frozenset({"amended", "accepted_by_person"})
TAKEN_AGAIN: Final = frozenset({"unchanged", "unchanged_content", "reguarded"}) | BY_PEOPLE
REJECTED: Final = "rejected_by_person"


def is_open(state: State, step_id: StepId) -> bool | None:
    """Whether a run left an effect that may have happened; None if earlier runs have to be asked.

    Nobody knows it either if a person rejected the step, or went on without it, nor if an artifact stands
    that was there before. What was made and waits for a person is done, and has no artifact yet. A command
    that ended by itself, without a result, left nothing open.
    """
    here = state.steps.get(step_id)
    if here is None:
        return None
    code = here.reason.code if here.reason is not None else ""
    if here.phase == "waiting" and (code == UNCONFIRMED or here.parked is not None):
        return True
    if here.phase in COMPLETE and step_id not in state.gaps:
        return None if takes_again(state, step_id) else False
    if not here.attempts:
        return None
    return here.effect is not None and not here.effect_failed


def made_none(state: State, step_id: StepId) -> bool:
    """Whether a step is held only for what another run left open: that one knows how it ended."""
    here = state.steps[step_id]
    code = here.reason.code if here.reason is not None else ""
    held = here.phase == "waiting" and code == UNCONFIRMED
    return held and here.effect is None and here.parked is None


def effect_name(state: State, step_id: StepId) -> str:
    """The attempt that acted last, as other runs name it."""
    return f"{state.run}.{step_id}.{state.steps[step_id].attempts}"


def is_in_hand(state: State, step_id: StepId) -> bool:
    """Whether an effect is under way, or made and not accepted yet: who drives the run says how it ends."""
    here = state.steps.get(step_id)
    if here is None or (here.phase != "running" and here.parked is None):
        return False
    return is_cut_off(state, step_id) or is_open(state, step_id) is True


def takes_again(state: State, step_id: StepId) -> bool:
    """Whether a run made nothing of a step itself: the artifact may be the receipt of another effect."""
    here = state.steps[step_id]
    code = here.reason.code if here.reason is not None else ""
    if here.answered or here.effect_at:
        return False
    return here.phase == "reused" and code in TAKEN_AGAIN


def is_given(state: State, step_id: StepId) -> bool:
    """Whether what stands in a run comes from a person, who may have given it to settle an effect."""
    here = state.steps[step_id]
    return takes_again(state, step_id) and here.reason is not None and here.reason.code in BY_PEOPLE


def is_cut_off(state: State, step_id: StepId) -> bool:
    """Whether nobody would know what an attempt that runs has done, if its engine is gone."""
    started = state.running.get(step_id)
    return started is not None and started.reguard is None and state.plan.steps[step_id].done_once
