"""What of a store may go: ended runs that nothing stands on, and contents that nothing names.

A run stays if it is the newest of its line, not ended, young, pinned, if an artifact it made stands for
a step or is what a kept run reuses, if it is the last to hold what a person wrote, if it or an older
run holds an effect that nobody confirmed, or if what it made of an effect was purged: only it knows then
that this was done. What is named is found in the events themselves: every digest in an event is a root, and
a stored JSON object (a manifest of files, the own parts of a key) names further ones. An artifact that
happens to look like that can keep a content alive too long, never remove one too early.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import NamedTuple

from holdfast.core.effects import UNCONFIRMED
from holdfast.engine.lines import line_journal
from holdfast.engine.makers import Losses, Makers, lost_with
from holdfast.engine.naming import Chosen, Listed, Names
from holdfast.engine.outlays import paid_by
from holdfast.engine.pins import Pin, pins
from holdfast.engine.rebuilt import holds
from holdfast.engine.words import doubted
from holdfast.engine.written import Wrote, written_in
from holdfast.errors import ConflictError
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
    Doubted,
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
from holdfast.ports import Append, Batch, Facts, Holder, Owner, RunRow, Store

YOUNG_MS = 3_600_000  # contents younger than this may be about to be named
_LENGTH = 64
_DIGEST = re.compile("[0-9a-f]{64}")
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
    """What one run's journal says, as far as it matters here; steps only where an effect is in question."""

    row: RunRow
    status: str = "running"
    at: int = 0
    ended: bool = False
    made: int = 0  # how many artifacts
    names: array[int] = field(default_factory=lambda: array("I"))  # numbers of contents
    needs: set[RunId] = field(default_factory=set)  # runs that made what it reused
    tried: set[StepId] = field(default_factory=set)  # of those that an older run held
    outside: set[StepId] = field(default_factory=set)  # steps that began an effect
    held: set[StepId] = field(default_factory=set)  # those whose effect may have happened
    wrote: list[Wrote] = field(default_factory=list)

    @property
    def line(self) -> _Line:
        """The line it belongs to."""
        return self.row.project, self.row.line


@dataclass(frozen=True, slots=True)
class Sweep:
    """What goes and what stays, with the reason for each run that stays."""

    goes: tuple[Told, ...]
    stays: tuple[tuple[Told, str], ...]
    contents: Chosen
    lost: Losses
    total: int  # bytes of all contents
    young: int = 0  # contents that nothing names, but that may be about to be named


def look(store: Store, bounds: Bounds, held: Iterable[_Line] = ()) -> Sweep:
    """Decide what may go. Nothing is changed."""
    marks = pins(store)
    index = _indexed(store, marks, bounds)
    listed = Listed(store.stored())
    told = _all_told(store, listed, index.makers)
    stays = _fixed(told, index, marks, set(held))
    del index  # of a million rows, and not needed any more
    for item in told:
        if item.line in bounds.lines and stays.get(item.row.run) in {"newest", "stands"}:
            del stays[item.row.run]
    names = Names(store, listed)
    roots = bytearray(len(listed))
    names.mark(listed.numbers(_line_roots(store, marks)), roots)
    for run in _written(told, names, listed, roots):
        stays.setdefault(run, "written")
    goes = _chosen(told, stays, bounds)
    if bounds.max_bytes is not None:
        goes = _shrunk(told, goes, stays, _Sizes(listed, names, roots, bounds.max_bytes))
    gone = {item.row.run for item in goes}
    for item in told:
        if item.row.run not in gone:
            names.mark(item.names, roots)
    before = bounds.now - YOUNG_MS
    old = _free(listed, roots, before)
    return Sweep(
        goes=tuple(goes),
        stays=tuple((t, _reason(t, stays, bounds)) for t in told if t.row.run not in gone),
        contents=old,
        lost=lost_with(store, [item.row.run for item in goes]),
        total=sum(listed.sizes),
        young=roots.count(0) - len(old),
    )


def unnamed(store: Store, before: int, among: Chosen) -> Chosen:
    """Those of these contents that are older than `before` and that nothing names now."""
    listed = Listed(store.stored())
    names, left = Names(store, listed), bytearray(len(listed))
    names.mark(listed.numbers(_line_roots(store, pins(store))), left)
    for row in store.runs(imported=True):
        for recorded in store.read(f"run:{row.run}"):
            names.mark(listed.numbers(digests_in(recorded.event)), left)
    return _free(listed, left, before, among)


