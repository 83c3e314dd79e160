"""What events that undo something mean: steps pending again, gone without, and conflicts of steps."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.escalation import note_again, note_settled
from holdfast.core.moves import (
    IN_CONFLICT,
    LEFT_OUT,
    LOST,
    WAIVED,
    back_again,
    completed,
    move,
    now_ready,
    require_once,
    set_phase,
    stay,
)
from holdfast.core.state import COMPLETE, Fed, Gap, State
from holdfast.errors import BugError
from holdfast.model.event import (
    ConflictFound,
    ConflictResolved,
    GapClosed,
    Reason,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepWaived,
)
from holdfast.model.plan import StepId


def steps_reset(state: State, event: StepsReset, _: int) -> None:
    """People want steps tried again, with fresh budgets."""
    require_once(event.steps, "steps_reset")
    for step_id in event.steps:
        move(state, step_id, "steps_reset")
    _close_conflicts(state, event.steps)
    for step_id in event.steps:
        step = state.steps[step_id]
        step.rejections = step.losses = step.reopened = 0
        step.asked = step_id in event.asked
        left = step.undecided or (step.parked is not None and step.effect_at > 0)
        step.undecided = left and not step.asked
        step.running = step.parked = None
        if step.tools is not None:  # whoever wants it again knows what may have happened
            step.tools.left = frozenset()
        stay(state, step_id)
        note_again(state, step_id)
        if step.phase == "skipped" and step.reason is not None:
            state.unselected -= step.reason.code in LEFT_OUT
        step.reason, step.why, step.last = None, None, Reason(event.code)
        if step.phase in LOST:
            back_again(state, step_id)
        set_phase(state, step, "pending")
        if not state.missing[step_id]:
            now_ready(state, step_id)


def steps_released(state: State, event: StepsReleased, _: int) -> None:
    """What steps waited for has come."""
    require_once(event.steps, "steps_released")
    for step_id in event.steps:
        step = move(state, step_id, "steps_released")
        if step.parked is not None:
            raise BugError(f"'{step_id}' is released while its candidate waits for a decision")
    for step_id in event.steps:
        step = state.steps[step_id]
        step.reason, step.why = step.why, None
        stay(state, step_id)
        set_phase(state, step, "pending")
        if not state.missing[step_id]:
            now_ready(state, step_id)


def steps_reopened(state: State, event: StepsReopened, _: int) -> None:
    """Everything that stands on the step is pending again; the one that asked keeps count of it."""
    require_once(event.steps, "steps_reopened")
    if event.step not in event.steps or event.by not in event.steps:
        raise BugError(f"'{event.by}' sends '{event.step}' back, and one of them stays")
    _require_below(state, event.steps, "steps_reopened")
    _close_conflicts(state, event.steps)
    for step_id in event.steps:
        _reopen(state, step_id)
    above, below = state.steps[event.step], state.steps[event.by]
    teller = f"{event.by}: {event.guard}" if event.guard else str(event.by)
    above.fed = (*above.fed, Fed(event.digest, teller, event.feedback))
    above.last, above.remade = Reason("reopened", (event.by,)), True
    above.sent_back += 1
    below.last = above.last
    below.reopened += 1
    for step_id in event.steps:
        if not state.missing[step_id]:
            now_ready(state, step_id)


def _require_below(state: State, steps: Sequence[StepId], kind: str) -> None:
    """Refuse to send steps back while something else stands on them; a gap stands on nothing."""
    sent = set(steps)
    for step_id in steps:
        move(state, step_id, kind)
        for stands in state.graph.dependents.get(step_id, ()):
            if stands in sent or stands in state.gaps:
                continue
            if state.steps[stands].phase in {"running", "done", "reused"}:
                raise BugError(f"'{stands}' stands on '{step_id}', which is sent back")


def _reopen(state: State, step_id: StepId) -> None:
    step = state.steps[step_id]
    stay(state, step_id)
    note_again(state, step_id)
    if step.phase in COMPLETE:
        step.stood = True
        for dependent in state.graph.dependents.get(step_id, ()):
            state.missing[dependent] += 1
            state.ready.discard(dependent)
    elif step.phase in LOST:
        back_again(state, step_id)
    if step.phase == "skipped" and step.reason is not None:
        state.unselected -= step.reason.code in LEFT_OUT
    step.running = step.parked = step.reason = step.digest = step.last = None
    step.rejections = step.losses = 0
    step.asked = False
    state.ready.discard(step_id)
    state.gaps.pop(step_id, None)
    set_phase(state, step, "pending")


def step_waived(state: State, event: StepWaived, at: int) -> None:
    """Those below go on without it, whether or not what it needs is complete."""
    step = move(state, event.step, "step_waived")
    step.config_ref, step.digest, step.form = event.config_ref, event.digest, event.form
    step.reason = Reason(WAIVED, (event.by,))
    step.verified, step.last = False, None
    state.gaps[event.step] = Gap(event.by, event.because, at)
    state.heard = max(state.heard, event.request)
    state.ready.discard(event.step)
    set_phase(state, step, "reused")
    completed(state, event.step)
    if state.failures:
        note_settled(state, event.step)


def gap_closed(state: State, event: GapClosed, _: int) -> None:
    """A step that was gone without is made after all, with those that went on without it."""
    if event.step not in event.steps:
        raise BugError(f"'gap_closed' of '{event.step}' leaves it as it is")
    require_once(event.steps, "gap_closed")
    _require_below(state, event.steps, "gap_closed")
    _close_conflicts(state, event.steps)
    for step_id in event.steps:
        _reopen(state, step_id)
    named = state.steps[event.step]
    named.asked, named.last = True, Reason("retried")
    for step_id in event.steps:
        if not state.missing[step_id]:
            now_ready(state, step_id)


def conflict_found(state: State, event: ConflictFound, _: int) -> None:
    """Of the steps that take part, those whose candidate is kept wait for it from now on."""
    if event.conflict in state.conflicts:
        raise BugError(f"conflict '{event.conflict}' is found while it is open")
    parts = [state.steps.get(step_id) for step_id in event.steps]
    if None in parts:
        raise BugError(f"conflict '{event.conflict}' names a step that is none of this plan")
    state.conflicts[event.conflict] = event
    for step in parts:
        if step is not None and step.parked is not None:
            known = step.reason.because if step.reason and step.reason.code == IN_CONFLICT else ()
            step.reason = Reason(IN_CONFLICT, (*known, event.conflict))


def conflict_resolved(state: State, event: ConflictResolved, _: int) -> None:
    """A conflict is settled; who had a part in it has one less to wait for."""
    if event.conflict not in state.conflicts:
        raise BugError(f"conflict '{event.conflict}' is resolved and was not open")
    found = state.conflicts.pop(event.conflict)
    for step_id in found.steps:
        step = state.steps[step_id]
        if step.parked is not None:
            step.settled = (*step.settled, found)
        if step.reason is not None and step.reason.code == IN_CONFLICT:
            left = tuple(name for name in step.reason.because if name != event.conflict)
            step.reason = Reason(IN_CONFLICT, left)


def _close_conflicts(state: State, steps: Sequence[StepId]) -> None:
    """What is made again has no position any more."""
    if state.conflicts:
        again = set(steps)
        state.conflicts = {
            name: found for name, found in state.conflicts.items() if again.isdisjoint(found.steps)
        }
