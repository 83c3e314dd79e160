"""What the nemesis does: one deed at a time, at moments and to victims that a seed decides."""

import json
import random
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from holdfast.errors import HoldfastError
from tests.crash.looks import descendants, kill_process
from tests.crash.nemesis.actors import NOTHING, PATIENCE, Engines, Kept, Line, at_rest
from tests.crash.nemesis.world import LEASE
from tests.crash.scene import Answer
from tests.postgres import Server

PIECE = 256 * 1024
LOOKS = 100  # for a step that runs just now
TRIES = 6  # of what is refused at a bad moment, before the deed counts as not done


@dataclass
class Nemesis:
    """Its victims and its dice; each deed tells whether it took effect."""

    engines: Engines
    dice: random.Random
    victim: Kept  # a worker that may be killed
    lines: Sequence[Line] = ()
    disk: Path | None = None  # a small disk that can be filled
    server: Server | None = None  # that can be stopped
    stopped: list[int] = field(default_factory=list)

    def deeds(self) -> dict[str, tuple[int, Callable[[], bool]]]:
        """What it can do here, with weights."""
        found: dict[str, tuple[int, Callable[[], bool]]] = {
            "engine killed": (6, self.kill_engine),
            "worker killed": (2, self.kill_worker),
            "step killed": (4, self.kill_step),
            "engine stood still": (2, self.stand_still),
            "collected": (1, self.collect),
            "purged": (1, self.purge),
            "amended": (2, self.amend),
            "edited": (2, self.edit),
            "verified": (1, self.verify),
            "stopped": (1, self.stop),
        }
        if self.disk is not None:
            found["disk full"] = (2, self.fill)
        if self.server is not None:
            found["server stopped"] = (2, self.stop_server)
        else:
            found["store locked"] = (2, self.lock)
        return found

    def pause(self, seconds: float) -> None:
        """As long as it is not quiet."""
        self.engines.quiet.wait(seconds)

    # processes

    def kill_engine(self) -> bool:
        found = self.engines.pick(self.dice)
        return found is not None and kill_process(found[1].pid)

    def kill_worker(self) -> bool:
        return kill_process(self.victim.pid)

    def kill_step(self) -> bool:
        """A process below an engine: what its step started, or what holds that."""
        for _ in range(LOOKS):
            found = self.engines.pick(self.dice)
            below = descendants(found[1].pid) if found is not None else []
            if below and kill_process(self.dice.choice(below)):
                return True
            self.pause(0.05)
        return False

    def stand_still(self) -> bool:
        """Longer than a lease, so that others take what it had; then it goes on."""
        found = self.engines.pick(self.dice)
        if found is None:
            return False
        engine = found[1]
        with suppress(ProcessLookupError):
            engine.send_signal(signal.SIGSTOP)
            self.pause(LEASE * self.dice.uniform(0.5, 2))
            engine.send_signal(signal.SIGCONT)
        return True

    # the store

    def fill(self) -> bool:
        """Nothing can be written for a while."""
        assert self.disk is not None
        place = self.disk / "filler"
        try:
            with open(place, "wb", buffering=0) as filler, suppress(OSError):
                while filler.write(b"\0" * PIECE) == PIECE:
                    pass
            self.pause(self.dice.uniform(0.5, 3))
        finally:
            place.unlink(missing_ok=True)
        return True

    def lock(self) -> bool:
        """Another program has the database for itself."""
        place = self.engines.world.store / "state.db"
        if not place.exists():
            return False
        connection = apsw.Connection(str(place), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(10_000)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            self.pause(self.dice.uniform(0.5, 5))
            connection.execute("ROLLBACK")
        except apsw.Error:
            return False
        finally:
            connection.close()
        return True

    def stop_server(self) -> bool:
        """As if its power went; it comes back."""
        assert self.server is not None
        self.server.end(signal.SIGQUIT)
        self.pause(self.dice.uniform(0, 4))
        self.server.start()
        return True

    # people

    def said(self, line: str, *words: str) -> Answer:
        return self.engines.call(line, *words, "-f", f"{line}.yaml")

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def collect(self) -> bool:
        """Old runs go; whether there were some that could."""
        answer = self.said("fan", "gc", "--keep-runs", "3", "--yes", "--json")
        return answer.code == 0 and bool(json.loads(answer.out)["removed"])

    def verify(self) -> bool:
        return self.said("fan", "verify", "--all").code == 0

    def stop(self) -> bool:
        """A person stops an engine; one that is at its end already is too late to be stopped."""
        for _ in range(4 * TRIES):
            found = self.engines.pick(self.dice)
            now = ["--now"] if self.dice.random() < 0.5 else []
            if found is not None and self.said(found[0], "stop", *now).code == 0:
                return True
            self.pause(0.2)
        return False

    def purge(self) -> bool:
        """What a step made is removed for good, while no engine works; the next run makes it anew."""
        with at_rest(self.lines, PATIENCE) as ready:
            for _ in range(TRIES if ready else 0):
                digest = self.made("fan")
                words = (digest, "--because", "nobody needs it", "--yes")
                if digest and self.said("fan", "purge", *words).code == 0:
                    self.engines.world.purged.add(digest)
                    self.again("fan")
                    return True
                self.pause(0.5)  # the watch may be at work
        return False

    def made(self, line: str) -> str:
        """Something that stands in a line and is there."""
        with suppress(HoldfastError):  # the store may be out of reach just now
            store = self.engines.world.opened()
            try:
                newest = store.newest_of_all("play", line).values()
                there = sorted(row.digest for row in newest if store.has(row.digest))
            finally:
                store.close()
            return self.dice.choice(there) if there else ""
        return ""

    def again(self, name: str) -> None:
        """The next run of a line that is done sees what it saw before, and what a person did since."""
        line = self.line(name)
        line.code = line.code or NOTHING

    def amend(self) -> bool:
        """A person's own version of a step that stands; what is below follows it."""
        text = self.engines.world.folder / "amended.txt"
        text.write_text(f"by hand {self.dice.randrange(1000)}\n")
        for _ in range(TRIES):
            with at_rest([self.line("hand")], PATIENCE) as ready:
                if ready and self.line("hand").code == 0:
                    words = ("amend", "note", str(text), "--because", "better")
                    if self.said("hand", *words).code == 0:
                        self.again("hand")
                        return True
            self.pause(0.5)
        return False

    def edit(self) -> bool:
        """A person changes a file that a step made, at any moment; the next run makes it a version of his."""
        world = self.engines.world
        place = world.root / "made" / "a.txt"
        with suppress(OSError):
            if place.exists():
                text = f"edited {self.dice.randrange(1000)}\n"
                world.edited.add(text)
                place.write_text(text)
                return True
        return False


def every(event: threading.Event, seconds: float, work: Callable[[], None]) -> threading.Thread:
    """Do something again and again in a thread, until the event."""

    def loop() -> None:
        while not event.wait(seconds):
            work()

    thread = threading.Thread(target=loop, name=getattr(work, "__name__", ""))
    thread.start()
    return thread
