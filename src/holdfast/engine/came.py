"""What came with an artifact: what the very attempt told that made it, whoever reuses it since.

Two attempts may make the same bytes from other inputs and tell the opposite. So the row of the index
decides: its attempt, or the one that had the same input. What was only guarded again tells what the
artifact told that was guarded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json
from holdfast.model.event import AttemptStarted
from holdfast.model.line import HandoffGiven
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

_STOOD = frozenset({"accepted", "superseded"})
Queued = Callable[[], Sequence[Artifact]]


class Given(NamedTuple):
    """A handoff as the journal of the line has it."""

    seq: int
    at: int
    event: HandoffGiven


class Came:
    """Finds the handoff of an artifact. `queued` gives rows of the index that are still to be stored.

    Of a run that was imported, `alone`, the rows of other runs tell nothing: they were made elsewhere, and
    what it reused has no row here.
    """

    def __init__(
        self, store: Store, project: str, line: str, queued: Queued, alone: RunId | None = None
    ) -> None:
        self._alone = alone
        self._store = store
        self._place = (project, line)
        self._queued = queued
        self._told: dict[tuple[StepId, Digest], list[Given]] = {}
        self._own: dict[tuple[RunId, StepId, int], Given] = {}
        self._guarded: dict[RunId, dict[tuple[StepId, int], bool]] = {}
        self._found: dict[tuple[StepId, Digest, Digest, int], Given | None] = {}

    def add(self, given: Given) -> None:
        """Something came with an artifact; attempt 0 is a person's."""
        event = given.event
        self._told.setdefault((event.step, event.digest), []).append(given)
        if event.attempt:
            self._own[event.run, event.step, event.attempt] = given
        self._found.clear()

    def prefer(self, told: Iterable[HandoffGiven]) -> None:
        """Take these for the last ones that came with their contents, in this order."""
        for event in told:
            of_content = self._told[event.step, event.digest]
            last = next(one for one in of_content if one.event == event)
            of_content.remove(last)
            of_content.append(last)
        self._found.clear()

    def is_newest(self, step: StepId, digest: Digest) -> bool:
        """Whether nothing was made of a step since."""
        row = self._store.newest(*self._place, step)
        return row is not None and row.digest == digest

    def own(self, run: RunId, step: StepId, attempt: int) -> Given | None:
        """What an attempt told."""
        return self._own.get((run, step, attempt))

    def stands(
        self, step: StepId, config_ref: Digest | None, digest: Digest, attempts: int = 0
    ) -> Given | None:
        """What came with what stands under a ref; where no row tells, the last that came with the content."""
        told = self._told.get((step, digest))
        if told is None or config_ref is None:
            return None if told is None else told[-1]
        key = (step, config_ref, digest, attempts)
        if key not in self._found:
            rows = self._rows(step, digest)
            last = max(
                (n for n, row in enumerate(rows) if row.config_ref == config_ref), default=-1
            )
            if last < 0:
                return told[-1]
            self._found[key] = self._of(rows[: last + 1], told)
        return self._found[key]

    def _rows(self, step: StepId, digest: Digest) -> list[Artifact]:
        project, line = self._place
        found = self._store.artifacts(project=project, line=line, step=step, digest=digest)
        queued = (row for row in self._queued() if (row.step, row.digest) == (step, digest))
        rows = [*(row for row in found if row.status in _STOOD), *queued]
        return rows if self._alone is None else [row for row in rows if row.run == self._alone]

    def _of(self, rows: Sequence[Artifact], told: Sequence[Given]) -> Given | None:
        """What came with the last one of these rows of one content."""
        left = list(rows)
        while left:
            row = left.pop()
            own = self._own.get((row.run, row.step, row.attempt))
            if own is not None and own.event.digest == row.digest:
                return own
            if row.attempt and not self._was_guarded(row):
                return None  # it made the same, and told nothing
            if not row.attempt or not left:
                same = [one for one in told if one.event.input_ref == row.input_ref]
                return (same or told)[-1]
            parts = self._parts(row)
            alike = [n for n, one in enumerate(left) if self._parts(one) == parts]
            left = left[: alike[-1] + 1] if alike else left
        return None

    def _was_guarded(self, row: Artifact) -> bool:
        """Whether an attempt only guarded what was there; so it is if nobody knows any more."""
        known = self._guarded.setdefault(row.run, {})
        name = (row.step, row.attempt)
        if name not in known:
            for _, recorded in self._store.told([f"run:{row.run}"], [AttemptStarted]):
                if isinstance(begun := recorded.event, AttemptStarted):
                    known[begun.step, begun.attempt] = begun.reguard is not None
        return known.setdefault(name, True)

    def _parts(self, row: Artifact) -> Mapping[str, Json] | None:
        """What an artifact was made from, whatever guarded it."""
        with suppress(IntegrityError):
            own: dict[str, Json] = json.loads(self._store.get(row.own_ref))
            return {key: value for key, value in own.items() if key != "guard_config"}
        return None
