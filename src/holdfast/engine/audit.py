"""Reads a whole store by itself: every run folds, and the index follows from the journals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import cast

from holdfast.core.refs import w_ref
from holdfast.core.state import State
from holdfast.engine.indexed import unindexed
from holdfast.engine.journals import read_state, start_of
from holdfast.engine.lines import line_journal
from holdfast.engine.needed import absent_in, files_of, lacking, lost_bases
from holdfast.engine.outside import repeated
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.referee import Reading, Stand, read
from holdfast.engine.vouched import unvouched
from holdfast.engine.whole import unmatched
from holdfast.errors import HoldfastError, IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json
from holdfast.model.line import (
    ContentPurged,
    RunCollected,
)
from holdfast.model.plan import RunId
from holdfast.ports import Facts, Holder, RunRow, Store

CORRUPT, UNTRUSTED, UNREADABLE, STUCK = 1, 2, 4, 8
_LOOKS = 3
_SECOND = 1000  # milliseconds


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found, and how much was looked at.

    `bits` says of which kind it is: the store contradicts itself (1), something counts that nobody vouched
    for (2: no approval where one was needed, an effect repeated unasked), a run cannot be read (4), a run is
    stuck (8).

    `stuck` are runs that go on by their journal while no engine is there to do it. They are not damaged:
    an engine died, and `resume` goes on.
    """

    problems: tuple[str, ...]
    bits: int
    runs: int
    events: int
    blobs: int
    stuck: tuple[RunId, ...] = ()


def audit(store: Store, gone: Callable[[Holder], bool] = lambda _: False) -> Audit:
    """Check everything as of one moment; problems name the object and the run.

    `gone` tells whether an engine is dead.
    """
    left = _LOOKS
    while True:
        before, left = _ends(store), left - 1
        with store.steady():
            found = _audit(store, gone)
        if not found.problems or not left or _ends(store) == before:
            return found  # else look again: files are not of one moment, a clean-up may remove some


def _ends(store: Store) -> dict[str, int]:
    return {journal: store.last(journal) for journal in store.journals()}


def _audit(store: Store, gone: Callable[[Holder], bool]) -> Audit:
    problems = list(store.check())
    bits = CORRUPT if problems else 0
    events = sum(store.last(journal) for journal in store.journals())
    rows = store.runs(imported=True)
    readings: dict[RunId, Reading] = {}
    for row in rows:
        found, reading = _run_problems(store, row)
        if reading is not None:
            readings[row.run] = reading
        if found:
            problems += found
            bits |= UNREADABLE
    lost = list(_lost(store)) if not bits & UNREADABLE else []
    if lost:
        problems += [told for digest, told in lost if not any(digest in p for p in problems)]
        bits |= CORRUPT
    whole = not any(told.startswith(("journal ", "database")) for told in problems)
    unasked = list(_unasked(store, rows, readings)) if whole and not bits & UNREADABLE else []
    late = list(_fences(store, rows, readings)) if whole else []
    if not problems:
        problems += unmatched(store)
        problems += _index_problems(store, rows) if not problems and not late else ()
        bits |= CORRUPT if problems else 0
    problems += late
    bits |= CORRUPT if late else 0
    problems += unasked
    bits |= UNTRUSTED if unasked else 0
    live = {holder.run for _, _, holder in store.held() if not gone(holder)}
    going = (run for run, reading in readings.items() if reading.status == "running")
    stuck = tuple(run for run in going if run not in live)
    blobs = sum(1 for _ in store.blobs())
    bits |= STUCK if stuck else 0
    return Audit(tuple(problems), bits, len(rows), events, blobs, stuck)


def _unasked(
    store: Store, rows: Sequence[RunRow], readings: Mapping[RunId, Reading]
) -> Iterator[str]:
    """What counts although nobody who had to be asked said yes."""
    yield from unvouched(store, rows, readings)
    yield from repeated(store, rows)


def _index_problems(store: Store, rows: Sequence[RunRow]) -> Iterator[str]:
    """Where the index is another than the journals give: built here, and as `rebuild` would build it."""
    told = [f"{found}: holdfast rebuild" for found in unindexed(store, rows)]
    yield from told
    index = [replace(row, number=0) for row in store.artifacts()]
    if not told and not follows(store, index, rebuilt_index(store)):
        told.append("the order of the index")
    if told:
        yield "the index of artifacts does not follow from the journals: holdfast rebuild"


def _run_problems(store: Store, row: RunRow) -> tuple[list[str], Reading | None]:
    """Why a run cannot be trusted, by the fold and by the second reading, and that reading."""
    found = run_problem(store, row)
    if found:
        return [found], None
    state = read_state(store, row.run)
    assert state is not None  # run_problem read it

    def plan(digest: str) -> Mapping[str, Json]:
        return cast("Mapping[str, Json]", json.loads(store.get(Digest(digest))))

    reading = read(store.raw(f"run:{row.run}"), plan(state.base), plan)
    differences = () if reading.problems else _differences(state, reading)
    return [f"run '{row.run}': {told}" for told in (*reading.problems, *differences)], reading


def _differences(state: State, reading: Reading) -> Iterator[str]:
    """Where the fold and the second reading do not agree."""
    if state.status != reading.status:
        yield f"it is {state.status} by its fold and {reading.status} by its rows"
    for step_id, here in state.steps.items():
        digest = (here.digest or "") if here.phase in {"done", "reused"} else ""
        folded = Stand(here.phase, here.attempts, digest, here.config_ref or "")
        if folded != reading.steps.get(step_id):
            yield f"step '{step_id}' is {here.phase} by its fold, not by its rows"


