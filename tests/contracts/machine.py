"""Engines, people and a collector use one store in any order; after each call it equals the model.

What an engine believes may be old: it writes with the fences, claims and ends of journals that it was
told, however long ago that is. Several handles stand for several processes; a crash leaves one where it
is and opens the store anew.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.errors import ConflictError, FencedError, UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptRejected,
    AttemptStarted,
    Event,
    Reason,
    RunResumed,
)
from holdfast.model.line import (
    ApprovalDecided,
    ContentPurged,
    RunCollected,
    RunOpened,
    StepAmended,
    StepUndone,
    Withdrawn,
)
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch, ClaimKey, Errand, Holder, Owner, Store
from holdfast.store.blobs import SMALL
from tests.contracts.model import (
    PROJECT,
    Fact,
    Held,
    Model,
    Run,
    chain_of,
    fact_of,
    folded,
    is_once,
)

ENGINES = ("a", "b", "c")
LINES = ("main", "docs")
STEPS = (StepId("build"), StepId("test"))
CONTENTS = {"one": b"one", "two": b"two", "none": b"", "large": b"0123456789abcdef" * 2000}
QUEUES = ("cpu", "gpu")
NEVER = 1 << 50  # ms: later than anything is stored
REFUSALS = (ConflictError, FencedError, UsageError)

engines = st.sampled_from(ENGINES)
lines = st.sampled_from(LINES)
steps = st.sampled_from(STEPS)
contents = st.sampled_from(sorted(CONTENTS))
queues = st.sampled_from(QUEUES)
ages = st.integers(0, 3)  # how many answers ago a belief is from; 0 is the last
picks = st.integers(0, 1_000_000)


class Place(Protocol):
    """Where a store is: opened as often as one likes."""

    def open(self) -> Store: ...

    def crash(self, store: Store) -> Store:
        """The process that had it is gone; another one opens what it left."""

    def close(self) -> None: ...


def ref(text: str) -> Digest:
    return digest_bytes(text.encode())


def owner(name: str) -> Owner:
    return Owner(engine=name, host="here", boot="b", pid=7, started="9", since=ENGINES.index(name))


class StoreMachine(RuleBasedStateMachine):
    """One example: a fresh store, two handles on it, and the model."""

    make: Callable[[], Place]
    tally: dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        self.place = self.make()
        self.handles = [self.place.open(), self.place.open()]
        self.model = Model()
        self.at = 0
        self.attempts = 0
        self.fences: list[tuple[str, RunId, int]] = []  # what engines were told, oldest first
        self.tokens: list[tuple[str, ClaimKey, int]] = []
        self.seen: list[Held] = []
        self.taken: list[Errand] = []

    def teardown(self) -> None:
        with suppress(IndexError):
            assert list(self.handles[0].check()) == []
        for handle in self.handles:
            handle.close()
        self.place.close()

    # how rules speak

    @property
    def store(self) -> Store:
        """Now one process speaks, now the other."""
        return self.handles[self.at % len(self.handles)]

    def now(self) -> int:
        self.at += 1
        self.tally["calls"] = self.tally.get("calls", 0) + 1
        return self.at

    def count(self, what: str) -> None:
        self.tally[what] = self.tally.get(what, 0) + 1

    def tried(self, batch: Batch, call: Callable[[], Any]) -> Any | None:
        """Make a call that is refused for what the model knows, or for nothing; None if it was refused."""
        wrong = self.model.refusals(batch)
        return self.allowed(wrong, call)

    def allowed(self, wrong: set[str], call: Callable[[], Any]) -> Any | None:
        try:
            given = call()
        except REFUSALS as error:
            name = type(error).__name__
            if name not in wrong:
                raise
            self.count(name)
            return None
        assert not wrong, f"it was accepted, and should have been refused: {wrong}"
        return (given,)

    def end(self, journal: str, age: int) -> int:
        """Where somebody thinks that a journal ends."""
        return max(0, self.model.last(journal) - age)

    # engines on lines

    @rule(engine=engines, line=lines, alone=st.booleans())
    def enter(self, engine: str, line: str, alone: bool) -> None:
        self.now()
        others = self.model.others(engine, line)
        found = self.store.enter(PROJECT, line, owner(engine), alone=alone)
        assert {holder.owner.engine for holder in found} == others
        if not (alone and others):
            self.model.enter(engine, line)

    @rule(engine=engines, pick=picks, sharing=st.booleans(), drives=st.booleans())
    def heartbeat(self, engine: str, pick: int, sharing: bool, drives: bool) -> None:
        self.now()
        known = [run for name, run, _ in self.fences if name == engine]
        run = known[pick % len(known)] if known and drives else None
        is_there = self.model.beat(engine, run, sharing=sharing)
        assert self.store.beat(engine, sharing=sharing, run=run) == is_there

    @rule(engine=engines)
    def leave(self, engine: str) -> None:
        self.now()
        self.store.leave(engine)
        self.model.leave(engine)

    @precondition(lambda self: self.model.held)
    @rule(pick=picks)
    def look(self, pick: int) -> None:
        """Somebody sees a heart; later he may think that it stood still."""
        held = list(self.model.held.values())
        self.seen.append(held[pick % len(held)])

    @precondition(lambda self: self.seen)
    @rule(pick=picks)
    def expire(self, pick: int) -> None:
        self.now()
        seen = self.seen[pick % len(self.seen)]
        holder = Holder(owner(seen.engine), seen.run, seen.beat, seen.sharing)
        is_dead = self.model.bury(seen)
        assert self.store.bury(holder) == is_dead
        self.count("buried" if is_dead else "alive")

    # runs

    @rule(engine=engines, line=lines, age=ages)
    def add(self, engine: str, line: str, age: int) -> None:
        now = self.now()
        run = RunId(f"r-{now}")
        journal = f"line:{PROJECT}/{line}"
        first = Append(f"run:{run}", 0, [(now, RunResumed(engine))])
        told = Append(journal, self.end(journal, age // 3), [(now, RunOpened(run))])
        wrong = set() if self.model.is_there(engine) else {"FencedError"}
        if told.expected != self.model.last(journal):
            wrong.add("ConflictError")
        batch = Batch([first, told])
        opened = self.allowed(wrong, lambda: self.store.open_run(run, PROJECT, line, batch, engine))
        if opened is not None:
            self.model.runs[run] = Run(line, 1)
            self.model.commit(batch)
            self.fences.append((engine, run, opened[0]))

    @precondition(lambda self: self.fences)
    @rule(engine=engines, pick=picks, unless=st.booleans())
    def take(self, engine: str, pick: int, unless: bool) -> None:
        self.now()
        run = self.fences[pick % len(self.fences)][1]
        wrong: set[str] = set()
        if not self.model.is_there(engine):
            wrong.add("FencedError")
        if unless and self.model.is_driven(run, engine):
            wrong.add("FencedError")
        if run not in self.model.runs:
            wrong.add("UsageError")
        got = self.allowed(wrong, lambda: self.store.take_run(run, engine, unless_driven=unless))
        if got is not None:
            old = self.model.runs[run]
            assert got[0] == old.fence + 1
            self.model.runs[run] = old._replace(fence=got[0])
            self.fences.append((engine, run, got[0]))

    # claims

    @rule(engine=engines, line=lines, step=steps)
    def claim(self, engine: str, line: str, step: StepId) -> None:
        self.now()
        key = ClaimKey(PROJECT, line, step, ref("key"))
        mine, fence = self.model.claims.get(key, ("", 0))
        got = self.store.claim(key, engine)
        if mine == engine:
            assert got == fence
        elif mine and self.model.is_there(mine):
            assert got is None
        else:
            assert got is not None
            assert got > self.model.fences.get(key, 0), "a fence never comes again"
            self.model.claims[key] = (engine, got)
            self.model.fences[key] = got
        if got is not None:
            self.tokens.append((engine, key, got))

    # what engines write

    def attempt(
        self, pick: int, age: int, step: StepId, named: str, *, accept: bool, again: bool
    ) -> Batch:
        """What an engine commits for one attempt, with a fence that it was told some time ago."""
        now = self.now()
        self.attempts += 1
        _, run, fence = self.fences[pick % len(self.fences)]
        known = self.model.runs.get(run)
        line = known.line if known else LINES[0]
        content = CONTENTS[named]
        digest = digest_bytes(content)
        refs = (ref("key"), ref("input"), ref("own"))
        row = Artifact(
            PROJECT,
            line,
            step,
            *refs,
            digest,
            "accepted" if accept else "rejected",
            "generated",
            run,
            self.attempts,
            at=now,
        )
        begun = AttemptStarted(step, self.attempts, *refs, Reason("never_run"))
        done: Event = (
            AttemptAccepted(step, self.attempts, digest)
            if accept
            else AttemptRejected(step, self.attempts, "guard", digest)
        )
        mine = [token for token in self.tokens if token[1].line == line and token[1].step == step]
        held = [mine[pick % len(mine)][1:]] if mine and age % 2 else []
        standing = [
            old for old in self.model.rows if is_once(old) and (old.run, old.step) == (run, step)
        ]
        journal = f"run:{run}"
        return Batch(
            [Append(journal, self.end(journal, age // 3), [(now, begun), (now, done)], fence)],
            [row],
            [(digest, content)],
            held,
            held,
            superseded=standing if again else [],
        )

    @precondition(lambda self: self.fences)
    @rule(pick=picks, age=ages, step=steps, named=contents, again=st.booleans())
    def finish(self, pick: int, age: int, step: StepId, named: str, again: bool) -> None:
        batch = self.attempt(pick, age, step, named, accept=True, again=again)
        self.write(batch)

    @precondition(lambda self: self.fences)
    @rule(pick=picks, age=ages, step=steps, named=contents)
    def guard_rejects(self, pick: int, age: int, step: StepId, named: str) -> None:
        """Another attempt after an acceptance sets it aside, so that one is superseded with it."""
        batch = self.attempt(pick, age, step, named, accept=False, again=True)
        self.write(batch)

    def write(self, batch: Batch) -> None:
        if self.tried(batch, partial(self.store.commit, batch)) is not None:
            self.model.commit(batch)
            self.model.purged -= {row.digest for row in batch.artifacts}
            self.count("written")
            return
        for digest, content in batch.blobs:  # what is large goes first, and is litter then
            if digest not in self.model.blobs and len(content) > SMALL and self.store.has(digest):
                self.model.blobs[digest] = content
                self.count("litter")

    # what people write

    @rule(line=lines, age=ages, yes=st.booleans())
    def decide(self, line: str, age: int, yes: bool) -> None:
        """Approve or reject; of two who saw the same end of the journal one is heard."""
        now = self.now()
        journal = f"line:{PROJECT}/{line}"
        said = ApprovalDecided("p-1", ref("subject"), yes, by="ann")
        batch = Batch([Append(journal, self.end(journal, age // 3), [(now, said)])])
        for _ in range(2):
            self.write(batch)

    @precondition(lambda self: self.model.runs)
    @rule(pick=picks, age=ages, step=steps, named=contents)
    def edit(self, pick: int, age: int, step: StepId, named: str) -> None:
        now = self.now()
        run, (line, _) = list(self.model.runs.items())[pick % len(self.model.runs)]
        self.attempts += 1
        journal = f"line:{PROJECT}/{line}"
        content = CONTENTS[named]
        refs, digest = (ref("key"), ref("input"), ref("own")), digest_bytes(content)
        row = Artifact(
            PROJECT, line, step, *refs, digest, "accepted", "human", run, self.attempts, at=now
        )
        said = StepAmended(
            step, *refs, digest, "bytes", True, "ann", None, None, run, self.attempts
        )
        expected = self.end(journal, age // 3)
        batch = Batch([Append(journal, expected, [(now, said)])], [row], [(digest, content)])
        self.write(batch)

    @precondition(lambda self: any(row.status == "accepted" for row in self.model.rows))
    @rule(pick=picks, age=ages)
    def undo(self, pick: int, age: int) -> None:
        now = self.now()
        standing = [row for row in self.model.rows if row.status == "accepted"]
        row = standing[pick % len(standing)]
        journal = f"line:{PROJECT}/{row.line}"
        gone = Withdrawn(row.config_ref, row.digest, row.run, row.attempt, row.at)
        said = StepUndone(row.step, (gone,), "ann")
        expected = self.end(journal, age // 3)
        self.write(Batch([Append(journal, expected, [(now, said)])], withdrawn=[row]))

    # what the collector does

    @rule(named=contents)
    def put(self, named: str) -> None:
        self.now()
        content = CONTENTS[named]
        digest = self.store.put(content)
        self.model.blobs[digest] = content
        assert digest == digest_bytes(content)

    @rule(old=st.booleans())
    def gc(self, old: bool) -> None:
        """Forget what nothing names, if it is old."""
        self.now()
        free = self.model.blobs.keys() - self.model.named()
        self.store.forget(free, NEVER if old else 0)
        for digest in free if old else ():
            del self.model.blobs[digest]
            self.count("forgotten")

    @precondition(lambda self: self.model.runs)
    @rule(pick=picks, age=ages)
    def collect(self, pick: int, age: int) -> None:
        now = self.now()
        run, (line, _) = list(self.model.runs.items())[pick % len(self.model.runs)]
        journal = f"line:{PROJECT}/{line}"
        gone = RunCollected(run, now, *self.store.end(f"run:{run}"), by="ann")
        batch = Batch([Append(journal, self.end(journal, age // 3), [(now, gone)])])
        if self.tried(batch, partial(self.store.remove_run, run, batch)) is not None:
            self.model.commit(batch)
            self.model.remove(run)
            self.count("collected")

    @precondition(lambda self: self.model.blobs)
    @rule(pick=picks, line=lines, age=ages)
    def purge(self, pick: int, line: str, age: int) -> None:
        now = self.now()
        digest = sorted(self.model.blobs)[pick % len(self.model.blobs)]
        journal = f"line:{PROJECT}/{line}"
        said = ContentPurged((digest,), "ann", None)
        batch = Batch([Append(journal, self.end(journal, age // 3), [(now, said)])])
        numbers = [row.number for row in self.store.artifacts(digest=digest)]
        if self.tried(batch, partial(self.store.purge, [digest], numbers, batch)):
            self.model.commit(batch)
            del self.model.blobs[digest]
            self.model.purged.add(digest)
            self.model.rows = [
                replace(row, reusable=False) if row.digest == digest else row
                for row in self.model.rows
            ]
            self.count("purged")

    # errands

    @rule(engine=engines, queue=queues)
    def post(self, engine: str, queue: str) -> None:
        now = self.now()
        number = self.store.post(queue, ref(str(now)), engine)
        assert number > max(self.model.errands, default=0)
        self.model.errands[number] = Errand(number, queue, ref(str(now)), engine)

    @rule(worker=engines, queue=queues, both=st.booleans())
    def take_errand(self, worker: str, queue: str, both: bool) -> None:
        self.now()
        asked = QUEUES if both else (queue,)
        every = sorted(self.model.errands.items())
        free = [one for _, one in every if one.worker is None and one.queue in asked]
        got = self.store.take_errand(asked, worker)
        if not free or not self.model.is_there(worker):
            assert got is None
            return
        assert got is not None
        assert got._replace(fence=0) == free[0]._replace(worker=worker)
        self.model.errands[got.id] = got
        self.taken.append(got)

    @precondition(lambda self: self.taken)
    @rule(pick=picks)
    def report(self, pick: int) -> None:
        now = self.now()
        one = self.taken[pick % len(self.taken)]
        current = self.model.errands.get(one.id)
        is_wanted = current is not None and current._replace(engine=one.engine) == one
        assert self.store.report(one, ref(str(now))) == is_wanted
        if is_wanted and current is not None:
            self.model.errands[one.id] = current._replace(report=ref(str(now)))
        self.count("reported" if is_wanted else "late")

    @precondition(lambda self: self.model.errands)
    @rule(pick=picks, whole=st.booleans())
    def take_back(self, pick: int, whole: bool) -> None:
        self.now()
        number = sorted(self.model.errands)[pick % len(self.model.errands)]
        one = self.model.errands.pop(number)
        if whole:
            self.store.withdraw([number])
            return
        self.store.call_off([number])
        if one.worker is not None:
            self.model.errands[number] = one._replace(engine="")

    # and a process is gone

    @rule(which=st.integers(0, 1))
    def crash(self, which: int) -> None:
        self.now()
        self.handles[which] = self.place.crash(self.handles[which])
        self.count("crashed")

    # what is true after each call

    @invariant()
    def journals_are_what_was_accepted(self) -> None:
        store = self.store
        assert set(store.journals()) == self.model.journals.keys()
        for name, events in self.model.journals.items():
            found = list(store.read(name))
            assert [item.seq for item in found] == list(range(1, len(events) + 1))
            assert [(item.at, item.event) for item in found] == events
            assert store.end(name) == (len(events), chain_of(name, events))

    @invariant()
    def the_index_is_what_the_events_fold_to(self) -> None:
        store = self.store
        rows = list(store.artifacts())
        numbers = [row.number for row in rows]
        assert numbers == sorted(set(numbers))
        assert [replace(row, number=0) for row in rows] == self.model.rows
        journals = [(name, [item.event for item in store.read(name)]) for name in store.journals()]
        shown = folded(journals)
        assert shown == folded_rows(rows)

    @invariant()
    def a_step_is_accepted_once_and_the_newest_stands(self) -> None:
        rows = [row for row in self.store.artifacts() if is_once(row)]
        assert len({(row.run, row.step) for row in rows}) == len(rows)
        for line in LINES:
            standing = self.store.newest_of_all(PROJECT, line)
            for step in STEPS:
                every = [r for r in self.model.rows if (r.line, r.step) == (line, step)]
                accepted = [row for row in every if row.status == "accepted"]
                fit = [row for row in accepted if row.reusable]
                newest = self.store.newest(PROJECT, line, step)
                found = self.store.find(PROJECT, line, step, ref("key"))
                assert plain(newest) == (accepted[-1] if accepted else None)
                assert plain(found) == (fit[-1] if fit else None)
                assert standing.get(step) == newest

    @invariant()
    def runs_claims_holders_and_errands_are_what_was_told(self) -> None:
        store = self.store
        runs = {row.run: Run(row.line, row.fence) for row in store.runs()}
        assert list(runs.items()) == list(self.model.runs.items())
        assert {key: (name, fence) for key, name, fence in store.claims()} == self.model.claims
        held = {
            (holder.owner.engine, line): Held(
                holder.owner.engine, line, holder.run, holder.beat, holder.sharing
            )
            for _, line, holder in store.held()
        }
        assert held == self.model.held
        assert {one.id: one for one in store.errands()} == self.model.errands

    @invariant()
    def what_is_named_is_there_and_whole(self) -> None:
        store = self.store
        assert set(store.blobs()) == self.model.blobs.keys()
        for digest in self.model.named():
            assert store.has(digest)
        for digest, content in self.model.blobs.items():
            assert store.get(digest) == content


def plain(row: Artifact | None) -> Artifact | None:
    return None if row is None else replace(row, number=0)


def folded_rows(rows: list[Artifact]) -> Counter[Fact]:
    return Counter(fact_of(row) for row in rows)
