"""Who works on the lines: engines one after the other or together, people, workers, a watch, a page."""

import http.cookiejar
import json
import random
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.errors import HoldfastError
from tests.crash.nemesis.world import ENGINE, LEASE, POLL, QUEUE, QUICK, TIMEOUT, World
from tests.crash.scene import HUNG, Answer

BOUND = LEASE + 2 * POLL + TIMEOUT  # promised after the last fault
PATIENCE = 6 * BOUND  # a machine under load, with faults that go on
DEADLINE = 3 * BOUND
WAITS, NOTHING = 3, 2
JOINED = 0.3
TALKS = ("gate", "effect")
SPEAKS = {"run", "resume", "retry"}
OTHER_CLOCK = 0.05  # of the engines


@dataclass
class Engines:
    """The engines of this moment, by their lines; whoever wants to hurt one picks it here."""

    world: World
    quiet: threading.Event
    clock: Sequence[str] = ()  # how to start one whose clock is wrong
    violations: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    live: dict[str, list["subprocess.Popen[bytes]"]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pick(self, dice: random.Random) -> "tuple[str, subprocess.Popen[bytes]] | None":
        """A line and an engine that works on it just now."""
        with self.lock:
            found = [
                (line, process)
                for line, some in self.live.items()
                for process in some
                if process.poll() is None
            ]
        return dice.choice(found) if found else None

    def call(self, line: str, *words: str, before: Sequence[str] = ()) -> Answer:
        """One command to its end; one that does not end is a violation."""
        process, said = self.world.start(*words, before=before)
        if words[0] in SPEAKS:
            with self.lock:
                self.live.setdefault(line, []).append(process)
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.violations.append(f"{' '.join(words)} did not end")
            process.kill()
            process.wait()
            code = HUNG
        finally:
            with self.lock, suppress(KeyError, ValueError):
                self.live[line].remove(process)
        answer = self.world.ended(line, words, code, said)
        self.outcomes[f"{words[0]} {code}"] += 1
        if "Traceback" in answer.err or code in {9, 70}:
            self.violations.append(f"{' '.join(words)} ended with {code}: {answer.err[-1200:]}")
        return answer


@dataclass
class Line:
    """Drives one line: run, change, resume, answer, until it is quiet; then to its end."""

    name: str
    engines: Engines
    dice: random.Random
    number: int = 0
    code: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)
    wanted: threading.Event = field(default_factory=threading.Event)  # somebody wants it at rest

    @property
    def plan(self) -> str:
        return f"{self.name}.yaml"

    def work(self) -> None:
        while not self.engines.quiet.is_set():
            if self.wanted.is_set():
                self.engines.quiet.wait(POLL)
                continue
            with self.turn:
                if self.code == 0:
                    self.change()
                self.once()

    def change(self) -> None:
        """What the line reads is changed; a disk that is full takes it later."""
        number = self.number + 1
        with suppress(OSError):
            self.engines.world.change(self.name, number)
            self.number = number

    def once(self) -> None:
        jobs = ("-j", str(self.dice.choice((1, 2))), "--yes")
        words = ("run", self.plan) if self.code in {0, NOTHING} else ("resume", "-f", self.plan)
        if self.code in {0, NOTHING} and self.dice.random() < JOINED:
            self.together(("run", self.plan, "--join", *jobs, *ENGINE))
        else:
            before = self.engines.clock if self.dice.random() < OTHER_CLOCK else ()
            answer = self.engines.call(self.name, *words, *jobs, *ENGINE, before=before)
            self.code = answer.code
        if self.code == WAITS:
            self.answer()

    def together(self, words: Sequence[str]) -> None:
        """Two engines on the line at once."""
        codes: list[int] = []

        def one() -> None:
            codes.append(self.engines.call(self.name, *words).code)

        others = [threading.Thread(target=one) for _ in range(2)]
        for other in others:
            other.start()
        for other in others:
            other.join()
        self.code = max(codes, key=lambda code: (code == WAITS, code != 0))

    def answer(self) -> None:
        """A person says yes, sometimes no; what may have happened is done again on purpose, and counted."""
        says_no = not self.engines.quiet.is_set() and self.dice.random() < 0.2
        if self.name == "gate" and says_no:
            self.engines.call(
                self.name, "reject", "asks", "--because", "not today", "-f", self.plan
            )
        elif self.name == "effect":
            with suppress(HoldfastError):  # out of reach just now: another time
                self.engines.world.asked_again("effect", "send")
                words = ("retry", "send", "-f", self.plan, "--yes", *ENGINE)
                self.code = self.engines.call(self.name, *words).code
        else:
            self.engines.call(self.name, "approve", "--all", "--yes", "-f", self.plan)

    def finish(self) -> bool:
        """After the last fault: to the end, in a few commands that each end in time."""
        self.code = self.code or 1  # whether there is something to go on with is asked
        for _ in range(10):
            words = ("run", self.plan) if self.code == NOTHING else ("resume", "-f", self.plan)
            answer = self.engines.call(self.name, *words, "-j", "2", "--yes", *ENGINE)
            self.code = answer.code
            if self.code == WAITS:
                self.answer()
            elif self.code == 0:
                last = self.engines.call(self.name, "run", self.plan, "--yes", *ENGINE)
                self.code = last.code
                if last.code == 0:
                    return True
        return False


