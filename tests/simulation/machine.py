"""A machine of virtual time: its processes are threads of which exactly one runs, until it waits.

Nothing here sleeps and nothing is decided by the operating system. A process runs until it would block:
in its event loop, in a sleep, or at a `point` (every call of the store is one), where the seed may let
others go first or end it. Then the machine takes the next moment of the agenda, moves the clock there,
and hands the baton to whoever waits for it. What happens at one moment happens in an order that the seed
decides.

A killed process simply never gets the baton again, so nothing of it runs any more: no `finally`, no
`except`, exactly as after SIGKILL. When the seed is over, `close` lets such threads unwind, with a store
and a clock that refuse everything.
"""

import _thread
import asyncio
import heapq
import random
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
MOST_TURNS = 200_000  # of the baton; a simulation that takes more goes round in circles
HURRY = 1e12  # what the clock of a dead process says, so that all its timers have run off


class Killed(BaseException):
    """Unwinds the thread of a process that is gone."""


@dataclass(order=True)
class Entry:
    """Something on the agenda."""

    at: float
    order: float
    number: int
    act: Callable[[], None] = field(compare=False)


class Machine:
    """Virtual time, the processes in it, the faults that fired, and the trace of it all."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.offset = 0  # of the wall clock: people set it
        self.processes: list[Process] = []
        self.fired: Counter[str] = Counter()
        self.violations: list[str] = []
        self.trace: list[str] = []
        self.closing = False
        self.turns = 0
        self._agenda: list[Entry] = []
        self._numbers = 0
        self._until: Callable[[], bool] = lambda: True
        self._next: Process | None = None  # who has the baton next
        self._baton = _thread.allocate_lock()
        self._baton.acquire()

    def wall(self, skew: int = 0) -> int:
        """The time of day in milliseconds, as a host with this skew sees it."""
        return 1_700_000_000_000 + int(self.now * 1000) + self.offset + skew

    def note(self, who: str, what: str) -> None:
        self.trace.append(f"{self.now:12.6f} {who:>8}  {what}")

    def fault(self, kind: str, who: str = "", more: str = "") -> None:
        """A fault fired."""
        self.fired[kind] += 1
        self.note(who, f"*** {kind} {more}".rstrip())

    def violated(self, law: str, what: str) -> None:
        if self.closing:  # what unwinds is dead
            return
        self.note("", f"!!! {law}: {what}")
        self.violations.append(f"{law}: {what}")

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Put something on the agenda; at equal moments the seed decides the order."""
        self._numbers += 1
        entry = Entry(max(moment, self.now), self.random.random(), self._numbers, act)
        heapq.heappush(self._agenda, entry)

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(self.now + seconds, act)

    def run(self, until: Callable[[], bool]) -> None:
        """Go from moment to moment until that is so, a law is broken, or nothing is left to happen."""
        self._until = until
        following = self.following()
        if following is not None:
            following.baton.release()
            self._baton.acquire()

    def following(self) -> "Process | None":
        """Who runs next; None if all is over. Whoever gives the baton away does what comes until then."""
        while not self._until() and not self.violations:
            if not self._agenda:
                self.violated("I9", "nothing will ever happen again, and it is not over")
                return None
            if self.turns > MOST_TURNS:
                self.violated("I9", "it goes round in circles")
                return None
            entry = heapq.heappop(self._agenda)
            self.now = max(self.now, entry.at)
            entry.act()
            if self._next is not None:
                following, self._next = self._next, None
                return following
        return None

    def hand_over(self, process: "Process") -> None:
        """Let a process run, right after what happens now, until it blocks or ends."""
        self.turns += 1
        self._next = process

    def give(self, process: "Process | None") -> None:
        """Pass the baton on: to a process, or back to whoever let all this begin."""
        (self._baton if process is None else process.baton).release()

    def unwind(self, process: "Process") -> None:
        """Let a process run that is gone, so that its thread ends."""
        process.baton.release()
        self._baton.acquire()

    def kill(self, processes: Sequence["Process"], how: str) -> None:
        for process in processes:
            if process.lives and not process.ended:
                process.lives = False
                self.note(process.name, f"is killed ({how})")
                for last in process.on_death:
                    last()

    def close(self) -> None:
        """Unwind every thread that has not ended."""
        self.closing = True
        for process in self.processes:
            while not process.ended:
                self.unwind(process)
            process.thread.join()


