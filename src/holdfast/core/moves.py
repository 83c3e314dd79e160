"""Moves of steps between phases: which are legal, and what each of them keeps up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.core.state import COMPLETE, Phase, State, StepState
from holdfast.errors import BugError
from holdfast.model.plan import Need, StepId

TRANSITIONS: Final[dict[str, dict[Phase, Phase]]] = {
    "steps_reused": {"pending": "reused"},
    "steps_taken": {"pending": "reused"},
    "attempt_started": {"pending": "running"},
    "attempt_accepted": {"running": "done", "waiting": "done"},
    "attempt_parked": {"running": "waiting"},
    "attempt_rejected": {"running": "pending", "waiting": "pending"},
    "attempt_failed": {"running": "pending"},
    "attempt_lost": {"running": "pending"},
    "step_failed": {"pending": "failed", "waiting": "failed"},
    "step_held": {"pending": "waiting", "waiting": "waiting"},
    "steps_skipped": {"pending": "skipped"},
    "effect_started": {"running": "running"},
    "effect_confirmed": {"running": "running", "waiting": "waiting"},
    "call_started": {"running": "running"},
    "call_answered": {"running": "running"},
    "call_failed": {"running": "running"},
    "tool_started": {"running": "running"},
    "tool_used": {"running": "running"},
    "answers_kept": {"pending": "pending"},
    "steps_reset": {"failed": "pending", "skipped": "pending", "waiting": "pending"},
    "steps_released": {"waiting": "pending"},
    "steps_reopened": {
        "done": "pending",
        "reused": "pending",
        "pending": "pending",
        "waiting": "pending",
        "failed": "pending",
        "skipped": "pending",
    },
    "step_waived": {"pending": "reused"},
    "gap_closed": {"done": "pending", "reused": "pending", "skipped": "pending"},
    "outputs_placed": {"pending": "pending", "reused": "reused", "done": "done"},
}
INTERRUPTED: Final = "previous_interrupted"
LIMIT: Final = "limit_reached"
UNSEEN: Final = frozenset({INTERRUPTED, LIMIT})  # ends of attempts that are not the step's doing
NOT_SELECTED: Final = "not_selected"
UNMET: Final = "condition_unmet"
UNMET_ABOVE: Final = "condition_above"
BY_CONDITION: Final = frozenset({UNMET, UNMET_ABOVE})
LEFT_OUT: Final = BY_CONDITION | {NOT_SELECTED}  # a run is complete without them
LOST: Final = frozenset({"failed", "skipped"})
WAIVED: Final = "skipped_by_person"
IN_CONFLICT: Final = "conflict_open"
REOPENING: Final = "reopening"


def move(state: State, step_id: StepId, kind: str) -> StepState:
    """Check that the table allows it and return the step; the caller sets the phase."""
    step = state.steps.get(step_id)
    if step is None:
        raise BugError(f"'{kind}' names '{step_id}', which is no step of this plan")
    if step.phase not in TRANSITIONS[kind]:
        raise BugError(f"'{kind}' of '{step_id}' while it is {step.phase}")
    return step


def set_phase(state: State, step: StepState, phase: Phase) -> None:
    """Put a step into a phase and keep the counts."""
    state.counts[step.phase] -= 1
    state.counts[phase] += 1
    step.phase = phase


def now_ready(state: State, step_id: StepId) -> None:
    """Everything that a step needs is complete."""
    state.ready.add(step_id)
    state.ready_log.append(step_id)


def completed(state: State, step_id: StepId) -> None:
    """Tell those that need a step that it is complete."""
    for dependent in state.graph.dependents.get(step_id, ()):
        left = state.missing[dependent] - 1
        state.missing[dependent] = left
        if not left and state.steps[dependent].phase == "pending":
            now_ready(state, dependent)


def is_met(state: State, need: Need) -> bool:
    """Whether a step need not wait for this one any more."""
    phase = state.steps[need.step].phase
    return phase in COMPLETE or (need.optional and phase in LOST)


def gone_without(state: State, step_id: StepId) -> None:
    """A step is lost: tell those that go on without it."""
    for dependent in state.graph.without.get(step_id, ()):
        left = state.missing[dependent] - 1
        state.missing[dependent] = left
        if not left and state.steps[dependent].phase == "pending":
            now_ready(state, dependent)


def back_again(state: State, step_id: StepId) -> None:
    """A step that was lost may still come: those that would have gone on without it wait for it."""
    for dependent in state.graph.without.get(step_id, ()):
        state.missing[dependent] += 1
        state.ready.discard(dependent)


def code_below(state: State, step_id: StepId, lost: StepId, code: str = "") -> str:
    """Why a step is skipped that needs a lost one; `code` is why that is skipped, if it will be so now."""
    above = state.steps[lost]
    if not code and above.phase == "failed":
        return "dependency_failed"
    code = code or (above.reason.code if above.reason is not None else "")
    if code in BY_CONDITION:
        return UNMET_ABOVE
    return NOT_SELECTED if not state.may_run(step_id) else "dependency_skipped"


def require_needs(state: State, step_id: StepId, kind: str) -> None:
    """Refuse an event about a step whose needs are not complete."""
    if state.missing[step_id]:
        raise BugError(f"'{kind}' of '{step_id}' before its needs are complete")


def require_once(steps: Sequence[StepId], kind: str) -> None:
    """Refuse an event that names a step twice."""
    if len(set(steps)) < len(steps):
        raise BugError(f"'{kind}' names a step twice")


def stay(state: State, step_id: StepId) -> None:
    """A step that was to send another one back does not wait for that any more."""
    if state.reopening and state.reopening.pop(step_id, None) is not None:
        state.frozen = frozenset(state.graph.below(state.reopening.values()))
