"""Reads a whole store by itself: every run folds, the index follows from the journals, nothing is stuck."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.core.refs import w_ref
from holdfast.core.views import amended_row, artifacts_of
from holdfast.engine.probe import read_state
from holdfast.errors import HoldfastError
from holdfast.model.artifact import Artifact
from holdfast.model.event import RunOpened, StepAmended
from holdfast.model.plan import RunId
from holdfast.ports import RunRow, Store

CORRUPT, UNREADABLE, STUCK = 1, 4, 8


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


def rebuilt_index(store: Store) -> list[Artifact]:
    """The index of artifacts, from the journals alone, in the order of acceptance."""
    placed: list[tuple[int, float, Artifact]] = []
    known: list[Artifact] = []
    number: dict[RunId, int] = {}
    lines: dict[str, tuple[str, str]] = {}
    for row in store.runs():
        number[row.run] = row.number
        found = artifacts_of(store.read(f"run:{row.run}"), known)
        known += [artifact for _, artifact in found]
        placed += [(row.number, float(seq), artifact) for seq, artifact in found]
    owners = {row.run: (row.project, row.line) for row in store.runs()}
    for journal in store.journals():
        if journal.startswith("line:"):
            for recorded in store.read(journal):
                event = recorded.event
                if isinstance(event, RunOpened):
                    lines[journal] = owners[event.run]
                elif isinstance(event, StepAmended):
                    project, line = lines[journal]
                    artifact = amended_row(event, project, line, recorded.at)
                    after = number.get(event.after_run, 0)
                    placed.append((after, event.after_seq + 0.5, artifact))
    placed.sort(key=lambda item: item[:2])
    return [artifact for _, _, artifact in placed]
