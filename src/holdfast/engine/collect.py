"""What of a store may go: ended runs that nothing stands on, and contents that nothing names.

A run stays if it is the newest of its line, not ended, young, pinned, if an artifact it made stands for
a step or is what a kept run reuses, if it is the last to hold what a person wrote, or if it or an older
run holds an effect that nobody confirmed. What is named is found in the events themselves: every digest in
an event is a root, and a stored JSON object (a manifest of files, the own parts of a key) names further
ones. An artifact that happens to look like that can keep a content alive too long, never remove one too
early.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import NamedTuple

from holdfast.engine.lines import line_journal
from holdfast.engine.outlays import paid_by
from holdfast.engine.pins import Pin, pins
from holdfast.engine.written import Wrote, written_in
from holdfast.errors import ConflictError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    EffectConfirmed,
    EffectStarted,
    Event,
    Recorded,
    RunEnded,
    RunRested,
    StepHeld,
    StepsReused,
)
from holdfast.model.line import (
    ContentPurged,
    HandoffGiven,
    LedgerSaid,
    Pinned,
    RunCollected,
    RunImported,
    StepsAdded,
    Unpinned,
    named_in,
)
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch, Facts, Holder, Owner, RunRow, Store, Stored

YOUNG_MS = 3_600_000  # contents younger than this may be about to be named
_DIGEST = re.compile("[0-9a-f]{64}")
_QUOTED = re.compile(rb'"([0-9a-f]{64})"')
_Line = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a person wants kept: by age, by number for each line, by size of all contents.

    Or lines that nobody wants any more, with all that stands in them.
    """

    now: int
    keep_ms: int | None = None
    keep_runs: int | None = None
    max_bytes: int | None = None
    lines: frozenset[tuple[str, str]] = frozenset()  # nothing but the runs of these, all of them


@dataclass(slots=True)
class Told:
    """What one run's journal says, as far as it matters here."""

    row: RunRow
    status: str = "running"
    at: int = 0
    ended: bool = False
    names: set[Digest] = field(default_factory=set)
    reuses: list[tuple[StepId, Digest, Digest, str]] = field(default_factory=list)
    tried: set[StepId] = field(default_factory=set)
    outside: set[StepId] = field(default_factory=set)  # steps that began an effect
    held: set[StepId] = field(default_factory=set)  # those whose effect may have happened
    work: dict[tuple[StepId, int], int] = field(default_factory=dict)
    wrote: list[Wrote] = field(default_factory=list)

    @property
    def line(self) -> _Line:
        """The line it belongs to."""
        return self.row.project, self.row.line


class Lost(NamedTuple):
    """An accepted artifact that would have to be made again, and how long that took."""

    step: StepId
    run: RunId
    digest: Digest
    work_ms: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """What goes and what stays, with the reason for each run that stays."""

    goes: tuple[Told, ...]
    stays: tuple[tuple[Told, str], ...]
    contents: tuple[Stored, ...]
    lost: tuple[Lost, ...]
    total: int  # bytes of all contents
    young: int = 0  # contents that nothing names, but that may be about to be named


def look(store: Store, bounds: Bounds, held: Iterable[_Line] = ()) -> Sweep:
    """Decide what may go. Nothing is changed."""
    rows = list(store.artifacts())
    stored = list(store.stored())
    known = {item.digest: item.digest for item in stored}
    told = [_tell(store, row, known) for row in store.runs(imported=True)]
    arrived = _arrived(store)
    for item in told:
        item.at = max(item.at, arrived.get(item.row.run, 0))
    marks = pins(store)
    makers = _makers(rows)
    stays = _fixed(told, rows, marks, set(held))
    for item in told:
        if item.line in bounds.lines and stays.get(item.row.run) in {"newest", "stands"}:
            del stays[item.row.run]
    names = Names(store, set(known))
    roots = names.closure(_line_roots(store, marks, rows))
    for run in _written(told, names, roots):
        stays.setdefault(run, "written")
    goes = _chosen(told, stays, makers, bounds)
    if bounds.max_bytes is not None:
        goes = _shrunk(told, goes, stays, makers, _Sizes(stored, names, roots, bounds.max_bytes))
    gone = {item.row.run for item in goes}
    left = roots.union(*(names.closure(t.names) for t in told if t.row.run not in gone))
    free = [item for item in stored if item.digest not in left]
    old = tuple(item for item in free if item.at < bounds.now - YOUNG_MS)
    return Sweep(
        goes=tuple(goes),
        stays=tuple((t, _reason(t, stays, bounds)) for t in told if t.row.run not in gone),
        contents=old,
        lost=tuple(_lost(rows, goes, gone)),
        total=sum(item.size for item in stored),
        young=len(free) - len(old),
    )


