"""What an event means. State is only ever the fold of a run's events.

The rules:
- an event about a step is legal only in the phases that `TRANSITIONS` names for it;
- a step may start or be reused only when every need is complete in this run;
- the first event is `run_started`; nothing follows `run_ended`; while a run rests, only `run_resumed`;
- an illegal event raises and changes nothing.

The diagram in `docs/architecture.md` is drawn from `TRANSITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from holdfast.core import again, attempts, calls
from holdfast.core.consent import agree_to
from holdfast.core.escalation import note_failure, note_settled
from holdfast.core.growth import grow
from holdfast.core.moves import (
    LEFT_OUT,
    REOPENING,
    completed,
    gone_without,
    is_met,
    move,
    now_ready,
    require_needs,
    require_once,
    set_phase,
    stay,
)
from holdfast.core.state import Plans, State, empty_state, no_plans
from holdfast.core.waves import Graph
from holdfast.errors import BugError
from holdfast.model.event import (
    AnswersKept,
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    CallFailed,
    CallStarted,
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
    ReplanDecided,
    ReplanWanted,
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
    ToolStarted,
    ToolUsed,
)
from holdfast.model.plan import Plan, StepId


def fold(
    plan: Plan, events: Iterable[Recorded], plans: Plans = no_plans, graph: Graph | None = None
) -> State:
    """The definition: a run's state from nothing. `plans` finds the plans of a run that grew.

    The order of the plan is worked out if nobody knows its `graph`.
    """
    state = empty_state(plan, graph, plans)
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
    if type(event) is not AttemptLost:  # that is told of an engine that is gone
        state.last_at = recorded.at


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
    if resting and isinstance(event, ReplanDecided) and event.plan is not None:
        return  # it ends with this: another plan takes its place
    raise BugError(
        f"'{type(event).__name__}' cannot follow while the run is {status or 'not begun'}"
    )


def _run_started(state: State, event: RunStarted, at: int) -> None:
    state.run, state.line, state.project = event.run, event.line, event.project
    state.plan_digest, state.w_ref = event.plan, event.w_ref
    state.base, state.base_ref = event.plan, event.w_ref
    state.options, state.previous = event.options, event.previous
    state.forked, state.forked_at, state.file = event.forked, event.forked_at, event.file
    state.status, state.started_at, state.since = "running", at, at
    state.selected = frozenset(event.options.select) or None
    state.max_cost, state.agreed = event.options.max_cost, event.agreed
    state.prepared = event.ready
    for step_id in state.graph.order:
        if state.missing[step_id]:
            break  # order goes wave by wave: the first wave is over
        now_ready(state, step_id)


def _run_resumed(state: State, event: RunResumed, at: int) -> None:
    _count_work(state, state.last_at)
    state.status, state.rest, state.escalation = "running", None, None
    state.short, state.wanted = None, 0
    if event.max_cost is not None:
        state.max_cost = event.max_cost
    agree_to(state, event.agreed)
    state.since, state.attempts = at, 0


def _steps_reused(state: State, event: StepsReused, _: int) -> None:
    """Items may build on each other, so each is checked where it stands; an illegal list changes nothing."""
    if len(event.items) > 1:
        _check_reused(state, event)
    for item in event.items:
        _reuse(state, item)


def _steps_taken(state: State, event: StepsTaken, at: int) -> None:
    for item in event.items:
        move(state, item.step, "steps_taken")
    items = [Reused(i.step, i.config_ref, i.digest, i.form, "forked") for i in event.items]
    _steps_reused(state, StepsReused(tuple(items)), at)


def _reuse(state: State, item: Reused) -> None:
    step = move(state, item.step, "steps_reused")
    require_needs(state, item.step, "steps_reused")
    step.config_ref, step.digest, step.form = item.config_ref, item.digest, item.form
    step.reason, step.effect = _reused_for(item.code), None
    state.ready.discard(item.step)
    set_phase(state, step, "reused")
    completed(state, item.step)
    if state.failures:
        note_settled(state, item.step)


@lru_cache(64)
def _reused_for(code: str) -> Reason:
    """One reason for all steps that are reused for it: a run may reuse a million."""
    return Reason(code)


def _check_reused(state: State, event: StepsReused) -> None:
    complete = set()
    for item in event.items:
        move(state, item.step, "steps_reused")
        if item.step in complete:
            raise BugError(f"'steps_reused' names '{item.step}' twice")
        for need in state.plan.steps[item.step].needs:
            if need.step not in complete and not is_met(state, need):
                raise BugError(f"'steps_reused' of '{item.step}' before its needs are complete")
        complete.add(item.step)


def _step_failed(state: State, event: StepFailed, _: int) -> None:
    step = move(state, event.step, "step_failed")
    stay(state, event.step)
    step.reason = event.reason
    step.said = event.because or step.said
    state.ready.discard(event.step)
    set_phase(state, step, "failed")
    gone_without(state, event.step)
    note_failure(state, event.step, event.reason)


def _step_held(state: State, event: StepHeld, _: int) -> None:
    step = move(state, event.step, "step_held")
    stay(state, event.step)
    if step.phase == "pending":
        step.why = step.reason
    step.reason, step.held_at = event.reason, state.seq + 1
    state.ready.discard(event.step)
    set_phase(state, step, "waiting")
    if event.reason.code == REOPENING:
        above = StepId(event.reason.because[0])
        state.reopening[event.step] = above
        state.frozen |= state.graph.below([above])


def _steps_skipped(state: State, event: StepsSkipped, _: int) -> None:
    require_once([item.step for item in event.items], "steps_skipped")
    for item in event.items:
        move(state, item.step, "steps_skipped")
    for item in event.items:
        step = state.steps[item.step]
        step.reason = Reason(item.code, (item.because,))
        state.unselected += item.code in LEFT_OUT
        state.ready.discard(item.step)
        set_phase(state, step, "skipped")
    for item in event.items:
        gone_without(state, item.step)
    if state.failures:
        for item in event.items:
            note_settled(state, item.step)


def _plan_extended(state: State, event: PlanExtended, at: int) -> None:
    for step_id in grow(state, event, at):
        now_ready(state, step_id)
    state.heard = max(state.heard, event.request)


def _request_refused(state: State, event: RequestRefused, _: int) -> None:
    state.refused[event.request] = event.because
    state.heard = max(state.heard, event.request)


def _outputs_placed(state: State, event: OutputsPlaced, _: int) -> None:
    move(state, event.step, "outputs_placed")


def _replan_wanted(state: State, event: ReplanWanted, _: int) -> None:
    if state.replan is not None:
        raise BugError("another plan is wanted while that is open already")
    state.replan = event


def _replan_decided(state: State, event: ReplanDecided, _: int) -> None:
    if state.replan is None or state.replan.triggers != event.triggers:
        raise BugError("it is decided about a plan that nothing spoke against")
    if event.plan is not None:  # it stays true, and the run ends
        state.replanned = event.plan
        return
    if event.code == "approved":  # what was withdrawn may come up again
        state.answered.update(event.triggers)
    state.replan = None


def _run_rested(state: State, event: RunRested, at: int) -> None:
    if state.running:
        raise BugError(f"the run rests while {sorted(state.running)} are running")
    _count_work(state, at)
    state.status, state.rest, state.ended_at = event.status, event.reason, at


def _run_ended(state: State, event: RunEnded, at: int) -> None:
    is_open = not state.complete or bool(state.conflicts) or state.replan is not None
    if state.running or (event.status == "completed" and is_open):
        raise BugError(f"the run ends as {event.status} with steps open")
    _count_work(state, at if event.status == "completed" else state.last_at)
    state.status, state.ended_at = event.status, at


def _count_work(state: State, until: int) -> None:
    """A start is over: by a rest, by the end, or by whoever found that its engine was gone."""
    if state.status == "running":
        state.worked += max(0, until - state.since)


# Each handler takes exactly its own event; the table pairs them, which no annotation can express.
_HANDLERS: Final[dict[type, Callable[[State, Any, int], None]]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    StepsReused: _steps_reused,
    StepsTaken: _steps_taken,
    AttemptStarted: attempts.attempt_started,
    AttemptAccepted: attempts.attempt_accepted,
    AttemptParked: attempts.attempt_parked,
    EffectStarted: attempts.effect_started,
    EffectConfirmed: attempts.effect_confirmed,
    AttemptRejected: attempts.attempt_rejected,
    AttemptFailed: attempts.attempt_failed,
    AttemptLost: attempts.attempt_lost,
    CallStarted: calls.call_started,
    CallAnswered: calls.call_answered,
    CallFailed: calls.call_failed,
    ToolStarted: calls.tool_started,
    ToolUsed: calls.tool_used,
    AnswersKept: calls.answers_kept,
    OutputsPlaced: _outputs_placed,
    StepFailed: _step_failed,
    StepHeld: _step_held,
    StepsSkipped: _steps_skipped,
    StepsReset: again.steps_reset,
    StepsReleased: again.steps_released,
    StepsReopened: again.steps_reopened,
    PlanExtended: _plan_extended,
    RequestRefused: _request_refused,
    StepWaived: again.step_waived,
    GapClosed: again.gap_closed,
    ConflictFound: again.conflict_found,
    ConflictResolved: again.conflict_resolved,
    ReplanWanted: _replan_wanted,
    ReplanDecided: _replan_decided,
    RunRested: _run_rested,
    RunEnded: _run_ended,
}
