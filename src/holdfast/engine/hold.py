"""Holding a line: who else is there, heartbeats, and requests of people in the line's journal.

An engine holds its line alone unless it was told to join. One that joins waits until every engine
that was there before has said that it writes claims; from then on claims keep them apart.

The heart of an engine beats in a thread of its own, so that nothing that takes long makes a healthy one
look dead. One that stood still for a whole lease all the same (it was stopped, or its machine was) may
have been taken over: it asks before it does anything more, and everything it would store is refused.

Who holds a line alone also keeps a lock of the operating system where there is one. It ends with the
process and with nothing else: an engine that was taken for dead, because its heart stood still, still
has it. One that was just killed may keep it for a moment, until its last thread is gone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

from holdfast.engine.commit import Writer
from holdfast.engine.hearts import Hearts
from holdfast.engine.lines import line_journal
from holdfast.engine.world import World
from holdfast.errors import FencedError, HeldError
from holdfast.model.line import AdditionRequested, SkipRequested, StopRequested
from holdfast.model.plan import RunId
from holdfast.ports import Holder

LOCK_POLLS = 5  # how long a process that is said to be gone may still have the lock


class Hold:
    """This engine's hold on a line."""

    def __init__(self, world: World, project: str, line: str) -> None:
        self._world = world
        self._project = project
        self._line = line
        self._hearts = Hearts(world)
        self._last_beat = 0.0
        self._beating = (
            threading.Lock()
        )  # what is said of the run is said in the order it became true
        self._over = threading.Event()
        self._heart: threading.Thread | None = None
        self._fault: BaseException | None = None  # what ended the heart
        self._entered = False
        self._read = 0
        self.run: RunId | None = None
        self.sharing = False
        self.others: tuple[Holder, ...] = ()
        self.stop_asked: bool | None = None
        self.has_news = True  # something may have been said on the line
        self.has_requests = True  # a person may have asked for something
        self._lock = world.lock(project, line) if world.lock is not None else None

    def take(self, *, join: bool) -> None:
        """Enter the line; HeldError if a live engine holds it and this one may not join."""
        if not join:
            self._take_lock()
        try:
            self._enter(join=join)
        except BaseException:
            self._give_lock()
            raise
        if self._world.writer is None:
            self._start_heart()

    def _start_heart(self) -> None:
        """Let the heart beat beside everything else, until this hold is released, or forgotten."""
        weakref.finalize(self, self._over.set)
        beat_seconds = self._world.beat_seconds
        arguments = (weakref.ref(self), self._over, beat_seconds)
        heart = threading.Thread(
            target=_beat_on, args=arguments, name="holdfast-heart", daemon=True
        )
        try:
            heart.start()
        except RuntimeError:  # no thread to be had: it beats with the loop
            return
        self._heart = heart

    def _take_lock(self) -> None:
        """Take the lock; HeldError if a process has it and does not end."""
        end = self._world.monotonic() + LOCK_POLLS * self._world.poll_seconds
        while self._lock is not None and not self._lock.try_lock():
            for other in self._others():
                if not self._world.gone(other):
                    raise held_by(other, self._line, self._world.clock())
            if self._world.monotonic() > end:
                raise HeldError(
                    f"line '{self._line}' is locked by a process that does not say who it is",
                    hint="wait for it, or end it; a lock ends with its process",
                )
            self._world.sleep(min(self._world.poll_seconds, 0.05))

    def _give_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _enter(self, *, join: bool) -> None:
        store, mine = self._world.store, self._world.owner
        others = store.enter(self._project, self._line, mine, alone=not join)
        self._entered = join
        while others:
            dead = self._dead_among(others)
            for holder in dead:
                self._bury(holder)
            if join:
                break
            if not dead:
                raise held_by(others[0], self._line, self._world.clock())
            others = store.enter(self._project, self._line, mine, alone=True)
        self._entered = True
        self._read = store.last(line_journal(self._project, self._line))
        if join and self._others():
            self.sharing = True
            self.announce(None)
            self._await_sharing()

    @property
    def entered_at(self) -> int:
        """How far the line's journal had come when this engine entered, or last looked."""
        return self._read

    def drives(self, run: RunId) -> None:
        """Say which run this engine drives; HeldError if another live one drives it.

        It is said before it is looked at, so that of two that want the same run at once at least one
        sees the other; the one with the lower name then tries once more.
        """
        mine = self._world.owner.engine
        for is_last in (False, True):
            self.announce(run)
            rivals = [o for o in self._others() if o.run == run and not self._world.gone(o)]
            if not rivals:
                return
            self.announce(None)
            if is_last or min(rival.owner.engine for rival in rivals) < mine:
                raise held_by(rivals[0], self._line, self._world.clock())
            self._rest(self._world.poll_seconds)

    def announce(self, run: RunId | None) -> None:
        """Say which run this engine drives; FencedError if it was taken for dead meanwhile."""
        self.run = run
        self.beat_now()

    def beat_now(self) -> None:
        """Say that this engine lives; FencedError if it was taken for dead meanwhile."""
        with self._beating:
            began, engine = self._world.monotonic(), self._world.owner.engine
            if not self._world.store.beat(engine, sharing=self.sharing, run=self.run):
                raise _overtaken()
            self._last_beat = began

    def check_alive(self) -> None:
        """Before anything is done outside: FencedError if another engine took this one for dead.

        Nobody could while the last beat is younger than a lease, so nearly always nobody is asked.
        """
        if self._world.monotonic() - self._last_beat >= self._world.lease_seconds:
            self.beat_now()

    def _await_sharing(self) -> None:
        """Wait until every other engine writes claims, or is dead."""
        said = False
        while waiting := [other for other in self._others() if not other.sharing]:
            for holder in self._hearts.look(self._others()):
                self._bury(holder)
            if not said:
                said = True
                self._world.say(f"waiting for process {waiting[0].owner.pid} to share the line")
            self._rest(min(self._world.poll_seconds, 0.05))

    def _rest(self, seconds: float) -> None:
        """Sleep; an engine that waits, and that others can see, goes on saying that it lives."""
        world = self._world
        world.sleep(seconds)
        if self._entered and world.monotonic() - self._last_beat >= world.beat_seconds:
            self.announce(self.run)

    def _bury(self, holder: Holder) -> None:
        """Take what a dead engine had from it."""
        if self._world.store.bury(holder):
            self._tell_buried(holder)

    def _tell_buried(self, holder: Holder) -> None:
        """Say what became of one that only stood still; what it started on this machine is ended."""
        world, owner = self._world, holder.owner
        if world.gone(holder):
            return
        what = f"the engine of process {owner.pid} on '{owner.host}'"
        world.say(f"{what} stood still for {world.lease_seconds:g} s: its steps are taken over")
        if holder.run is not None and self._hearts.can_be_asked(holder):
            world.sweep(f"{holder.run}/")

    def _others(self) -> tuple[Holder, ...]:
        found = self._world.store.holders(self._project, self._line)
        return tuple(h for h in found if h.owner.engine != self._world.owner.engine)

    def _dead_among(self, others: Sequence[Holder]) -> list[Holder]:
        """The dead among other engines; waits for a beat of those whose process cannot be asked for."""
        beats = {other.owner.engine: other.beat for other in others}
        dead = self._hearts.look(others)
        unsure = [h for h in others if h not in dead and not self._hearts.can_be_asked(h)]
        for holder in unsure:
            host = holder.owner.host
            self._world.say(f"waiting to see whether the engine on '{host}' still lives")
        while unsure:
            self._rest(self._world.poll_seconds)
            there = {other.owner.engine: other for other in self._others()}
            silent = {other.owner.engine for other in self._hearts.look(there.values())}
            dead += [h for h in unsure if h.owner.engine in silent or h.owner.engine not in there]
            unsure = [
                h
                for h in unsure
                if h not in dead and there[h.owner.engine].beat == beats[h.owner.engine]
            ]
        return dead

    async def pulse(self, writer: Writer) -> None:
        """One look around: beat if it is time, see who else is there, read the inbox."""
        if self._fault is not None:
            raise self._fault
        is_due = self._world.monotonic() - self._last_beat >= self._world.beat_seconds
        if is_due and self._heart is None:
            await self.beat(writer)
        self.others = self._others()
        for other in self._hearts.look(self.others):
            if await writer.call(self._world.store.bury, other):
                self._tell_buried(other)
        journal = line_journal(self._project, self._line)
        for recorded in self._world.store.read(journal, self._read):
            self._read, self.has_news = recorded.seq, True
            event = recorded.event
            if isinstance(event, AdditionRequested | SkipRequested) and event.run == self.run:
                self.has_requests = True
            if isinstance(event, StopRequested) and event.run == self.run:
                self.stop_asked = event.now
                when = "now" if event.now else "after the running steps"
                self._world.say(f"asked to stop {when} by '{event.by}'; resume continues from here")

    def beats_on(self) -> bool:
        """One beat of the heart; false if it is over, and whoever drives the run will hear why."""
        try:
            self.beat_now()
        except BaseException as error:  # noqa: BLE001 - without a heart the engine is over
            self._fault = error
        return self._fault is None

    async def beat(self, writer: Writer) -> None:
        """Say that this engine lives."""
        await writer.call(self.beat_now)

    def release(self) -> None:
        """Leave the line."""
        self._over.set()
        try:
            with self._beating:  # no beat is under way when the store is closed
                self._world.store.leave(self._world.owner.engine)
        finally:
            self._give_lock()


def _beat_on(of: weakref.ref[Hold], over: threading.Event, seconds: float) -> None:
    """The heart of a hold; it ends with it."""
    while not over.wait(seconds):
        hold = of()
        if hold is None or not hold.beats_on():
            return
        del hold  # or it would never be forgotten


def _overtaken() -> FencedError:
    return FencedError("another engine took this line over", hint="look at 'holdfast status'")


def held_by(holder: Holder, line: str, now: int) -> HeldError:
    """What is said to whoever wants a line that another engine holds."""
    minutes, seconds = divmod(max(0, now - holder.owner.since) // 1000, 60)
    return HeldError(
        f"line '{line}' is held by process {holder.owner.pid} on '{holder.owner.host}'"
        f" since {minutes} min {seconds} s" + (f" (run {holder.run})" if holder.run else ""),
        hint="wait for it, 'holdfast stop' it, or run beside it with --join",
    )
