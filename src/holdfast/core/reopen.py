"""Beyond the retries: a step that cannot get through sends a step above it back, then asks a person.

A step with `escalate` goes through that list, `rounds` times: each step on it is made again in its
turn, with what went wrong below as feedback, and everything that stands on it is pending again. What
runs meanwhile on the old version comes to its end first, so the step is held until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from holdfast.core.effects import REJECTED, UNCONFIRMED, is_open
from holdfast.core.moves import LEFT_OUT, LOST, NOT_SELECTED, REOPENING, UNMET, code_below
from holdfast.core.state import State
from holdfast.model.event import (
    AttemptFailed,
    AttemptRejected,
    Reason,
    RunEvent,
    Skipped,
    StepHeld,
    StepsReopened,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.plan import Step, StepId


def stagnates(state: State, ending: AttemptRejected | AttemptFailed) -> bool:
    """Whether the feedback was the same as often as the step has patience for."""
    patience, here = state.plan.steps[ending.step].patience, state.steps[ending.step]
    if patience is None or here.rejections + 1 < patience or ending.alike is None:
        return False
    guard = ending.guard if isinstance(ending, AttemptRejected) else ""
    before = here.fed[len(here.fed) - (patience - 1) :]
    return all((fed.guard, fed.alike) == (guard, ending.alike) for fed in before)


def beyond(state: State, step: Step) -> StepHeld | None:
    """What follows when a step has no try left; None if it simply fails."""
    if not step.escalate:
        return None
    above = [name for name in map(StepId, step.escalate) if _can_help(state, name, step.id)]
    sent = state.steps[step.id].reopened
    if sent < step.rounds * len(above):
        return StepHeld(step.id, Reason(REOPENING, (above[sent % len(above)],)))
    return StepHeld(step.id, Reason("stuck"))


def _can_help(state: State, above: StepId, step_id: StepId) -> bool:
    """Whether a step can be made again, and the one that asks for it is made from it."""
    if not state.may_run(above) or above in state.gaps or state.steps[above].phase == "skipped":
        return False
    return not state.gaps or step_id in state.graph.below([above], state.gaps)


def reopenings(state: State) -> Sequence[RunEvent]:
    """The next step that can be sent back now: nothing runs on its present version any more."""
    if not state.reopening:
        return ()
    ranked = sorted(state.reopening.items(), key=lambda pair: state.graph.rank[pair[1]])
    for by, above in ranked:
        cone = state.graph.below([above], state.gaps)
        if state.running.keys().isdisjoint(cone):
            event = _reopened(state, by, above, cone)
            return [event, *lost_otherwise(state, event.steps, "reopened")]
    return ()


def _reopened(state: State, by: StepId, above: StepId, cone: set[StepId]) -> StepsReopened:
    steps = sent_back(state, above, cone)
    if by not in steps:  # it stands on it only through steps that stay as they are
        steps.append(by)
        steps.sort(key=state.graph.rank.__getitem__)
    fed = state.steps[by].fed[-1:]
    told = (fed[0].guard, fed[0].digest, fed[0].feedback) if fed else ("", None, None)
    return StepsReopened(above, by, tuple(steps), *told)


def sent_back(state: State, above: StepId, cone: Iterable[StepId]) -> list[StepId]:
    """The step and what is to be made or judged again when it is made, in the order of the graph.

    One pass from above: a step goes with one that it needs. A skipped step stays out if something else keeps
    it from running; what only its condition left out is judged again.
    """
    again = {above}
    for step_id in sorted(cone, key=state.graph.rank.__getitem__):
        needs = state.plan.steps[step_id].needs
        if step_id == above or not any(need.step in again for need in needs):
            continue
        cut = (
            state.steps[step_id].phase == "skipped" and lost_need(state, step_id, again) is not None
        )
        if _moves(state, step_id) and not cut:
            again.add(step_id)
    return sorted(again, key=state.graph.rank.__getitem__)


def lost_need(state: State, step_id: StepId, again: Collection[StepId]) -> StepId | None:
    """What keeps a step from running although those steps are made again: a lost one that it needs."""
    for need in state.plan.steps[step_id].needs:
        lost = state.steps[need.step].phase in LOST and need.step not in again
        if lost and not need.optional:
            return need.step
    return None


def lost_otherwise(state: State, again: Collection[StepId], code: str) -> list[RunEvent]:
    """Steps that stay skipped although what they name as the cause is made again.

    They are told anew if another kind of cause keeps them out: a run is complete without what a condition
    left out, and not without what a failure did.
    """
    items: dict[StepId, Skipped] = {}
    for step_id in sorted(state.graph.below(again), key=state.graph.rank.__getitem__):
        here = state.steps[step_id]
        if here.phase != "skipped" or here.reason is None or step_id in again:
            continue
        cause = here.reason.because[0]
        if here.reason.code == UNMET or not (cause in again or cause in items):
            continue
        if (lost := lost_need(state, step_id, again)) is not None:
            above = items[lost].code if lost in items else ""
            now = code_below(state, step_id, lost, above)
            if (now in LEFT_OUT) != (here.reason.code in LEFT_OUT):
                items[step_id] = Skipped(step_id, now, lost)
    return [StepsReset(tuple(items), code), StepsSkipped(tuple(items.values()))] if items else []


def _moves(state: State, step_id: StepId) -> bool:
    step = state.steps[step_id]
    code = step.reason.code if step.reason is not None else ""
    if step.phase == "waiting":  # whatever is above: nobody knows whether an effect happened
        return code != UNCONFIRMED
    if code == REJECTED and state.plan.steps[step_id].done_once:
        return is_open(state, step_id) is False
    return not (step.phase == "skipped" and code == NOT_SELECTED)
