"""One seed: a machine, a store, engines, a person, what goes wrong, and what must be true afterwards.

**Real**: the core, the engine with its loop, hold and outputs, the executor, the stores (`MemoryStore`,
`SqliteStore` with SQLite itself), asyncio's tasks and timers, the edits of project files (in a directory
in memory). **Virtual**: time (both clocks), threads and processes, the writer thread, the lock of the
line, whether a process is gone, the children of attempts, the power. A kill takes everything that a
process has in memory and nothing else; files of the project are as they were at that moment.
"""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from holdfast.engine.hold import Hold
from holdfast.engine.loop import Engine
from holdfast.engine.purse import Purse
from holdfast.engine.world import World
from holdfast.errors import StoreError
from holdfast.executors.local import LocalExecutor
from holdfast.generators.human import HumanGenerator
from holdfast.guards.human import HumanGuard
from holdfast.model.event import Recorded, RunStarted
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Generator, GuardKind, Owner, Store
from tests.laws.harness import LINE
from tests.simulation.children import Children, Nature, Nursery
from tests.simulation.disk import Disk, MemoryDisk, Seat, SimulatedWriter, SqliteDisk
from tests.simulation.dress import Dress
from tests.simulation.locks import Locks
from tests.simulation.machine import Machine, Process
from tests.simulation.models import Asking, Provider, SimulatedModel
from tests.simulation.people import Answering
from tests.simulation.watch import Watch

Begin = Callable[[World], tuple[Hold, Engine]]
LEASE, BEAT, POLL = 30.0, 10.0, 1.0
RECENT = 60.0  # seconds over which delays of a heartbeat add up


@dataclass(frozen=True)
class Result:
    """What one seed came to."""

    seed: int
    violations: tuple[str, ...]
    fired: Counter[str]
    executed: int
    accepted: int
    commits: int
    told: int
    trace: tuple[str, ...]


class Simulation:
    """The machine of one seed with everything on it. `apart` puts every engine on a host of its own."""

    lease = LEASE

    def __init__(self, seed: int, folder: str, template: str, *, apart: bool | None = None) -> None:
        self.seed = seed
        self.machine = Machine(seed)
        source = self.machine.random
        drawn = source.random() < 0.45
        self.apart = drawn if apart is None else apart
        self.hesitation = source.choice([0.0, 0.02, 0.15])
        self.commit_seconds = source.choice([0.0, 0.001, 0.02])
        self.root = os.path.join(folder, "project")
        self.home = os.path.join(folder, "home")
        os.makedirs(self.root)
        os.makedirs(self.home)
        self.on_disk = source.random() < 0.15
        self.rough_disk = self.on_disk and Random(seed ^ 2).random() < 0.5  # it is slower
        self.disk: Disk = MemoryDisk(self.machine)
        if self.on_disk:
            self.disk = SqliteDisk(self.machine, folder, template, rough=self.rough_disk)
        self.watch = Watch(self.machine, "", LINE)
        self.nursery = Nursery(self.machine)
        self.watch.outlives = self._outlives
        self.nature = Nature()
        self.locks = Locks(self.machine)
        self.dress = Dress()
        self.provider = Provider(self.machine, self.nature)
        self.watch.money.answers = self.provider.answers
        self.people = Answering(self)
        self.max_cost: int | None = None  # what a run may cost in all
        self.stays = Random(seed ^ 1).random() < 0.3  # engines wait for people
        self.boots = 0  # how often the machines were switched on again
        self.others: dict[str, Process] = {}  # beside engines: those that hold lines too
        self.forgot: set[StepId] = set()  # what could have been reused of them was removed
        self.engines: list[EngineProcess] = []
        self.until = 0.0  # by then the effect of the last fault is over
        self._store = self.disk.open()
        self._ids = 0
        self.machine.note(
            "", f"seed {seed}: {'sqlite' if self.on_disk else 'memory'}, apart {self.apart}"
        )

    @property
    def store(self) -> Store:
        """The store as an onlooker has it."""
        return self._store

    def new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:03}"

    def spawn(self, begin: Begin, what: str) -> "EngineProcess":
        engine = EngineProcess(self, begin, what, len(self.engines) + 1)
        self.engines.append(engine)
        return engine

    def live(self) -> list["EngineProcess"]:
        return [engine for engine in self.engines if not engine.process.is_over]

    def _outlives(self, engine: str, mark: str) -> bool:
        """Whether what an attempt started goes on where the engine that says how it ended is."""
        hosts = [one.host for one in self.engines if one.process.name == engine]
        return any(self.nursery.lives(host, mark) for host in hosts)

    def is_gone(self, owner: Owner, host: str) -> bool:
        """What a process of a host can tell about another one."""
        if owner.host != host:
            return False
        if owner.engine in self.others:
            return self.others[owner.engine].is_over
        return self.engines[owner.pid - 1].process.is_over

    def dark(self) -> None:
        """The power is gone: every process and every child with it."""
        self.nursery.all_die()
        self.boots += 1
        mortal = [one for one in self.machine.processes if one.name != "person"]
        self.machine.kill(mortal, "power")
        self._store = self.disk.open()

    def calm(self) -> None:
        """What has not fired yet never will."""
        for engine in self.live():
            engine.process.doomed_at = 0
            engine.seat.calm()

    def delay(self, engine: "EngineProcess", seconds: float) -> None:
        """A heartbeat is late by so much; an engine may be taken for dead if that is too much."""
        now = self.machine.now
        engine.delays = [(at, much) for at, much in engine.delays if at + much > now - RECENT]
        engine.delays.append((now, seconds))
        self.until = max(self.until, now + seconds)
        if sum(much for _, much in engine.delays) > LEASE - BEAT - 3 * POLL:
            self.watch.excused.add(engine.process.name)

    def close(self) -> Result:
        machine, watch = self.machine, self.watch
        machine.close()
        self.disk.close()
        return Result(
            self.seed,
            tuple(machine.violations),
            machine.fired,
            watch.executed.total(),
            watch.accepted,
            watch.commits,
            len(watch.told),
            tuple(machine.trace),
        )


