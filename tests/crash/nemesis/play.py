"""One play: lines at work, a nemesis among them, quiet, and what is true then."""

import random
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.model.digest import Digest
from holdfast.testing.server import ModelServer
from tests.crash.nemesis.actors import (
    DEADLINE,
    Engines,
    Kept,
    Line,
    Page,
    watch,
    worker,
)
from tests.crash.nemesis.bounds import Sampler
from tests.crash.nemesis.deeds import Nemesis, every
from tests.crash.nemesis.ends import behind, broken, contents_of, facts_of, size_of, spread
from tests.crash.nemesis.world import LINES, POLL, World, answered
from tests.crash.report import Report
from tests.postgres import Server

DRIVEN = tuple(name for name in LINES if name != "watched")


@dataclass(frozen=True)
class Stage:
    """Where it plays: a small disk, or a server, and for how long."""

    folder: Path
    seconds: float
    seed: int
    disk: Path | None = None
    server: Server | None = None
    place: str = ""
    clock: Sequence[str] = ()  # starts an engine whose clock is wrong
    between: tuple[float, float] = (0.5, 4.0)  # seconds from deed to deed
    lines: Sequence[str] = DRIVEN


class Play:
    """All who take part, until the end."""

    def __init__(self, stage: Stage, report: Report, model: str) -> None:
        self.stage, self.report = stage, report
        self.quiet, self.over = threading.Event(), threading.Event()
        self.world = World(stage.folder, model, stage.place, stage.disk)
        self.world.lay()
        self.engines = Engines(self.world, self.quiet, stage.clock)
        self.dice = random.Random(stage.seed)
        self.lines = [
            Line(name, self.engines, random.Random(f"{stage.seed} {name}")) for name in stage.lines
        ]
        first = self.engines.call("fan", "run", "fan.yaml", "--yes")
        assert first.code == 0, first.err
        self.page, self.watch = Page(self.world), watch(self.world)
        self.workers = [worker(self.world), worker(self.world)]
        self.nemesis = Nemesis(
            self.engines, self.dice, self.workers[1], self.lines, stage.disk, stage.server
        )
        self.sampler = Sampler(None if stage.place else self.world.store)
        self.number = 0

    @property
    def kept(self) -> dict[str, Kept]:
        return {"watch": self.watch, "worker": self.workers[0], "page": self.page.server}

    def look(self) -> None:
        self.sampler.look({name: kept.pid for name, kept in self.kept.items()})
        self.workers[1].keep()
        for name, kept in self.kept.items():
            if kept.keep():
                self.sampler.processes.pop(name, None)  # another one begins from the start

    def watched(self) -> None:
        self.number += 1
        self.world.change("watched", self.number)

    def hurt(self) -> None:
        """Deed after deed until the time is up."""
        deeds = self.nemesis.deeds()
        names = sorted(deeds)
        end = time.monotonic() + self.stage.seconds
        first = names[:]  # each once, then as the dice fall
        self.dice.shuffle(first)
        while time.monotonic() < end:
            self.quiet.wait(self.dice.uniform(*self.stage.between))
            name = (
                first.pop()
                if first
                else self.dice.choices(names, [deeds[name][0] for name in names])[0]
            )
            with self.report.lock:
                self.report.tried += 1
            did = deeds[name][1]()
            with self.report.lock:
                self.report.fired += did
                self.report.outcomes[name] += did

    def run(self) -> None:
        beside = [every(self.over, 1.0, self.look), every(self.over, 2.0, self.page.look)]
        beside.append(every(self.quiet, 3.0, partial(_unless_full, self.watched)))
        drivers = [threading.Thread(target=line.work) for line in self.lines]
        for driver in drivers:
            driver.start()
        try:
            self.hurt()
        finally:
            self.quiet.set()
            settling = threading.Thread(target=self.settle, args=[time.monotonic()])
            settling.start()
            for driver in drivers:
                driver.join()
        self.finish()
        settling.join()
        self.over.set()
        for thread in beside:
            thread.join()
        self.end()

    def settle(self, last: float) -> None:
        """I9: after the last fault every run comes to its end or waits; a promise is waited for thrice.

        An engine that was killed is started again by its line, as a person would; the watch by itself.
        """
        moving = list(LINES)
        while moving and time.monotonic() < last + DEADLINE:
            time.sleep(5 * POLL)
            with suppress(HoldfastError):
                store = self.world.opened()
                try:
                    moving = behind(store, self.world)
                finally:
                    store.close()
        self.report.outcomes["seconds to rest"] = round(time.monotonic() - last)
        if moving:
            self.report.violations.append(f"{moving} did not come to rest within {DEADLINE} s")

    def finish(self) -> None:
        """Everything comes to its end, once nothing is in the way."""
        for line in unfinished(self.lines):
            self.report.violations.append(f"{line.name} does not come to its end: {line.code}")

    def end(self) -> None:
        for name, kept in {**self.kept, "second worker": self.workers[1]}.items():
            code = kept.end()
            for how, times in kept.ends.items():
                self.report.outcomes[f"{name} {how}"] += times
            if code not in {0, 130}:
                self.report.violations.append(f"the {name} ended with {code}")
        for what, times in self.page.looks.items():
            self.report.outcomes[f"page {what}"] += times

    def keep(self, place: Path) -> Path:
        """Copy the project and what was said to where somebody can look at it."""
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.world.root, place / "project", symlinks=True)
        shutil.copytree(self.world.folder / "said", place / "said")
        return place.resolve()

    def judge(self, wanted: dict[str, dict[str, Digest]]) -> None:
        """All questions."""
        found = self.report.violations
        found += self.engines.violations
        found += [
            f"{' '.join(words)} ended with {answer.code}: {answer.err[-1200:]}"
            for line, words, answer in self.world.told
            if not line and ("Traceback" in answer.err or answer.code in {9, 70})
        ]
        checked = self.engines.call("fan", "verify", "--all", "-f", "fan.yaml")
        if checked.code:
            found.append(f"verify: {checked.code} {checked.out[-800:]}{checked.err[-800:]}")
        found += broken(self.world, wanted)
        found += self.sampler.grown()
        self.report.outcomes.update(self.engines.outcomes)
        store = self.world.opened()
        try:
            for events in facts_of(store).values():
                self.report.work += sum(kind == "attempt_accepted" for kind, _ in events)
        finally:
            store.close()
        found += spread(self.world.store, self.report.work)
        self.report.outcomes["store KiB"] = size_of(self.world.store) >> 10
        self.report.kept = sum(len(told.answer.acknowledged) for told in self.world.told)


