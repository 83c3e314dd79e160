"""What follows from what was seen: a report in, events out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from holdfast.core.effects import UNCONFIRMED
from holdfast.core.moves import (
    BY_CONDITION,
    LOST,
    NOT_SELECTED,
    UNMET,
    UNMET_ABOVE,
    UNSEEN,
    code_below,
)
from holdfast.core.reopen import beyond, lost_need, lost_otherwise, sent_back, stagnates
from holdfast.core.state import COMPLETE, State, StepState
from holdfast.model.artifact import tree_bytes
from holdfast.model.digest import Digest, digest_bytes, digest_json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    EffectConfirmed,
    GapClosed,
    Reason,
    RunEvent,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReset,
    StepsSkipped,
    StepWaived,
)
from holdfast.model.line import SkipRequested
from holdfast.model.plan import Step, StepId

PERMANENT = frozenset(
    {
        "call_refused",
        "model_refused",
        "not_recorded",
        "credentials_missing",
        "answer_too_large",
        "budget_spent",
        "tool_unconfirmed",
    }
)
BEYOND = frozenset({"guard_rejected", "guard_fatal", "command_failed", "stagnated"})
_BELOW = {UNMET: UNMET_ABOVE, UNMET_ABOVE: UNMET_ABOVE, NOT_SELECTED: NOT_SELECTED}
Ending = AttemptAccepted | AttemptParked | AttemptRejected | AttemptFailed | AttemptLost


def settle(state: State, ending: Ending) -> list[RunEvent]:
    """An attempt ended: the fact itself, and what it means for the step and for those below it.

    Two budgets, neither touching the other: `retries` for candidates that were refused or never made,
    `lost_retries` for attempts that gave no answer. A fatal verdict ends both.
    """
    facts: list[RunEvent] = [ending]
    if state.steps[ending.step].effect is not None:
        facts = [*_confirmed(state, ending), ending]
    if isinstance(ending, AttemptAccepted | AttemptParked):
        return facts
    reason = _give_up(state, ending)
    if reason is None:
        return facts
    if reason.code == UNCONFIRMED:
        return [*facts, StepHeld(ending.step, reason)]
    if isinstance(ending, AttemptRejected | AttemptFailed) and reason.code in BEYOND:
        held = beyond(state, state.plan.steps[ending.step])
        if held is not None:
            return [*facts, held]
    return [*facts, *fail(state, ending.step, reason)]


def _confirmed(state: State, ending: Ending) -> list[RunEvent]:
    """An effect whose step gave a candidate has happened. One that failed or was lost keeps its key.

    What a person gave in its place confirms it once it is accepted.
    """
    key, started = state.steps[ending.step].effect, state.steps[ending.step].running
    if key is None or not isinstance(ending, AttemptAccepted | AttemptParked | AttemptRejected):
        return []
    is_given = started is not None and started.reguard is not None
    if is_given and not isinstance(ending, AttemptAccepted):
        return []
    return [EffectConfirmed(ending.step, ending.attempt, key)]


def _give_up(state: State, ending: AttemptRejected | AttemptFailed | AttemptLost) -> Reason | None:
    step, now = state.plan.steps[ending.step], state.steps[ending.step]
    started = now.running
    only_guarded = started is not None and started.reguard is not None
    if isinstance(ending, AttemptLost):
        if step.done_once and not only_guarded:
            return Reason(UNCONFIRMED)
        spent = ending.code not in UNSEEN and now.losses >= step.lost_retries
        return Reason(ending.code, _limit(step, ending.code)) if spent else None
    if isinstance(ending, AttemptFailed):
        if now.rejections >= step.retries or ending.code in PERMANENT:
            return Reason(ending.code)
        return Reason("stagnated", ("its command",)) if stagnates(state, ending) else None
    if only_guarded and started is not None and started.reason.code == "output_modified":
        return started.reason
    if ending.fatal:
        return Reason("guard_fatal", (ending.guard,))
    if only_guarded:
        return None
    if now.rejections >= step.retries:
        return Reason("guard_rejected", (ending.guard,))
    return Reason("stagnated", (f"guard '{ending.guard}'",)) if stagnates(state, ending) else None


def _limit(step: Step, code: str) -> tuple[str, ...]:
    """How long the step might have taken, if that was it."""
    late = code == "timed_out" and step.timeout is not None
    return (f"{step.timeout:g} s",) if late else ()


def fail(
    state: State, step_id: StepId, reason: Reason, said: Digest | None = None
) -> list[RunEvent]:
    """A step failed: everything below it is skipped, each with the step it waited for; the rest goes on.

    `said` are the words of a person who rejected it.
    """
    failed = StepFailed(step_id, reason, because=said)
    items = [
        Skipped(step, "dependency_failed" if above == step_id else "dependency_skipped", above)
        for step, above in _stopped(state, step_id)
    ]
    return [failed, StepsSkipped(tuple(items))] if items else [failed]


def _stopped(state: State, step_id: StepId) -> list[tuple[StepId, StepId]]:
    """The open steps below one that is lost, each with the step it waited for; not who goes on without."""
    found: dict[StepId, StepId] = {}
    queue = [step_id]
    for above in queue:  # grows while it is walked: breadth first
        without = state.graph.without.get(above, ())
        for dependent in state.graph.dependents.get(above, ()):
            if dependent in found or dependent in without or dependent == step_id:
                continue
            if state.steps[dependent].phase == "pending":
                queue.append(dependent)
                found[dependent] = above
    return sorted(found.items(), key=lambda item: state.graph.rank[item[0]])


def set_aside(state: State, step_id: StepId, words: str) -> StepsSkipped:
    """The condition of a step does not hold: it is left out, and so is what cannot go on without it."""
    items = [Skipped(step, UNMET_ABOVE, above) for step, above in _stopped(state, step_id)]
    return StepsSkipped((Skipped(step_id, UNMET, StepId(words)), *items))


def stop(state: State, step_id: StepId, lost: StepId) -> StepsSkipped:
    """A ready step cannot do without one that is lost, whatever its need says: it is skipped."""
    code = code_below(state, step_id, lost)
    items = [
        Skipped(step, _BELOW.get(code, "dependency_skipped"), above)
        for step, above in _stopped(state, step_id)
    ]
    return StepsSkipped((Skipped(step_id, code, lost), *items))


def lose(state: State, step_id: StepId, there: StepState) -> list[RunEvent]:
    """A step failed or was left out in another run: it is lost here too, with what waits for it."""
    reason = there.reason
    assert reason is not None  # nothing is lost without one
    if there.phase == "failed":
        return fail(state, step_id, reason, there.said)
    below = _BELOW.get(reason.code, "dependency_skipped")
    items = [Skipped(step, below, above) for step, above in _stopped(state, step_id)]
    because = StepId(reason.because[0])
    return [StepsSkipped((Skipped(step_id, reason.code, because), *items))]


def cut_off(state: State, added: Iterable[StepId]) -> StepsSkipped | None:
    """Added steps that need one which did not get through in this run are skipped like any other."""
    items = _out_of_reach(state, [s for s in added if state.steps[s].phase == "pending"])
    return StepsSkipped(items) if items else None


def _out_of_reach(
    state: State, steps: Iterable[StepId], again: Collection[StepId] = ()
) -> tuple[Skipped, ...]:
    """Those of the steps that need one which is lost and not made again, each with it."""
    items: dict[StepId, Skipped] = {}
    for step_id in sorted(steps, key=state.graph.rank.__getitem__):
        for need in state.plan.steps[step_id].needs:
            above = items[need.step].code if need.step in items else ""
            lost = state.steps[need.step].phase in LOST and need.step not in again
            if (above or lost) and not need.optional:
                code = code_below(state, step_id, need.step, above)
                items[step_id] = Skipped(step_id, code, need.step)
                break
    return tuple(items.values())


def leave_out(state: State, step_id: StepId) -> StepsSkipped:
    """A step that would run was not selected: it is left out, and so is what cannot go on without it."""
    items = [Skipped(step_id, NOT_SELECTED, step_id)]
    for below, _ in _stopped(state, step_id):
        code = "dependency_skipped" if state.may_run(below) else NOT_SELECTED
        items.append(Skipped(below, code, step_id))
    return StepsSkipped(tuple(items))


def reset(
    state: State, steps: Iterable[StepId], code: str, asked: Collection[StepId] = ()
) -> Sequence[RunEvent]:
    """Failed or held steps, and what was skipped because of them, are pending again in one event."""
    again = {s for s in steps if state.steps[s].phase in {"failed", "waiting"}}
    return _reset(state, again, code, asked)


def _reset(
    state: State, again: set[StepId], code: str, asked: Collection[StepId] = ()
) -> list[RunEvent]:
    """One pass from above: a skipped step can go on if nothing that it needs stays out of reach."""
    names = []
    for step_id in sorted(state.graph.below(again), key=state.graph.rank.__getitem__):
        if step_id not in again:
            if state.steps[step_id].phase != "skipped" or lost_need(state, step_id, again):
                continue
            again.add(step_id)
        names.append(step_id)
    wanted = tuple([step_id for step_id in names if step_id in asked])
    if not names:
        return []
    return [StepsReset(tuple(names), code, wanted), *lost_otherwise(state, again, code)]


def free(state: State, step_id: StepId) -> Sequence[RunEvent]:
    """Make a step that failed, waits or was skipped pending, with what can go on once it is complete."""
    stuck = state.steps[step_id].phase in {"failed", "waiting", "skipped"}
    return _reset(state, {step_id}, "retried") if stuck else []


def waive(state: State, request: int, asked: SkipRequested) -> tuple[StepWaived, bytes]:
    """Go on without a pending step; gives the content that stands in its place, too.

    A step with files gets none; the ref is that of no attempt.
    """
    has_files = bool(state.plan.steps[asked.step].produces)
    content = tree_bytes(()) if has_files else b""
    ref = digest_json({"skipped": asked.step, "run": state.run})
    event = StepWaived(
        step=asked.step,
        config_ref=ref,
        digest=digest_bytes(content),
        form="tree" if has_files else "bytes",
        by=asked.by,
        because=asked.because,
        request=request,
    )
    return event, content


def close_gaps(state: State, steps: Iterable[StepId]) -> list[RunEvent]:
    """Steps that a person went on without are to be made after all, and what was made without them.

    What a person went on without besides, and did not name now, stays a gap: nothing below it was made
    from what is made now.
    """
    wanted = {step_id for step_id in steps if step_id in state.gaps}
    gaps = state.gaps.keys() - wanted
    events: list[RunEvent] = []
    closed: set[StepId] = set()
    for step_id in steps:
        if step_id in wanted and step_id not in closed:
            cone = [s for s in state.graph.below([step_id], gaps) if s not in closed]
            below = sent_back(state, step_id, filter(partial(_is_settled, state), cone))
            closed.update(below)
            events.append(GapClosed(step_id, tuple(below)))
    events += lost_otherwise(state, closed, "retried")
    cut = _out_of_reach(state, closed, closed)
    return [*events, StepsSkipped(cut)] if cut else events


def _is_settled(state: State, step_id: StepId) -> bool:
    """Whether a step was made, or left out by a condition."""
    here = state.steps[step_id]
    unmet = here.reason is not None and here.reason.code in BY_CONDITION
    return here.phase in COMPLETE or (here.phase == "skipped" and unmet)
