"""What an event means. State is only ever the fold of a run's events.

The rules:
- an event about a step is legal only in the phases that `TRANSITIONS` names for it;
- a step may start or be reused only when every need is complete in this run;
- the first event is `run_started`; nothing follows `run_ended`; while a run rests, only `run_resumed`;
- an illegal event raises and changes nothing.

The diagram in `docs/architecture.md` is drawn from `TRANSITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from holdfast.core.escalation import note_again, note_failure, note_settled
from holdfast.core.growth import grow
from holdfast.core.state import (
    COMPLETE,
    Fed,
    Gap,
    Phase,
    Plans,
    State,
    StepState,
    empty_state,
    no_plans,
)
from holdfast.errors import BugError
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    ConflictFound,
    ConflictResolved,
    EffectConfirmed,
    EffectStarted,
    Event,
    GapClosed,
    OutputsPlaced,
    PlanExtended,
    Reason,
    Recorded,
    RequestRefused,
    Reused,
    RunEnded,
    RunRested,
    RunResumed,
    RunStarted,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
    StepWaived,
)
from holdfast.model.plan import Plan, StepId

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
    "gap_closed": {"done": "pending", "reused": "pending"},
    "outputs_placed": {"pending": "pending", "reused": "reused", "done": "done"},
}
INTERRUPTED: Final = "previous_interrupted"
NOT_SELECTED: Final = "not_selected"
WAIVED: Final = "skipped_by_person"
IN_CONFLICT: Final = "conflict_open"
REOPENING: Final = "reopening"


def fold(plan: Plan, events: Iterable[Recorded], plans: Plans = no_plans) -> State:
    """The definition: a run's state from nothing. `plans` finds the plans of a run that grew."""
    state = empty_state(plan, plans=plans)
    for recorded in events:
        apply(state, recorded)
    return state


def apply(state: State, recorded: Recorded) -> None:
    """Take one event into the state; an illegal one raises before anything changed."""
    event = recorded.event
    handler = _HANDLERS.get(type(event))
    if handler is None:
        raise BugError(f"'{type(event).__name__}' does not belong in a run's journal")
    if recorded.seq != state.seq + 1:
        raise BugError(f"event {recorded.seq} follows {state.seq}")
    if state.status != "running" or handler is _run_started:
        _check_status(state, event)
    handler(state, event, recorded.at)
    state.seq = recorded.seq


def extend(state: State, item: Reused) -> None:
    """Take in a further item of the event that was just folded, before it is stored as one.

    Two `steps_reused` in a row mean the same as one with both lists, so a whole cone of reuse becomes a
    single fact although its steps become ready one after the other.
    """
    _reuse(state, item)


def _check_status(state: State, event: Event) -> None:
    """A run that is running takes every event but its start; what others take stands here."""
    status = state.status
    if status is None and isinstance(event, RunStarted):
        return
    resting = status is not None and not state.ended and status != "running"
    if resting and isinstance(event, RunResumed | RunEnded):
        return
    raise BugError(
        f"'{type(event).__name__}' cannot follow while the run is {status or 'not begun'}"
    )


def _move(state: State, step_id: StepId, kind: str) -> StepState:
    """Check that the table allows it and return the step; the caller sets the phase."""
    step = state.steps.get(step_id)
    if step is None:
        raise BugError(f"'{kind}' names '{step_id}', which is no step of this plan")
    if step.phase not in TRANSITIONS[kind]:
        raise BugError(f"'{kind}' of '{step_id}' while it is {step.phase}")
    return step


def _set(state: State, step: StepState, phase: Phase) -> None:
    state.counts[step.phase] -= 1
    state.counts[phase] += 1
    step.phase = phase


def _now_ready(state: State, step_id: StepId) -> None:
    state.ready.add(step_id)
    state.ready_log.append(step_id)


def _completed(state: State, step_id: StepId) -> None:
    for dependent in state.graph.dependents.get(step_id, ()):
        left = state.missing[dependent] - 1
        state.missing[dependent] = left
        if not left and state.steps[dependent].phase == "pending":
            _now_ready(state, dependent)


