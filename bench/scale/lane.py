"""One process of the simulation: a clock of its own, a store of its own, many workers and engines.

What they do to the store is what real ones do, call by call (`wire.worker`, `executors.queue`); only time is
simulated. Lanes work at the same moment on the same store, and wait for each other after each window of
simulated time. Whether a worker is dead is judged by `Hearts` on the simulated clock: the clock of a server
would be a real one.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from bench.scale.scene import Scene, drawn
from holdfast.engine.hearts import Hearts
from holdfast.executors.queue import queue_line
from holdfast.model.digest import digest_bytes
from holdfast.ports import Errand, Owner, Store
from holdfast.wire.remote import Watching

QUEUE = "far"
PARCEL, REPORT = digest_bytes(b"parcel"), digest_bytes(b"report")
ALIKE = 0.5
Actor = Iterator[float]  # does something, then says how long it waits


@dataclass(slots=True)
class Seen:
    """What happened in a lane; times are simulated."""

    calls: Counter[str] = field(default_factory=Counter)
    taken: list[int] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    lapsed: dict[int, tuple[float, float]] = field(default_factory=dict)  # errand: last beat, end
    accepted: list[tuple[int, int, float]] = field(default_factory=list)  # step, errand, when
    again: list[tuple[int, float]] = field(default_factory=list)  # an errand given up, when
    fates: Counter[str] = field(default_factory=Counter)


class Lane:
    """The workers and engines of one process."""

    def __init__(self, scene: Scene, number: int, reopen: Callable[[], Store]) -> None:
        self.scene = scene
        self.chance = random.Random(f"{scene.seed}/{number}")
        self.seen = Seen()
        self.now = 0.0
        self.finished = 0  # engines
        self._reopen = reopen
        self._store = reopen()
        self._order = itertools.count()
        self._due: list[tuple[float, int, Actor]] = []
        self._names = itertools.count()
        self._number = number
        for _ in scene.shares(scene.workers, number):
            self._add(self._worker())
        for engine in scene.shares(scene.engines, number):
            self._add(self._engine(engine))

    def play(self, until: float) -> None:
        """Let everything happen that is due before then."""
        while self._due and self._due[0][0] < until:
            self.now, _, actor = heapq.heappop(self._due)
            wait = next(actor, None)
            if wait is not None:
                heapq.heappush(self._due, (self.now + wait, next(self._order), actor))
        self.now = until

    def close(self) -> None:
        self._store.close()

    def _add(self, actor: Actor) -> None:
        begins = self.chance.uniform(0, self.scene.poll)
        heapq.heappush(self._due, (begins, next(self._order), actor))

    def _use(self, call: str) -> Store:
        """The store, for one call; now and then its connection has been lost."""
        self.seen.calls[call] += 1
        if self.chance.random() < self.scene.cut:
            self.seen.fates["cut"] += 1
            self._store.close()
            self._store = self._reopen()
        return self._store

    def _latency(self) -> float:
        return drawn(self.chance, self.scene.latency)

    def _owner(self) -> Owner:
        """A process of another machine, of which nobody can tell whether it lives."""
        name = f"{self._number}-{next(self._names)}"
        return Owner(f"{self.scene.seed}-{name}", f"host-{name}", "boot", 1, "1", 0)

    # a worker: as wire.worker

    def _worker(self) -> Actor:
        scene, chance = self.scene, self.chance
        owner, beaten = self._come(), self.now
        errand: Errand | None = None
        ends = delay = 0.0
        while True:
            if self.now - beaten >= scene.beat:
                beaten = self.now
                if not self._use("beat").beat(owner.engine, sharing=True):
                    owner, errand = self._come(), None  # it was taken for dead
                yield self._latency()
            if errand is None:
                errand = self._use("take").take_errand([QUEUE], owner.engine)
                yield self._latency()
                if errand is not None:
                    self.seen.taken.append(errand.id)
                    ends, delay = self.now + drawn(chance, scene.duration), 0.0
                    match self._fate():
                        case "dies":
                            yield chance.uniform(0, ends - self.now)
                            self.seen.lapsed[errand.id] = (beaten, self.now)
                            yield scene.replaced
                            owner, beaten, errand = self._come(), self.now, None
                            continue
                        case "stands still":
                            yield chance.uniform(0, ends - self.now)
                            self.seen.lapsed[errand.id] = (beaten, self.now)
                            yield chance.uniform(*scene.still)
                            ends = self.now  # what it had started went on, and has ended
                            if chance.random() < ALIKE:
                                continue  # its heart comes before its report
                        case "late":
                            delay = chance.uniform(*scene.late)
                        case _:
                            pass
            elif self.now < ends:
                mine = self._use("look").errands(worker=owner.engine)
                if all(one.id != errand.id for one in mine):
                    errand = None  # it is not wanted any more
                    continue
            if errand is not None and self.now >= ends:
                yield delay
                done = self._use("report").report(errand, REPORT)
                (self.seen.reported if done else self.seen.refused).append(errand.id)
                errand = None
                yield self._latency()
                continue
            yield scene.poll if errand is None else min(scene.poll, ends - self.now)

    def _come(self) -> Owner:
        owner = self._owner()
        self._use("enter").enter("", queue_line(QUEUE), owner)
        return owner

    def _fate(self) -> str:
        scene, drawn_one = self.scene, self.chance.random()
        for fate, share in (
            ("dies", scene.dies),
            ("stands still", scene.stands_still),
            ("late", scene.reports_late),
        ):
            if drawn_one < share:
                self.seen.fates[fate] += 1
                return fate
            drawn_one -= share
        return ""

    # an engine: as executors.queue, for all of its steps at once

    def _engine(self, number: int) -> Actor:
        scene = self.scene
        owner, beaten = self._owner(), self.now
        self._use("enter").enter("simulated", f"line-{number}", owner)
        watching = Watching(owner, lambda _: False, scene.poll, scene.lease, lambda: self.now)
        hearts = Hearts(watching)
        todo = deque(range(number, scene.steps, scene.engines))
        out: dict[int, int] = {}  # errand: step
        while todo or out:
            while todo and len(out) < scene.places:
                step = todo.popleft()
                out[self._use("post").post(QUEUE, PARCEL, owner.engine)] = step
            if self.now - beaten >= scene.beat:
                beaten = self.now
                assert self._use("beat").beat(owner.engine, sharing=True)
            yield scene.poll + self._latency()
            found, dead = self._looked(owner.engine, hearts)
            for errand_id, step in list(out.items()):
                errand = found.get(errand_id)
                if errand is not None and errand.report is not None:
                    self.seen.accepted.append((step, errand_id, self.now))
                elif errand is None or errand.worker in dead:
                    self.seen.again.append((errand_id, self.now))
                    todo.appendleft(step)
                else:
                    continue
                del out[errand_id]
                self._use("withdraw").withdraw([errand_id])
        self._use("leave").leave(owner.engine)
        self.finished += 1

    def _looked(self, engine: str, hearts: Hearts) -> tuple[dict[int, Errand], set[str]]:
        """The errands of an engine, and the workers that are dead or have gone."""
        found = {one.id: one for one in self._use("errands").errands(engine)}
        there = self._use("holders").holders("", queue_line(QUEUE))
        dead = hearts.look([replace(one, silent=None) for one in there])
        for holder in dead:
            self._use("bury").bury(holder)
        buried = {one.owner.engine for one in dead}
        alive = {one.owner.engine for one in there} - buried
        return found, {one.worker for one in found.values() if one.worker} - alive
