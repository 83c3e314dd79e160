"""A worker: takes errands of queues and carries them out, on the terms of whoever started it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, IntegrityError, StoreError
from holdfast.executors.pump import MOMENT, Outbox
from holdfast.process.hints import Hints

if TYPE_CHECKING:
    from holdfast.executors.far import Far
    from holdfast.executors.local import LocalExecutor
    from holdfast.executors.parcel import Wish
    from holdfast.ports import Errand, Owner, Store


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
    from holdfast.wire import open_store

    store = open_store(location, create=True, say=employment.say)
    try:
        far, executors = _far(store, location, employment)
        return asyncio.run(_Worker(store, far, executors, employment).work())
    finally:
        store.close()


def _far(
    store: Store, location: str, employment: Employment
) -> tuple[Far, Sequence[LocalExecutor]]:
    """Who carries out parcels, and the executors that are made on the way, to be closed at the end."""
    from holdfast.config.sandbox import read_terms
    from holdfast.engine.rooms import Rooms
    from holdfast.executors.far import Far
    from holdfast.process.den import own_den
    from holdfast.wire.shared import is_shared
    from holdfast.wire.workshop import executor_for

    own = read_terms()
    executors: list[LocalExecutor] = []
    hidden = own.hidden if is_shared(location) else (*own.hidden, os.path.abspath(location))

    @cache
    def executor(wish: Wish) -> LocalExecutor:
        terms = replace(
            own,
            hidden=hidden,
            network=own.network or (wish.network and employment.network),
            sandbox=wish.sandbox or employment.sandbox,
            written_here=wish.written_here,
        )
        executors.append(executor_for(None, terms=terms))
        return executors[-1]

    place = own_den()
    far = Far(place, Rooms(os.path.join(place, "rooms")), executor, store.get, store.put)
    return far, executors


class _Worker:
    """One process that takes errands."""

    def __init__(
        self, store: Store, far: Far, executors: Sequence[LocalExecutor], employment: Employment
    ) -> None:
        self._store = store
        self._far = far
        self._executors = executors
        self._employment = employment
        self._owner: Owner | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stopping = 0
        self._hints = Hints()
        self.done = 0

    async def work(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop)
        self._enter()
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
                self._beat()
            took = await self._take_all()
            self._end_called_off()
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

    def _beat(self) -> None:
        """Say that this process lives; if it was taken for dead, what it does is nobody's any more."""
        assert self._owner is not None
        if not self._store.beat(self._owner.engine, sharing=True):
            self._employment.say(
                "this worker was taken for dead; it ends what it runs and begins anew"
            )
            for task in self._tasks.values():
                task.cancel()
            self._enter()

    async def _take_all(self) -> bool:
        took = False
        assert self._owner is not None
        while not self._stopping and len(self._tasks) < self._employment.parallel:
            errand = self._store.take_errand(self._employment.queues, self._owner.engine)
            if errand is None:
                return took
            took = True
            task = asyncio.create_task(self._carry_out(errand))
            self._tasks[errand.id] = task
            task.add_done_callback(partial(self._ended, errand.id))
            await asyncio.sleep(0)
        return took

    def _ended(self, number: int, _: asyncio.Task[None]) -> None:
        self._tasks.pop(number, None)
        self._hints.wake()

    def _end_called_off(self) -> None:
        """End what its engine does not want any more, or what is not ours any more."""
        if not self._tasks or self._owner is None:
            return
        mine = {one.id for one in self._store.errands(worker=self._owner.engine) if one.engine}
        for number, task in self._tasks.items():
            if number not in mine:
                task.cancel()

    async def _carry_out(self, errand: Errand) -> None:
        say = self._employment.say
        say(f"took errand {errand.id} of '{errand.queue}'")
        try:
            parcel = self._store.get(errand.parcel)
            outbox = Outbox()
            telling = asyncio.create_task(self._telling(errand, outbox))
            try:
                answer = await self._far.attempt(parcel, outbox.add)
            finally:
                telling.cancel()
            if outbox.said:
                self._store.tell(errand, outbox.take())
            is_theirs = self._store.report(errand, self._store.put(answer))
        except asyncio.CancelledError:
            with suppress(HoldfastError):
                self._store.withdraw([errand.id])
            say(f"ended errand {errand.id}: it is not wanted any more")
            raise
        except IntegrityError as error:
            say(f"errand {errand.id} cannot be carried out: {error.message}")
            with suppress(StoreError):
                self._store.withdraw([errand.id])
            return
        self.done += 1
        say(f"{'did' if is_theirs else 'did in vain'} errand {errand.id}")

    async def _telling(self, errand: Errand, outbox: Outbox) -> None:
        """Pass on what the step says, a moment's worth at a time."""
        while True:
            await asyncio.sleep(MOMENT)
            if outbox.said:
                self._store.tell(errand, outbox.take())


def queues_of(names: Sequence[str]) -> tuple[str, ...]:
    """The queues without those that are named twice."""
    return tuple(dict.fromkeys(names))