def _require_needs(state: State, step_id: StepId, kind: str) -> None:
    if state.missing[step_id]:
        raise BugError(f"'{kind}' of '{step_id}' before its needs are complete")


def _require_once(steps: Sequence[StepId], kind: str) -> None:
    if len(set(steps)) < len(steps):
        raise BugError(f"'{kind}' names a step twice")


def _run_started(state: State, event: RunStarted, at: int) -> None:
    state.run, state.line, state.project = event.run, event.line, event.project
    state.plan_digest, state.w_ref = event.plan, event.w_ref
    state.base, state.base_ref = event.plan, event.w_ref
    state.options, state.previous = event.options, event.previous
    state.forked, state.forked_at = event.forked, event.forked_at
    state.status, state.started_at, state.since = "running", at, at
    state.selected = frozenset(event.options.select) or None
    for step_id in state.graph.order:
        if state.missing[step_id]:
            break  # order goes wave by wave: the first wave is over
        _now_ready(state, step_id)


def _run_resumed(state: State, _: RunResumed, at: int) -> None:
    state.status, state.rest, state.escalation = "running", None, None
    state.since, state.attempts = at, 0


def _steps_reused(state: State, event: StepsReused, _: int) -> None:
    """Items may build on each other, so each is checked where it stands; an illegal list changes nothing."""
    if len(event.items) > 1:
        _check_reused(state, event)
    for item in event.items:
        _reuse(state, item)


def _steps_taken(state: State, event: StepsTaken, at: int) -> None:
    for item in event.items:
        _move(state, item.step, "steps_taken")
    items = [Reused(i.step, i.config_ref, i.digest, i.form, "forked") for i in event.items]
    _steps_reused(state, StepsReused(tuple(items)), at)


def _reuse(state: State, item: Reused) -> None:
    step = _move(state, item.step, "steps_reused")
    _require_needs(state, item.step, "steps_reused")
    step.config_ref, step.digest, step.form = item.config_ref, item.digest, item.form
    step.reason = Reason(item.code)
    state.ready.discard(item.step)
    _set(state, step, "reused")
    _completed(state, item.step)
    if state.failures:
        note_settled(state, item.step)


def _check_reused(state: State, event: StepsReused) -> None:
    complete = set()
    for item in event.items:
        _move(state, item.step, "steps_reused")
        if item.step in complete:
            raise BugError(f"'steps_reused' names '{item.step}' twice")
        for need in state.plan.steps[item.step].needs:
            if need.step not in complete and state.steps[need.step].phase not in COMPLETE:
                raise BugError(f"'steps_reused' of '{item.step}' before its needs are complete")
        complete.add(item.step)


def _attempt_started(state: State, event: AttemptStarted, at: int) -> None:
    step = _move(state, event.step, "attempt_started")
    _require_needs(state, event.step, "attempt_started")
    if event.attempt != step.attempts + 1:
        raise BugError(f"attempt {event.attempt} of '{event.step}' follows {step.attempts}")
    step.attempts = event.attempt
    step.running = event
    step.config_ref = event.config_ref
    step.started_at = at
    if step.reason is None:
        step.reason = event.reason
    state.attempts += 1
    state.running[event.step] = event
    if state.demands:
        _take(state, event.step, 1)
    state.ready.discard(event.step)
    _set(state, step, "running")


def _take(state: State, step_id: StepId, times: int) -> None:
    """Keep account of what the attempts that run have taken."""
    for thing, count in state.demands.get(step_id, ()):
        state.taken[thing] = state.taken.get(thing, 0) + times * count


def _stop(state: State, step_id: StepId) -> None:
    """An attempt does not run any more; one whose candidate was kept stopped before."""
    if state.running.pop(step_id, None) is not None and state.demands:
        _take(state, step_id, -1)


def _require_attempt(step: StepState, event: Ending, kind: str) -> AttemptStarted:
    started = step.running
    lies = step.phase == "waiting" and step.parked is None
    if started is None or lies or started.attempt != event.attempt:
        raise BugError(
            f"'{kind}' of attempt {event.attempt} of '{event.step}', which is not running"
        )
    return started


