"""Which runs made what was accepted, and what would be lost with them; a million rows take little.

Rows are looked at one by one and nothing of them is kept as text but the names of steps that are lost.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, Reused
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

_BYTES = 32  # of a digest


def _key(digest: Digest, step: StepId) -> bytes:
    return bytes.fromhex(digest) + step.encode("utf-8", "surrogatepass")


class Makers:
    """The makers of accepted artifacts by project, step and content.

    Runs that are `settled` stay anyway: a row of theirs counts only where it comes after one of a run that
    may go.
    """

    def __init__(self, settled: Collection[RunId] = frozenset()) -> None:
        self.settled = settled
        self._newest: dict[str, dict[bytes, int]] = {}  # a row and 1
        self._older = array("I")  # for each row the one before it and 1, or 0
        self._refs = bytearray()
        self._made = array("I")  # for each row its run, as a place in `_runs`
        self._runs: dict[RunId, int] = {}
        self._run_ids: list[RunId] = []

    def take(self, row: Artifact) -> None:
        """Add an accepted row; they come oldest first."""
        rows, key = self._newest.setdefault(row.project, {}), _key(row.digest, row.step)
        older = rows.get(key, 0)
        if not older and row.run in self.settled:
            return
        if row.run not in self._runs:
            self._runs[row.run] = len(self._run_ids)
            self._run_ids.append(row.run)
        self._older.append(older)
        self._refs += bytes.fromhex(row.config_ref)
        self._made.append(self._runs[row.run])
        rows[key] = len(self._made)

    def of(self, project: str, item: Reused) -> Iterator[RunId]:
        """The runs whose artifact a step reused: the last under its ref, or all that made this content."""
        rows = self._newest.get(project, {})
        row, ref = rows.get(_key(item.digest, item.step), 0), bytes.fromhex(item.config_ref)
        while row:
            row -= 1
            if item.code == "unchanged_content":
                yield self._run_ids[self._made[row]]
            elif self._refs[_BYTES * row : _BYTES * (row + 1)] == ref:
                yield self._run_ids[self._made[row]]
                return
            row = self._older[row]


class Lost(NamedTuple):
    """An accepted artifact that would have to be made again, and how long that took."""

    step: StepId
    run: RunId
    digest: Digest
    work_ms: int


class Losses:
    """What would have to be made again; each is told when somebody wants it."""

    def __init__(self) -> None:
        self.steps: list[StepId] = []
        self._runs: list[RunId] = []
        self._digests = bytearray()
        self._work = array("Q")

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Lost]:
        every = zip(self.steps, self._runs, self._work, strict=True)
        for place, (step, run, work) in enumerate(every):
            raw = self._digests[_BYTES * place : _BYTES * (place + 1)]
            yield Lost(step, run, Digest(raw.hex()), work)

    def add(self, lost: Lost) -> None:
        """One more."""
        self.steps.append(lost.step)
        self._runs.append(lost.run)
        self._digests += bytes.fromhex(lost.digest)
        self._work.append(lost.work_ms)

    def took(self, place: int, work_ms: int) -> None:
        """Say how long one of them took."""
        self._work[place] = work_ms

    @property
    def work_ms(self) -> int:
        """How long all of it took."""
        return sum(self._work)

    def of(self, runs: Collection[RunId]) -> Losses:
        """Those that are lost with these runs."""
        found = Losses()
        for lost in self:
            if lost.run in runs:
                found.add(lost)
        return found


def lost_with(store: Store, runs: Sequence[RunId]) -> Losses:
    """Accepted artifacts of these runs under refs that nothing else is accepted under, the last of each."""
    found, last = Losses(), _last_of(store, runs)
    for run in runs if last else ():
        places: dict[tuple[StepId, int], int] = {}
        for row in _usable(store, run):
            if last[row.project, row.line].get(_key(row.config_ref, row.step)) == row.number:
                places[row.step, row.attempt] = len(found)
                found.add(Lost(row.step, run, row.digest, 0))
        told = store.told([f"run:{run}"], [AttemptAccepted]) if places else ()
        for event in (recorded.event for _, recorded in told):
            if isinstance(event, AttemptAccepted) and (event.step, event.attempt) in places:
                found.took(places[event.step, event.attempt], event.duration_ms)
    return found


def _last_of(store: Store, runs: Collection[RunId]) -> dict[tuple[str, str], dict[bytes, int]]:
    """The last row of these runs by line, ref and step, where no other run has one."""
    last: dict[tuple[str, str], dict[bytes, int]] = {}
    for run in runs:
        for row in _usable(store, run):
            rows, key = last.setdefault((row.project, row.line), {}), _key(row.config_ref, row.step)
            rows[key] = max(row.number, rows.get(key, 0))
    gone = {*runs}
    for row in store.artifacts(status="accepted") if last else ():
        if row.run not in gone and (row.project, row.line) in last:
            last[row.project, row.line].pop(_key(row.config_ref, row.step), None)
    return last


def _usable(store: Store, run: RunId) -> Iterator[Artifact]:
    for row in store.artifacts(run=run, status="accepted"):
        if row.source != "imported" and row.reusable:
            yield row