def unnamed(store: Store, before: int) -> list[Digest]:
    """Contents older than `before` that nothing names now."""
    stored = list(store.stored())
    known = {item.digest: item.digest for item in stored}
    names = Names(store, set(known))
    left = names.closure(_line_roots(store, pins(store), store.artifacts()))
    for row in store.runs(imported=True):
        left |= names.closure(_tell(store, row, known).names)
    return [item.digest for item in stored if item.digest not in left and item.at < before]


# --- what runs say ----------------------------------------------------------------------------


def _tell(store: Facts, row: RunRow, known: Mapping[Digest, Digest]) -> Told:
    """What a run says. Of the digests in its events only those of contents count, each as it is known.

    Most are refs, and what is reused stands in many runs: a run of a million steps would take gigabytes.
    """
    told = Told(row)
    for recorded in store.read(f"run:{row.run}"):
        _take(told, recorded)
        told.names.update(known[one] for one in digests_in(recorded.event) if one in known)
    return told


def _arrived(store: Facts) -> dict[RunId, int]:
    """When runs of other stores were imported: their age counts from there."""
    return {
        recorded.event.run: recorded.at
        for journal in store.journals()
        if journal.startswith("line:")
        for recorded in store.read(journal)
        if isinstance(recorded.event, RunImported)
    }


def _take(told: Told, recorded: Recorded) -> None:
    event = recorded.event
    told.at = max(told.at, recorded.at)
    if wrote := written_in(event):
        told.wrote.append(wrote)
    match event:
        case RunEnded():
            told.status, told.ended = event.status, True
        case RunRested():
            told.status = event.status
        case AttemptStarted():
            told.status = "running"
            if event.reguard is None:  # what only was guarded again settles nothing outside
                told.tried.add(event.step)
        case AttemptAccepted():
            told.work[event.step, event.attempt] = event.duration_ms
            told.held.discard(event.step)
        case AttemptParked() if event.step in told.outside:
            told.held.add(event.step)
        case AttemptFailed() if event.code == "command_failed":
            told.held.discard(event.step)
        case EffectStarted():
            told.outside.add(event.step)
            told.held.add(event.step)
        case EffectConfirmed() | AttemptRejected():
            told.held.discard(event.step)
        case StepsReused():
            told.reuses += [(i.step, i.config_ref, i.digest, i.code) for i in event.items]
            told.held.difference_update(i.step for i in event.items)
        case StepHeld() if event.reason.code == "effect_unconfirmed":
            told.held.add(event.step)
        case _:
            pass


def digests_in(event: Event) -> Iterator[Digest]:
    """The contents that an event names."""
    if isinstance(event, Pinned | Unpinned | ContentPurged):
        yield from (event.because,) if event.because else ()
    elif isinstance(event, StepsAdded):  # the artifact may go with its run
        yield event.plan
    elif isinstance(event, HandoffGiven):
        yield event.handoff
    elif isinstance(event, LedgerSaid):
        yield from (digest for digest in (event.text, event.because) if digest)
    elif isinstance(event, RunImported):
        yield from named_in(event)
    elif not isinstance(event, RunCollected):
        yield from _digests(event)


