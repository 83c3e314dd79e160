"""Waits that others can shorten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress

Listen = Callable[[Callable[[], None]], AbstractContextManager[None]]


class Hints:
    """Naps of one event loop, ended by a hint that comes from any thread."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._stack = ExitStack()
        self._listens = False

    def listen(self, hints: Listen) -> None:
        """Be woken from now on; once is enough."""
        if not self._listens:
            self._listens = True
            loop = asyncio.get_running_loop()
            self._stack.enter_context(hints(lambda: self._hinted(loop)))

    def _hinted(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._event.set)

    def wake(self) -> None:
        """End the nap, in the loop's own thread."""
        self._event.set()

    async def rest(self, seconds: float) -> None:
        """Sleep, unless there is a hint."""
        if not self._listens:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for of Python 3.11 may lose a cancellation
                await self._event.wait()
        self._event.clear()

    def close(self) -> None:
        """Be woken no more."""
        self._stack.close()
