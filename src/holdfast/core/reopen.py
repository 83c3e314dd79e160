"""Beyond the retries: a step that cannot get through sends a step above it back, then asks a person.

A step with `escalate` goes through that list, `rounds` times: each step on it is made again in its
turn, with what went wrong below as feedback, and everything that stands on it is pending again. What
runs meanwhile on the old version comes to its end first, so the step is held until then.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.effects import REJECTED, UNCONFIRMED, is_open
from holdfast.core.moves import LEFT_OUT, REOPENING
from holdfast.core.state import State
from holdfast.model.event import (
    AttemptFailed,
    AttemptRejected,
    Reason,
    StepHeld,
    StepsReopened,
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
    if not state.may_run(above) or above in state.gaps:
        return False
    return not state.gaps or step_id in state.graph.below([above], state.gaps)


def reopenings(state: State) -> Sequence[StepsReopened]:
    """The next step that can be sent back now: nothing runs on its present version any more."""
    if not state.reopening:
        return ()
    ranked = sorted(state.reopening.items(), key=lambda pair: state.graph.rank[pair[1]])
    for by, above in ranked:
        cone = state.graph.below([above], state.gaps)
        if state.running.keys().isdisjoint(cone):
            return [_reopened(state, by, above, cone)]
    return ()


def _reopened(state: State, by: StepId, above: StepId, cone: set[StepId]) -> StepsReopened:
    apart = {s for s in state.graph.below(_blocked(state, cone)) if s in cone}
    steps = [s for s in cone if _moves(state, s) and not (s in apart and _is_cut(state, s))]
    steps.sort(key=state.graph.rank.__getitem__)
    fed = state.steps[by].fed[-1:]
    told = (fed[0].guard, fed[0].digest, fed[0].feedback) if fed else ("", None, None)
    return StepsReopened(above, by, tuple(steps), *told)


def _moves(state: State, step_id: StepId) -> bool:
    step = state.steps[step_id]
    code = step.reason.code if step.reason is not None else ""
    if step.phase == "waiting":  # whatever is above: nobody knows whether an effect happened
        return code != UNCONFIRMED
    if code == REJECTED and state.plan.steps[step_id].done_once:
        return is_open(state, step_id) is False
    return not (step.phase == "skipped" and code in LEFT_OUT)


def _blocked(state: State, cone: set[StepId]) -> set[StepId]:
    """Steps beside the cone that failed or were left out: what needs them stays skipped."""
    return {
        s
        for s, step in state.steps.items()
        if step.phase in {"failed", "skipped"} and (s not in cone or not _moves(state, s))
    }


def _is_cut(state: State, step_id: StepId) -> bool:
    return state.steps[step_id].phase == "skipped"