def _attempt_accepted(state: State, event: AttemptAccepted, at: int) -> None:
    step = _move(state, event.step, "attempt_accepted")
    started = _require_attempt(step, event, "attempt_accepted")
    step.config_ref, step.digest, step.form = started.config_ref, event.digest, event.form
    step.verified, step.log, step.last = event.verified, event.log, None
    step.duration_ms = _spend(step, at, event.duration_ms)
    step.running, step.parked, step.remade = None, None, False
    _stop(state, event.step)
    if step.phase == "waiting":
        step.reason, step.why = step.why, None
    if started.reguard is None or started.approvals:  # made, or given by a person who was asked
        _set(state, step, "done")
    else:  # nothing was made: an artifact that exists passed the guards
        step.reason = Reason("amended" if event.source == "human" else "reguarded")
        _set(state, step, "reused")
        if state.failures:
            note_settled(state, event.step)
    _completed(state, event.step)


def _spend(step: StepState, at: int, told: int) -> int:
    """Add what an attempt took: as it was told, else what lies between its two events."""
    took = told or max(0, at - step.started_at)
    step.spent_ms += took
    return took


def _back_to_pending(state: State, step_id: StepId, step: StepState) -> AttemptStarted:
    started = step.running
    assert started is not None  # _require_attempt came first
    step.running = step.parked = None
    _stop(state, step_id)
    _set(state, step, "pending")
    _now_ready(state, step_id)
    return started


def _attempt_parked(state: State, event: AttemptParked, at: int) -> None:
    step = _move(state, event.step, "attempt_parked")
    _require_attempt(step, event, "attempt_parked")
    _spend(step, at, event.duration_ms)
    step.parked, step.log, step.settled = event, event.log, ()
    step.why, step.reason = step.reason, Reason("awaiting_approval", event.approvals)
    _stop(state, event.step)
    _set(state, step, "waiting")


def _effect_started(state: State, event: EffectStarted, _: int) -> None:
    step = _move(state, event.step, "effect_started")
    _require_attempt(step, event, "effect_started")
    step.effect = event.key


def _effect_confirmed(state: State, event: EffectConfirmed, _: int) -> None:
    step = _move(state, event.step, "effect_confirmed")
    _require_attempt(step, event, "effect_confirmed")
    if step.effect != event.key:
        raise BugError(f"an effect of '{event.step}' is confirmed that was not started")
    step.effect = None


def _attempt_rejected(state: State, event: AttemptRejected, at: int) -> None:
    step = _move(state, event.step, "attempt_rejected")
    started = _require_attempt(step, event, "attempt_rejected")
    if step.phase == "waiting":
        step.reason, step.why = step.why, None
    _spend(step, at, event.duration_ms)
    _back_to_pending(state, event.step, step)
    if started.reguard is None:  # a kept artifact under new guards costs no try
        step.rejections += 1
    step.last = Reason("guard_fatal" if event.fatal else "guard_rejected", (event.guard,))
    step.log = event.log
    step.said = event.feedback
    step.fed = (*step.fed, Fed(event.digest, event.guard, event.feedback, event.alike))


def _attempt_failed(state: State, event: AttemptFailed, at: int) -> None:
    step = _move(state, event.step, "attempt_failed")
    _require_attempt(step, event, "attempt_failed")
    _spend(step, at, event.duration_ms)
    _back_to_pending(state, event.step, step)
    step.rejections += 1
    step.last, step.log = Reason(event.code), event.log
    step.said = event.feedback
    step.fed = (*step.fed, Fed(None, "", event.feedback, event.alike))


def _attempt_lost(state: State, event: AttemptLost, at: int) -> None:
    step = _move(state, event.step, "attempt_lost")
    _require_attempt(step, event, "attempt_lost")
    _back_to_pending(state, event.step, step)
    if event.code != INTERRUPTED:  # the engine's death is not the step's fault, nor was it seen
        step.losses += 1
        _spend(step, at, 0)
    step.said = event.feedback
    step.last, step.log = Reason(event.code), event.log


def _step_failed(state: State, event: StepFailed, _: int) -> None:
    step = _move(state, event.step, "step_failed")
    _stay(state, event.step)
    step.reason = event.reason
    step.said = event.because or step.said
    state.ready.discard(event.step)
    _set(state, step, "failed")
    note_failure(state, event.step, event.reason)


