"""What attempts start: simulated processes that take virtual time, fail, hang, come late, or outlive
their engine.

The executor above them is the real one. What a step makes, and what its guards say of it, is that of
`tests.laws.script`, so that the oracle knows it. A child writes its output in two pieces, so that a death
in between leaves half a file behind; one that outlives its engine goes on writing until it is swept.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast.errors import AttemptError
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate, Job, Store
from tests.laws.script import made, mishap, verdict
from tests.simulation.machine import Machine, Process
from tests.simulation.watch import Watch

MOODS = ("child_failed", "child_lost", "child_hung", "child_late")
TIMEOUT = 20.0  # after which a step that hangs is ended
LEFT = b'{"left": "behind"}'  # what a child writes that nobody waits for
LATE = (35.0, 90.0)  # longer than a lease


@dataclass
class Nature:
    """How attempts fare now: what the world outside makes of a step, and how rough it is."""

    salts: Mapping[StepId, int] = field(default_factory=dict)
    roughness: float = 0.0
    until: float = 0.0  # by then the last thing that went wrong with an attempt is over


@dataclass
class Child:
    """A process that an attempt started."""

    mark: str
    host: str
    process: Process
    path: str
    ends: float
    lives: bool = True


class Nursery:
    """All children of a machine: who lives, who is left behind, who is swept."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._children: list[Child] = []

    def born(self, child: Child) -> None:
        self._children = [item for item in self._children if item.lives]
        self._children.append(child)

    def orphan(self, process: Process) -> None:
        """An engine died: each child dies with it, or goes on alone."""
        for child in self._children:
            if child.lives and child.process is process:
                if self._machine.random.random() < 0.5:
                    child.lives = False
                else:
                    self._machine.fault("orphaned", process.name, child.mark)
                    later = self._machine.random.choice([0.0, 20.0, 60.0])
                    self._machine.at(child.ends + later, partial(self._goes_on, child))

    def _goes_on(self, child: Child) -> None:
        if child.lives:
            child.lives = False
            self._machine.fault("orphan_wrote", child.host, child.mark)
            write(child.path, LEFT)

    def sweep(self, host: str, mark: str) -> int:
        """End the children of a run that live on this host."""
        found = [
            c for c in self._children if c.lives and c.host == host and c.mark.startswith(mark)
        ]
        for child in found:
            child.lives = False
            self._machine.fault("orphan_swept", host, child.mark)
        return len(found)

    def lives(self, host: str, mark: str) -> bool:
        """Whether what an attempt started still runs on a host."""
        return any(c.lives and c.host == host and c.mark == mark for c in self._children)

    def all_die(self) -> None:
        for child in self._children:
            child.lives = False


def write(path: str, content: bytes) -> None:
    """Write as a careless program does; nothing if the directory is gone."""
    if path:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)


class Children:
    """Fills the ports `Generator` and `GuardKind`, and makes functions of the process itself."""

    def __init__(
        self,
        process: Process,
        host: str,
        store: Callable[[], Store],
        watch: Watch,
        nursery: Nursery,
        nature: Nature,
        inline: Collection[StepId],
    ) -> None:
        self._process = process
        self._host = host
        self._store = store
        self._watch = watch
        self._nursery = nursery
        self._nature = nature
        self._inline = inline

    def __contains__(self, step: StepId, /) -> bool:
        return step in self._inline

    def identity(self, step: Step | Guard, root: str) -> Mapping[str, Json]:
        return {}

    async def close(self) -> None:
        """Nothing is kept between attempts."""

    def at_once(self, job: Job) -> Candidate | None:
        if job.step.id not in self._inline:
            return None
        self._watch.executed[job.step.id] += 1
        return self._made(job)

    async def generate(self, job: Job) -> Candidate:
        machine = self._process.machine
        execution = self._watch.begins(self._process, job, self._store())
        mood = self._mood(job)
        seconds = machine.random.uniform(0.02, 6.0)
        if mood == "child_late":
            seconds = machine.random.uniform(*LATE)
        self._nature.until = max(self._nature.until, machine.now + max(seconds, TIMEOUT))
        produces = job.step.produces
        path = os.path.join(job.folder, produces[0]) if produces else ""
        content = self._content(job)
        child = Child(job.mark, self._host, self._process, path, machine.now + seconds)
        self._nursery.born(child)
        try:
            write(path, content[: len(content) // 2])
            if mood == "child_hung":
                await asyncio.sleep(job.step.timeout or TIMEOUT)  # the engine's own patience
                raise AttemptError("took too long", reason="timed_out")
            await self._ends(seconds)
            if mood == "child_lost" or not child.lives:  # ended by whoever took its engine for dead
                raise AttemptError("was killed", reason="lost")
            if mood == "child_failed":
                raise AttemptError("exit 1", reason="command_failed")
            candidate = self._made(job)
            write(path, candidate.content)
            return candidate
        finally:
            child.lives = False
            execution.over = True

    async def _ends(self, seconds: float) -> None:
        """Until a process outside has ended; it goes on while its engine is stopped."""
        loop = self._process.loop
        assert loop is not None  # attempts run in it
        future = loop.create_future()

        def tell() -> None:
            if not future.done():
                future.set_result(None)

        self._process.machine.after(seconds, lambda: loop.post(tell))
        await future

    def _mood(self, job: Job) -> str:
        machine = self._process.machine
        if machine.random.random() >= self._nature.roughness:
            return ""
        mood = machine.random.choice(MOODS)
        machine.fault(mood, self._process.name, job.mark)
        return mood

    def _content(self, job: Job) -> bytes:
        read = {need: given.content() for need, given in job.given.items()}
        refusals = sum(1 for fed in job.feedback if fed.digest is not None)
        return made(job.step, read, refusals, self._nature.salts.get(job.step.id, 0))

    def _made(self, job: Job) -> Candidate:
        ended = mishap(job.step, job.attempt, self._nature.salts.get(job.step.id, 0))
        if ended is not None:
            reason = "timed_out" if ended.code == "timed_out" else ended.code
            raise AttemptError(ended.feedback or "no", reason=reason)
        return Candidate("bytes", self._content(job))

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        machine = self._process.machine
        await asyncio.sleep(machine.random.uniform(0.001, 0.5))
        return verdict((guard,), candidate.content)
