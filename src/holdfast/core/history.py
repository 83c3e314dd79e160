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


class Room(NamedTuple):
    """How many steps run at once: on this machine, in all, and with each provider of models."""

    here: int = 1
    whole: int | None = None
    providers: Mapping[str, int] = {}


def makespan(
    graph: Graph, running: Collection[StepId], taking: Mapping[StepId, int], room: Room
) -> int:
    """How long these steps take together: as soon as their needs are met, best first, so many at once.

    Steps that are not among `running` take no time. A step that works on the whole project runs alone.
    """
    if not any(taking.values()):
        return 0
    missing = {step_id: len(step.needs) for step_id, step in graph.steps.items()}
    queues = _Queues(graph, room)
    now = 0

    def finish(done: list[StepId]) -> None:
        while done:
            for below in graph.dependents.get(done.pop(), ()):
                missing[below] -= 1
                if not missing[below]:
                    arrive(below, done)

    def arrive(step_id: StepId, done: list[StepId]) -> None:
        if step_id in running:
            queues.put(step_id)
        else:
            done.append(step_id)

    first: list[StepId] = []
    for step_id in graph.order:
        if not graph.steps[step_id].needs:
            arrive(step_id, first)
    finish(first)
    while queues.start(taking, now):
        now, step_id = queues.next()
        finish([step_id])
    return now


class _Queues:
    """Steps that wait, by the place that they will take, and those that run."""

    def __init__(self, graph: Graph, room: Room) -> None:
        self._graph = graph
        self._room = room
        self._ready: dict[str, list[tuple[int, int, StepId]]] = {}
        self._busy: list[tuple[int, int, StepId]] = []
        self._taken: dict[str, int] = {}

    def _place(self, step_id: StepId) -> str:
        step = self._graph.steps[step_id]
        provider = step.model.partition(":")[0] if step.asks_model else ""
        return provider if provider in self._room.providers else ""

    def put(self, step_id: StepId) -> None:
        priority = PRIORITIES[self._graph.steps[step_id].priority]
        entry = (priority, self._graph.rank[step_id], step_id)
        heapq.heappush(self._ready.setdefault(self._place(step_id), []), entry)

    def start(self, taking: Mapping[StepId, int], now: int) -> bool:
        """Start what can; whether anything runs."""
        for place, ready in self._ready.items():
            most = self._room.providers.get(place, self._room.here)
            held = []
            while ready and self._taken.get(place, 0) < max(1, most) and not self._is_full:
                entry = heapq.heappop(ready)
                _, rank, step_id = entry
                alone = self._graph.steps[step_id].runs_alone
                if self._busy and (alone or self._has_lonely()):
                    held.append(entry)
                    if not alone:  # whoever runs alone lets nobody in
                        break
                    continue
                self._taken[place] = self._taken.get(place, 0) + 1
                heapq.heappush(self._busy, (now + taking.get(step_id, 0), rank, step_id))
            for entry in held:
                heapq.heappush(ready, entry)
        return bool(self._busy)

    def next(self) -> tuple[int, StepId]:
        """The step that ends first, and when."""
        now, _, step_id = heapq.heappop(self._busy)
        self._taken[self._place(step_id)] -= 1
        return now, step_id

    @property
    def _is_full(self) -> bool:
        return self._room.whole is not None and len(self._busy) >= self._room.whole

    def _has_lonely(self) -> bool:
        return any(self._graph.steps[busy[2]].runs_alone for busy in self._busy)
