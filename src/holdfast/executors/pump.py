"""Drives an attempt from a plain generator, and yields what it says meanwhile; the last item is its answer.

What is said is collected for a moment, so that a chatty step costs few messages and a quick one none of its
own; of a flood only the end of each moment is passed on, as the log that comes with the answer is whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator

MOMENT = 0.1  # seconds
MOST_SAID = 256 * 1024  # bytes in a moment

Said = list[tuple[str, bytes]]
Item = tuple[Said, bytes]  # what was said, and the answer once it is there
Work = Callable[[Callable[[str, bytes], None]], Coroutine[None, None, bytes]]


class OrphanedError(Exception):
    """Nobody waits for the attempt any more; it was ended."""


def pumped(runner: asyncio.Runner, work: Work, orphaned: Callable[[], bool]) -> Iterator[Item]:
    """Run to the end; whoever breaks this off, by an exception too, ends the attempt first."""
    outbox = Outbox()
    task = runner.get_loop().create_task(work(outbox.add))
    try:
        while True:
            runner.run(_until(task, outbox, orphaned))
            if task.done():
                yield outbox.take(), task.result()
                return
            if orphaned():
                raise OrphanedError
            yield outbox.take(), b""
    finally:
        if not task.done():
            task.cancel()
            runner.run(_ended(task))


async def _until(task: asyncio.Task[bytes], outbox: Outbox, orphaned: Callable[[], bool]) -> None:
    """Until it has ended, or somebody should hear something, or there is nobody."""
    while not (task.done() or outbox.said or orphaned()):
        await asyncio.wait({task}, timeout=MOMENT)


async def _ended(task: asyncio.Task[bytes]) -> None:
    await asyncio.wait({task})


class Outbox:
    """What was said since somebody took it."""

    def __init__(self) -> None:
        self.said: Said = []
        self._size = 0

    def add(self, stream: str, chunk: bytes) -> None:
        self.said.append((stream, chunk[-MOST_SAID:]))
        self._size += len(self.said[-1][1])
        while self._size > MOST_SAID:
            self._size -= len(self.said.pop(0)[1])

    def take(self) -> Said:
        said, self.said, self._size = self.said, [], 0
        return said