def _free(listed: Listed, named: bytearray, before: int, among: Chosen | None = None) -> Chosen:
    """The contents that are not named and older; with `among` only those."""
    marks = bytearray(len(listed))
    for number, at in enumerate(listed.at):
        if not named[number] and at < before:
            marks[number] = among is None or listed.digest(number) in among
    return Chosen(listed, marks)


# --- what runs say ----------------------------------------------------------------------------


def _all_told(store: Store, listed: Listed, makers: Makers) -> list[Told]:
    """What every run says, oldest first.

    A run of a million steps takes little: the contents that it names are numbers, and of what it reused only
    the runs count.
    """
    found = []
    doubtful: dict[_Line, set[StepId]] = {}  # steps whose effect an older run held
    for row in store.runs(imported=True):
        told = _tell(store, row, listed, makers, doubtful.get((row.project, row.line), set()))
        doubtful.setdefault(told.line, set()).update(told.held)
        found.append(told)
    arrived = _arrived(store)
    for told in found:
        told.at = max(told.at, arrived.get(told.row.run, 0))
    return found


def _tell(
    store: Facts, row: RunRow, listed: Listed, makers: Makers, doubtful: Collection[StepId]
) -> Told:
    """What a run says. Of the digests in its events only those of contents count: most are refs."""
    told, seen = Told(row), bytearray(len(listed))
    for recorded in store.read(f"run:{row.run}"):
        _take(told, recorded, makers, doubtful)
        for number in listed.numbers(digests_in(recorded.event)):
            if not seen[number]:
                seen[number] = 1
                told.names.append(number)
    told.needs.discard(row.run)
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


def _take(told: Told, recorded: Recorded, makers: Makers, doubtful: Collection[StepId]) -> None:
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
            # what only was guarded again settles nothing outside
            if event.reguard is None and event.step in doubtful:
                told.tried.add(event.step)
        case AttemptAccepted():
            told.made += 1
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
            for item in event.items:
                told.needs.update(makers.of(told.row.project, item))
            told.held.difference_update(i.step for i in event.items)
        case StepHeld() if event.reason.code == UNCONFIRMED:
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


def _digests(event: object) -> Iterator[Digest]:
    pending = [event]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            if len(value) == _LENGTH and _DIGEST.fullmatch(value):
                yield Digest(value)
        elif isinstance(value, tuple):
            pending.extend(value)
        elif is_dataclass(value):
            pending.extend(getattr(value, name) for name in _fields_of(value.__class__))


@cache
def _fields_of(noun: type) -> tuple[str, ...]:
    return tuple(item.name for item in fields(noun))


def _line_roots(store: Store, marks: Sequence[Pin]) -> Iterator[Digest]:
    """What is named beside the runs: by lines, by pins, by people's versions."""
    yield from (mark.digest for mark in marks if mark.digest is not None)
    for journal in store.journals():
        for recorded in store.read(journal) if journal.startswith("line:") else ():
            yield from digests_in(recorded.event)
    for row in store.artifacts(run=RunId("")):
        yield from (row.digest, row.own_ref)


# --- which runs go ----------------------------------------------------------------------------


class _Index(NamedTuple):
    """What the rows of artifacts say."""

    makers: Makers
    stands: set[RunId]  # runs with an artifact that stands for a step
    pinned: set[RunId]  # runs that made a pinned content
    purged: dict[RunId, set[StepId]]  # steps of a run whose content a person had removed


def _indexed(store: Store, marks: Sequence[Pin], bounds: Bounds) -> _Index:
    """Look at every row of the index once, and keep none."""
    newest = {(row.project, row.line): row.run for row in store.runs()}
    found = _Index(
        Makers({run for line, run in newest.items() if line not in bounds.lines}), set(), set(), {}
    )
    contents = {mark.digest for mark in marks if mark.digest is not None}
    purged, gone = _removed(store)
    standing: dict[_Line, dict[StepId, RunId]] = {}
    for row in store.artifacts(status="accepted"):
        if row.digest in contents:
            found.pinned.add(row.run)
        was_purged = purged and not row.reusable and holds(store, row, purged)
        if was_purged or (gone and doubted(row) in gone):
            found.purged.setdefault(row.run, set()).add(row.step)
        if row.source != "imported":
            standing.setdefault((row.project, row.line), {})[row.step] = row.run
            found.makers.take(row)
    for steps in standing.values():
        found.stands.update(steps.values())
    return found


