"""Places: how many attempts may be under way at once, by what they wait for.

    a function of this process    takes none here; nor does gathering
    work on this machine          one of the machine's places (`-j`), from the start of the attempt
    work on other machines        one of those, until the attempt has ended
    a step that a model does      one of its provider's (`at_once`), until the attempt has ended

Whoever asks a model gives a place of the machine back, and whoever is about to start a process takes one
unless it has one. So waiting for an answer keeps nobody from working, and the guards of a hundred answers
start no more processes than the machine has places. Nobody who holds a place of the machine waits for
anything but its own work: there is no circle.

A provider has no room before it can be asked: what that takes is loaded first, beside the loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from holdfast.core.state import State
from holdfast.engine.world import World
from holdfast.model.plan import GATHER, Step, StepId

INLINE = ""
HERE = ":"  # no provider has this name
ELSEWHERE = "::"
MOST_UNDER_WAY = 256  # attempts that began here; some of them may wait for models that judge


def leaves(world: World, state: State, step: Step) -> bool:
    """Whether a step is one for another machine, which the project directory is not on."""
    asked = bool(state.options.executor) or bool(step.runs_on)
    return asked and step.can_leave and step.id not in world.inline


class Providers(Protocol):
    """Who knows how many calls a provider bears."""

    def at_once(self, provider: str) -> int:
        """Calls at the same time."""

    def is_ready(self, provider: str) -> bool:
        """Whether it can be asked; if not, that is being seen to."""


class Places:
    """The places of one run; `wake` is called when one that the loop may fill becomes free."""

    def __init__(
        self, world: World, state: State, providers: Providers, wake: Callable[[], None]
    ) -> None:
        self._world = world
        self._state = state
        self._providers = providers
        self._wake = wake
        self._free = world.parallel
        self._under_way: dict[StepId, str] = {}
        self._taken: Counter[str] = Counter()  # by provider
        self.working: set[StepId] = set()  # they have a place of the machine
        self._waiting: deque[tuple[StepId, asyncio.Future[None]]] = deque()

    def of(self, step_id: StepId) -> str:
        """Where a step takes its place when it starts: INLINE, HERE, or a provider."""
        if step_id in self._world.inline:
            return INLINE
        step = self._state.plan.steps[step_id]
        if step.uses == GATHER:
            return INLINE
        if self._world.elsewhere and leaves(self._world, self._state, step):
            return ELSEWHERE
        if self._world.models is None or not step.asks_model:
            return HERE
        return step.model.partition(":")[0]

    def has_room(self, place: str) -> bool:
        """Whether one more attempt may start."""
        if self._world.one_by_one and self._under_way:
            return False
        if place == HERE:
            most = max(MOST_UNDER_WAY, self._world.parallel)
            return self._free > 0 and len(self._under_way) < most
        taken = self._taken[place]
        if place == ELSEWHERE:
            return taken < self._world.elsewhere
        return taken < self._providers.at_once(place) and self._providers.is_ready(place)

    def begin(self, step_id: StepId) -> None:
        """An attempt starts."""
        place = self.of(step_id)
        if place == INLINE:
            return
        self._under_way[step_id] = place
        if place == HERE:
            self._free -= 1
            self.working.add(step_id)
        else:
            self._taken[place] += 1

    def end(self, step_id: StepId) -> None:
        """An attempt ended, whatever it has."""
        place = self._under_way.pop(step_id, HERE)
        if place != HERE:
            self._taken[place] -= 1
        self.give_back(step_id)

    def give_back(self, step_id: StepId) -> None:
        """It does not work on this machine for now."""
        if step_id not in self.working:
            return
        self.working.discard(step_id)
        self._free += 1
        while self._waiting and self._free:
            other, turn = self._waiting.popleft()
            if not turn.done():  # it may have been broken off
                self._free -= 1
                self.working.add(other)
                turn.set_result(None)
        self._wake()

    async def take(self, step_id: StepId) -> None:
        """Until it has a place of this machine; those who are under way come before those who start."""
        if step_id in self.working:
            return
        if self._free:
            self._free -= 1
            self.working.add(step_id)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((step_id, turn))
        await turn
