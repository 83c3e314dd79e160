"""How runs begin and go on: admission, supersession, resume, retry."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from holdfast.core.decide import close_gaps, reset
from holdfast.core.fold import apply
from holdfast.core.refs import structure
from holdfast.core.state import State, empty_state
from holdfast.core.waves import graph_of
from holdfast.engine.fork import put_in_place
from holdfast.engine.hold import Hold
from holdfast.engine.inheritance import left_answers
from holdfast.engine.journals import has_ended, knowing, runs_of
from holdfast.engine.lines import line_journal
from holdfast.engine.loop import Engine
from holdfast.engine.losses import closing, end_run, events_of, lost, take_over
from holdfast.engine.opened import is_left_rejected
from holdfast.engine.outputs import Outputs
from holdfast.engine.replans import PREPARED, answers_by
from holdfast.engine.requests import check_secrets
from holdfast.engine.survey import Survey
from holdfast.engine.undo import settle_undone
from holdfast.engine.versions import versions_in
from holdfast.engine.whole import assure_plan
from holdfast.engine.worktrees import check_worktrees, drop_worktrees
from holdfast.engine.world import World
from holdfast.errors import ConflictError, FencedError, IntegrityError, UsageError
from holdfast.model.digest import Digest
from holdfast.model.event import (
    Event,
    Options,
    Recorded,
    ReplanDecided,
    RunEnded,
    RunEvent,
    RunResumed,
    RunStarted,
)
from holdfast.model.line import PlanVersioned, ReplanAnswered, RunCollected, RunOpened
from holdfast.model.plan import Plan, RunId, StepId, plan_bytes
from holdfast.model.secret import holds
from holdfast.ports import Append, Batch, Store
from holdfast.process.removal import discard_folder


def start_run(
    world: World,
    plan: Plan,
    line: str,
    options: Options,
    key: str = "",
    taken_by: str | None = None,
) -> tuple[Hold, Engine]:
    """Begin a run of a line. An earlier one that was left unfinished is superseded.

    With a `key`, a run that was begun under the same key is continued instead of begun twice. `taken_by` is
    who let a plan that was ready take the place of the one that no longer holds: nobody had to, or a person.
    """
    graph = graph_of(plan)
    _check_join(plan, options)
    content = _plan_content(world, plan)
    check_worktrees(plan, world.root)
    assure_plan(world.store, plan, line)
    hold = Hold(world, plan.project, line)
    hold.take(join=options.joined)
    try:
        settle_undone(world, hold, plan.project, line)
        known = run_of_key(world.store, plan.project, line, key) if key else None
        if known is not None:
            return hold, _continue(world, hold, known)
        answers = _answers(world, plan, line, taken_by)
        doubted = next((one.run for one in answers if not has_ended(world.store, one.run)), None)
        with knowing(content, plan, graph):
            previous, left = supersede(world, plan.project, line, but=doubted)
        run = RunId(f"r-{world.new_id()}")
        hold.announce(run)  # before the run exists: nobody may end it
        begun, fence = _open(world, plan, content, line, options, run, key, previous, answers)
        if doubted is not None:
            _tidy(world, doubted)
        survey = Survey(world.root, world.store, world.executor, plan, world.ignores)
        fresh = empty_state(plan, graph)
        for recorded in begun:
            apply(fresh, recorded)
        world.on_events(begun)
        return hold, Engine(world, fresh, fence, hold, survey, hold.entered_at, left)
    except BaseException:
        hold.release()
        raise


def _plan_content(world: World, plan: Plan) -> bytes:
    """The plan as a run keeps it; UsageError if it cannot be stored."""
    content, secrets = plan_bytes(plan), world.hidden()
    if secrets and holds([content], secrets):
        raise UsageError(
            "the plan holds the value of a secret or of a key, and plans are stored as they are",
            hint="name its variable in 'secrets' of the step that needs it",
        )
    return content


def resume_run(
    world: World,
    run: RunId,
    *,
    only: Sequence[StepId] | None = None,
    code: str = "retried",
    asked: Sequence[StepId] = (),
    max_cost: int | None = None,
) -> tuple[Hold, Engine]:
    """Continue a run at rest, or one whose engine died. Failed steps are tried again: all, or `only` some.

    A person `asked` for some of them by name, and may let the run spend more than so far: `max_cost`
    micro-dollars in all.
    """
    first = next(iter(events_of(world, run)), None)
    if first is None:
        raise UsageError(f"there is no run '{run}'")
    if not isinstance(first, RunStarted):
        raise IntegrityError(f"the journal of run '{run}' does not begin with its start")
    hold = Hold(world, first.project, first.line)
    hold.take(join=first.options.joined)
    try:
        settle_undone(world, hold, first.project, first.line)
        _check_there(world, run)
        return hold, _continue(
            world, hold, run, only=only, code=code, asked=asked, max_cost=max_cost
        )
    except BaseException:
        hold.release()
        raise


def _check_there(world: World, run: RunId) -> None:
    """UsageError if somebody removed a run while its line was waited for."""
    if not world.store.last(f"run:{run}"):
        raise UsageError(f"run '{run}' was removed meanwhile")


def _open(
    world: World,
    plan: Plan,
    content: bytes,
    line: str,
    options: Options,
    run: RunId,
    key: str,
    previous: RunId | None,
    answers: Sequence[ReplanAnswered] = (),
) -> tuple[list[Recorded], int]:
    """Store the plan and the first facts of a run in one transaction.

    In the same one the run ends whose doubts it `answers`: at no moment there is neither of the two.
    """
    digest, ref = world.store.put(content), world.store.put(structure(plan))
    start = RunStarted(
        run=run,
        line=line,
        project=plan.project,
        plan=digest,
        w_ref=ref,
        options=options,
        engine=world.owner.engine,
        previous=previous,
        agreed=world.agreed,
        ready=world.ready(plan),
        file=world.file,
    )
    driven = {holder.run for holder in world.store.holders(plan.project, line)}
    facts: list[RunEvent] = [start, *left_answers(world.store, plan, line, driven)]
    journal = line_journal(plan.project, line)
    before, placed = Batch([]), _nothing
    for answer in answers:
        if has_ended(world.store, answer.run):
            continue
        key = key or key_of(world.store, plan.project, line, answer.run)
        decided = ReplanDecided(answer.triggers, answer.choice, answer.by, digest)
        before, placed, _ = closing(world, answer.run, decided, RunEnded("superseded"))
    reason = PREPARED if any(one.choice == PREPARED for one in answers) else ""
    while True:
        at, last = world.clock(), world.store.last(journal)
        said: list[tuple[int, Event]] = [(at, RunOpened(run, key))]
        said += [(at, answer) for answer in answers]
        parent = _latest_plan(world, journal)
        if parent != digest:
            said.insert(0, (at, PlanVersioned(digest, ref, parent, reason)))
        own = [(at, fact) for fact in facts]
        appends = [Append(journal, last, said), Append(f"run:{run}", 0, own, 1)]
        batch = replace(before, appends=[*before.appends, *appends])
        try:
            fence = world.store.open_run(run, plan.project, line, batch, world.owner.engine)
        except ConflictError:
            if world.store.last(journal) == last:
                raise
            continue
        placed()
        return [Recorded(seq, at, fact) for seq, fact in enumerate(facts, 1)], fence


def _nothing() -> None:
    """Nothing is to be done afterwards."""


def _answers(world: World, plan: Plan, line: str, taken_by: str | None) -> list[ReplanAnswered]:
    """What the plan of a run that begins answers of what spoke against the last one, if nobody drives it."""
    rows = runs_of(world.store, plan.project, line)
    driven = {holder.run for holder in world.store.holders(plan.project, line)}
    if not rows or rows[-1].run in driven:
        return []
    return answers_by(world.store, rows[-1].run, plan, taken_by)


def _latest_plan(world: World, journal: str) -> Digest | None:
    """The line's latest plan, that a run begins with; runs may have gone on with others."""
    found = versions_in(world.store.read(journal))
    return found[-1].plan if found else None


