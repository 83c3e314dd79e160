"""Reads a whole store by itself: every run folds, and the index follows from the journals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.core.refs import Upstream, refs_of, w_ref
from holdfast.core.state import State
from holdfast.core.views import amended_row, artifacts_of
from holdfast.engine.probe import read_state
from holdfast.errors import HoldfastError
from holdfast.model.artifact import Artifact
from holdfast.model.event import Reused, RunOpened, StepAmended
from holdfast.ports import RunRow, Store

CORRUPT, UNREADABLE = 1, 4


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found, and how much was looked at."""

    problems: tuple[str, ...]
    bits: int
    runs: int
    events: int
    blobs: int


def audit(store: Store) -> Audit:
    """Check everything; problems name the object and the run."""
    problems = list(store.check())
    bits = CORRUPT if problems else 0
    events = sum(store.last(journal) for journal in store.journals())
    rows = store.runs()
    for row in rows:
        found = _run_problem(store, row)
        if found:
            problems.append(found)
            bits |= UNREADABLE
    if not problems:
        index = [replace(row, number=0) for row in store.artifacts()]
        if sorted(map(repr, index)) != sorted(map(repr, rebuilt_index(store))):
            problems.append(
                "the index of artifacts does not follow from the journals: holdfast rebuild"
            )
            bits |= CORRUPT
    blobs = sum(1 for _ in store.blobs())
    return Audit(tuple(problems), bits, len(rows), events, blobs)


def _run_problem(store: Store, row: RunRow) -> str:
    try:
        state = read_state(store, row.run)
    except HoldfastError as error:
        return f"run '{row.run}': {error.message}"
    if state is None:
        return f"run '{row.run}': it has no journal"
    if w_ref(state.plan) != state.w_ref:
        return f"run '{row.run}': its plan does not have the structure it began with"
    return ""


Placed = tuple[tuple[int, float], Artifact]  # number of the run, place in it


def rebuilt_index(store: Store) -> list[Artifact]:
    """The index of artifacts, from the journals alone, in the order of acceptance."""
    rows = store.runs()
    placed: list[Placed] = []
    known: dict[tuple[str, str, str], list[Placed]] = {}

    def keep(place: tuple[int, float], artifact: Artifact) -> None:
        placed.append((place, artifact))
        key = (artifact.project, artifact.line, artifact.step)
        known.setdefault(key, []).append((place, artifact))

    for place, artifact in _amended(store, rows):
        keep(place, artifact)
    for row in rows:
        found = artifacts_of(store.read(f"run:{row.run}"), _origin(store, row, known))
        for seq, artifact in found:
            keep((row.number, seq), artifact)
    placed.sort(key=lambda item: item[0])
    return [artifact for _, artifact in placed]


def _amended(store: Store, rows: Sequence[RunRow]) -> Iterator[Placed]:
    """The versions of people, each after the event that was the latest when it was given."""
    number = {row.run: row.number for row in rows}
    owners = {row.run: (row.project, row.line) for row in rows}
    for journal in store.journals():
        project, line = "", ""
        for recorded in store.read(journal) if journal.startswith("line:") else ():
            event = recorded.event
            if isinstance(event, RunOpened):
                project, line = owners[event.run]
            elif isinstance(event, StepAmended):
                place = (number.get(event.after_run, 0), event.after_seq + 0.5)
                yield place, amended_row(event, project, line, recorded.at)


def _origin(
    store: Store, run: RunRow, known: Mapping[tuple[str, str, str], list[Placed]]
) -> Callable[[int, Reused], Artifact | None]:
    """Which row a reuse by content stood on.

    It is the newest whose own parts, with what the needs brought in this run, give both its input ref
    and the config ref of the reuse.
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
        rows = known.get((run.project, run.line, item.step), [])
        for place, row in sorted(rows, key=lambda entry: entry[0], reverse=True):
            stands = row.status == "accepted" and row.reusable and row.digest == item.digest
            if stands and place < (run.number, seq):
                own = store.get(row.own_ref)
                refs = refs_of(step, own, above)
                if (refs.config_ref, refs.input_ref) == (item.config_ref, row.input_ref):
                    return row
        return None

    return origin
