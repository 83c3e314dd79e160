"""A run in the words of the execution graph: node states, batches, and what a restart makes of them.

| here               | there                                             |
|--------------------|---------------------------------------------------|
| pending            | `pending`; `queued` while it only waits for room   |
| running            | `running`                                         |
| waiting            | `pending`: its approval is open                   |
| done               | `complete`                                        |
| reused             | `complete`, with `reused: true` in its result     |
| failed             | `failed`, with the error in its result            |
| skipped            | `skipped`, with the dependency in its result      |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.core.reasons import sentence
from holdfast.core.state import State, StepState
from holdfast.model.digest import Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    Recorded,
    StepFailed,
    StepsReset,
    StepsReused,
    StepsSkipped,
)
from holdfast.model.plan import StepId

_BY_FAILURE = frozenset({"dependency_failed", "dependency_skipped"})  # these name a step above
STATUS = {
    "pending": "pending",
    "running": "running",
    "waiting": "pending",
    "done": "complete",
    "reused": "complete",
    "failed": "failed",
    "skipped": "skipped",
}
SETTLED = frozenset({"complete", "failed", "skipped"})


class Times(NamedTuple):
    """When a step was begun and settled, in milliseconds since 1970; 0 is never."""

    started: int = 0
    ended: int = 0


def times(events: Iterable[Recorded]) -> dict[StepId, Times]:
    """When each step was begun the last time, and when it was settled."""
    found: dict[StepId, Times] = {}
    for recorded in events:
        match recorded.event:
            case AttemptStarted(step=step):
                found[step] = Times(recorded.at)
            case AttemptAccepted(step=step) | StepFailed(step=step):
                found[step] = Times(found.get(step, Times()).started, recorded.at)
            case StepsReused(items=reused):
                found.update((item.step, Times(0, recorded.at)) for item in reused)
            case StepsSkipped(items=skipped):
                found.update((item.step, Times(0, recorded.at)) for item in skipped)
            case StepsReset(steps=steps):
                for step in steps:
                    found.pop(step, None)
            case _:
                pass
    return found


def status_of(state: State, step_id: StepId) -> str:
    """The word for where a step stands."""
    phase = state.steps[step_id].phase
    if phase == "pending" and step_id in state.ready and state.status == "running":
        return "queued"
    return STATUS[phase]


def result_of(state: State, step_id: StepId) -> dict[str, Json] | None:
    """What came of a step; nothing while it is not settled."""
    step = state.steps[step_id]
    if step.phase in {"done", "reused"}:
        more: dict[str, Json] = {"reused": True} if step.phase == "reused" else {}
        return {"artifact": step.digest, **more}
    if step.phase == "failed":
        return {"error": sentence(step.reason) if step.reason else ""}
    if step.phase == "skipped":
        return {"skipped_reason": _skipped(state, step)}
    return None


def _skipped(state: State, step: StepState) -> str:
    """Why a step was skipped: it names the step that failed, however far above."""
    here = step
    while here.phase == "skipped" and here.reason is not None and here.reason.code in _BY_FAILURE:
        above = StepId(here.reason.because[0])
        here = state.steps[above]
        if here.phase == "failed":
            return f"Dependency {above} failed"
    return sentence(step.reason) if step.reason is not None else ""


def completed_batches(state: State) -> list[int]:
    """The numbers, from 1, of the waves whose steps are all settled."""
    waves = enumerate(state.graph.waves(), 1)
    return [number for number, wave in waves if all(_settled(state, step) for step in wave)]


def current_batch(state: State) -> int | None:
    """The first wave with a step that is not settled; None when all are."""
    for number, wave in enumerate(state.graph.waves(), 1):
        if not all(_settled(state, step) for step in wave):
            return number
    return None


def _settled(state: State, step_id: StepId) -> bool:
    return STATUS[state.steps[step_id].phase] in SETTLED


def restored(
    statuses: Mapping[str, str], dependencies: Mapping[str, Iterable[str]]
) -> dict[str, str]:
    """Node states as a restart takes them up: in one pass, whatever their order.

    What ran when it was written has no answer and is pending again. What failed is tried again, so what was
    skipped below it is pending, too. Complete is complete only if all it depends on is.
    """
    pending = {name for name in dependencies if statuses.get(name) != "complete"}
    users: dict[str, list[str]] = {}
    for name, above in dependencies.items():
        for one in above:
            users.setdefault(one, []).append(name)
    queue = list(pending)
    while queue:
        for user in users.get(queue.pop(), ()):
            if user not in pending:
                pending.add(user)
                queue.append(user)
    return {name: "pending" if name in pending else "complete" for name in dependencies}
