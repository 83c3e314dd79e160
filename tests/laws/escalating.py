"""When a run must be escalated, worked out by looking at everything again after every event."""

from collections.abc import Iterable

from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    Recorded,
    RunResumed,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
)
from holdfast.model.plan import Plan, StepId

OPEN, MADE, REUSED, SKIPPED, FAILED, UNTRIED = range(6)
SEVERAL = 2


def waves_of(plan: Plan) -> list[set[StepId]]:
    """Level by level: one more than the highest among the needs."""
    levels: list[set[StepId]] = []
    placed: set[StepId] = set()
    while len(placed) < len(plan.steps):
        ready = {
            s
            for s, step in plan.steps.items()
            if s not in placed and all(need.step in placed for need in step.needs)
        }
        levels.append(ready)
        placed |= ready
    return levels


def escalations(plan: Plan, events: Iterable[Recorded]) -> list[str | None]:
    """After each event: the code of why nothing more may start, if so."""
    where = dict.fromkeys(plan.steps, OPEN)
    tried: dict[StepId, bool] = {}
    guarded: dict[StepId, bool] = {}
    now: str | None = None
    found = []
    for recorded in events:
        event, settled = recorded.event, []
        match event:
            case RunResumed():
                now = None
            case AttemptStarted(step=step):
                where[step], tried[step] = OPEN, True
                guarded[step] = event.reguard is not None and plan.steps[step].uses != "human"
            case AttemptAccepted(step=step):
                where[step] = REUSED if guarded[step] else MADE
                settled = [step]
            case StepsReused(items=items):
                settled = [item.step for item in items]
                where.update(dict.fromkeys(settled, REUSED))
            case StepsSkipped(items=items):
                settled = [item.step for item in items]
                where.update(dict.fromkeys(settled, SKIPPED))
            case StepFailed(step=step):
                where[step] = FAILED if tried.get(step) else UNTRIED
                settled = [step]
                if plan.steps[step].priority == "critical":
                    now = now or "critical_failed"
                fatal = event.reason.code == "guard_fatal"
                if fatal and plan.steps[step].on_fatal == "escalate":
                    now = now or "fatal_verdict"
            case StepHeld(step=step):
                where[step] = OPEN
            case StepsReset(steps=steps) | StepsReleased(steps=steps) | StepsReopened(steps=steps):
                where.update(dict.fromkeys(steps, OPEN))
            case _:
                pass
        for wave in waves_of(plan):
            states = [where[step] for step in wave]
            over = OPEN not in states and MADE not in states
            if over and states.count(FAILED) >= SEVERAL and not wave.isdisjoint(settled):
                now = now or "wave_failed"
        found.append(now)
    return found
