"""What events about attempts mean: started, ended in one of five ways, and their effects outside."""

from __future__ import annotations

from holdfast.core.calls import acted_on, cut_off, talks
from holdfast.core.escalation import note_settled
from holdfast.core.moves import (
    LIMIT,
    UNSEEN,
    completed,
    move,
    now_ready,
    require_needs,
    set_phase,
)
from holdfast.core.reasons import UNANSWERED
from holdfast.core.state import Fed, State, StepState
from holdfast.errors import BugError
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    EffectConfirmed,
    EffectStarted,
    Reason,
)
from holdfast.model.plan import StepId

Ending = (
    AttemptAccepted
    | AttemptParked
    | AttemptRejected
    | AttemptFailed
    | AttemptLost
    | EffectStarted
    | EffectConfirmed
)


def attempt_started(state: State, event: AttemptStarted, at: int) -> None:
    """A step runs."""
    step = move(state, event.step, "attempt_started")
    require_needs(state, event.step, "attempt_started")
    if event.attempt != step.attempts + 1:
        raise BugError(f"attempt {event.attempt} of '{event.step}' follows {step.attempts}")
    step.attempts = event.attempt
    step.running, step.asked = event, False
    step.config_ref = event.config_ref
    step.started_at = at
    if step.reason is None:
        step.reason = event.reason
    state.attempts += 1
    state.running[event.step] = event
    if state.demands:
        _take(state, event.step, 1)
    state.ready.discard(event.step)
    set_phase(state, step, "running")


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


def attempt_accepted(state: State, event: AttemptAccepted, at: int) -> None:
    """A step is complete: it made something, or what exists passed the guards."""
    step = move(state, event.step, "attempt_accepted")
    started = _require_attempt(step, event, "attempt_accepted")
    step.config_ref, step.digest, step.form = started.config_ref, event.digest, event.form
    step.verified, step.log, step.last = event.verified, event.log, None
    step.handoff = event.handoff
    state.told = state.told or event.handoff is not None
    step.duration_ms = _spend(step, at, event.duration_ms)
    step.running, step.parked, step.remade = None, None, False
    step.effect = None
    if talks(step):
        acted_on(state, step, accepted=True)
    _stop(state, event.step)
    if step.phase == "waiting":
        step.reason, step.why = step.why, None
    if started.reguard is None or started.approvals:  # made, or given by a person who was asked
        set_phase(state, step, "done")
    else:  # nothing was made: an artifact that exists passed the guards
        step.reason = Reason("amended" if event.source == "human" else "reguarded")
        step.answered = started.reason.code == "answered"
        set_phase(state, step, "reused")
        if state.failures:
            note_settled(state, event.step)
    completed(state, event.step)


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
    set_phase(state, step, "pending")
    now_ready(state, step_id)
    return started


def attempt_parked(state: State, event: AttemptParked, at: int) -> None:
    """A candidate is kept until people decide about it."""
    step = move(state, event.step, "attempt_parked")
    _require_attempt(step, event, "attempt_parked")
    _spend(step, at, event.duration_ms)
    step.parked, step.log, step.settled = event, event.log, ()
    step.why, step.reason = step.reason, Reason("awaiting_approval", event.approvals)
    _stop(state, event.step)
    set_phase(state, step, "waiting")


def effect_started(state: State, event: EffectStarted, _: int) -> None:
    """An attempt may act outside from now on, under a key."""
    step = move(state, event.step, "effect_started")
    _require_attempt(step, event, "effect_started")
    step.effect, step.effect_at, step.effect_failed = event.key, state.seq + 1, False
    step.beside, step.undecided = event.beside, False


def effect_confirmed(state: State, event: EffectConfirmed, _: int) -> None:
    """What an attempt did outside is known to be done."""
    step = move(state, event.step, "effect_confirmed")
    _require_attempt(step, event, "effect_confirmed")
    if step.effect != event.key:
        raise BugError(f"an effect of '{event.step}' is confirmed that was not started")
    step.effect = None


def attempt_rejected(state: State, event: AttemptRejected, at: int) -> None:
    """A guard, or a person, refused what an attempt made."""
    step = move(state, event.step, "attempt_rejected")
    started = _require_attempt(step, event, "attempt_rejected")
    if talks(step):
        acted_on(state, step, accepted=False)
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


def attempt_failed(state: State, event: AttemptFailed, at: int) -> None:
    """An attempt made nothing."""
    step = move(state, event.step, "attempt_failed")
    _require_attempt(step, event, "attempt_failed")
    if talks(step) and event.code in UNANSWERED:
        cut_off(state, step)
    elif talks(step):
        acted_on(state, step, accepted=False)
    _spend(step, at, event.duration_ms)
    _back_to_pending(state, event.step, step)
    step.rejections += 1
    step.effect_failed = event.code == "command_failed"
    step.last, step.log = Reason(event.code), event.log
    step.said = event.feedback
    step.fed = (*step.fed, Fed(None, "", event.feedback, event.alike, event.code))


def _come_short(state: State, event: AttemptLost) -> None:
    """A limit left no room for a call; of several calls the largest counts."""
    limit = Reason(LIMIT, (event.limit or "cost",))
    known = state.wanted if state.short == limit else 0
    state.short, state.wanted = limit, max(known, event.wanted)


def attempt_lost(state: State, event: AttemptLost, at: int) -> None:
    """An attempt gave no answer."""
    step = move(state, event.step, "attempt_lost")
    _require_attempt(step, event, "attempt_lost")
    if talks(step):
        cut_off(state, step, event.unsent)
    _back_to_pending(state, event.step, step)
    if event.code not in UNSEEN:  # the engine's death is not the step's fault, nor was it seen
        step.losses += 1
        _spend(step, at, 0)
    elif event.code == LIMIT:
        _come_short(state, event)
    step.said = event.feedback
    step.last, step.log = Reason(event.code), event.log