def key_of(store: Store, project: str, line: str, run: RunId) -> str:
    """The key under which a run of a line was begun; '' if there was none."""
    events = (recorded.event for recorded in store.read(line_journal(project, line)))
    return next((e.key for e in events if isinstance(e, RunOpened) and e.run == run), "")


def run_of_key(store: Store, project: str, line: str, key: str) -> RunId | None:
    """The run of a line that was begun under a key, or the last of those that took its place."""
    found = None
    for recorded in store.read(line_journal(project, line)):
        event = recorded.event
        if isinstance(event, RunOpened) and event.key == key:
            found = event.run
        elif isinstance(event, RunCollected) and event.run == found:
            found = None
    return found


def _continue(
    world: World,
    hold: Hold,
    run: RunId,
    *,
    only: Sequence[StepId] | None = None,
    code: str = "retried",
    asked: Sequence[StepId] = (),
    max_cost: int | None = None,
) -> Engine:
    hold.drives(run)
    fence, state = take_over(world, run)
    if not state.ended:
        assure_plan(world.store, state.plan, state.line)
    survey = Survey(world.root, world.store, world.executor, state.plan, world.ignores)
    if state.ended:
        _tidy(world, run)
        return Engine(world, state, fence, hold, survey)
    check_secrets(world.store, state, world.secrets)
    results = lost(world, state, survey)
    engine = Engine(world, state, fence, hold, survey)
    engine.record([RunResumed(world.owner.engine, max_cost, world.agreed)])
    for result in results:
        engine.settle(result)
    again = _failed(world, state) if only is None else only
    engine.record(close_gaps(state, again if only is not None else ()))
    engine.record(reset(state, again, code, asked))
    if state.forked is not None:
        put_in_place(world, engine)
    return engine