def _removed(store: Store) -> tuple[set[Digest], set[Doubted]]:
    """The contents that people had removed, and the rows of brought runs whose content had been before."""
    lines = [j for j in store.journals() if j.startswith("line:")]
    purged, gone = set[Digest](), set[Doubted]()
    for _, recorded in store.told(lines, [ContentPurged, RunImported]):
        if isinstance(recorded.event, ContentPurged):
            purged.update(recorded.event.digests)
        elif isinstance(recorded.event, RunImported):
            gone.update(recorded.event.gone)
    return purged, gone


def _fixed(
    told: Sequence[Told], index: _Index, marks: Sequence[Pin], held: set[_Line]
) -> dict[RunId, str]:
    """Runs that stay whatever the bounds are."""
    stays: dict[RunId, str] = dict.fromkeys(index.pinned, "pinned")
    pinned = {mark.run for mark in marks} | {mark.name for mark in marks if mark.kind == "run"}
    newest = {t.line: t.row.run for t in told if not t.row.imported}
    for t in told:
        run = t.row.run
        if run in pinned:
            stays[run] = "pinned"
        elif not t.ended and not t.row.imported:
            stays[run] = "unfinished"
        elif newest.get(t.line) == run or run in index.makers.settled:
            stays[run] = "newest"
        elif t.line in held:
            stays[run] = "held"
    for run in index.stands:
        stays.setdefault(run, "stands")
    for run in _unconfirmed(told):
        stays.setdefault(run, "effect")
    acted: dict[_Line, set[StepId]] = {}  # a run that only guarded again began no effect itself
    for t in told:
        acted.setdefault(t.line, set()).update(t.outside)
    for t in told:
        if acted[t.line] & index.purged.get(t.row.run, set()):
            stays.setdefault(t.row.run, "receipt")
    return stays


def _written(
    told: Sequence[Told], names: Names, listed: Listed, roots: bytearray
) -> Iterator[RunId]:
    """The last run for each version of a person of which something is there, and that no line names."""
    last: dict[tuple[int, Wrote], RunId] = {}
    for t in told:
        for item in t.wrote if not t.row.imported else ():
            number = listed.number(item.digest)
            if number >= 0 and not roots[number]:
                last[number, Wrote(item.step, item.digest, item.form)] = t.row.run
    for (number, item), run in last.items():
        below = names.reached([number], bytearray(len(listed)))
        if any(item.form != "tree" or one != number for one in below):
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


def _chosen(told: Sequence[Told], stays: dict[RunId, str], bounds: Bounds) -> list[Told]:
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
    return _unneeded(told, list(reversed(goes)), stays)


def _unneeded(told: Sequence[Told], goes: list[Told], stays: dict[RunId, str]) -> list[Told]:
    """Take out what kept runs reuse, and what those reuse."""
    gone = {t.row.run for t in goes}
    by_run = {t.row.run: t for t in told}
    pending = [t for t in told if t.row.run not in gone]
    while pending:
        for run in pending.pop().needs & gone:
            gone.discard(run)
            stays[run] = "reused"
            pending.append(by_run[run])
    return [t for t in goes if t.row.run in gone]


class _Sizes(NamedTuple):
    listed: Listed
    names: Names
    roots: bytearray
    limit: int

    def of(self, told: Told) -> Iterator[int]:
        """The contents that a run names and no line does."""
        return self.names.reached(told.names, bytearray(self.roots))


def _shrunk(
    told: Sequence[Told], goes: list[Told], stays: dict[RunId, str], sizes: _Sizes
) -> list[Told]:
    """Let further runs go, oldest first, until the contents fit; as far as anything may go."""
    size = sizes.listed.sizes
    gone = {t.row.run for t in goes}
    users = array("I", bytes(4 * len(size)))
    for t in told:
        if t.row.run not in gone:
            for number in sizes.of(t):
                users[number] += 1
    used = (one for one, number in enumerate(users) if number or sizes.roots[one])
    total = sum(size[number] for number in used)
    left = [t for t in told if t.row.run not in gone]
    while total > sizes.limit:
        needed = set[RunId]().union(*(t.needs for t in left))
        may = (t for t in left if stays.get(t.row.run, "reused") == "reused")
        free = next((t for t in may if t.row.run not in needed), None)
        if free is None:
            break
        left.remove(free)
        for number in sizes.of(free):
            users[number] -= 1
            total -= 0 if users[number] else size[number]
    kept = {t.row.run for t in left}
    return [t for t in told if t.row.run not in kept]


def _reason(told: Told, stays: Mapping[RunId, str], bounds: Bounds) -> str:
    found = stays.get(told.row.run)
    if found:
        return found
    young = bounds.keep_ms is not None and told.at >= bounds.now - bounds.keep_ms
    return "young" if young else "wanted"


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
