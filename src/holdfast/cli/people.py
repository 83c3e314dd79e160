"""What people decided about artifacts: who, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.core.state import State
from holdfast.engine.lines import line_journal
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, Json
from holdfast.model.event import StepAccepted, StepAmended, StepUndone
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

BY_PEOPLE = frozenset({"amended", "accepted_by_person", "undone", "skipped_by_person"})


class Decided(NamedTuple):
    """A person's word about an artifact. `origin` is the run an accepted one came from."""

    by: str
    because: str
    at: int
    origin: RunId | None = None

    def words(self) -> str:
        """Who, and why if that was said."""
        return f"{self.by}: {self.because}" if self.because else self.by

    def json(self) -> dict[str, Json]:
        """The same for programs."""
        return {"by": self.by, "because": self.because, "at": self.at, "from": self.origin}


def decided(
    store: Store, project: str, line: str
) -> Mapping[tuple[StepId, Digest | None], Decided]:
    """The last word about each artifact of a line; under None the last undoing of a step."""
    found: dict[tuple[StepId, Digest | None], Decided] = {}
    for recorded in store.read(line_journal(project, line)):
        event = recorded.event
        if not isinstance(event, StepAmended | StepAccepted | StepUndone):
            continue
        because = ""
        if event.because is not None:
            with suppress(IntegrityError):  # removed since
                because = store.get(event.because).decode("utf-8", "replace")
        origin = event.origin if isinstance(event, StepAccepted) else None
        digest = None if isinstance(event, StepUndone) else event.digest
        found[event.step, digest] = Decided(event.by, because, recorded.at, origin)
    return found


def decided_in(store: Store, state: State) -> dict[StepId, Decided]:
    """The steps of a run that stand, or ran, or are gone on without, by the word of a person."""
    return {**_spoken(store, state), **_gaps(store, state)}


def _gaps(store: Store, state: State) -> dict[StepId, Decided]:
    found = {}
    for step_id, gap in state.gaps.items():
        because = ""
        with suppress(IntegrityError):  # removed since
            because = store.get(gap.because).decode("utf-8", "replace")
        found[step_id] = Decided(gap.by, because, gap.at)
    return found


def _spoken(store: Store, state: State) -> dict[StepId, Decided]:
    spoken = [s for s, step in state.steps.items() if step.reason and step.reason.code in BY_PEOPLE]
    if not spoken:
        return {}
    words = decided(store, state.project, state.line)
    found = {}
    for step_id in spoken:
        step = state.steps[step_id]
        undone = step.reason is not None and step.reason.code == "undone"
        word = words.get((step_id, None if undone else step.digest))
        if word is not None:
            found[step_id] = word
    return found


def latest_run(store: Store, project: str, line: str) -> tuple[RunId, int]:
    """The last run of a line and how far it has come: a person's word stands after that."""
    rows = [row for row in store.runs(line) if row.project == project]
    run = rows[-1].run if rows else RunId("")
    return run, store.last(f"run:{run}")
