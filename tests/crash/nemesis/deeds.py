"""What the nemesis does: one deed at a time, at moments and to victims that a seed decides."""

import random
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from tests.crash.looks import descendants, kill_process
from tests.crash.nemesis.actors import Engines, Kept
from tests.crash.nemesis.world import LEASE, LINES
from tests.postgres import Server

PIECE = 256 * 1024
LOOKS = 100  # for a step that runs just now


@dataclass
class Nemesis:
    """Its victims and its dice; each deed tells whether it found somebody to hurt."""

    engines: Engines
    dice: random.Random
    victim: Kept  # a worker that may be killed
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
        return found is not None and kill_process(found.pid)

    def kill_worker(self) -> bool:
        return kill_process(self.victim.pid)

    def kill_step(self) -> bool:
        """A process below an engine: what its step started, or what holds that."""
        for _ in range(LOOKS):
            engine = self.engines.pick(self.dice)
            below = descendants(engine.pid) if engine is not None else []
            if below and kill_process(self.dice.choice(below)):
                return True
            self.pause(0.05)
        return False

    def stand_still(self) -> bool:
        """Longer than a lease, so that others take what it had; then it goes on."""
        engine = self.engines.pick(self.dice)
        if engine is None:
            return False
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

    def said(self, line: str, *words: str) -> bool:
        self.engines.call(line, *words, "-f", f"{line}.yaml")
        return True

    def collect(self) -> bool:
        return self.said("fan", "gc", "--keep-runs", "3", "--yes")

    def verify(self) -> bool:
        return self.said("fan", "verify", "--all")

    def stop(self) -> bool:
        line = self.dice.choice(LINES[:4])
        return self.said(line, "stop", *(["--now"] if self.dice.random() < 0.5 else []))

    def purge(self) -> bool:
        """What a step made is removed for good; a run makes it anew if somebody needs it."""
        with suppress(Exception):  # the store may be out of reach just now
            store = self.engines.world.opened()
            try:
                rows = [row for row in store.artifacts(line="fan") if row.status == "accepted"]
            finally:
                store.close()
            if rows:
                digest = self.dice.choice(rows).digest
                return self.said("fan", "purge", digest, "--because", "nobody needs it", "--yes")
        return False

    def amend(self) -> bool:
        """A person's own version of a step, told as accepted or refused."""
        text = self.engines.world.folder / "amended.txt"
        text.write_text(f"by hand {self.dice.randrange(1000)}\n")
        return self.said("hand", "amend", "note", str(text), "--because", "better")

    def edit(self) -> bool:
        """A person changes a file that a step made; the next run makes it a version of his."""
        place = self.engines.world.root / "made" / "a.txt"
        with suppress(OSError):
            if place.exists():
                place.write_text(f"edited {self.dice.randrange(1000)}\n")
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