@contextmanager
def at_rest(lines: Sequence[Line], seconds: float) -> Iterator[bool]:
    """Lines between two of their commands, all of them at once; whether they came there in time."""
    end = time.monotonic() + seconds
    with ExitStack() as held:
        for line in lines:
            line.wanted.set()
            held.callback(line.wanted.clear)
        for line in lines:
            if not line.turn.acquire(timeout=max(0.0, end - time.monotonic())):
                yield False
                return
            held.callback(line.turn.release)
        yield True


class Kept:
    """A process that is there all the time: started again if something ended it."""

    def __init__(self, world: World, *words: str) -> None:
        self._world = world
        self._words = words
        self.ends: Counter[int] = Counter()
        self.said = Path()
        self.process = self._begin()

    def _begin(self) -> "subprocess.Popen[bytes]":
        process, self.said = self._world.start(*self._words)
        return process

    @property
    def pid(self) -> int:
        return self.process.pid

    def keep(self) -> bool:
        """Whether it had to be started again."""
        if self.process.poll() is None:
            return False
        self.ends[self.process.returncode] += 1
        self._world.ended("", self._words, self.process.returncode, self.said)
        self.process = self._begin()
        return True

    def end(self) -> int:
        """Ask it to end, as Ctrl-C does; how it did."""
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = HUNG
        self.ends[code] += 1
        self._world.ended("", self._words, code, self.said)
        return code


def watch(world: World) -> Kept:
    return Kept(world, "run", "watched.yaml", "--watch", "--yes", *ENGINE)


def worker(world: World) -> Kept:
    return Kept(world, "worker", "--queue", QUEUE, "-j", "2", *QUICK)


class Page:
    """The page, open in a browser that looks again and again."""

    def __init__(self, world: World) -> None:
        words = ("ui", "--no-browser", "--port", "0", "-f", "fan.yaml")
        self.server = Kept(world, *words)
        self.looks: Counter[str] = Counter()
        self._open: Callable[[str], int] | None = None
        self._pid = 0

    def look(self) -> None:
        """One look at the list of runs; a page that cannot read its store says so."""
        if self._pid != self.server.pid:  # another one is there, with a door of its own
            self._pid, self._open = self.server.pid, None
        if self._open is None and not self._enter():
            return
        assert self._open is not None
        for path in ("/", "/approvals"):
            self.looks[str(self._open(path))] += 1

    def _enter(self) -> bool:
        text = Path(f"{self.server.said}.out").read_text()
        address = next((word for word in text.split() if "code=" in word), "")
        if not address:
            return False
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        opener = urllib.request.build_opener(jar)
        base = address.partition("/door")[0]

        def get(path: str) -> int:
            try:
                with opener.open(path if "//" in path else base + path, timeout=30) as answer:
                    answer.read()
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                return 0

        self.looks[f"door {get(address)}"] += 1
        self._open = get
        return True


def status(engines: Engines, line: str) -> dict[str, object]:
    answer = engines.call(line, "status", "-f", f"{line}.yaml", "--json")
    found: dict[str, object] = json.loads(answer.out) if answer.out.strip() else {}
    return found
