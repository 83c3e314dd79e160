"""A worker: takes errands of queues and carries them out, on the terms of whoever started it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.executors.pump import MOMENT, Outbox
from holdfast.process.hints import Hints
from holdfast.wire.remote import parcels_here
from holdfast.wire.shared import address_of

if TYPE_CHECKING:
    from holdfast.executors.far import Far
    from holdfast.executors.local import LocalExecutor
    from holdfast.executors.parcel import Wish
    from holdfast.ports import Errand, Owner, Store
    from holdfast.process.terms import Terms


@dataclass(frozen=True, slots=True)
class Employment:
    """What a worker does, and what it lets others ask of it."""

    queues: tuple[str, ...]
    parallel: int = 1
    network: bool = False  # steps whose person granted it may reach the network from here
    sandbox: bool = True  # False: steps whose person wished so run without a sandbox
    once: bool = False  # until there is nothing to take
    beat_seconds: float = 10.0
    poll_seconds: float = 1.0
    say: Callable[[str], None] = lambda _: None


def work(location: str, employment: Employment) -> int:
    """Take errands until told to stop; gives how many were carried out."""
    from holdfast.wire.stores import open_store

    store = open_store(location, create=True, say=employment.say)
    try:
        allowed = _allowed(employment)
        far, executors = parcels_here(address_of(location), store.get, store.put, allowed)
        return asyncio.run(_Worker(store, far, executors, employment).work())
    finally:
        store.close()


def _allowed(employment: Employment) -> Callable[[Terms, Wish], Wish]:
    """What of a wish is granted here: its person may want less than this worker gives, never more."""

    def allowed(own: Terms, wish: Wish) -> Wish:
        return wish._replace(
            network=own.network or (wish.network and employment.network),
            sandbox=wish.sandbox or employment.sandbox,
        )

    return allowed


class _Worker:
    """One process that takes errands. The store is asked beside the loop: time-outs of steps go on."""

    def __init__(
        self, store: Store, far: Far, executors: Sequence[LocalExecutor], employment: Employment
    ) -> None:
        self._store = store
        self._far = far
        self._executors = executors
        self._employment = employment
        self._owner: Owner | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._answered_for: set[int] = set()  # errands whose attempt has ended: nothing to call off
        self._stopping = 0
        self._hints = Hints()
        self._fault: HoldfastError | None = (
            None  # an errand that could neither be done nor given back
        )
        self.done = 0

    async def work(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop)
        await asyncio.to_thread(self._enter)
        self._hints.listen(self._store.hints)
        try:
            await self._rounds(loop)
        finally:
            self._hints.close()
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            for executor in self._executors:
                await executor.close()
            if self._owner is not None:
                self._store.leave(self._owner.engine)
        return self.done

    async def _rounds(self, loop: asyncio.AbstractEventLoop) -> None:
        beaten = loop.time()
        while not (self._stopping and not self._tasks):
            if loop.time() - beaten >= self._employment.beat_seconds:
                beaten = loop.time()
                await self._beat()
            took = await self._take_all()
            await self._end_called_off()
            if self._fault is not None:
                raise self._fault
            if self._employment.once and not took and not self._tasks:
                return
            await self._hints.rest(self._employment.poll_seconds)

    def _asked_to_stop(self) -> None:
        """The first time what runs is carried out, the second time it is ended."""
        self._stopping += 1
        if self._stopping == 1 and self._tasks:
            self._employment.say("stopping after what runs; once more ends it now")
        for task in self._tasks.values() if self._stopping > 1 else ():
            task.cancel()
        self._hints.wake()

    def _enter(self) -> None:
        """Say that this process is there, under a name that nobody had before."""
        from holdfast.executors.queue import queue_line
        from holdfast.store.host import this_process

        self._owner = this_process()
        for queue in self._employment.queues:
            self._store.enter("", queue_line(queue), self._owner)

    async def _beat(self) -> None:
        """Say that this process lives; if it was taken for dead, what it does is nobody's any more."""
        assert self._owner is not None
        if not await asyncio.to_thread(self._store.beat, self._owner.engine, sharing=True):
            self._employment.say(
                "this worker was taken for dead; it ends what it runs and begins anew"
            )
            for task in self._tasks.values():
                task.cancel()
            await asyncio.to_thread(self._enter)

    async def _take_all(self) -> bool:
        took = False
        assert self._owner is not None
        while not self._stopping and len(self._tasks) < self._employment.parallel:
            errand = await asyncio.to_thread(
                self._store.take_errand, self._employment.queues, self._owner.engine
            )
            if errand is None:
                return took
            took = True
            task = asyncio.create_task(self._carry_out(errand))
            self._tasks[errand.id] = task
            task.add_done_callback(partial(self._ended, errand.id))
        return took

    def _ended(self, number: int, _: asyncio.Task[None]) -> None:
        self._tasks.pop(number, None)
        self._answered_for.discard(number)
        self._hints.wake()

    async def _end_called_off(self) -> None:
        """End what its engine does not want any more, or what is not ours any more."""
        running = {n: task for n, task in self._tasks.items() if n not in self._answered_for}
        if not running or self._owner is None:
            return
        there = await asyncio.to_thread(self._store.errands, worker=self._owner.engine)
        mine = {one.id for one in there if one.engine}
        for number, task in running.items():
            is_over = number in self._answered_for or task.cancelling()
            if number not in mine and not is_over:
                task.cancel()

    async def _carry_out(self, errand: Errand) -> None:
        say = self._employment.say
        say(f"took errand {errand.id} of '{errand.queue}'")
        try:
            is_theirs = await self._answered(errand)
        except asyncio.CancelledError:
            with suppress(HoldfastError):
                await asyncio.to_thread(self._store.withdraw, [errand.id])
            say(f"ended errand {errand.id}: it is not wanted any more")
            raise
        except HoldfastError as error:
            say(f"errand {errand.id} cannot be carried out: {error.message}")
            await self._give_back(errand)
            return
        self.done += 1
        say(f"{'did' if is_theirs else 'did in vain'} errand {errand.id}")

    async def _answered(self, errand: Errand) -> bool:
        """Do it and report; what the step says is passed on a moment's worth at a time."""
        outbox = Outbox()
        parcel = await asyncio.to_thread(self._store.get, errand.parcel)
        attempt = asyncio.create_task(self._far.attempt(parcel, outbox.add))
        try:
            while not attempt.done():
                await asyncio.wait({attempt}, timeout=MOMENT)
                if outbox.said:
                    await asyncio.to_thread(self._store.tell, errand, outbox.take())
        finally:
            attempt.cancel()
            await asyncio.wait({attempt})
        self._answered_for.add(errand.id)
        report = await asyncio.to_thread(self._store.put, attempt.result())
        return await asyncio.to_thread(self._store.report, errand, report)

    async def _give_back(self, errand: Errand) -> None:
        """Let its engine know that nobody does it; if not even that can be said, this worker must end."""
        try:
            await asyncio.to_thread(self._store.withdraw, [errand.id])
        except HoldfastError as error:
            self._fault = error


def queues_of(names: Sequence[str]) -> tuple[str, ...]:
    """The queues without those that are named twice."""
    return tuple(dict.fromkeys(names))
