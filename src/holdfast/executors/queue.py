"""Carries parcels to workers through the store: an errand for each attempt.

Whoever takes from a queue holds a line named after it, and is watched as engines are: if its heart stands
still, the attempt is lost, and a further one is another errand. Nothing else passes between the two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from holdfast.errors import AttemptError, HoldfastError
from holdfast.model.digest import Digest
from holdfast.ports import Errand, Holder, Job, Store
from holdfast.process.hints import Hints

GRACE = 10.0  # seconds for a worker to end what was called off
_TELL = 5  # polls
SECRETS = "a step that sees secrets is not left to workers: they would be written into the store"

Listener = Callable[[str, bytes], None]


_QUEUE = "queue:"


def queue_line(queue: str) -> str:
    """The line that the workers of a queue hold; no plan can have such a name."""
    return f"{_QUEUE}{queue}"


def is_queue(line: str) -> bool:
    """Whether a line is that of workers: it is held as long as they are there, at work or not."""
    return line.startswith(_QUEUE)


class QueueCarrier:
    """Brings parcels to the workers of the queue that a step names.

    `dead` gives those among holders that are dead; it is asked again and again.
    """

    def __init__(
        self,
        store: Store,
        engine: str,
        dead: Callable[[Iterable[Holder]], Sequence[Holder]],
        poll_seconds: float,
        say: Callable[[str], None],
    ) -> None:
        self._store = store
        self._engine = engine
        self._dead = dead
        self._poll = poll_seconds
        self._say = say
        self._waiting: dict[int, asyncio.Future[Digest]] = {}
        self._queues: dict[int, str] = {}
        self._heard: dict[int, tuple[Listener, int]] = {}  # who hears it, and up to which number
        self._looking: asyncio.Task[None] | None = None

    async def carry(self, parcel: bytes, job: Job) -> bytes:
        queue = job.step.runs_on
        if job.step.secrets:  # what goes through the store stays in it
            raise AttemptError(SECRETS, reason="command_failed")
        posting = asyncio.ensure_future(asyncio.to_thread(self._posted, queue, parcel))
        try:
            number = await asyncio.shield(posting)
        except asyncio.CancelledError:  # it may be there already, and somebody may have taken it
            await asyncio.shield(self._called_off(await posting))
            raise
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        self._queues[number] = queue
        if job.on_output is not None:
            self._heard[number] = (job.on_output, 0)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            report = await answer
            self._pass_on({number: await asyncio.to_thread(self._news, number)})
            return await asyncio.to_thread(self._store.get, report)
        except asyncio.CancelledError:
            await asyncio.shield(self._called_off(number))
            raise
        finally:
            del self._waiting[number], self._queues[number]
            self._heard.pop(number, None)
            with suppress(RuntimeError):  # the loop may be closing
                await asyncio.to_thread(self._store.withdraw, [number])

    def close(self) -> None:
        """Nothing is kept: errands go with the engine."""

    def _posted(self, queue: str, parcel: bytes) -> int:
        return self._store.post(queue, self._store.put(parcel), self._engine)

    async def _look(self) -> None:
        """Look at the errands as long as somebody waits for one."""
        hints = Hints()
        hints.listen(self._store.hints)
        try:
            await self._look_on(hints)
        finally:
            hints.close()

    async def _look_on(self, hints: Hints) -> None:
        told: set[str] = set()
        since = asyncio.get_running_loop().time()
        while self._waiting:
            await hints.rest(self._poll)
            posted = list(self._waiting.items())  # before anybody looks
            try:
                found, dead = await asyncio.to_thread(self._seen)
                self._pass_on(await asyncio.to_thread(self._all_news))
            except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(error)
                return
            for number, future in posted:
                if not future.done():
                    self._settle(found.get(number), future, dead)
            free = {one.queue for one in found.values() if one.worker is None}
            if asyncio.get_running_loop().time() - since >= _TELL * self._poll:
                for queue in sorted(free - told - await asyncio.to_thread(self._served, free)):
                    told.add(queue)
                    self._say(
                        f"waiting: no worker takes from '{queue}' (holdfast worker --queue {queue})"
                    )

    def _seen(self) -> tuple[dict[int, Errand], set[str]]:
        """Our errands, and the workers that are dead or have gone."""
        found = self._own()
        there = [h for queue in set(self._queues.values()) for h in self._holders(queue)]
        dead = self._dead(there)
        for holder in dead:
            self._store.bury(holder)
        alive = {holder.owner.engine for holder in there if holder not in dead}
        missing = {one.worker for one in found.values() if one.worker} - alive
        return (
            self._own() if missing else found
        ), missing  # who left may have reported just before

    def _own(self) -> dict[int, Errand]:
        return {one.id: one for one in self._store.errands(self._engine)}

    def _all_news(self) -> dict[int, Sequence[tuple[int, str, bytes]]]:
        return {number: self._news(number) for number in list(self._heard)}

    def _news(self, number: int) -> Sequence[tuple[int, str, bytes]]:
        known = self._heard.get(number)
        return self._store.heard(number, known[1]) if known is not None else ()

    def _pass_on(self, news: Mapping[int, Sequence[tuple[int, str, bytes]]]) -> None:
        """Let whoever looks on hear what was said, once."""
        for number, said in news.items():
            for place, stream, content in said:
                listener, after = self._heard.get(number, (None, 0))
                if listener is not None and place > after:
                    self._heard[number] = (listener, place)
                    listener(stream, content)

    def _served(self, queues: Iterable[str]) -> set[str]:
        return {queue for queue in queues if self._holders(queue)}

    def _holders(self, queue: str) -> Sequence[Holder]:
        return self._store.holders("", queue_line(queue))

    @staticmethod
    def _settle(errand: Errand | None, future: asyncio.Future[Digest], dead: set[str]) -> None:
        if errand is not None and errand.report is not None:
            future.set_result(errand.report)
        elif errand is None:
            future.set_exception(AttemptError("its errand was taken back", reason="lost"))
        elif errand.worker in dead:
            future.set_exception(AttemptError("the worker that had it is gone", reason="lost"))

    async def _called_off(self, number: int) -> None:
        """Let the worker end it, and wait until it has."""
        with suppress(
            HoldfastError
        ):  # then its worker hears of it as soon as the store can be asked
            await asyncio.to_thread(self._store.call_off, [number])
            end = asyncio.get_running_loop().time() + GRACE
            while asyncio.get_running_loop().time() < end:
                found = await asyncio.to_thread(self._store.errands, "")
                if all(one.id != number or one.report is not None for one in found):
                    break
                await asyncio.sleep(min(self._poll, 0.1))
            await asyncio.to_thread(self._store.withdraw, [number])
