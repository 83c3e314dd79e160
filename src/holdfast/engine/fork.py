"""Forks a run at a step: a new run, in a line of its own, that begins with what the other one had.

Everything that does not stand on the step is taken as it was, the very same artifacts, whatever changed
since; the step and all below it is made again. The other run and its line are not touched. What a step
changed in the project from a copy is not taken back: such a step cannot be made again while that stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from holdfast.core.decide import lose
from holdfast.core.escalation import escalates
from holdfast.core.fold import apply, fold
from holdfast.core.moves import LOST
from holdfast.core.refs import structure
from holdfast.core.state import COMPLETE, State, empty_state
from holdfast.core.views import taken_row
from holdfast.engine.along import taken_along
from holdfast.engine.hold import Hold
from holdfast.engine.lines import line_journal
from holdfast.engine.loop import Engine
from holdfast.engine.outputs import PLACE, Outputs, edit_key
from holdfast.engine.survey import Survey
from holdfast.engine.whole import assure_plan
from holdfast.engine.world import World
from holdfast.errors import EditError, UsageError
from holdfast.model.artifact import Artifact, tree_entries
from holdfast.model.changeset import changes_in, settled_in
from holdfast.model.event import (
    Event,
    Options,
    OutputsPlaced,
    Recorded,
    RunStarted,
    StepsSkipped,
    StepsTaken,
    StepWaived,
    Taken,
)
from holdfast.model.items import unopened
from holdfast.model.line import LineEvent, PlanVersioned, RunOpened
from holdfast.model.plan import Plan, RunId, Step, StepId, plan_bytes
from holdfast.ports import Append, Batch, Store

_STOOD = frozenset({"accepted", "withdrawn"})


def free_name(store: Store, origin: State, wanted: str | None) -> str:
    """The line of a fork: as wanted, else the next that is free; UsageError if it is taken."""
    taken = {row.line for row in store.runs(imported=True) if row.project == origin.project}
    if wanted is None:
        numbers = (f"{origin.line}.fork-{number}" for number in range(1, len(taken) + 2))
        return next(name for name in numbers if name not in taken)
    if not wanted.strip() or not wanted.isprintable():
        raise UsageError(f"'{wanted}' cannot be the name of a line")
    if wanted in taken:
        raise UsageError(
            f"there is a line '{wanted}' already", hint="choose another name with --as"
        )
    return wanted


def fork_run(
    world: World, origin: State, step: StepId, line: str, max_cost: int | None = None
) -> tuple[Hold, Engine]:
    """Begin a run that makes `step` and all below it again, and takes the rest from another run."""
    plan = _plan(origin, step)
    _check_copies(world.store, origin, step)
    assure_plan(world.store, plan, origin.line)
    hold = Hold(world, origin.project, line)
    hold.take(join=False)
    try:
        facts, rows = _beginning(world, origin, plan, step, line, max_cost)
        start = facts[0]
        assert isinstance(start, RunStarted)  # every run begins so
        _check_untouched(world, plan, facts, origin)
        at = world.clock()
        recorded = [Recorded(seq, at, event) for seq, event in enumerate(facts, 1)]
        state = fold(plan, recorded)  # before anything is stored: a run that cannot be is none
        hold.announce(start.run)
        fence = _open(world, start, recorded, rows, taken_along(world.store, origin, rows))
        world.on_events(recorded)
        survey = Survey(world.root, world.store, world.executor, plan, world.ignores)
        engine = Engine(world, state, fence, hold, survey)
        put_in_place(world, engine)
        return hold, engine
    except BaseException:
        hold.release()
        raise


def _plan(origin: State, step: StepId) -> Plan:
    """The plan of the run, without what steps that are made again had added to it: they will add anew."""
    below = origin.graph.below([step])
    gone: set[StepId] = set()
    for step_id in origin.graph.order:
        added = origin.added.get(step_id)
        needs = {need.step for need in origin.plan.steps[step_id].needs}
        if added is not None and (added.step in below or needs & gone):
            gone.add(step_id)
    if step in gone:
        adder = origin.added[step].step
        raise UsageError(
            f"'{step}' was added by '{adder}', which would not be made again",
            hint=f"fork from '{adder}'",
        )
    steps = {
        name: unopened(one) if one.has_items and any(n.step in gone for n in one.needs) else one
        for name, one in origin.plan.steps.items()
        if name not in gone
    }
    return replace(origin.plan, steps=steps)


def _check_copies(store: Store, origin: State, step: StepId) -> None:
    """UsageError if what is made again changed files in copies: it would change them twice."""
    again = origin.graph.below([step])
    newest = store.newest_of_all(origin.project, origin.line)
    standing = [
        one
        for one in origin.graph.order
        if one in again
        and origin.plan.steps[one].changes_copy
        and one in newest
        and _has_changes(store, newest[one])
    ]
    if standing:
        names = ", ".join(f"'{one}'" for one in standing)
        raise UsageError(
            f"what {names} changed in the project stands; made again, it would be changed twice",
            hint=f"undo '{standing[-1]}' first, or fork from a step below",
        )


def _has_changes(store: Store, row: Artifact) -> bool:
    """Whether an artifact changed files beside its outputs, or people decided about some."""
    if row.form != "tree":
        return False
    if not store.has(row.digest):  # purged: nobody can tell
        return True
    manifest = store.get(row.digest)
    return bool(changes_in(manifest) or settled_in(manifest))


def _beginning(
    world: World, origin: State, plan: Plan, step: StepId, line: str, max_cost: int | None
) -> tuple[list[Event], list[Artifact]]:
    """The first facts of the fork, and the rows of the index that follow from them."""
    store = world.store
    again = origin.graph.below([step])
    digest, ref = store.put(plan_bytes(plan)), store.put(structure(plan))
    start = RunStarted(
        run=RunId(f"r-{world.new_id()}"),
        line=line,
        project=origin.project,
        plan=digest,
        w_ref=ref,
        options=Options(
            force_steps=tuple(s for s in origin.graph.order if s in again and s in plan.steps),
            cutoff=origin.options.cutoff,
            on_drift=origin.options.on_drift,
            max_cost=max_cost,
        ),
        engine=world.owner.engine,
        forked=origin.run,
        forked_at=step,
        agreed=world.agreed,
        ready=world.ready(plan),
        file=origin.file,
    )
    trial = _Trial(plan, start)
    rest = [s for s in origin.graph.order if s in plan.steps and s not in again]
    for step_id in rest:
        if step_id in origin.gaps:
            trial.say(_waived(origin, step_id))
    lost = _gone_without(origin, rest)
    for step_id in rest:
        if not trial.can_settle(step_id):
            continue
        if origin.steps[step_id].phase in COMPLETE:
            trial.say(StepsTaken((_taken(store, origin, step_id),)))
        elif step_id in lost:
            _lose(trial, origin, step_id, step)
    return trial.facts, [taken_row(start, item) for item in _items(trial.facts)]


class _Trial:
    """The first facts of a run, each folded as soon as it is said; what is taken in a row is one fact."""

    def __init__(self, plan: Plan, start: RunStarted) -> None:
        self.state = empty_state(plan)
        self.facts: list[Event] = []
        self.say(start)

    def say(self, event: Event) -> None:
        apply(self.state, Recorded(self.state.seq + 1, 0, event))
        last = self.facts[-1] if self.facts else None
        if isinstance(last, StepsTaken) and isinstance(event, StepsTaken):
            self.facts[-1] = StepsTaken((*last.items, *event.items))
        else:
            self.facts.append(event)

    def can_settle(self, step_id: StepId) -> bool:
        """Whether nothing was said of a step, and all that it needs is complete or gone without."""
        return self.state.steps[step_id].phase == "pending" and not self.state.missing[step_id]


def _waived(origin: State, step_id: StepId) -> StepWaived:
    """A person went on without it, and so does the fork."""
    here, gap = origin.steps[step_id], origin.gaps[step_id]
    assert here.config_ref is not None  # it was waived
    assert here.digest is not None
    return StepWaived(step_id, here.config_ref, here.digest, here.form, gap.by, gap.because, 0)


def _gone_without(origin: State, steps: Sequence[StepId]) -> set[StepId]:
    """The lost steps without which others went on, and those that are behind their loss."""
    queue = [
        need.step
        for step_id in steps
        if origin.steps[step_id].phase in COMPLETE
        for need in origin.plan.steps[step_id].needs
    ]
    found: set[StepId] = set()
    for step_id in queue:  # grows while it is walked
        if origin.steps[step_id].phase in LOST and step_id not in found:
            found.add(step_id)
            queue += [need.step for need in origin.plan.steps[step_id].needs]
    return found


def _lose(trial: _Trial, origin: State, step_id: StepId, forked_at: StepId) -> None:
    """A step is lost as it was, so that what went on without it can be taken.

    Not if the step that is made again would be lost with it, or if a person had to be asked first: then it is
    tried again, and what went on without it follows.
    """
    here = origin.steps[step_id]
    assert here.reason is not None  # nothing is lost without one
    events = lose(trial.state, step_id, here)
    skipped = [item.step for e in events if isinstance(e, StepsSkipped) for item in e.items]
    failed = here.phase == "failed"
    if forked_at in skipped or (failed and escalates(origin.plan.steps[step_id], here.reason)):
        return
    for event in events:
        trial.say(event)


def _items(facts: Sequence[Event]) -> Iterator[Taken]:
    for event in facts:
        yield from event.items if isinstance(event, StepsTaken) else ()


def _taken(store: Store, origin: State, step_id: StepId) -> Taken:
    """What a step had in a run; UsageError if that is not kept any more."""
    here = origin.steps[step_id]
    rows = store.artifacts(project=origin.project, step=step_id, digest=here.digest)
    fitting = [r for r in rows if r.config_ref == here.config_ref and r.status in _STOOD]
    own = [row for row in fitting if row.line == origin.line] or fitting
    if not own or not _is_whole(store, own[-1]):
        raise UsageError(
            f"the artifact of '{step_id}' in that run is no longer kept",
            hint=f"fork from '{step_id}', or holdfast run",
        )
    row = own[-1]
    return Taken(
        step=row.step,
        config_ref=row.config_ref,
        input_ref=row.input_ref,
        own_ref=row.own_ref,
        digest=row.digest,
        form=row.form,
        source=row.source,
        verified=row.verified,
        reusable=row.reusable,
        made_at=row.at,
    )


def _is_whole(store: Store, row: Artifact) -> bool:
    if not store.has(row.digest) or not store.has(row.own_ref):
        return False
    if row.form != "tree":
        return True
    return all(store.has(entry.digest) for entry in tree_entries(store.get(row.digest)))


def _open(
    world: World,
    start: RunStarted,
    recorded: Sequence[Recorded],
    rows: Sequence[Artifact],
    along: Sequence[tuple[int, LineEvent]],
) -> int:
    journal = line_journal(start.project, start.line)
    at, last = recorded[0].at, world.store.last(journal)
    said: list[tuple[int, Event]] = [
        (at, PlanVersioned(start.plan, start.w_ref, None)),
        (at, RunOpened(start.run)),
        *along,
    ]
    told = [(at, item.event) for item in recorded]
    batch = Batch([Append(journal, last, said), Append(f"run:{start.run}", 0, told, 1)], rows)
    return world.store.open_run(start.run, start.project, start.line, batch, world.owner.engine)


# --- files ------------------------------------------------------------------------------------------------


def _check_untouched(world: World, plan: Plan, facts: Sequence[Event], origin: State) -> None:
    """UsageError if files of taken steps were written by a person: they would be overwritten."""
    outputs = Outputs(world.root, "", world.store, plan.steps)
    for item in _items(facts):
        step = plan.steps[item.step]
        if step.produces:
            wanted = outputs.wanted(step, item.digest, item.form)
            known = partial(outputs.known, origin.project, origin.line, step)
            found = outputs.drift_from(step, wanted, known)
            if found.state == "edited":
                raise UsageError(
                    f"'{found.paths[0]}' of '{step.id}' was changed by hand",
                    hint=f"move it away, or holdfast amend {step.id}",
                )


def put_in_place(world: World, engine: Engine) -> None:
    """Write the files of taken steps where they differ; also when a fork is continued after a crash."""
    state = engine.state
    outputs = Outputs(world.root, world.journal(state.run), world.store, state.plan.steps)
    for step_id in state.graph.order:
        here, step = state.steps[step_id], state.plan.steps[step_id]
        taken = here.reason is not None and here.reason.code == "forked" and here.digest is not None
        if taken and step.produces:
            _put(world, engine, outputs, step)


def _put(world: World, engine: Engine, outputs: Outputs, step: Step) -> None:
    here = engine.state.steps[step.id]
    assert here.digest is not None  # it was taken
    wanted = outputs.wanted(step, here.digest, here.form)
    project, line = engine.state.project, engine.state.line
    found = outputs.drift_from(step, wanted, lambda: outputs.known(project, line, step))
    if found.state == "equal":
        return
    if found.state == "edited":
        world.say(f"'{found.paths[0]}' was changed by hand and is left as it is")
        return
    key = edit_key(engine.state.run, step.id, PLACE)
    try:
        paths = outputs.place(step, wanted, key)
    except EditError as error:
        world.say(f"the files of '{step.id}' stay as they are: {error.message}")
        return
    engine.placed(OutputsPlaced(step.id, here.digest, here.form, paths), key)
