"""The index of artifacts, made again from the journals alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from holdfast.core.refs import Upstream, refs_of
from holdfast.core.state import State
from holdfast.core.views import artifacts_of, person_row
from holdfast.engine.journals import read_state
from holdfast.engine.words import doubted
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact, tree_entries
from holdfast.model.digest import Digest
from holdfast.model.event import Recorded, Reused
from holdfast.model.line import (
    ContentPurged,
    RunCollected,
    RunImported,
    RunOpened,
    StepAccepted,
    StepAmended,
    StepUndone,
    StoodThen,
    Withdrawn,
)
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Facts, RunRow

Spot = tuple[int, float]  # number of the run, place in it
Gone = dict[tuple[str, str, StepId, Withdrawn], Spot]  # withdrawn rows, and when they were


class Placed(NamedTuple):
    """A row of the index, and the event behind it."""

    place: Spot
    journal: str
    seq: int
    row: Artifact


_Known = dict[tuple[str, str, str], list[Placed]]


def rebuilt_index(store: Facts) -> list[Artifact]:
    """The index of artifacts, from the journals alone, in the order of acceptance."""
    rows = store.runs(imported=True)
    placed: list[Placed] = []
    known: _Known = {}

    def keep(found: Placed, among: _Known) -> None:
        placed.append(found)
        key = (found.row.project, found.row.line, found.row.step)
        among.setdefault(key, []).append(found)

    gone: Gone = {}
    for found in _said(store, rows, gone):
        keep(found, known)
    brought = _brought(store)
    for row in rows:
        journal, came = f"run:{row.run}", brought.get(row.run)
        among: _Known = {} if row.imported else known
        origin = _origin(store, row, among, gone) if came is None else _stood(row, came)
        barred = frozenset(came.barred if came is not None else ())
        for seq, artifact in artifacts_of(store.read(journal), origin):
            counts = came is not None and artifact.source == "generated"
            if not row.imported or (counts and doubted(artifact) not in barred):
                keep(Placed((row.number, seq), journal, seq, artifact), known)
            else:
                history = replace(artifact, source="imported")
                keep(Placed((row.number, seq), journal, seq, history), among)
    placed.sort(key=lambda found: found.place)
    return [
        replace(row, status="withdrawn") if _row_key(row) in gone else row
        for row in _without_purged(store, placed)
    ]


def _brought(store: Facts) -> dict[RunId, RunImported]:
    """The runs that a person brought from another store: what they made counts here."""
    came = {
        event.run: event
        for journal in store.journals()
        if journal.startswith("line:")
        for _, _, event in store.read(journal)
        if isinstance(event, RunImported)
    }
    return {run: event for run, event in came.items() if event.store}


def _stood(run: RunRow, came: RunImported) -> Callable[[int, Reused], Artifact | None]:
    """Which row a reuse by content stood on where the run comes from."""
    known = {(one.step, one.config_ref, one.digest): one for one in came.stood}

    def origin(_: int, item: Reused) -> Artifact | None:
        one = known.get((item.step, item.config_ref, item.digest))
        return None if one is None else stood_row(run, one)

    return origin


def stood_row(run: RunRow, one: StoodThen) -> Artifact:
    """The row of a reuse by content that was brought."""
    return Artifact(
        project=run.project,
        line=run.line,
        step=one.step,
        config_ref=one.config_ref,
        input_ref=one.input_ref,
        own_ref=one.own_ref,
        digest=one.digest,
        status="accepted",
        source="generated",
        run=run.run,
        attempt=0,
        form=one.form,
        verified=one.verified,
        at=one.made_at,
    )


def _row_key(row: Artifact) -> tuple[str, str, StepId, Withdrawn]:
    return row.project, row.line, row.step, withdrawn(row)


def withdrawn(row: Artifact) -> Withdrawn:
    """How an event names a row that no longer counts."""
    return Withdrawn(row.config_ref, row.digest, row.run, row.attempt, row.at)


def _said(store: Facts, rows: Sequence[RunRow], gone: Gone) -> Iterator[Placed]:
    """What people let stand, each after the event that was the latest then; `gone` gets what they undid."""
    owners = {row.run: (row.project, row.line) for row in rows}
    for journal in store.journals():
        events = list(store.read(journal)) if journal.startswith("line:") else []
        number = {row.run: row.number for row in rows}
        number |= {e.run: e.number for _, _, e in events if isinstance(e, RunCollected)}
        project, line = _owner(events, owners)
        latest: Spot = (0, 0.0)  # the end of the last run that was brought
        for recorded in events:
            event = recorded.event
            if isinstance(event, RunImported):
                latest = max(latest, (number.get(event.run, 0), event.last + 0.5))
            if isinstance(event, StepAmended | StepAccepted | StepUndone):
                place = max(latest, (number.get(event.after_run, 0), event.after_seq + 0.5))
                if isinstance(event, StepUndone):
                    gone.update({(project, line, event.step, row): place for row in event.rows})
                    continue
                row = person_row(event, project, line, recorded.at)
                yield Placed(place, journal, recorded.seq, row)


def _owner(events: Sequence[Recorded], owners: Mapping[RunId, tuple[str, str]]) -> tuple[str, str]:
    """Project and name of a line: any of its runs that is still there knows them."""
    for _, _, event in events:
        if isinstance(event, RunOpened | RunImported) and event.run in owners:
            return owners[event.run]
    return "", ""


def _without_purged(store: Facts, placed: Sequence[Placed]) -> list[Artifact]:
    """The rows in order; those whose content a person had removed afterwards may not be reused."""
    purges = [
        (frozenset(event.digests), dict(event.upto))
        for journal in store.journals()
        if journal.startswith("line:")
        for _, _, event in store.read(journal)
        if isinstance(event, ContentPurged)
    ]
    rows = []
    for found in placed:
        row = found.row
        unfit = any(
            found.seq <= upto.get(found.journal, 0) and row.reusable and holds(store, row, digests)
            for digests, upto in purges
        )
        rows.append(replace(row, reusable=False) if unfit else row)
    return rows


def holds(store: Facts, row: Artifact, digests: Collection[Digest]) -> bool:
    """Whether an artifact is one of these contents or a tree with one of them in it.

    What a tree has in it whose manifest is lost nobody knows; it is missing for itself.
    """
    if row.digest in digests:
        return True
    if row.form != "tree":
        return False
    try:
        return any(entry.digest in digests for entry in tree_entries(store.get(row.digest)))
    except IntegrityError:
        return False


def _origin(
    store: Facts,
    run: RunRow,
    known: Mapping[tuple[str, str, str], list[Placed]],
    gone: Gone,
) -> Callable[[int, Reused], Artifact | None]:
    """Which row a reuse by content stood on.

    It is the newest whose own parts, with what the needs brought in this run, give both its input ref
    and the config ref of the reuse. If there is none before, it comes from a run of the shared line that was
    begun later: an engine made it, or a person gave it after that run began.
    """
    state: list[State | None] = []

    def origin(seq: int, item: Reused) -> Artifact | None:
        if not state:
            state.append(read_state(store, run.run))
        if state[0] is None:
            return None
        step, above = state[0].plan.steps[item.step], {}
        for need in step.data_needs:
            ref, digest = state[0].steps[need].config_ref, state[0].steps[need].digest
            if ref is not None and digest is not None:
                above[need] = Upstream(ref, digest)

        def fits(row: Artifact) -> bool:
            if row.status != "accepted" or not row.reusable or row.digest != item.digest:
                return False
            refs = refs_of(step, store.get(row.own_ref), above)
            return (refs.config_ref, refs.input_ref) == (item.config_ref, row.input_ref)

        rows = known.get((run.project, run.line, item.step), [])
        rows, now = sorted(rows, key=lambda entry: entry.place), (run.number, float(seq))
        for place, _, _, row in reversed(rows):
            if place < now < gone.get(_row_key(row), (run.number + 1, 0.0)) and fits(row):
                return row
        given = [row for place, _, _, row in rows if place > now]
        later = chain(_begun_later(store, run, item.step), given)
        return next((row for row in later if fits(row)), None)

    return origin


def _begun_later(store: Facts, run: RunRow, step: StepId) -> Iterator[Artifact]:
    """What runs of the same line that were begun after this one made of a step themselves."""
    for row in store.runs(imported=True):
        is_beside = (row.project, row.line) == (run.project, run.line) and not row.imported
        if is_beside and row.number > run.number:
            made = artifacts_of(store.read(f"run:{row.run}"), lambda _, __: None)
            yield from (found for _, found in made if found.step == step)
