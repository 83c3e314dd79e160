"""Who made an artifact, and of what: the attempt behind it with all that its journal says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.fold import apply
from holdfast.core.refs import Upstream, refs_of
from holdfast.core.state import State, empty_state
from holdfast.engine.journals import read_plan
from holdfast.engine.lines import line_journal
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, AttemptStarted, Recorded, RunStarted
from holdfast.model.line import ApprovalUsed, StepAccepted, StepAmended
from holdfast.model.plan import Step, StepId
from holdfast.ports import Store


@dataclass(frozen=True, slots=True)
class Made:
    """An attempt whose artifact was accepted, with all that its journal says of its step."""

    start: RunStarted
    plan_ref: Digest
    step: Step
    begun: Recorded
    accepted: Recorded
    story: Sequence[Recorded]  # events of this step up to the last of these
    above: Mapping[StepId, Upstream]

    @property
    def attempt(self) -> AttemptStarted:
        assert isinstance(self.begun.event, AttemptStarted)  # it was found as one
        return self.begun.event

    @property
    def verdict(self) -> AttemptAccepted:
        assert isinstance(self.accepted.event, AttemptAccepted)  # as above
        return self.accepted.event

    def is_used_by(self, used: ApprovalUsed) -> bool:
        """Whether an approval was used by this attempt."""
        return (used.run, used.step, used.attempt) == (
            self.start.run,
            self.attempt.step,
            self.attempt.attempt,
        )


def maker_of(store: Store, row: Artifact) -> Made | None:
    """The attempt that made an artifact; None if a person did, or nobody knows any more."""
    source = _source(store, row)
    return None if source is None else _made(store, source)


def _source(store: Store, row: Artifact) -> Artifact | None:
    """The row of the attempt that made it: this one, or that of an earlier run which it stands on."""
    if row.run and row.attempt:
        return row
    if row.source == "human":
        return None
    rows = store.artifacts(project=row.project, step=row.step)  # a fork takes from another line
    made = [one for one in rows if one.digest == row.digest and one.run and one.attempt]
    before = [one for one in made if one.number < row.number]
    same = [one for one in before if one.own_ref == row.own_ref]
    here = [one for one in same if one.line == row.line]
    return next(iter(reversed(here or same or before)), None)


def _made(store: Store, row: Artifact) -> Made | None:
    """What the journal of its run says of the attempt; None if it is not there any more."""
    start, state, plan_ref = None, None, Digest("")
    begun: Recorded | None = None
    story: list[Recorded] = []
    above: Mapping[StepId, Upstream] = {}
    for recorded in store.read(f"run:{row.run}"):
        event = recorded.event
        if isinstance(event, RunStarted):
            start = event
            state = empty_state(
                read_plan(store, event.plan), plans=lambda digest: read_plan(store, digest)
            )
        if start is None or state is None:
            return None
        if isinstance(event, AttemptStarted) and _is_of(row, event):
            begun, above, plan_ref = recorded, _above(state, row.step), state.plan_digest
        if getattr(event, "step", None) == row.step:
            story.append(recorded)
        apply(state, recorded)
        if isinstance(event, AttemptAccepted) and _is_of(row, event) and begun is not None:
            step = state.plan.steps[row.step]
            return Made(start, plan_ref, step, begun, recorded, story, above)
    return None


def _is_of(row: Artifact, event: AttemptStarted | AttemptAccepted) -> bool:
    return (event.step, event.attempt) == (row.step, row.attempt)


def _above(state: State, step_id: StepId) -> dict[StepId, Upstream]:
    """What the data needs of a step brought when its attempt began."""
    found = {}
    for need in state.plan.steps[step_id].data_needs:
        here = state.steps[need]
        if here.config_ref is not None and here.digest is not None:
            found[need] = Upstream(here.config_ref, here.digest)
    return found


def refs_follow(store: Store, row: Artifact) -> bool | None:
    """Whether the refs of the attempt behind an artifact follow from what the store has; None if unknown."""
    made = maker_of(store, row)
    if made is None:
        return None
    try:
        own = store.get(made.attempt.own_ref)
    except IntegrityError:
        return None
    if not all(n in made.above or _is_optional(made.step, n) for n in made.step.data_needs):
        return None
    refs = refs_of(made.step, own, made.above)
    begun = made.attempt
    return (refs.config_ref, refs.input_ref) == (begun.config_ref, begun.input_ref)


def _is_optional(step: Step, name: StepId) -> bool:
    return any(need.step == name and need.optional for need in step.needs)


def decision_on(store: Store, row: Artifact) -> Recorded | None:
    """A person's word by which an artifact stands that no attempt of its line made."""
    if row.source not in {"human", "accepted"} or row.run:
        return None
    found = None
    for recorded in store.read(line_journal(row.project, row.line)):
        event = recorded.event
        if isinstance(event, StepAmended | StepAccepted) and (
            (event.step, event.digest, event.config_ref) == (row.step, row.digest, row.config_ref)
        ):
            found = recorded
    return found