def _failed(world: World, state: State) -> list[StepId]:
    """The steps to try again; what a person rejected because it may have happened is left as it is."""
    failed = [s for s in state.graph.order if state.steps[s].phase == "failed"]
    return [s for s in failed if not is_left_rejected(world.store, state, s)]


def supersede(
    world: World, project: str, line: str, but: RunId | None = None
) -> tuple[RunId | None, State | None]:
    """End earlier runs of the line that nobody drives any more, `but` one.

    Gives the latest run, and how it stands if it was ended here: that was read, and may be asked for.
    """
    latest, left = None, None
    for row in runs_of(world.store, project, line):
        is_there, ended = (True, None) if row.run == but else _close(world, project, line, row.run)
        if is_there:
            latest, left = row.run, ended
    return latest, left


def _close(world: World, project: str, line: str, run: RunId) -> tuple[bool, State | None]:
    """End a run if nobody drives it, and give its state if it was ended here.

    It is not there any more if another engine ended it meanwhile and it was collected.
    """
    store, ended = world.store, None
    while not has_ended(store, run):
        holders = store.holders(project, line)
        if run in {holder.run for holder in holders}:
            return True, None
        try:
            ended = end_run(world, run)
        except FencedError:  # another engine that joins does the same: look again
            if world.owner.engine not in {holder.owner.engine for holder in holders}:
                raise  # this one was taken for dead meanwhile
        except IntegrityError:
            if store.last(f"run:{run}"):
                raise
            return False, None
    _tidy(world, run)
    return True, ended


def _tidy(world: World, run: RunId) -> None:
    """Remove what an ended run may have left: the names of what was removed last can come back."""
    Outputs(world.root, world.journal(run), world.store).all_placed()
    discard_folder(os.path.join(world.scratch, run))
    drop_worktrees(world.root, world.home, run)


def _check_join(plan: Plan, options: Options) -> None:
    if not options.joined:
        return
    for step in plan.steps.values():
        if step.workspace == "shared" or step.runs_alone:
            raise UsageError(
                f"'{step.id}' works in the project directory and cannot run beside another engine",
                hint="say 'workspace: scratch' for it, or run without --join",
            )