def _fences(
    store: Store, rows: Sequence[RunRow], readings: Mapping[RunId, Reading]
) -> Iterator[str]:
    """Writes that came too late: of an engine whose run, or whose claim, another one had taken."""
    own = {  # fences are of one store
        row.run: readings[row.run] for row in rows if not row.imported and row.run in readings
    }
    for row in rows:
        if row.run in own and row.fence < own[row.run].engines:
            yield f"run '{row.run}': {own[row.run].engines} engines wrote under {row.fence} fences"
    claimed = {
        (run, item.step, item.attempt): item.fence
        for run, reading in own.items()
        for item in reading.claimed
        if (item.step, item.attempt) not in reading.let_go
    }
    yield from _late(store.artifacts(status="accepted", source="generated"), claimed)
    owners: dict[int, tuple[str, str]] = {}
    for run, reading in own.items():
        for item in reading.claimed:
            if owners.setdefault(item.fence, item[:1] + item[2:3]) != (item.step, item.config_ref):
                yield f"run '{run}': fence {item.fence} of step '{item.step}' was another step's"


def _late(
    accepted: Iterable[Artifact], claimed: Mapping[tuple[RunId, str, int], int]
) -> Iterator[str]:
    highest: dict[tuple[str, str, str, str], int] = {}
    for row in accepted:
        fence = claimed.get((row.run, row.step, row.attempt), 0)
        key = (row.project, row.line, row.step, row.config_ref)
        if fence and fence < highest.get(key, 0):
            yield (
                f"run '{row.run}': step '{row.step}' was accepted under fence {fence}"
                f" after fence {highest[key]}"
            )
        highest[key] = max(fence, highest.get(key, 0))


def _lost(store: Store) -> Iterator[tuple[Digest, str]]:
    """Contents that must be there and are not, and those that must not be there and are."""
    wanted = _counted_on(store)
    with suppress(HoldfastError):  # a journal that the store itself found damaged
        absent, present = absent_in(store), set(store.blobs())
        for digest, told in chain(lacking(store, present), lost_bases(store, present)):
            if digest not in absent or digest in wanted:
                yield digest, told
        purged = purged_in(store)
        for item in store.stored():
            at = purged.get(item.digest, 0) // _SECOND * _SECOND  # contents know no less
            if item.at < at and item.digest not in wanted:
                told = f"content '{item.digest}' was purged and is still there"
                yield item.digest, f"{told}: holdfast purge {item.digest[:12]} --because …"


def purged_in(store: Store) -> dict[Digest, int]:
    """When contents were purged, the last time."""
    found: dict[Digest, int] = {}
    for journal in store.journals():
        for recorded in store.read(journal) if journal.startswith("line:") else ():
            if isinstance(recorded.event, ContentPurged):
                found.update(dict.fromkeys(recorded.event.digests, recorded.at))
    return found


def _counted_on(store: Store) -> set[Digest]:
    """The contents of artifacts that may be reused, those of their files too."""
    wanted: set[Digest] = set()
    for row in store.artifacts(status="accepted"):
        if row.reusable and row.source != "imported":
            wanted.add(row.digest)
            with suppress(IntegrityError):
                wanted.update(files_of(store, row.digest) if row.form == "tree" else ())
    return wanted


def follows(store: Store, index: Sequence[Artifact], rebuilt: Sequence[Artifact]) -> bool:
    """Whether the index has the rows that the journals give, those of each step in the same order.

    Engines that share a line accept at the same time; only the index knows the order between them.
    """
    if sorted(map(repr, index)) != sorted(map(repr, rebuilt)):
        return False
    rows = store.runs(imported=True)
    shared = _shared(store, rows)
    ours, theirs = (
        [row for row in found if row.status == "accepted" and row.run not in shared]
        for found in (index, rebuilt)
    )

    def steps(found: Sequence[Artifact]) -> dict[tuple[str, str, str], list[Artifact]]:
        by_step: dict[tuple[str, str, str], list[Artifact]] = {}
        for row in found:
            by_step.setdefault((row.project, row.line, row.step), []).append(row)
        return by_step

    return steps(ours) == steps(theirs)


def _shared(store: Store, rows: Sequence[RunRow]) -> set[RunId]:
    """Imported runs, joined ones, and those that they may have joined: who begins alone ends those before.

    Of a run that was collected nobody knows whether it had joined.
    """
    found = {row.run for row in rows if row.imported}
    lines = {line_journal(row.project, row.line) for row in rows}
    gone = [(journal, one.event) for journal, one in store.told(sorted(lines), [RunCollected])]
    order: list[tuple[int, str, RunRow | None]] = [
        *((row.number, line_journal(row.project, row.line), row) for row in rows),
        *((e.number, journal, None) for journal, e in gone if isinstance(e, RunCollected)),
    ]
    joined: set[str] = set()
    for _, line, row in sorted(order, key=lambda one: one[0], reverse=True):
        if row is None:
            joined.add(line)
        elif _is_joined(store, row):
            joined.add(line)
            found.add(row.run)
        elif line in joined:
            joined.remove(line)
            found.add(row.run)
    return found


def _is_joined(store: Store, row: RunRow) -> bool:
    start = start_of(store, row.run)
    return start is not None and start.options.joined


def run_problem(store: Facts, row: RunRow) -> str:
    """Why a run cannot be read, '' if it can."""
    try:
        state = read_state(store, row.run)
    except HoldfastError as error:
        return f"run '{row.run}': {error.message}"
    if state is None:
        return f"run '{row.run}': it has no journal"
    if w_ref(state.plan) != state.w_ref:
        return f"run '{row.run}': its plan does not have the structure it began with"
    return ""