def _step_held(state: State, event: StepHeld, _: int) -> None:
    step = _move(state, event.step, "step_held")
    _stay(state, event.step)
    if step.phase == "pending":
        step.why = step.reason
    step.reason, step.held_at = event.reason, state.seq + 1
    state.ready.discard(event.step)
    _set(state, step, "waiting")
    if event.reason.code == REOPENING:
        above = StepId(event.reason.because[0])
        state.reopening[event.step] = above
        state.frozen |= state.graph.below([above])


def _stay(state: State, step_id: StepId) -> None:
    """A step that was to send another one back does not wait for that any more."""
    if state.reopening and state.reopening.pop(step_id, None) is not None:
        state.frozen = frozenset(state.graph.below(state.reopening.values()))


def _steps_skipped(state: State, event: StepsSkipped, _: int) -> None:
    _require_once([item.step for item in event.items], "steps_skipped")
    for item in event.items:
        _move(state, item.step, "steps_skipped")
    for item in event.items:
        step = state.steps[item.step]
        step.reason = Reason(item.code, (item.because,))
        state.unselected += item.code == NOT_SELECTED
        state.ready.discard(item.step)
        _set(state, step, "skipped")
    if state.failures:
        for item in event.items:
            note_settled(state, item.step)


def _steps_reset(state: State, event: StepsReset, _: int) -> None:
    _require_once(event.steps, "steps_reset")
    for step_id in event.steps:
        _move(state, step_id, "steps_reset")
    _close_conflicts(state, event.steps)
    for step_id in event.steps:
        step = state.steps[step_id]
        step.rejections = step.losses = step.reopened = 0
        step.running = step.parked = None
        _stay(state, step_id)
        note_again(state, step_id)
        if step.phase == "skipped" and step.reason is not None:
            state.unselected -= step.reason.code == NOT_SELECTED
        step.reason, step.why, step.last = None, None, Reason(event.code)
        _set(state, step, "pending")
        if not state.missing[step_id]:
            _now_ready(state, step_id)


def _steps_released(state: State, event: StepsReleased, _: int) -> None:
    _require_once(event.steps, "steps_released")
    for step_id in event.steps:
        step = _move(state, step_id, "steps_released")
        if step.parked is not None:
            raise BugError(f"'{step_id}' is released while its candidate waits for a decision")
    for step_id in event.steps:
        step = state.steps[step_id]
        step.reason, step.why = step.why, None
        _stay(state, step_id)
        _set(state, step, "pending")
        if not state.missing[step_id]:
            _now_ready(state, step_id)


def _steps_reopened(state: State, event: StepsReopened, _: int) -> None:
    """Everything that stands on the step is pending again; the one that asked keeps count of it."""
    _require_once(event.steps, "steps_reopened")
    if event.step not in event.steps or event.by not in event.steps:
        raise BugError(f"'{event.by}' sends '{event.step}' back, and one of them stays")
    sent = set(event.steps)
    for step_id in event.steps:
        _move(state, step_id, "steps_reopened")
        for stands in state.graph.dependents.get(step_id, ()):
            if stands not in sent and state.steps[stands].phase in {"running", "done", "reused"}:
                raise BugError(f"'{stands}' stands on '{step_id}', which is sent back")
    _close_conflicts(state, event.steps)
    for step_id in event.steps:
        _reopen(state, step_id)
    above, below = state.steps[event.step], state.steps[event.by]
    teller = f"{event.by}: {event.guard}" if event.guard else str(event.by)
    above.fed = (*above.fed, Fed(event.digest, teller, event.feedback))
    above.last, above.remade = Reason("reopened", (event.by,)), True
    above.sent_back += 1
    below.reopened += 1
    if not state.missing[event.step]:
        _now_ready(state, event.step)


