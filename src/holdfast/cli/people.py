"""What people decided about artifacts: who, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast import wire
from holdfast.core.effects import WAS_DONE, is_cut_off
from holdfast.core.state import State
from holdfast.engine.elsewhere import brought_in
from holdfast.engine.journals import read_state, runs_of, start_of
from holdfast.engine.lines import line_journal
from holdfast.engine.questions import HELD
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json
from holdfast.model.event import AttemptStarted
from holdfast.model.line import StepAccepted, StepAmended, StepUndone
from holdfast.model.plan import Plan, RunId, Step, StepId
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


def is_held(store: Store, state: State, step: StepId) -> bool:
    """Whether a person says how a step goes on; so it is too if its engine died while it was outside."""
    here = state.steps[step]
    if here.phase == "waiting" and here.reason is not None:
        return here.reason.code in HELD
    return is_cut_off(state, step) and not wire.is_driven(store, state)


def held_row(store: Store, plan: Plan, step: Step) -> Artifact | None:
    """What a step would have had that the line's last run holds for a person; without content.

    None if it was done, and its accepted receipt is gone or in doubt: that one is amended.
    """
    rows = runs_of(store, plan.project, plan.name)
    run: RunId | None = rows[-1].run if rows else None
    state = read_state(store, run) if run is not None else None
    here = state.steps.get(step.id) if state is not None and not state.ended else None
    if here is None or state is None or not is_held(store, state, step.id):
        return None
    if here.reason is not None and here.reason.code in WAS_DONE and here.parked is None:
        return None
    began = _last_try(store, plan, step.id, run)
    if began is None:
        return None
    several = len(step.produces) > 1
    return Artifact(
        project=plan.project,
        line=plan.name,
        step=step.id,
        config_ref=began.config_ref,
        input_ref=began.input_ref,
        own_ref=began.own_ref,
        digest=Digest(""),
        status="interrupted",
        source="human",
        run=rows[-1].run,
        attempt=began.attempt,
        form="tree" if several else "bytes",
    )


def _last_try(store: Store, plan: Plan, step: StepId, run: RunId | None) -> AttemptStarted | None:
    """The last attempt at a step up to a run of its line; if there is none, of the runs brought to it."""
    while run is not None and (start := start_of(store, run)) is not None:
        if found := _tried(store, run, step):
            return found
        run = start.previous
    brought = reversed(brought_in(store, plan.project, plan.name))
    return next(filter(None, (_tried(store, one, step) for one in brought)), None)


def _tried(store: Store, run: RunId, step: StepId) -> AttemptStarted | None:
    found = None
    for _, recorded in store.told([f"run:{run}"], [AttemptStarted]):
        if isinstance(recorded.event, AttemptStarted) and recorded.event.step == step:
            found = recorded.event
    return found


def latest_run(store: Store, project: str, line: str) -> tuple[RunId, int]:
    """The last run of a line and how far it has come: a person's word stands after that."""
    rows = runs_of(store, project, line)
    run = rows[-1].run if rows else RunId("")
    return run, store.last(f"run:{run}")
