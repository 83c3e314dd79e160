"""What a resumed run will do, said before it goes on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.cli.ending import last_sign
from holdfast.cli.gates import waiting_words
from holdfast.cli.measure import count
from holdfast.cli.money import UNKNOWN, limit_words
from holdfast.cli.progress import MOST_NAMES
from holdfast.cli.say import SIGNS, seconds, short
from holdfast.core.moves import INTERRUPTED
from holdfast.core.reasons import sentence
from holdfast.core.state import Phase, State, StepState
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import one_line

SHORTEST = 100  # ms: less is not worth saying


def resume_lines(state: State, stay: Collection[StepId] = ()) -> list[str]:
    """What is kept, what was interrupted and what it had cost, what is tried again, what is still to do.

    Of the steps that failed, those in `stay` are left as they are.
    """
    counts = state.counts
    kept = counts["done"] + counts["reused"]
    lines = [f"resuming {short(state.run)}: {kept} of {len(state.steps)} steps are kept"]
    broken = _interrupted(state)
    last = last_sign(state)
    for step_id in broken[:MOST_NAMES]:
        step = state.steps[step_id]
        least = "at least " if step_id in state.running else ""  # nobody saw it end
        took = last - step.started_at
        cost = f" after {least}{seconds(took)}" if took >= SHORTEST else ""
        what = f"{step_id}: attempt {step.attempts} was interrupted{cost}{_paid(step)}"
        lines.append(f"{SIGNS['running']} {what}; {_then(state, step_id)}")
    if len(broken) > MOST_NAMES:
        lines.append(f"  {len(broken) - MOST_NAMES} more were interrupted and run again")
    for step_id in _steps(state, "failed")[:MOST_NAMES]:
        reason = state.steps[step_id].reason
        why = f" ({sentence(reason)})" if reason is not None else ""
        then = "it stays so" if step_id in stay else "it is tried again"
        lines.append(f"{SIGNS['failed']} {step_id}: failed{why}; {then}")
    if counts["failed"] > MOST_NAMES:
        lines.append(f"  {counts['failed'] - MOST_NAMES} more failed and are tried again")
    for step_id in _steps(state, "waiting")[:MOST_NAMES]:
        why = waiting_words(state.plan.steps[step_id], state.steps[step_id])
        lines.append(f"{SIGNS['waiting']} {step_id}: waited: {why}")
    lines += _still_to_do(state)
    if state.spent.calls:
        lines.append(f"  {limit_words(state)} spent so far")
    return [one_line(line) for line in lines]


def _paid(step: StepState) -> str:
    """What the calls that were under way may have cost, and what of it is not lost."""
    calls = step.calls or {}
    parts = []
    if calls:
        unknown = any(call.reserved is None for call in calls.values())
        most = dollars(sum(call.reserved or 0 for call in calls.values()))
        may = UNKNOWN if unknown else f"up to {most}"
        parts.append(f"{count(len(calls), 'call')} under way, which may have cost {may}")
    elif step.spent is not None and step.spent.cut:
        parts.append(f"{count(step.spent.cut, 'call')} of it cut off so far")
    if kept := len(step.heard) + len(step.paid):
        parts.append(f"{count(kept, 'answer')} kept")
    return f" ({'; '.join(parts)})" if parts else ""


def _then(state: State, step_id: StepId) -> str:
    step = state.plan.steps[step_id]
    if step.effects == "external" and not step.idempotent:
        return "whether it took effect is not known"
    return "it runs again"


def _interrupted(state: State) -> list[StepId]:
    """Steps whose last attempt was broken off, by their engine or with it."""
    return [
        step_id
        for step_id in state.graph.order
        if (step := state.steps[step_id]).phase == "running"
        or (step.phase == "pending" and step.last is not None and step.last.code == INTERRUPTED)
    ]


def _still_to_do(state: State) -> list[str]:
    """Steps that no attempt has begun: pending, or skipped because of what failed."""
    begun = set(_interrupted(state))
    left = [
        step_id
        for step_id in state.graph.order
        if state.steps[step_id].phase in {"pending", "skipped"}
        and step_id not in begun
        and state.may_run(step_id)
    ]
    if not left:
        return []
    rest = len(left) - MOST_NAMES
    names = ", ".join(left[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
    return [f"{SIGNS['pending']} {len(left)} still to do: {names}"]


def _steps(state: State, phase: Phase) -> Sequence[StepId]:
    return [s for s in state.graph.order if state.steps[s].phase == phase]