def _unless_full(work: Callable[[], None]) -> None:
    try:
        work()
    except OSError:
        return


def unfinished(lines: Sequence[Line]) -> list[Line]:
    """Bring lines to their end, some at once; those that did not come there."""
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(Line.finish, lines))
    return [line for line, did in zip(lines, ended, strict=True) if not did]


def undisturbed(folder: Path, model: str, play: Play) -> dict[str, dict[str, Digest]]:
    """What the same inputs make where nobody does any harm."""
    world = World(folder, model)
    world.lay()
    for name in LINES:
        shutil.copy(play.world.root / "in" / f"{name}.txt", world.root / "in" / f"{name}.txt")
    engines = Engines(world, threading.Event())
    worker_there = worker(world)
    engines.quiet.set()
    left = unfinished([Line(name, engines, random.Random(0)) for name in play.stage.lines])
    worker_there.end()
    world.close()
    assert not left, [told for told in world.told if told.line == left[0].name]
    store = world.opened()
    try:
        return {name: contents_of(store, name) for name in play.stage.lines}
    finally:
        store.close()


def played(stage: Stage, report: Report) -> Play:
    """The whole play; what is wrong is in the report, with the seed."""
    with ModelServer(answered) as server:
        play = Play(stage, report, server.url)
        try:
            play.run()
            wanted = undisturbed(stage.folder / "undisturbed", server.url, play)
            play.judge(wanted)
        finally:
            play.quiet.set()
            play.over.set()
            play.world.close()
    report.violations[:] = [f"seed {stage.seed}: {item}" for item in report.violations]
    return play
