"""A source in a thread of its own, for libraries that wait in threads: those keep a process from ending.

What such a library starts belongs to the thread that asked. That one is a daemon here, so nobody waits for a
provider that is silent when the engine is done, or is told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import TypeVar

from holdfast.generators.models import Source
from holdfast.model.call import Answer, Request
from holdfast.process.hints import hearing

T = TypeVar("T")


class Aside:
    """Asks `source` from a loop that runs beside the caller's."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        """One call; cancelled with the caller."""
        here = asyncio.get_running_loop()

        def hear(text: str) -> None:
            here.call_soon_threadsafe(listen, text)

        return await self._there(self._source.ask(request, hear, leaves))

    async def close(self) -> None:
        """End the source and its thread."""
        if self._loop is None:
            return
        await self._there(self._source.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _there(self, work: Coroutine[object, object, T]) -> T:
        if self._loop is None:
            self._loop = hearing(asyncio.new_event_loop())
            Thread(target=_serve, args=[self._loop], name="models aside", daemon=True).start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
