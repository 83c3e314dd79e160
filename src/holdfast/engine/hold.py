"""Holding a line: who else is there, heartbeats, and requests of people in the line's journal.

An engine holds its line alone unless it was told to join. One that joins waits until every engine
that was there before has said that it writes claims; from then on claims keep them apart.

Who holds a line alone also keeps a lock of the operating system where there is one. It ends with the
process and with nothing else: an engine that was taken for dead, because its heart stood still, still
has it. One that was just killed may keep it for a moment, until its last thread is gone.
"""

from __future__ import annotations

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

    def _take_lock(self) -> None:
        """Take the lock; HeldError if a process has it and does not end."""
        end = self._world.monotonic() + LOCK_POLLS * self._world.poll_seconds
        while self._lock is not None and not self._lock.try_lock():
            for other in self._others():
                if not self._world.gone(other):
                    raise _held(other, self._line, self._world.clock())
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
                store.bury(holder)
            if join:
                break
            if not dead:
                raise _held(others[0], self._line, self._world.clock())
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
                raise _held(rivals[0], self._line, self._world.clock())
            self._rest(self._world.poll_seconds)

    def announce(self, run: RunId | None) -> None:
        """Say which run this engine drives; FencedError if it was taken for dead meanwhile."""
        self.run, self._last_beat = run, self._world.monotonic()
        engine = self._world.owner.engine
        if not self._world.store.beat(engine, sharing=self.sharing, run=run):
            raise _overtaken()

    def _await_sharing(self) -> None:
        """Wait until every other engine writes claims, or is dead."""
        said = False
        while waiting := [other for other in self._others() if not other.sharing]:
            for holder in self._hearts.look(self._others()):
                self._world.store.bury(holder)
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
        if self._world.monotonic() - self._last_beat >= self._world.beat_seconds:
            await self.beat(writer)
        self.others = self._others()
        for other in self._hearts.look(self.others):
            await writer.call(self._world.store.bury, other)
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

    async def beat(self, writer: Writer) -> None:
        """Say that this engine lives."""
        self._last_beat = self._world.monotonic()
        engine = self._world.owner.engine
        if not await writer.call(
            self._world.store.beat, engine, sharing=self.sharing, run=self.run
        ):
            raise _overtaken()

    def release(self) -> None:
        """Leave the line."""
        try:
            self._world.store.leave(self._world.owner.engine)
        finally:
            self._give_lock()


def _overtaken() -> FencedError:
    return FencedError("another engine took this line over", hint="look at 'holdfast status'")


def _held(holder: Holder, line: str, now: int) -> HeldError:
    minutes, seconds = divmod(max(0, now - holder.owner.since) // 1000, 60)
    return HeldError(
        f"line '{line}' is held by process {holder.owner.pid} on '{holder.owner.host}'"
        f" since {minutes} min {seconds} s" + (f" (run {holder.run})" if holder.run else ""),
        hint="wait for it, 'holdfast stop' it, or run beside it with --join",
    )