def _reopen(state: State, step_id: StepId) -> None:
    step = state.steps[step_id]
    _stay(state, step_id)
    note_again(state, step_id)
    if step.phase in COMPLETE:
        step.stood = True
        for dependent in state.graph.dependents.get(step_id, ()):
            state.missing[dependent] += 1
            state.ready.discard(dependent)
    if step.phase == "skipped" and step.reason is not None:
        state.unselected -= step.reason.code == NOT_SELECTED
    step.running = step.parked = step.reason = step.digest = step.last = None
    step.rejections = step.losses = 0
    state.ready.discard(step_id)
    state.gaps.pop(step_id, None)
    _set(state, step, "pending")


def _plan_extended(state: State, event: PlanExtended, at: int) -> None:
    for step_id in grow(state, event, at):
        _now_ready(state, step_id)
    state.heard = max(state.heard, event.request)


def _request_refused(state: State, event: RequestRefused, _: int) -> None:
    state.heard = max(state.heard, event.request)


def _step_waived(state: State, event: StepWaived, at: int) -> None:
    """Those below go on without it, whether or not what it needs is complete."""
    step = _move(state, event.step, "step_waived")
    step.config_ref, step.digest, step.form = event.config_ref, event.digest, event.form
    step.reason = Reason(WAIVED, (event.by,))
    step.verified, step.last = False, None
    state.gaps[event.step] = Gap(event.by, event.because, at)
    state.heard = max(state.heard, event.request)
    state.ready.discard(event.step)
    _set(state, step, "reused")
    _completed(state, event.step)
    if state.failures:
        note_settled(state, event.step)


def _gap_closed(state: State, event: GapClosed, _: int) -> None:
    if event.step not in event.steps:
        raise BugError(f"'gap_closed' of '{event.step}' leaves it as it is")
    _require_once(event.steps, "gap_closed")
    for step_id in event.steps:
        _move(state, step_id, "gap_closed")
    _close_conflicts(state, event.steps)
    for step_id in event.steps:
        _reopen(state, step_id)
        state.steps[step_id].last = Reason("retried")
    for step_id in event.steps:
        if not state.missing[step_id]:
            _now_ready(state, step_id)


def _conflict_found(state: State, event: ConflictFound, _: int) -> None:
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


def _conflict_resolved(state: State, event: ConflictResolved, _: int) -> None:
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


def _outputs_placed(state: State, event: OutputsPlaced, _: int) -> None:
    _move(state, event.step, "outputs_placed")


def _run_rested(state: State, event: RunRested, at: int) -> None:
    if state.running:
        raise BugError(f"the run rests while {sorted(state.running)} are running")
    state.status, state.rest, state.ended_at = event.status, event.reason, at


def _run_ended(state: State, event: RunEnded, at: int) -> None:
    is_open = not state.complete or bool(state.conflicts)
    if state.running or (event.status == "completed" and is_open):
        raise BugError(f"the run ends as {event.status} with steps open")
    state.status, state.ended_at = event.status, at


Ending = (
    AttemptAccepted
    | AttemptParked
    | AttemptRejected
    | AttemptFailed
    | AttemptLost
    | EffectStarted
    | EffectConfirmed
)

# Each handler takes exactly its own event; the table pairs them, which no annotation can express.
_HANDLERS: Final[dict[type, Callable[[State, Any, int], None]]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    StepsReused: _steps_reused,
    StepsTaken: _steps_taken,
    AttemptStarted: _attempt_started,
    AttemptAccepted: _attempt_accepted,
    AttemptParked: _attempt_parked,
    EffectStarted: _effect_started,
    EffectConfirmed: _effect_confirmed,
    AttemptRejected: _attempt_rejected,
    AttemptFailed: _attempt_failed,
    AttemptLost: _attempt_lost,
    OutputsPlaced: _outputs_placed,
    StepFailed: _step_failed,
    StepHeld: _step_held,
    StepsSkipped: _steps_skipped,
    StepsReset: _steps_reset,
    StepsReleased: _steps_released,
    StepsReopened: _steps_reopened,
    PlanExtended: _plan_extended,
    RequestRefused: _request_refused,
    StepWaived: _step_waived,
    GapClosed: _gap_closed,
    ConflictFound: _conflict_found,
    ConflictResolved: _conflict_resolved,
    RunRested: _run_rested,
    RunEnded: _run_ended,
}
