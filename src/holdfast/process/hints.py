"""Waits that others can shorten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress

_HEARS = 1.0  # seconds after which a loop hears what woke nobody
_SPACE = 0.25  # of a nap, between two that hints ended: a thousand that wait are not to look at everything

Listen = Callable[[Callable[[], None]], AbstractContextManager[None]]


def hearing(loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """The loop, which looks up now and then: a thread may fail to wake it, and nothing says so."""

    def look_up() -> None:
        loop.call_later(_HEARS, look_up)

    look_up()
    return loop


class Hints:
    """Naps of one event loop, ended by a hint that comes from any thread, or at once by its own."""

    def __init__(self) -> None:
        self._hint = asyncio.Event()
        self._own = asyncio.Event()
        self._stack = ExitStack()
        self._listens = False
        self._woken = 0.0

    def listen(self, hints: Listen) -> None:
        """Be woken from now on; once is enough."""
        if not self._listens:
            self._listens = True
            loop = asyncio.get_running_loop()
            self._stack.enter_context(hints(lambda: self._hinted(loop)))

    def _hinted(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._hint.set)

    def wake(self) -> None:
        """End the nap, in the loop's own thread."""
        self._own.set()
        self._hint.set()

    async def rest(self, seconds: float) -> None:
        """Sleep, unless there is a hint."""
        if not self._listens:
            await asyncio.sleep(seconds)
            return
        loop = asyncio.get_running_loop()
        end, earliest = loop.time() + seconds, self._woken + seconds * _SPACE
        await _until(self._hint, end)
        await _until(self._own, min(end, earliest))
        self._hint.clear()
        self._own.clear()
        self._woken = loop.time()

    def close(self) -> None:
        """Be woken no more."""
        self._stack.close()


async def _until(event: asyncio.Event, end: float) -> None:
    """Wait for an event up to a time of the loop; wait_for of Python 3.11 may lose a cancellation."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(end):
            await event.wait()
