"""The gate before a provider: so many calls at once, so many a minute, none while it wants peace."""

from __future__ import annotations

import asyncio
from collections import deque

from holdfast.engine.world import World
from holdfast.ports import Rates

_MINUTE = 60.0


class Gate:
    """Lets calls of one provider through: so many at once, so many a minute, none while it wants peace."""

    def __init__(self, rates: Rates, world: World) -> None:
        self._room = asyncio.Semaphore(rates.at_once)
        self._per_minute = rates.per_minute
        self._passed: deque[float] = deque()
        self._until = 0.0
        self._world = world

    def hold(self, seconds: float) -> None:
        """Let nobody through for so long."""
        self._until = max(self._until, self._world.monotonic() + seconds)

    async def __aenter__(self) -> None:
        await self._room.acquire()
        try:
            while (wait := self._wait()) > 0:  # noqa: ASYNC110 - time itself is waited for
                await asyncio.sleep(wait)
        except BaseException:
            self._room.release()
            raise
        if self._per_minute:
            self._passed.append(self._world.monotonic())

    async def __aexit__(self, *_: object) -> None:
        self._room.release()

    def _wait(self) -> float:
        now = self._world.monotonic()
        while self._passed and self._passed[0] <= now - _MINUTE:
            self._passed.popleft()
        full = self._per_minute and len(self._passed) >= self._per_minute
        return max(self._until - now, self._passed[0] + _MINUTE - now if full else 0.0)
