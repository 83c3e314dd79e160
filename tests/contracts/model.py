"""What a store must hold, said by hand in plain dictionaries, and the same folded from its events alone.

It knows nothing of any store: it says what a call must give, or which refusals are right, and remembers.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, AttemptRejected, AttemptStarted, Event
from holdfast.model.line import StepAmended, StepUndone
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Batch, ClaimKey, Errand, event_of
from holdfast.store.codec import encode

PROJECT = "shop"


class Held(NamedTuple):
    """An engine on a line, as everybody can see it."""

    engine: str
    line: str
    run: RunId | None = None
    beat: int = 0
    sharing: bool = False


class Run(NamedTuple):
    line: str
    fence: int


@dataclass
class Model:
    """Everything that was accepted."""

    journals: dict[str, list[tuple[int, Event]]] = field(default_factory=dict)
    runs: dict[RunId, Run] = field(default_factory=dict)
    rows: list[Artifact] = field(default_factory=list)
    blobs: dict[Digest, bytes] = field(default_factory=dict)
    claims: dict[ClaimKey, tuple[str, int]] = field(default_factory=dict)
    fences: dict[ClaimKey, int] = field(default_factory=dict)  # the highest that was issued
    held: dict[tuple[str, str], Held] = field(default_factory=dict)
    errands: dict[int, Errand] = field(default_factory=dict)
    purged: set[Digest] = field(default_factory=set)

    # who is there

    def is_there(self, engine: str) -> bool:
        return any(name == engine for name, _ in self.held)

    def is_driven(self, run: RunId, but: str = "") -> bool:
        return any(item.run == run and item.engine != but for item in self.held.values())

    def enter(self, engine: str, line: str) -> None:
        self.held[engine, line] = Held(engine, line)

    def others(self, engine: str, line: str) -> set[str]:
        return {name for name, place in self.held if place == line and name != engine}

    def beat(self, engine: str, run: RunId | None, *, sharing: bool) -> bool:
        mine = [key for key in self.held if key[0] == engine]
        for key in mine:
            old = self.held[key]
            self.held[key] = old._replace(run=run, beat=old.beat + 1, sharing=sharing)
        return bool(mine)

    def leave(self, engine: str) -> None:
        self.held = {key: item for key, item in self.held.items() if key[0] != engine}
        self.claims = {key: own for key, own in self.claims.items() if own[0] != engine}
        self.errands = {key: one for key, one in self.errands.items() if one.engine != engine}

    def bury(self, seen: Held) -> bool:
        """Who has not moved since it was seen is removed, with all that it had."""
        mine = [item for item in self.held.values() if item.engine == seen.engine]
        if seen.beat not in {item.beat for item in mine}:
            return False
        self.leave(seen.engine)
        runs = {item.run for item in mine if item.run is not None}
        for run in runs & self.runs.keys():
            if not self.is_driven(run):
                self.runs[run] = self.runs[run]._replace(fence=self.runs[run].fence + 1)
        return True

    # what is written

    def last(self, journal: str) -> int:
        return len(self.journals.get(journal, ()))

    def refusals(self, batch: Batch) -> set[str]:
        """Everything that is wrong with a batch: it is refused for one of these, or not at all."""
        found: set[str] = set()
        for append in batch.appends:
            if append.journal.startswith("run:") and append.events:
                run = self.runs.get(RunId(append.journal.removeprefix("run:")))
                if run is None or run.fence != append.fence:
                    found.add("FencedError")
            if append.expected != self.last(append.journal):
                found.add("ConflictError")
        for key, fence in batch.held:
            if self.claims.get(key, ("", 0))[1] != fence:
                found.add("FencedError")
        gone = {(row.run, row.step) for row in batch.superseded}
        standing = {(row.run, row.step) for row in self.rows if is_once(row)} - gone
        if standing & {(row.run, row.step) for row in batch.artifacts if is_once(row)}:
            found.add("ConflictError")
        return found

    def commit(self, batch: Batch) -> None:
        for append in batch.appends:
            if append.events:
                events = [(at, event_of(told)) for at, told in append.events]
                self.journals.setdefault(append.journal, []).extend(events)
        self.blobs.update(dict(batch.blobs))
        self._leave(batch.superseded, "superseded")
        self.rows += batch.artifacts
        self._leave(batch.withdrawn, "withdrawn")
        for key, fence in batch.released:
            if self.claims.get(key, ("", 0))[1] == fence:
                del self.claims[key]

    def _leave(self, gone: Iterable[Artifact], status: str) -> None:
        marks = {mark_of(row) for row in gone}
        self.rows = [
            replace(row, status=status)  # type: ignore[arg-type]
            if row.status == "accepted" and mark_of(row) in marks
            else row
            for row in self.rows
        ]

    def remove(self, run: RunId) -> None:
        del self.runs[run]
        self.journals.pop(f"run:{run}", None)
        self.rows = [row for row in self.rows if row.run != run]

    def named(self) -> set[Digest]:
        """The contents that something names."""
        return {row.digest for row in self.rows} - self.purged


def mark_of(row: Artifact) -> tuple[object, ...]:
    return (row.line, row.step, row.config_ref, row.digest, row.run, row.attempt, row.at)


def is_once(row: Artifact) -> bool:
    """Whether a run made it: of these a run accepts one for each step."""
    return row.status == "accepted" and row.source == "generated"


class Fact(NamedTuple):
    """One line of the index, as the events tell it."""

    run: RunId
    step: StepId
    attempt: int
    digest: Digest
    status: str
    source: str


def fact_of(row: Artifact) -> Fact:
    return Fact(row.run, row.step, row.attempt, row.digest, row.status, row.source)


def folded(journals: Iterable[tuple[str, list[Event]]]) -> Counter[Fact]:
    """The index from the events alone: nothing is read but the journals."""
    found: list[Fact] = []
    undone: set[tuple[RunId, int, Digest, StepId]] = set()
    runs: set[RunId] = set()
    amended: list[Fact] = []
    for name, events in journals:
        if name.startswith("run:"):
            run = RunId(name.removeprefix("run:"))
            runs.add(run)
            found += _of_run(run, events)
            continue
        for event in events:
            if isinstance(event, StepAmended):
                run = event.after_run
                amended.append(
                    Fact(run, event.step, event.after_seq, event.digest, "accepted", "human")
                )
            elif isinstance(event, StepUndone):
                undone |= {(row.run, row.attempt, row.digest, event.step) for row in event.rows}
    found += [fact for fact in amended if fact.run in runs]
    return Counter(
        fact._replace(status="withdrawn")
        if (fact.run, fact.attempt, fact.digest, fact.step) in undone
        else fact
        for fact in found
    )


def _of_run(run: RunId, events: Iterable[Event]) -> Iterator[Fact]:
    facts: dict[tuple[StepId, int], Fact] = {}
    for event in events:
        match event:
            case AttemptStarted():
                for key, fact in facts.items():
                    if fact.step == event.step and fact.status == "accepted":
                        facts[key] = fact._replace(status="superseded")
            case AttemptAccepted():
                fact = Fact(run, event.step, event.attempt, event.digest, "accepted", "generated")
                facts[event.step, event.attempt] = fact
            case AttemptRejected() if event.digest is not None:
                fact = Fact(run, event.step, event.attempt, event.digest, "rejected", "generated")
                facts[event.step, event.attempt] = fact
            case _:
                pass
    yield from facts.values()


def chain_of(journal: str, events: Iterable[tuple[int, Event]]) -> Digest:
    """The hash at the end of a journal, by the words of the format and not by the store's own code."""
    chain = hashlib.sha256(journal.encode()).digest()
    for seq, (at, event) in enumerate(events, 1):
        kind, body = (part.encode() for part in encode(event))
        head = seq.to_bytes(8) + at.to_bytes(8, signed=True)
        sizes = len(kind).to_bytes(4) + len(body).to_bytes(4)
        chain = hashlib.sha256(chain + head + sizes + kind + body).digest()
    return Digest(chain.hex())
