"""Brings ended runs of one store into another, so that what was accepted there is reused here.

The journal of a run is copied as it is. That it came, from where and by whom, is a fact in the journal of
its line, with all that its own line said about it. Contents come first, then everything else of a run in
one transaction: killed anywhere, the same again goes on after the last run that is whole.

What stands here is never displaced by what comes, unless the other store knows that it is older. What was
withdrawn, purged, contested or written by people there comes as history alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.core.state import State
from holdfast.core.views import artifacts_of
from holdfast.engine.audit import purged_in, run_problem
from holdfast.engine.collect import digests_in
from holdfast.engine.elsewhere import came_with
from holdfast.engine.journals import has_ended, read_state
from holdfast.engine.leaving import Arriving, leaving
from holdfast.engine.lines import line_journal
from holdfast.engine.naming import Listed, Names
from holdfast.engine.needed import files_of
from holdfast.engine.opened import is_left
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.words import Contests, doubted
from holdfast.errors import ConflictError, IntegrityError, UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import PlanExtended, RunStarted
from holdfast.model.line import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalUsed,
    Doubted,
    HandoffGiven,
    LedgerSaid,
    LineEvent,
    RunCollected,
    RunImported,
    StepsAdded,
    StoodThen,
    VouchedThen,
)
from holdfast.model.plan import RunId
from holdfast.model.secret import holds
from holdfast.ports import Append, Batch, RunRow, Store

SMALL = 16 * 1024  # contents up to this size go with the facts that name them
_TOGETHER = 1 << 26  # bytes of small contents in one transaction


class LeftOut(NamedTuple):
    """A run that does not go, and why."""

    row: RunRow
    why: str


@dataclass(frozen=True, slots=True)
class Parcel:
    """A run with all that goes with it; `sends` are the contents that are not there yet."""

    row: RunRow
    said: RunImported
    beside: tuple[LineEvent, ...]
    rows: tuple[Artifact, ...]
    contents: tuple[Digest, ...]
    sends: Mapping[Digest, int]  # with their sizes

    @property
    def bytes(self) -> int:
        """The size of what is sent."""
        return sum(self.sends.values())

    @property
    def counts(self) -> int:
        """How many artifacts can be reused where it goes."""
        return sum(row.status == "accepted" and row.source == "generated" for row in self.rows)


@dataclass(frozen=True, slots=True)
class Load:
    """What a push or a pull comes to: parcels oldest first, runs that are there, and those left out."""

    parcels: tuple[Parcel, ...]
    there: tuple[RunRow, ...]
    left_out: tuple[LeftOut, ...]


def contests_left(store: Store, rows: Iterable[RunRow]) -> list[str]:
    """What people contest on the lines of these runs: their words stay where they were said."""
    found: dict[str, None] = {}
    for project, line in dict.fromkeys((row.project, row.line) for row in rows):
        journal = line_journal(project, line)
        for _, recorded in store.told([journal], [LedgerSaid]):
            event = recorded.event
            if isinstance(event, LedgerSaid) and event.word == "contest":
                found[event.entry] = None
            elif isinstance(event, LedgerSaid) and event.word == "uphold":
                found.pop(event.entry, None)
    return [*found]


def chosen(store: Store, project: str | None, line: str | None) -> list[RunRow]:
    """The runs of a project, or of all, and of a line, or of all; oldest first."""
    rows = store.runs(line, imported=True)
    return [row for row in rows if project in {None, row.project}]


def with_makers(store: Store, run: RunId) -> list[RunRow]:
    """A run and those that made what it reused, oldest first."""
    state = read_state(store, run)
    wanted = {run}
    for step_id, here in state.steps.items() if state is not None else ():
        if state is not None and here.phase == "reused":
            made = store.artifacts(project=state.project, step=step_id, digest=here.digest)
            makers = [row.run for row in made if row.config_ref == here.config_ref]
            wanted.update(makers[-1:])
    return [row for row in store.runs(imported=True) if row.run in wanted]


def load(source: Store, target: Store, rows: Sequence[RunRow], origin: str, by: str) -> Load:
    """Look at both stores; UsageError if a run is there with another history. Nothing is changed."""
    there, left, goes = _sorted_out(source, target, rows)
    loader = _Loader(source, target, origin, by)
    parcels = []
    for row in goes:
        found = loader.parcel(row)
        if isinstance(found, LeftOut):
            left.append(found)
        else:
            parcels.append(found)
    return Load(tuple(parcels), tuple(there), tuple(left))


def _sorted_out(
    source: Store, target: Store, rows: Sequence[RunRow]
) -> tuple[list[RunRow], list[LeftOut], list[RunRow]]:
    known = {row.run for row in target.runs(imported=True)}
    lines = dict.fromkeys(line_journal(row.project, row.line) for row in rows)
    told = (one.event for _, one in target.told(lines, [RunCollected]))
    collected = {event.run for event in told if isinstance(event, RunCollected)}
    there, left, goes = list[RunRow](), list[LeftOut](), list[RunRow]()
    for row in rows:
        journal = f"run:{row.run}"
        if row.run in known:
            if source.end(journal) != target.end(journal) and has_ended(source, row.run):
                raise UsageError(
                    f"run '{row.run}' is there already, with another history",
                    hint="look at both: holdfast trace RUN --store …",
                )
            there.append(row)
        elif row.run in collected:
            left.append(LeftOut(row, "was cleared away there"))
        elif row.imported and not _is_brought(source, row):
            left.append(LeftOut(row, "was imported as history; export and import it"))
        elif not has_ended(source, row.run):
            state = read_state(source, row.run)
            why = f"has not ended ({state.status if state else 'empty'})"
            left.append(LeftOut(row, why + _left_behind(state)))
        else:
            goes.append(row)
    return there, left, goes


def _left_behind(state: State | None) -> str:
    """What the other store will not know of: effects of a run that may have happened."""
    once = [s for s, step in state.plan.steps.items() if step.done_once] if state else []
    names = [step_id for step_id in once if state is not None and is_left(state, step_id)]
    return f", with an open effect: {', '.join(sorted(names))}" if names else ""


def _is_brought(store: Store, row: RunRow) -> bool:
    came = came_with(store, row)
    return came is not None and bool(came.store)


class _Loader:
    """Makes parcels of runs; what is asked of whole stores is asked once."""

    def __init__(self, source: Store, target: Store, origin: str, by: str) -> None:
        self._source, self._target = source, target
        self._origin, self._by = origin, by
        self._sizes = {one.digest: one.size for one in source.stored()}
        self._names = Names(source, Listed(source.stored()))
        self._there = set(target.blobs())
        self._unwanted = purged_in(target).keys() - self._there
        self._order = {row.run: row.number for row in source.runs(imported=True)}
        self._contests: dict[str, Contests] = {}

    def parcel(self, row: RunRow) -> Parcel | LeftOut:
        """A run with all that goes with it; why it cannot go, if it cannot."""
        if problem := run_problem(self._source, row):
            return LeftOut(row, f"cannot be read: {problem}")
        here = list(self._source.artifacts(run=row.run))
        beside = tuple(_beside(self._source, row))
        found = leaving(self._source, self._names, self._said(row), _more(beside, here))
        contents = [one for one in found.contents if one not in self._unwanted]
        if not {*_plans(self._source, row)} <= {*contents}:
            return LeftOut(row, "has a plan that was removed there")
        absent = {*found.absent, *found.contents}.difference(contents)
        stood = tuple(_stood(self._source, row, here, contents))
        said = replace(found.line, absent=tuple(sorted(absent)), stood=stood)
        arrives = replace(row, number=0, fence=1, imported=True)
        rows = rebuilt_index(Arriving(self._source, arrives, said))
        barred = dict(self._barred(row, rows, here, {*contents}))
        gone = tuple(one for one, is_gone in barred.items() if is_gone)
        said = replace(said, barred=tuple(barred), gone=gone)
        rows = rebuilt_index(Arriving(self._source, arrives, said))
        sends = {one: self._sizes[one] for one in contents if one not in self._there}
        self._there.update(sends)
        return Parcel(arrives, said, beside, tuple(rows), tuple(contents), sends)

    def _said(self, row: RunRow) -> RunImported:
        end = self._source.end(f"run:{row.run}")
        vouched = tuple(_vouched(self._source, row))
        return RunImported(row.run, *end, self._by, store=self._origin, vouched=vouched)

    def _barred(
        self,
        run: RunRow,
        rows: Iterable[Artifact],
        here: Iterable[Artifact],
        contents: Collection[Digest],
    ) -> Iterator[tuple[Doubted, bool]]:
        """The rows that count for nothing where they go, and whether they tell of something done."""
        known = {doubted(row): row for row in here}
        came = came_with(self._source, run)
        were_gone = frozenset(came.gone if came is not None else ())
        contests = self._contests_of(run)
        for row in rows:
            if row.status != "accepted" or row.source != "generated":
                continue
            own = known.get(doubted(row))
            stands = own is not None and own.status == "accepted" and own.source == "generated"
            if own is None or not stands:
                yield doubted(row), doubted(row) in were_gone
            elif contests.of(own) or not own.reusable:
                yield doubted(row), True
            elif not _is_whole(self._source, row, contents):
                yield doubted(row), row.reusable
            elif self._is_displaced(run, row):
                yield doubted(row), False

    def _is_displaced(self, run: RunRow, row: Artifact) -> bool:
        """Whether something stands there under the same key that nobody knows to be older."""
        stands = self._target.find(row.project, row.line, row.step, row.config_ref)
        return stands is not None and self._order.get(stands.run, run.number) >= run.number

    def _contests_of(self, row: RunRow) -> Contests:
        journal = line_journal(row.project, row.line)
        if journal not in self._contests:
            self._contests[journal] = Contests(self._source, row.project, row.line)
            self._contests[journal].refresh()
        return self._contests[journal]


def _plans(store: Store, row: RunRow) -> Iterator[Digest]:
    """The plans without which a run cannot be read."""
    for _, one in store.told([f"run:{row.run}"], [RunStarted, PlanExtended]):
        if isinstance(one.event, RunStarted | PlanExtended):
            yield one.event.plan


def _beside(store: Store, row: RunRow) -> Iterator[LineEvent]:
    """What came with the artifacts of a run, and comes again with whoever reuses them."""
    journal = line_journal(row.project, row.line)
    for _, one in store.told([journal], [HandoffGiven, StepsAdded]):
        if isinstance(one.event, HandoffGiven | StepsAdded) and one.event.run == row.run:
            yield one.event


def _more(beside: Iterable[LineEvent], here: Iterable[Artifact]) -> Iterator[Digest]:
    """Contents that the journal of a run does not name: what its line says, keys of what it reused."""
    for event in beside:
        yield from digests_in(event)
    yield from (row.own_ref for row in here if not row.attempt)


def _is_whole(store: Store, row: Artifact, contents: Collection[Digest]) -> bool:
    if row.digest not in contents:
        return False
    try:
        files = files_of(store, row.digest) if row.form == "tree" else ()
    except IntegrityError:
        return False
    return all(digest in contents for digest in files)


def _stood(
    store: Store, row: RunRow, here: Iterable[Artifact], contents: Collection[Digest]
) -> Iterator[StoodThen]:
    """The rows of reuses by content: the journal of the run alone does not give them."""
    told = {doubted(one) for _, one in artifacts_of(store.read(f"run:{row.run}"), lambda *_: None)}
    for one in here:
        counts = one.status == "accepted" and one.source == "generated" and one.reusable
        if counts and doubted(one) not in told and {one.own_ref, one.digest} <= {*contents}:
            refs = (one.config_ref, one.input_ref, one.own_ref)
            yield StoodThen(one.step, *refs, one.digest, one.form, one.verified, one.at)


def _vouched(store: Store, row: RunRow) -> Iterator[VouchedThen]:
    """What people had approved of what a run did, also of an earlier attempt that it repeats."""
    came = came_with(store, row)
    if came is not None:
        yield from came.vouched
        return
    asked: dict[str, ApprovalRequested] = {}
    decided: dict[str, tuple[int, ApprovalDecided]] = {}
    used: list[ApprovalUsed] = []
    kinds = (ApprovalRequested, ApprovalDecided, ApprovalUsed)
    for _, one in store.told([line_journal(row.project, row.line)], kinds):
        match one.event:
            case ApprovalRequested() as event:
                asked.setdefault(event.approval, event)
            case ApprovalDecided() as event:
                decided.setdefault(event.approval, (one.at, event))
            case ApprovalUsed() as event:
                used.append(event)
            case _:
                pass
    repeated = {
        use.step for use in used if use.run == row.run and asked[use.approval].gate == "effect"
    }
    for use in used:
        if use.run == row.run or use.step in repeated:
            request, (at, yes) = asked[use.approval], decided[use.approval]
            about = (request.approval, request.gate, request.step, request.subject)
            yield VouchedThen(*about, yes.by, yes.because, yes.rule, at, use.run, use.attempt)


# --- doing it ---------------------------------------------------------------------------------


def bring(
    source: Store,
    target: Store,
    parcel: Parcel,
    clock: Callable[[], int],
    sent: Callable[[int], None] = lambda _: None,
    hidden: Sequence[str] = (),
) -> bool:
    """Put a parcel where it goes; false if somebody else did meanwhile. `sent` hears of each size.

    UsageError, and nothing of the run is there, if a content of it has something `hidden` in it.
    """
    small: list[tuple[Digest, bytes]] = []
    room = _TOGETHER
    for digest in parcel.sends if hidden else ():
        if holds(source.chunks(digest), hidden):
            raise UsageError(
                f"content '{digest}' of run '{parcel.row.run}' holds the value of a secret or of a key",
                hint=f"holdfast purge {digest[:12]} --because …, and renew the key",
            )
    for digest, size in parcel.sends.items():
        room -= size if size <= SMALL else 0
        if size <= SMALL and room >= 0:
            small.append((digest, source.get(digest)))
        else:
            _put(source, target, digest)
        sent(size)
    if not _added(source, target, parcel, small, clock):
        return False
    for digest in parcel.contents:  # a clean-up may have taken what nothing named until now
        if digest not in parcel.sends and not target.has(digest):
            _put(source, target, digest)
    return True


def _put(source: Store, target: Store, digest: Digest) -> None:
    if target.put(source.chunks(digest)) != digest:
        raise IntegrityError(f"content '{digest}' is damaged", hint="holdfast verify")


def _added(
    source: Store,
    target: Store,
    parcel: Parcel,
    small: Sequence[tuple[Digest, bytes]],
    clock: Callable[[], int],
) -> bool:
    row, journal = parcel.row, f"run:{parcel.row.run}"
    line = line_journal(row.project, row.line)
    events = [(one.at, one.event) for one in source.read(journal)]
    while True:
        last, now = target.last(line), clock()
        said = [(now, event) for event in (parcel.said, *parcel.beside)]
        appends = [Append(line, last, said), Append(journal, 0, events, row.fence)]
        try:
            target.add_runs([row], Batch(appends, parcel.rows, small))
        except ConflictError:
            if target.last(journal):
                if source.end(journal) == target.end(journal):
                    return False
                raise
            if target.last(line) == last:
                raise
            continue
        return True
