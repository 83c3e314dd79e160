"""What earlier runs tell: what steps came to, how long that took, how long it would take again."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.refs import Upstream
from holdfast.core.waves import Graph
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    GapClosed,
    Recorded,
    StepsReopened,
    StepsReused,
    StepsTaken,
    StepWaived,
)
from holdfast.model.plan import PRIORITIES, StepId


class Timing(NamedTuple):
    """The duration of a step in milliseconds, typical and high, from so many attempts."""

    p50: int = 0
    p90: int = 0
    attempts: int = 0


NO_HISTORY = Timing()


def results(events: Iterable[Recorded]) -> dict[StepId, Upstream]:
    """What each step came to that a run completed, as it is in the end; no plan is needed."""
    found: dict[StepId, Upstream] = {}
    refs: dict[StepId, Digest] = {}
    for recorded in events:
        event = recorded.event
        if isinstance(event, StepsReused | StepsTaken):
            for item in event.items:
                found[item.step] = Upstream(item.config_ref, item.digest)
        elif isinstance(event, StepWaived):
            found[event.step] = Upstream(event.config_ref, event.digest)
        elif isinstance(event, StepsReopened | GapClosed):
            for step in event.steps:
                found.pop(step, None)
        elif isinstance(event, AttemptStarted):
            refs[event.step] = event.config_ref
        elif isinstance(event, AttemptAccepted):
            found[event.step] = Upstream(refs[event.step], event.digest)
    return found


def durations(events: Iterable[Recorded]) -> dict[StepId, list[int]]:
    """How long each accepted attempt took that made something; guarding again is no measure."""
    taken: dict[StepId, list[int]] = {}
    only_guarded: set[tuple[StepId, int]] = set()
    for recorded in events:
        event = recorded.event
        if isinstance(event, AttemptStarted) and event.reguard is not None:
            only_guarded.add((event.step, event.attempt))
        elif (
            isinstance(event, AttemptAccepted)
            and event.source == "generated"
            and (event.step, event.attempt) not in only_guarded
        ):
            taken.setdefault(event.step, []).append(event.duration_ms)
    return taken


def timing(samples: Sequence[int]) -> Timing:
    """The median and the ninth decile, each a duration that really occurred."""
    if not samples:
        return NO_HISTORY
    ordered = sorted(samples)
    return Timing(quantile(ordered, 50), quantile(ordered, 90), len(ordered))


def quantile(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that so many percent do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def makespan(
    graph: Graph, running: Collection[StepId], taking: Mapping[StepId, int], parallel: int
) -> int:
    """How long these steps take together: as soon as their needs are met, best first, so many at once.

    Steps that are not among `running` take no time. A step that works on the whole project runs alone.
    """
    missing = {step_id: len(step.needs) for step_id, step in graph.steps.items()}
    ready: list[tuple[int, int, StepId]] = []
    busy: list[tuple[int, int, StepId]] = []
    now = 0

    def finish(done: list[StepId]) -> None:
        while done:
            for below in graph.dependents.get(done.pop(), ()):
                missing[below] -= 1
                if not missing[below]:
                    arrive(below, done)

    def arrive(step_id: StepId, done: list[StepId]) -> None:
        if step_id in running:
            priority = PRIORITIES[graph.steps[step_id].priority]
            heapq.heappush(ready, (priority, graph.rank[step_id], step_id))
        else:
            done.append(step_id)

    first: list[StepId] = []
    for step_id in graph.order:
        if not graph.steps[step_id].needs:
            arrive(step_id, first)
    finish(first)
    while ready or busy:
        _start(graph, ready, busy, taking, now, parallel)
        now, _, step_id = heapq.heappop(busy)
        finish([step_id])
    return now


def _start(
    graph: Graph,
    ready: list[tuple[int, int, StepId]],
    busy: list[tuple[int, int, StepId]],
    taking: Mapping[StepId, int],
    now: int,
    parallel: int,
) -> None:
    held = []
    while ready and len(busy) < max(1, parallel):
        entry = heapq.heappop(ready)
        alone = graph.steps[entry[2]].runs_alone
        if busy and (alone or any(graph.steps[b[2]].runs_alone for b in busy)):
            held.append(entry)
            if not alone:  # whoever runs alone lets nobody in
                break
            continue
        heapq.heappush(busy, (now + taking.get(entry[2], 0), entry[1], entry[2]))
    for entry in held:
        heapq.heappush(ready, entry)
