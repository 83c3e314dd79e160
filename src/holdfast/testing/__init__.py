"""Fakes for tests: an executor that follows a script, a clock turned by hand, a store that crashes.

Nothing here sleeps, reads the time or patches anything. `ScriptedExecutor` and `CrashingStore` fill the
ports of the same name, so the engine that a test drives is the real one.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Literal, TypeVar

from holdfast.model.artifact import Artifact, Status, Verdict
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Event, Recorded
from holdfast.model.newest import Newest
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import (
    Batch,
    Candidate,
    ClaimKey,
    Errand,
    Holder,
    Job,
    Kept,
    Outcome,
    Owner,
    Raw,
    RunRow,
    Stat,
    Store,
    Stored,
)

T = TypeVar("T")
Answer = bytes | str | Candidate | Outcome


class FakeClock:
    """A clock turned by hand: milliseconds, moved on by `tick` at every reading and by `advance`."""

    def __init__(self, now: int = 0, *, tick: int = 0) -> None:
        self.now = now
        self._tick = tick

    def __call__(self) -> int:
        self.now += self._tick
        return self.now

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self.now += ms


def rejected(feedback: str, content: bytes = b"", *, guard: str = "script") -> Outcome:
    """The outcome of an attempt whose candidate a guard refused."""
    verdict = Verdict("reject", guard, feedback)
    made = Candidate("bytes", content)
    return Outcome("rejected", "guard_rejected", made, verdict, feedback=feedback)


def refused_for_good(feedback: str, content: bytes = b"", *, guard: str = "script") -> Outcome:
    """The outcome of an attempt after which a guard wants no other."""
    verdict = Verdict("fatal", guard, feedback)
    made = Candidate("bytes", content)
    return Outcome("fatal", "guard_fatal", made, verdict, feedback=feedback)


def failed(feedback: str = "", *, code: str = "command_failed") -> Outcome:
    """The outcome of an attempt that made no candidate."""
    return Outcome("failed", code, feedback=feedback)


def lost(*, code: str = "lost") -> Outcome:
    """The outcome of an attempt that gave no answer: killed, timed out, guard broken."""
    return Outcome("lost", code)


class ScriptedExecutor:
    """Answers attempts from a function, and remembers what was asked of it.

    `answer` is called once for each attempt. Bytes, text and candidates are put before `judge`, which
    accepts everything unless given; an `Outcome` stands as it is. `mishap` plans outcomes for the next
    attempts at one step, before `answer` is asked again.

    Attempts that run together end in an order that `seed` decides: each waits until it is drawn, and no
    time passes. `executed` and `judged` count by step; `jobs` holds every job in the order of arrival.
    With `inline`, steps that the engine treats as functions of its process are answered at once.
    """

    def __init__(
        self,
        answer: Callable[[Job], Answer],
        *,
        judge: Callable[[Job, Candidate], Verdict] | None = None,
        identity: Callable[[Step], Mapping[str, Json]] | None = None,
        seed: int = 0,
        inline: bool = False,
    ) -> None:
        self._answer = answer
        self._judge = judge
        self._identity = identity
        self._random = random.Random(seed)  # noqa: S311 - an order, not a secret
        self._inline = inline
        self._mishaps: dict[str, list[Outcome]] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._drawing = False
        self.jobs: list[Job] = []
        self.executed: Counter[str] = Counter()
        self.judged: Counter[str] = Counter()
        self.closed = False

    def mishap(self, step: str, *outcomes: Outcome) -> None:
        """Let the next attempts at a step end like this, one outcome each."""
        self._mishaps.setdefault(step, []).extend(outcomes)

    def at_once(self, job: Job) -> Outcome | None:
        return self._outcome(job) if self._inline else None

    async def run(self, job: Job) -> Outcome:
        outcome = self._outcome(job)
        await self._drawn()
        return outcome

    async def judge(self, job: Job, candidate: Candidate) -> Outcome:
        self.judged[job.step.id] += 1
        outcome = self._judged(job, candidate)
        await self._drawn()
        return outcome

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        return {} if self._identity is None else self._identity(step)

    async def close(self) -> None:
        self.closed = True

    def _outcome(self, job: Job) -> Outcome:
        self.jobs.append(job)
        self.executed[job.step.id] += 1
        if planned := self._mishaps.get(job.step.id):
            return planned.pop(0)
        answer = self._answer(job)
        if isinstance(answer, Outcome):
            return answer
        if isinstance(answer, str):
            answer = answer.encode()
        candidate = Candidate("bytes", answer) if isinstance(answer, bytes) else answer
        if job.take is not None:
            candidate = job.take(candidate)
        return self._judged(job, candidate)

    def _judged(self, job: Job, candidate: Candidate) -> Outcome:
        if self._judge is None:
            return Outcome("accepted", candidate=candidate, log=candidate.log)
        verdict = self._judge(job, candidate)
        if verdict.call == "ask":
            return Outcome("asked", candidate=candidate, log=candidate.log, asks=verdict.asks)
        if verdict.passed:
            return Outcome(
                "accepted", candidate=candidate, verdict=verdict, verified=True, log=candidate.log
            )
        fatal = verdict.call == "fatal"
        return Outcome(
            "fatal" if fatal else "rejected",
            "guard_fatal" if fatal else "guard_rejected",
            candidate,
            verdict,
            feedback=verdict.feedback,
            log=candidate.log,
        )

    async def _drawn(self) -> None:
        """Wait until the seed picks this attempt among those that wait with it."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.append(mine)
        if not self._drawing:
            self._drawing = True
            loop.call_soon(self._draw, loop)
        try:
            await mine
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)

    def _draw(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._waiting:
            self._drawing = False
            return
        chosen = self._waiting.pop(self._random.randrange(len(self._waiting)))
        if not chosen.done():
            chosen.set_result(None)
        loop.call_soon(self._draw, loop)


class PassingStore:
    """A store that hands every call on to another one, through `_pass`: a place to stand between them.

    What a call gives may be an iterator that has not begun.
    """

    def __init__(self, store: Store) -> None:
        self._store: Final = store

    def _pass(self, name: str, work: Callable[[], T]) -> T:
        """One call of the port, by its name; override this to look at it, or to break it."""
        return work()

    def commit(self, batch: Batch, *, wait: bool = True) -> None:
        self._pass("commit", lambda: self._store.commit(batch, wait=wait))

    def open_run(
        self, run: RunId, project: str, line: str, batch: Batch, engine: str | None = None
    ) -> int:
        return self._pass(
            "open_run", lambda: self._store.open_run(run, project, line, batch, engine)
        )

    def take_run(
        self, run: RunId, engine: str | None = None, *, unless_driven: bool = False
    ) -> int:
        take = self._store.take_run
        return self._pass("take_run", lambda: take(run, engine, unless_driven=unless_driven))

    def put(self, content: bytes | Iterable[bytes]) -> Digest:
        return self._pass("put", lambda: self._store.put(content))

    def forget(self, digests: Iterable[Digest], before: int) -> None:
        self._pass("forget", lambda: self._store.forget(digests, before))

    def remove_run(self, run: RunId, batch: Batch) -> None:
        self._pass("remove_run", lambda: self._store.remove_run(run, batch))

    def add_runs(self, rows: Sequence[RunRow], batch: Batch) -> None:
        self._pass("add_runs", lambda: self._store.add_runs(rows, batch))

    def purge(self, digests: Sequence[Digest], numbers: Iterable[int], batch: Batch) -> None:
        self._pass("purge", lambda: self._store.purge(digests, numbers, batch))

    def steady(self) -> AbstractContextManager[None]:
        return self._store.steady()

    def replace_artifacts(self, rows: Callable[[], Iterable[Artifact]]) -> None:
        self._pass("replace_artifacts", lambda: self._store.replace_artifacts(rows))

    def claim(self, key: ClaimKey, engine: str) -> int | None:
        return self._pass("claim", lambda: self._store.claim(key, engine))

    def post(self, queue: str, parcel: Digest, engine: str) -> int:
        return self._pass("post", lambda: self._store.post(queue, parcel, engine))

    def take_errand(self, queues: Sequence[str], worker: str) -> Errand | None:
        return self._pass("take_errand", lambda: self._store.take_errand(queues, worker))

    def report(self, errand: Errand, report: Digest) -> bool:
        return self._pass("report", lambda: self._store.report(errand, report))

    def errands(self, engine: str | None = None, worker: str | None = None) -> Sequence[Errand]:
        return self._pass("errands", lambda: self._store.errands(engine, worker))

    def tell(self, errand: Errand, said: Sequence[tuple[str, bytes]]) -> bool:
        return self._pass("tell", lambda: self._store.tell(errand, said))

    def heard(self, errand: int, after: int = 0) -> Sequence[tuple[int, str, bytes]]:
        return self._pass("heard", lambda: self._store.heard(errand, after))

    def hints(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        return self._store.hints(wake)

    def call_off(self, errands: Collection[int]) -> None:
        self._pass("call_off", lambda: self._store.call_off(errands))

    def withdraw(self, errands: Collection[int]) -> None:
        self._pass("withdraw", lambda: self._store.withdraw(errands))

    def enter(
        self, project: str, line: str, owner: Owner, *, alone: bool = False
    ) -> Sequence[Holder]:
        return self._pass("enter", lambda: self._store.enter(project, line, owner, alone=alone))

    def beat(self, engine: str, *, sharing: bool, run: RunId | None = None) -> bool:
        return self._pass("beat", lambda: self._store.beat(engine, sharing=sharing, run=run))

    def leave(self, engine: str) -> None:
        self._pass("leave", lambda: self._store.leave(engine))

    def bury(self, holder: Holder) -> bool:
        return self._pass("bury", lambda: self._store.bury(holder))

    def remember_stats(self, items: Iterable[tuple[str, Stat, Digest, bool]]) -> None:
        self._pass("remember_stats", lambda: self._store.remember_stats(items))

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        return self._pass("read", lambda: self._store.read(journal, after))

    def kept(self, journal: str) -> Iterator[tuple[int, Kept]]:
        return self._pass("kept", lambda: self._store.kept(journal))

    def raw(self, journal: str) -> Iterator[Raw]:
        return self._pass("raw", lambda: self._store.raw(journal))

    def told(
        self, journals: Iterable[str], kinds: Collection[type[Event]], since: int = 0
    ) -> Iterator[tuple[str, Recorded]]:
        return self._pass("told", lambda: self._store.told(journals, kinds, since))

    def last(self, journal: str) -> int:
        return self._pass("last", lambda: self._store.last(journal))

    def journals(self) -> Sequence[str]:
        return self._pass("journals", self._store.journals)

    def runs(self, line: str | None = None, *, imported: bool = False) -> Sequence[RunRow]:
        return self._pass("runs", lambda: self._store.runs(line, imported=imported))

    def end(self, journal: str) -> tuple[int, Digest]:
        return self._pass("end", lambda: self._store.end(journal))

    def stored(self) -> Iterator[Stored]:
        return self._pass("stored", self._store.stored)

    def held(self) -> Sequence[tuple[str, str, Holder]]:
        return self._pass("held", self._store.held)

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        return self._pass(
            "find", lambda: self._store.find(project, line, step, ref, content=content)
        )

    def newest(self, project: str, line: str, step: StepId) -> Artifact | None:
        return self._pass("newest", lambda: self._store.newest(project, line, step))

    def newest_of_all(self, project: str, line: str) -> Newest:
        return self._pass("newest_of_all", lambda: self._store.newest_of_all(project, line))

    def artifacts(
        self,
        *,
        project: str | None = None,
        line: str | None = None,
        step: StepId | None = None,
        run: RunId | None = None,
        status: Status | None = None,
        source: str | None = None,
        digest: Digest | None = None,
    ) -> Iterator[Artifact]:
        return self._pass(
            "artifacts",
            lambda: self._store.artifacts(
                project=project,
                line=line,
                step=step,
                run=run,
                status=status,
                source=source,
                digest=digest,
            ),
        )

    def get(self, digest: Digest) -> bytes:
        return self._pass("get", lambda: self._store.get(digest))

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        return self._pass("chunks", lambda: self._store.chunks(digest))

    def has(self, digest: Digest) -> bool:
        return self._pass("has", lambda: self._store.has(digest))

    def absent(self, digests: Iterable[Digest]) -> set[Digest]:
        asked = list(digests)
        return self._pass("absent", lambda: self._store.absent(asked))

    def blobs(self) -> Iterator[Digest]:
        return self._pass("blobs", self._store.blobs)

    def apart(self, digests: Iterable[Digest]) -> set[Digest]:
        asked = list(digests)
        return self._pass("apart", lambda: self._store.apart(asked))

    def claims(self) -> Sequence[tuple[ClaimKey, str, int]]:
        return self._pass("claims", self._store.claims)

    def holders(self, project: str, line: str) -> Sequence[Holder]:
        return self._pass("holders", lambda: self._store.holders(project, line))

    def stats(self, paths: Iterable[str]) -> Mapping[str, tuple[Stat, Digest, bool]]:
        return self._pass("stats", lambda: self._store.stats(paths))

    def assure(self) -> None:
        return self._pass("assure", self._store.assure)

    def check(self) -> Iterator[str]:
        return self._pass("check", self._store.check)

    def close(self) -> None:
        self._store.close()


class Crash(BaseException):
    """The process died here, as far as the store can tell."""


class CrashingStore(PassingStore):
    """A store that dies at its `at`-th change, right before or right after it took effect.

    Changes that count are those of `COUNTED`, such as `commit` and `put`. From then on everything that
    would write raises `Crash` again, because a dead process writes nothing; the store inside stays usable,
    and is what the next engine is given. `changes` tells how many were asked for.
    """

    COUNTED = frozenset(
        ("commit", "open_run", "take_run", "put", "forget", "remove_run", "add_runs", "purge")
    )
    WRITING = COUNTED | {
        "replace_artifacts",
        "claim",
        "enter",
        "beat",
        "leave",
        "bury",
        "remember_stats",
    }

    def __init__(
        self, store: Store, *, at: int = 0, when: Literal["before", "after"] = "before"
    ) -> None:
        super().__init__(store)
        self._at = at
        self._when = when
        self._lock = threading.Lock()
        self.changes = 0
        self.crashed = False

    def _pass(self, name: str, work: Callable[[], T]) -> T:
        if name not in self.WRITING:
            return work()
        with self._lock:
            if self.crashed:
                raise Crash
            self.changes += name in self.COUNTED
            if name not in self.COUNTED or self.changes != self._at:
                return work()
            self.crashed = True
            if self._when == "after":
                work()
            raise Crash
