"""What `diff` compares: a run, a plan file, a plan at a git commit, an attempt, or how things are now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field

from holdfast.cli.place import Place, find_run
from holdfast.cli.say import short
from holdfast.cli.show import load_state
from holdfast.core.state import COMPLETE, State
from holdfast.engine.outputs import Outputs
from holdfast.engine.versions import Version, find_version, kept_plan, lines_of
from holdfast.errors import EditError, UsageError
from holdfast.formats.planfile import load_plan
from holdfast.model.artifact import Entry, Form, tree_entries
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, AttemptFailed, AttemptLost, AttemptRejected
from holdfast.model.fixed import frozen
from holdfast.model.items import step_named
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.model.text import is_count
from holdfast.ports import Store
from holdfast.wire import market, own_agents, walls_at

ALL = ""  # the one content of a step that writes no files


@frozen
class Side:
    """One of the two things. `files` are the contents of each step by path; none if it has only a plan."""

    name: str
    plan: Plan
    run: RunId | None = None
    state: State | None = None
    files: Mapping[StepId, Mapping[str, Entry]] | None = None
    faults: tuple[str, ...] = ()
    root: str = ""  # where contents lie that are not stored


@frozen
class Attempt:
    """One try at a step: what it made, and what was said of it."""

    step: StepId
    number: int
    run: RunId
    ended: str
    guard: str = ""
    feedback: str = ""
    files: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.step}@{self.number}"


def side(where: Place, store: Store | None, given: str) -> Side:
    """What a word of the command line means: a plan file, a run, or a git commit."""
    if os.path.isfile(given):
        return Side(
            given,
            load_plan(
                given,
                name=where.plan_id,
                own=own_agents,
                models=market.known_models,
                walls=walls_at(where.root),
            ).plan,
        )
    if given.startswith(("@", "r-")):
        if store is None:
            raise UsageError(f"there is no run '{given}': no store yet", hint="holdfast run")
        state = load_state(store, find_run(store, given, where.line(), of_work=True))
        files = {
            step_id: entries_of(store, state.plan.steps[step_id], step.digest, step.form)
            for step_id, step in state.steps.items()
            if step.phase in COMPLETE and step.digest is not None
        }
        return Side(short(state.run), state.plan, state.run, state, files)
    if store is not None and (version := _version(where, store, given)) is not None:
        return Side(f"plan {version.plan[:12]}", kept_plan(store, version.plan))
    from holdfast.cli.gitplan import plan_at

    return Side(given, plan_at(where, given))


def _version(where: Place, store: Store, given: str) -> Version | None:
    """The version of a plan, of this line or any, that the first digits of its digest name."""
    line = where.line()
    lines = [one for one in lines_of(store) if line is None or one[1] == line]
    found = (find_version(store, *one, given) for one in lines)
    return next((version for version in found if version is not None), None)


def now(where: Place, store: Store | None, other: Side) -> Side:
    """The present plan, and the files that lie at the outputs of the other side's steps."""
    plan = where.load().plan
    if other.files is None or store is None:
        return Side("now", plan)
    outputs = Outputs(where.root, "", store)
    files: dict[StepId, Mapping[str, Entry]] = {}
    faults = []
    for step_id in other.files:
        step = other.plan.steps[step_id]
        if step.produces:
            try:
                files[step_id] = {entry.path: entry for entry in outputs.read(step)}
            except EditError as error:
                faults.append(f"{step_id}: {error.message}")
    return Side("now", plan, files=files, faults=tuple(faults), root=where.root)


def entries_of(store: Store, step: Step, digest: Digest, form: Form) -> dict[str, Entry]:
    """The contents of an artifact by path; IntegrityError if it is not kept any more."""
    if form == "tree":
        return {entry.path: entry for entry in tree_entries(store.get(digest))}
    path = step.produces[0] if step.produces else ALL
    return {path: Entry(path, digest, form == "program")}


def attempt(store: Store | None, given: str, line: str | None) -> Attempt | None:
    """An attempt by `STEP@N`, of the last run that tried the step; None if the word is none."""
    name, sign, number = given.rpartition("@")
    if not sign or not name or not is_count(number) or store is None:
        return None
    last = load_state(store, find_run(store, None, line))
    step_id = step_named(name, last.plan.steps)
    if step_id is None:
        return None
    while not last.steps[step_id].attempts:
        if last.previous is None or step_id not in last.steps:
            raise UsageError(f"'{step_id}' was never tried", hint="holdfast status")
        last = load_state(store, last.previous)
        if step_id not in last.steps:
            raise UsageError(f"'{step_id}' was never tried", hint="holdfast status")
    return _attempt(store, last, step_id, int(number))


def _attempt(store: Store, state: State, step_id: StepId, number: int) -> Attempt:
    def words(digest: Digest | None) -> str:
        return "" if digest is None else store.get(digest).decode("utf-8", "replace")

    step, run = state.plan.steps[step_id], state.run
    for recorded in store.read(f"run:{run}"):
        event = recorded.event
        if getattr(event, "step", None) != step_id or getattr(event, "attempt", None) != number:
            continue
        if isinstance(event, AttemptAccepted):
            made = entries_of(store, step, event.digest, event.form)
            return Attempt(step_id, number, run, "accepted", files=made)
        if isinstance(event, AttemptRejected):
            made = entries_of(store, step, event.digest, event.form) if event.digest else {}
            said = words(event.feedback)
            return Attempt(step_id, number, run, "rejected", event.guard, said, made)
        if isinstance(event, AttemptFailed | AttemptLost):
            return Attempt(step_id, number, run, event.code, feedback=words(event.feedback))
    tried = state.steps[step_id].attempts
    raise UsageError(
        f"'{step_id}' has no ended attempt {number} in {short(run)}", hint=f"it has {tried}"
    )
