"""The steps that were looked at and wait for a place, best first.

Best is the higher priority, then the earlier place in the graph; with a barrier the earlier wave comes
before both. Steps that take the same things wait in one heap, so whatever does not fit is passed over
at once and not step by step. Who is passed over has what it waits for kept: nobody behind it may take
of that, so it starts as soon as those that run have given it back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.core.react import front, may_start
from holdfast.core.room import Demands, Thing
from holdfast.core.state import State
from holdfast.engine.places import INLINE
from holdfast.model.plan import PRIORITIES, StepId

_Entry = tuple[int, int, int, StepId]  # wave if there is a barrier, priority, rank


class _Kind(NamedTuple):
    """What the steps of one heap have in common."""

    place: str  # where they take their places
    alone: bool
    demands: Demands


_FREE = _Kind(INLINE, False, ())


class Desk:
    """The queue of one run; `place_of` tells where a step takes its place."""

    def __init__(
        self, state: State, place_of: Callable[[StepId], str], machine: Mapping[str, int]
    ) -> None:
        self._state = state
        self._place_of = place_of
        self._machine = machine
        self._heaps: dict[_Kind, list[_Entry]] = {}
        self._aside: list[StepId] = []  # what stands on a step that is about to be made again
        self._front = 0

    def put(self, step_id: StepId) -> None:
        """Let a step wait for a place."""
        state = self._state
        place = self._place_of(step_id)
        kind: _Kind = _FREE
        if place != INLINE or state.alone or state.demands:
            kind = _Kind(place, step_id in state.alone, state.demands.get(step_id, ()))
        heap = self._heaps.get(kind)
        if heap is None:
            heap = self._heaps[kind] = []
        wave = state.graph.wave[step_id] if state.options.barrier else 0
        priority = PRIORITIES[state.plan.steps[step_id].priority]
        heapq.heappush(heap, (wave, priority, state.graph.rank[step_id], step_id))

    def take(
        self, has_room: Callable[[str], bool], drop: Callable[[StepId], None]
    ) -> StepId | None:
        """The next step that may start; `drop` is told of those that do not wait any more."""
        if len(self._heaps) == 1:  # as in most plans
            for kind, heap in self._heaps.items():
                free = self._has_entry(heap, drop) and has_room(kind.place)
                if (
                    free
                    and self._is_due(heap[0])
                    and may_start(self._state, heap[0][3], self._machine)
                ):
                    return heapq.heappop(heap)[3]
            return None
        kinds = [kind for kind in self._heaps if self._has_entry(self._heaps[kind], drop)]
        if len(kinds) > 1:
            # functions of this process first: they cost next to nothing
            kinds.sort(key=lambda kind: (kind.place != INLINE, self._heaps[kind][0]))
        kept: set[Thing] = set()
        for kind in kinds:
            heap = self._heaps[kind]
            if not has_room(kind.place) or not self._is_due(heap[0]):
                continue
            things = {thing for thing, _ in kind.demands}
            if kept.isdisjoint(things) and may_start(self._state, heap[0][3], self._machine):
                return heapq.heappop(heap)[3]
            kept |= things
        return None

    def again(self) -> None:
        """Steps that were settled are pending again; who waited for that may go on."""
        self._front = 0
        aside, self._aside = self._aside, []
        for step_id in aside:
            self.put(step_id)

    def _has_entry(self, heap: list[_Entry], drop: Callable[[StepId], None]) -> bool:
        ready, frozen = self._state.ready, self._state.frozen
        while heap:
            step_id = heap[0][3]
            if step_id not in ready:
                drop(heapq.heappop(heap)[3])
            elif step_id in frozen:
                self._aside.append(heapq.heappop(heap)[3])
            else:
                return True
        return False

    def _is_due(self, entry: _Entry) -> bool:
        """Whether all waves before that of a step are settled, if that is asked for."""
        if not self._state.options.barrier:
            return True
        self._front = front(self._state, self._front)
        order = self._state.graph.order
        return self._front == len(order) or entry[0] <= self._state.graph.wave[order[self._front]]