class EngineProcess:
    """A command that drives a run: a process with its own seat, writer and children."""

    def __init__(self, sim: Simulation, begin: Begin, what: str, number: int) -> None:
        self._sim = sim
        self._begin = begin
        self._number = number
        self.host = f"host-{number}" if sim.apart else "host"
        self.engine: Engine | None = None
        self.writer: SimulatedWriter | None = None
        self.delays: list[tuple[float, float]] = []
        self.seen = False  # whether the person looked at how it ended
        sim.machine.note(f"e{number}", f"starts: {what}")
        self.process = Process(sim.machine, f"e{number}", self._main)
        self.process.hesitates = sim.hesitation
        self.process.on_death.append(lambda: sim.nursery.orphan(self.process))
        self.process.on_death.append(self._let_go)
        self.seat = Seat(self.process, sim.disk, sim.watch, sim.dark)
        self.seat.seconds = sim.commit_seconds

    def interrupt(self, *, now: bool) -> None:
        """What a signal does."""
        if self.engine is not None:
            self.engine.stop(now=now)

    def _let_go(self) -> None:
        """The kernel closes the files of whoever is dead, and so ends their locks."""
        if self.engine is not None:
            self.engine._board.sent.close()

    @property
    def run(self) -> RunId:
        assert self.engine is not None  # it drives one
        return self.engine.state.run

    def _main(self, process: Process) -> None:
        hold, self.engine = self._begin(self._world())
        loop = process.new_loop()
        try:
            loop.run_until_complete(self._drive(self.engine))
        except BaseException:
            with suppress(StoreError):  # as the command does
                hold.release()
            raise
        hold.release()

    @staticmethod
    async def _drive(engine: Engine) -> None:
        await engine.drive()

    def _world(self) -> World:
        sim, process = self._sim, self.process
        skew = sim.machine.random.choice([0, 5_000, -86_400_000]) if sim.apart else 0
        children = Children(
            *(process, self.host, lambda: sim.store, sim.watch),
            *(sim.nursery, sim.nature, sim.dress.inline),
        )
        asking = Asking(process, lambda: sim.store, sim.watch, sim.nature)
        generators: dict[str, Generator] = {
            "script": children,
            "llm": asking,
            "human": HumanGenerator(),
        }
        guards: dict[str, GuardKind] = {"script": children, "human": HumanGuard()}
        boot = f"{self.host}-{sim.boots}"

        def say(line: str) -> None:
            sim.machine.note(process.name, f"says: {line}")

        return World(
            store=self.seat,
            executor=LocalExecutor(generators, guards, children),
            root=sim.root,
            home=sim.home,
            owner=Owner(process.name, self.host, boot, self._number, "", sim.machine.wall(skew)),
            clock=lambda: sim.machine.wall(skew),
            new_id=sim.new_id,
            gone=lambda other: sim.is_gone(other.owner, self.host),
            sweep=lambda mark: sim.nursery.sweep(self.host, mark),
            ignores=lambda _: lambda _: None,
            lock=None if sim.apart else sim.locks.of(process),
            writer=self._new_writer,
            monotonic=lambda: sim.machine.now,
            sleep=process.sleep,
            inline=dict.fromkeys(sim.dress.inline),
            models=lambda: SimulatedModel(process, sim.provider, sim.watch, self),
            purse=self._purse,
            stays=sim.stays,
            env={},
            parallel=3,
            beat_seconds=BEAT,
            poll_seconds=POLL,
            lease_seconds=LEASE,
            on_events=self._told,
            say=say,
            remind=say,
        )

    def _purse(self) -> Purse | None:
        """The budget of the project, if there is one; who reserves from it has the lock."""
        sim, budget = self._sim, self._sim.watch.money.budget
        if budget is None:
            return None
        lock = sim.locks.of(self.process)("", "budget")
        return Purse(self.seat, "", None, budget, lambda: 0, lock)

    def _new_writer(self) -> SimulatedWriter:
        self.writer = self.seat.writer = SimulatedWriter(self.process)
        return self.writer

    def _told(self, events: list[Recorded]) -> None:
        first = events[0].event
        if isinstance(first, RunStarted):
            run = first.run
        else:
            assert self.engine is not None  # nothing else is told before it drives
            run = self.engine.state.run
        self._sim.watch.told_to(self.process, events, RunId(run), self._sim.store)