class Process:
    """A simulated operating system process: one thread that runs only while it has the baton."""

    def __init__(self, machine: Machine, name: str, main: Callable[["Process"], None]) -> None:
        self.machine = machine
        self.name = name
        self.lives = True
        self.ended = False
        self.baton = _thread.allocate_lock()
        self.baton.acquire()
        self.stopped_until = 0.0
        self.points = 0
        self.doomed_at = 0  # dies at this point; 0 is never
        self.hesitates = 0.0  # how likely it lets others go first at a point
        self.error: BaseException | None = None
        self.on_death: list[Callable[[], None]] = []
        self.loop: VirtualLoop | None = None
        self._main = main
        self._token = 0
        self.thread = threading.Thread(target=self._thread, name=name, daemon=True)
        self.thread.start()
        machine.processes.append(self)
        self._wake_at(machine.now)

    @property
    def is_over(self) -> bool:
        """Whether it will never run again."""
        return self.ended or not self.lives

    def _thread(self) -> None:
        self.baton.acquire()
        try:
            if self.lives and not self.machine.closing:
                self._main(self)
        except BaseException as error:  # noqa: BLE001 - looked at by whoever started the process
            self.error = error
        finally:
            if self.loop is not None:
                self.loop.unwind()
            self.ended = True
            self.machine.give(None if self.machine.closing else self._following())

    def _wake_at(self, moment: float) -> None:
        self._token += 1
        token = self._token

        def wake() -> None:
            if token != self._token or self.is_over:
                return
            if self.stopped_until > self.machine.now:
                self.machine.at(self.stopped_until, wake)
            else:
                self.machine.hand_over(self)

        self.machine.at(moment, wake)

    def block(self, until: float | None) -> None:
        """Let the machine go on until that moment; for ever, if there is none."""
        if self.machine.closing:
            raise Killed
        if until is None:
            self._token += 1
        else:
            self._wake_at(until)
        self._give()

    def _give(self) -> None:
        following = self._following()
        if following is self:
            return
        self.machine.give(following)
        self.baton.acquire()
        if self.machine.closing:
            raise Killed

    def _following(self) -> "Process | None":
        try:
            return self.machine.following()
        except Exception as error:  # noqa: BLE001 - what happens now is not this process's doing
            self.machine.violated("bug", "".join(traceback.format_exception(error)))
            return None

    def sleep(self, seconds: float) -> None:
        self.block(self.machine.now + max(seconds, 1e-6))

    def wake(self) -> None:
        """Something came from outside: a signal."""
        self._wake_at(self.machine.now)

    def point(self, what: str) -> None:
        """A place where the process may be ended or have to wait."""
        machine = self.machine
        if machine.closing or not self.lives:
            raise Killed
        self.points += 1
        if self.points == self.doomed_at:
            machine.fault("kill_at_point", self.name, what)
            machine.kill([self], what)
            self._give()  # never comes back, but to unwind
        elif self.stopped_until > machine.now:
            self.block(self.stopped_until)
        elif self.hesitates and machine.random.random() < self.hesitates:
            self.block(machine.now + machine.random.random() * 0.2)

    def stop(self, seconds: float) -> None:
        """SIGSTOP now, SIGCONT later."""
        self.stopped_until = max(self.stopped_until, self.machine.now + seconds)

    def new_loop(self) -> "VirtualLoop":
        self.loop = VirtualLoop(self)
        return self.loop


class VirtualLoop(asyncio.BaseEventLoop):
    """The event loop of asyncio without a selector: waiting gives the baton back."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process
        self._selector = self
        self._waits = False
        self.set_exception_handler(self._told)

    def time(self) -> float:
        machine = self._process.machine
        return HURRY if machine.closing else machine.now

    def select(self, timeout: float | None) -> list[object]:
        """Wait for a timer; there is nothing else to wait for."""
        process = self._process
        if timeout is None or timeout > 0:
            self._waits = True
            process.block(None if timeout is None else self.time() + timeout)
            self._waits = False
        elif process.stopped_until > process.machine.now and not process.machine.closing:
            process.block(process.stopped_until)
        return []

    def run_in_executor(
        self, _: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """What a thread beside the loop does happens at one moment, a little later."""
        future: asyncio.Future[T] = self.create_future()

        def do() -> None:
            if not future.done():
                try:
                    future.set_result(func(*args))
                except Exception as error:  # noqa: BLE001 - as an executor does
                    future.set_exception(error)

        self.call_later(self._process.machine.random.random() * 0.01, do)
        return future

    def post(self, call: Callable[[], None]) -> None:
        """Let the process do something as soon as it runs; called by the machine."""
        if self._process.is_over:
            return
        self.call_soon(call)
        if self._waits:
            self._process.wake()

    def _process_events(self, event_list: list[object]) -> None:
        """There are no files to watch."""

    def _write_to_self(self) -> None:
        """Nobody waits in a selector."""

    def _told(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        process = self._process
        if process.lives and not process.machine.closing:
            process.machine.violated("I3", f"{process.name}: {context}")

    def unwind(self) -> None:
        """End every task that is left, then close."""
        for _ in range(20):
            left = asyncio.all_tasks(self)
            if not left:
                break
            for task in left:
                task.cancel()
            try:
                self.run_until_complete(asyncio.wait(left))
            except BaseException:  # noqa: BLE001 - a dead process may fail in any way
                continue
        self.close()