def _digests(value: object) -> Iterator[Digest]:
    if isinstance(value, str):
        if _DIGEST.fullmatch(value):
            yield Digest(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _digests(item)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _digests(getattr(value, item.name))


def _line_roots(store: Store, marks: Sequence[Pin], rows: Iterable[Artifact]) -> set[Digest]:
    """What is named beside the runs: by lines, by pins, by people's versions."""
    roots = {mark.digest for mark in marks if mark.digest is not None}
    for journal in store.journals():
        for recorded in store.read(journal) if journal.startswith("line:") else ():
            roots.update(digests_in(recorded.event))
    for row in rows:
        if not row.run:
            roots.update((row.digest, row.own_ref))
    return roots


class Names:
    """What contents name: manifests and keys are JSON objects with digests in them."""

    def __init__(self, store: Store, stored: set[Digest]) -> None:
        self._store = store
        self._stored = stored
        self._known: dict[Digest, frozenset[Digest]] = {}

    def closure(self, roots: Iterable[Digest]) -> set[Digest]:
        """The stored contents among the roots, and all that they name."""
        found: set[Digest] = set()
        pending = [digest for digest in roots if digest in self._stored]
        while pending:
            digest = pending.pop()
            if digest not in found:
                found.add(digest)
                pending += self._below(digest) - found
        return found

    def _below(self, digest: Digest) -> frozenset[Digest]:
        known = self._known.get(digest)
        if known is None:
            known = self._known[digest] = self._read(digest)
        return known

    def _read(self, digest: Digest) -> frozenset[Digest]:
        first = next(self._store.chunks(digest), b"")
        if not first.startswith(b"{"):
            return frozenset()
        quoted = _QUOTED.findall(self._store.get(digest))
        return frozenset(Digest(name.decode()) for name in quoted) & self._stored


# --- which runs go ----------------------------------------------------------------------------

_Makers = Mapping[tuple[str, StepId, Digest], list[Artifact]]


def _makers(rows: Iterable[Artifact]) -> _Makers:
    """Accepted rows by project, step and content, oldest first."""
    found: dict[tuple[str, StepId, Digest], list[Artifact]] = {}
    for row in rows:
        if row.status == "accepted" and row.source != "imported":
            found.setdefault((row.project, row.step, row.digest), []).append(row)
    return found


def _fixed(
    told: Sequence[Told], rows: Iterable[Artifact], marks: Sequence[Pin], held: set[_Line]
) -> dict[RunId, str]:
    """Runs that stay whatever the bounds are."""
    stays: dict[RunId, str] = {}
    pinned = {mark.run for mark in marks} | {mark.name for mark in marks if mark.kind == "run"}
    contents = {mark.digest for mark in marks if mark.digest is not None}
    standing: dict[tuple[str, str, StepId], RunId] = {}
    for row in rows:
        if row.status == "accepted" and row.source != "imported":
            standing[row.project, row.line, row.step] = row.run
        if row.status == "accepted" and row.digest in contents:
            stays[row.run] = "pinned"
    newest = {t.line: t.row.run for t in told if not t.row.imported}
    for t in told:
        run = t.row.run
        if run in pinned:
            stays[run] = "pinned"
        elif not t.ended and not t.row.imported:
            stays[run] = "unfinished"
        elif newest.get(t.line) == run:
            stays[run] = "newest"
        elif t.line in held:
            stays[run] = "held"
    for run in standing.values():
        stays.setdefault(run, "stands")
    for run in _unconfirmed(told):
        stays.setdefault(run, "effect")
    return stays


def _written(told: Sequence[Told], names: Names, roots: set[Digest]) -> Iterator[RunId]:
    """The last run for each version of a person of which something is there, and that no line names."""
    last: dict[Wrote, RunId] = {}
    for t in told:
        items = [item for item in t.wrote if not t.row.imported and item.digest not in roots]
        last.update({Wrote(item.step, item.digest, item.form): t.row.run for item in items})
    for item, run in last.items():
        if names.closure([item.digest]) - ({item.digest} if item.form == "tree" else set()):
            yield run


def _unconfirmed(told: Sequence[Told]) -> Iterator[RunId]:
    """Runs from an unconfirmed effect on: the next run finds it through them."""
    younger: dict[_Line, list[RunId]] = {}
    tried: dict[_Line, set[StepId]] = {}
    for t in reversed(told):
        line = younger.setdefault(t.line, [])
        seen = tried.setdefault(t.line, set())
        line.append(t.row.run)
        if t.held - seen:
            yield from line
        seen |= t.tried


def _chosen(
    told: Sequence[Told], stays: dict[RunId, str], makers: _Makers, bounds: Bounds
) -> list[Told]:
    """Apply age and number; what a kept run reuses stays too."""
    if bounds.lines:
        goes = [t for t in reversed(told) if t.line in bounds.lines and t.row.run not in stays]
    elif bounds.keep_ms is None and bounds.keep_runs is None:
        goes = []
    else:
        count: dict[_Line, int] = {}
        goes = []
        for t in reversed(told):
            count[t.line] = count.get(t.line, 0) + 1
            old = bounds.keep_ms is None or t.at < bounds.now - bounds.keep_ms
            many = bounds.keep_runs is None or count[t.line] > bounds.keep_runs
            if old and many and t.row.run not in stays:
                goes.append(t)
    return _unneeded(told, list(reversed(goes)), stays, makers)


def _unneeded(
    told: Sequence[Told], goes: list[Told], stays: dict[RunId, str], makers: _Makers
) -> list[Told]:
    """Take out what kept runs reuse, and what those reuse."""
    gone = {t.row.run for t in goes}
    by_run = {t.row.run: t for t in told}
    pending = [t for t in told if t.row.run not in gone]
    while pending:
        for run in _reused_from(pending.pop(), makers) & gone:
            gone.discard(run)
            stays[run] = "reused"
            pending.append(by_run[run])
    return [t for t in goes if t.row.run in gone]


def _reused_from(told: Told, makers: _Makers) -> set[RunId]:
    """The runs whose artifacts this one reused."""
    found: set[RunId] = set()
    for step, ref, digest, code in told.reuses:
        rows = makers.get((told.row.project, step, digest), [])
        if code == "unchanged_content":
            found.update(row.run for row in rows)
        else:
            found.update([row.run for row in rows if row.config_ref == ref][-1:])
    return found - {told.row.run}


class _Sizes(NamedTuple):
    stored: Sequence[Stored]
    names: Names
    roots: set[Digest]
    limit: int


def _shrunk(
    told: Sequence[Told],
    goes: list[Told],
    stays: dict[RunId, str],
    makers: _Makers,
    sizes: _Sizes,
) -> list[Told]:
    """Let further runs go, oldest first, until the contents fit; as far as anything may go."""
    size = {item.digest: item.size for item in sizes.stored}
    gone = {t.row.run for t in goes}
    users: dict[Digest, int] = {}
    for t in told:
        if t.row.run not in gone:
            for digest in sizes.names.closure(t.names) - sizes.roots:
                users[digest] = users.get(digest, 0) + 1
    total = sum(size[digest] for digest in {*users, *sizes.roots})
    needs = {t.row.run: _reused_from(t, makers) for t in told}
    left = [t for t in told if t.row.run not in gone]
    while total > sizes.limit:
        needed = set().union(*(needs[t.row.run] for t in left))
        may = (t for t in left if stays.get(t.row.run, "reused") == "reused")
        free = next((t for t in may if t.row.run not in needed), None)
        if free is None:
            break
        left.remove(free)
        for digest in sizes.names.closure(free.names) - sizes.roots:
            users[digest] -= 1
            total -= 0 if users[digest] else size[digest]
    kept = {t.row.run for t in left}
    return [t for t in told if t.row.run not in kept]


def _reason(told: Told, stays: Mapping[RunId, str], bounds: Bounds) -> str:
    found = stays.get(told.row.run)
    if found:
        return found
    young = bounds.keep_ms is not None and told.at >= bounds.now - bounds.keep_ms
    return "young" if young else "wanted"


def _lost(rows: Sequence[Artifact], goes: Sequence[Told], gone: set[RunId]) -> Iterator[Lost]:
    """Accepted artifacts under refs that nothing else is accepted under."""
    work = {t.row.run: t.work for t in goes}
    left = {
        (row.project, row.line, row.step, row.config_ref)
        for row in rows
        if row.status == "accepted" and row.run not in gone
    }
    last: dict[tuple[str, str, str, str], Artifact] = {}
    for row in rows:
        key = (row.project, row.line, row.step, row.config_ref)
        usable = row.status == "accepted" and row.source != "imported" and row.reusable
        if usable and row.run in gone and key not in left:
            last[key] = row
    for row in last.values():
        spent = work[row.run].get((row.step, row.attempt), 0)
        yield Lost(row.step, row.run, row.digest, spent)


# --- doing it ---------------------------------------------------------------------------------


def hold_lines(
    store: Store, owner: Owner, gone: Callable[[Holder], bool]
) -> list[tuple[str, str, Holder]]:
    """Hold every line so that no engine begins meanwhile; gives the lines that a live engine holds."""
    for _, _, holder in store.held():
        if gone(holder):
            store.leave(holder.owner.engine)
    busy = []
    for project, line in dict.fromkeys((r.project, r.line) for r in store.runs(imported=True)):
        others = store.enter(project, line, owner, alone=True)
        busy += [(project, line, holder) for holder in others]
    known = {(project, line) for project, line, _ in busy}
    for project, line, holder in store.held():
        if holder.owner.engine != owner.engine and (project, line) not in known:
            busy.append((project, line, holder))
    return busy


def remove(store: Store, told: Told, by: str, clock: Callable[[], int]) -> None:
    """Remove one run; the line's journal keeps how its own journal ended, and what it counts in budgets."""
    row = told.row
    journal = line_journal(row.project, row.line)
    last, chain = store.end(f"run:{row.run}")
    event = RunCollected(row.run, row.number, last, chain, by, paid_by(store, row.run))
    while True:
        expected = store.last(journal)
        try:
            store.remove_run(row.run, Batch([Append(journal, expected, [(clock(), event)])]))
        except ConflictError:
            if store.last(journal) == expected:
                raise
            continue
        return
