"""How runs begin and go on: admission, supersession, resume, retry."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from functools import cache

from holdfast.core.decide import close_gaps, reset, settle
from holdfast.core.fold import apply
from holdfast.core.moves import INTERRUPTED
from holdfast.core.refs import structure, w_ref
from holdfast.core.state import State, empty_state
from holdfast.core.waves import graph_of
from holdfast.engine.attempt import Bench, leftovers
from holdfast.engine.conflicts import Conflicts
from holdfast.engine.finish import Finisher
from holdfast.engine.fork import put_in_place
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_state
from holdfast.engine.lines import line_journal
from holdfast.engine.loop import Engine
from holdfast.engine.opened import is_left_rejected
from holdfast.engine.outputs import Outputs, edit_of
from holdfast.engine.requests import check_secrets
from holdfast.engine.result import Result
from holdfast.engine.survey import Survey
from holdfast.engine.tee import said_so_far
from holdfast.engine.undo import settle_undone
from holdfast.engine.worktrees import check_worktrees, drop_worktrees
from holdfast.engine.world import World
from holdfast.errors import ConflictError, FencedError, IntegrityError, UsageError
from holdfast.model.digest import Digest
from holdfast.model.event import (
    Event,
    Options,
    Recorded,
    RunEnded,
    RunEvent,
    RunResumed,
    RunStarted,
)
from holdfast.model.line import PlanVersioned, RunCollected, RunOpened
from holdfast.model.plan import Plan, RunId, StepId, plan_bytes
from holdfast.ports import Append, Batch, RunRow, Store


def start_run(
    world: World, plan: Plan, line: str, options: Options, key: str = ""
) -> tuple[Hold, Engine]:
    """Begin a run of a line. An earlier one that was left unfinished is superseded.

    With a `key`, a run that was begun under the same key is continued instead of begun twice.
    """
    graph = graph_of(plan)
    _check_join(plan, options)
    check_worktrees(plan, world.root)
    hold = Hold(world, plan.project, line)
    hold.take(join=options.joined)
    try:
        settle_undone(world, hold, plan.project, line)
        known = run_of_key(world.store, plan.project, line, key) if key else None
        if known is not None:
            return hold, _continue(world, hold, known)
        previous = supersede(world, plan.project, line)
        run = RunId(f"r-{world.new_id()}")
        hold.announce(run)  # before the run exists: nobody may end it
        first, fence = _open(world, plan, line, options, run, key, previous)
        survey = Survey(world.root, world.store, world.executor, plan, world.ignores)
        fresh = empty_state(plan, graph)
        apply(fresh, first)
        world.on_events([first])
        return hold, Engine(world, fresh, fence, hold, survey, hold.entered_at)
    except BaseException:
        hold.release()
        raise


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
    first = next(iter(_events(world, run)), None)
    if first is None:
        raise UsageError(f"there is no run '{run}'")
    if not isinstance(first, RunStarted):
        raise IntegrityError(f"the journal of run '{run}' does not begin with its start")
    hold = Hold(world, first.project, first.line)
    hold.take(join=first.options.joined)
    try:
        settle_undone(world, hold, first.project, first.line)
        return hold, _continue(
            world, hold, run, only=only, code=code, asked=asked, max_cost=max_cost
        )
    except BaseException:
        hold.release()
        raise


def _open(
    world: World,
    plan: Plan,
    line: str,
    options: Options,
    run: RunId,
    key: str,
    previous: RunId | None,
) -> tuple[Recorded, int]:
    """Store the plan and the first facts of a run in one transaction."""
    digest = world.store.put(plan_bytes(plan))
    ref = world.store.put(structure(plan))
    start = RunStarted(run, line, plan.project, digest, ref, options, world.owner.engine, previous)
    journal = line_journal(plan.project, line)
    while True:
        at, last = world.clock(), world.store.last(journal)
        said: list[tuple[int, Event]] = [(at, RunOpened(run, key))]
        parent = _latest_plan(world, journal)
        if parent != digest:
            said.insert(0, (at, PlanVersioned(digest, ref, parent)))
        batch = Batch([Append(journal, last, said), Append(f"run:{run}", 0, [(at, start)], 1)])
        try:
            fence = world.store.open_run(run, plan.project, line, batch, world.owner.engine)
        except ConflictError:
            if world.store.last(journal) == last:
                raise
            continue
        return Recorded(1, at, start), fence


def _latest_plan(world: World, journal: str) -> Digest | None:
    """The latest plan that a run of the line began with; runs may have gone on with others."""
    latest = None
    for recorded in world.store.read(journal):
        if isinstance(recorded.event, PlanVersioned) and not recorded.event.reason:
            latest = recorded.event.plan
    return latest


def run_of_key(store: Store, project: str, line: str, key: str) -> RunId | None:
    """The run of a line that was begun under a key."""
    found = None
    for recorded in store.read(line_journal(project, line)):
        event = recorded.event
        if isinstance(event, RunOpened) and event.key == key:
            found = found or event.run
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
    fence, state = _take_over(world, run)
    survey = Survey(world.root, world.store, world.executor, state.plan, world.ignores)
    if state.ended:
        _tidy(world, run)
        return Engine(world, state, fence, hold, survey)
    check_secrets(world.store, state, world.secrets)
    results = _lost(world, state, survey)
    engine = Engine(world, state, fence, hold, survey)
    engine.record([RunResumed(world.owner.engine, max_cost)])
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


def _take_over(world: World, run: RunId, *, unless_driven: bool = False) -> tuple[int, State]:
    """Raise the fence first: whoever had the run can write no more; then read what is true."""
    try:
        fence = world.store.take_run(run, world.owner.engine, unless_driven=unless_driven)
    except UsageError as error:  # the store itself named it
        raise IntegrityError(error.message, hint="holdfast verify") from error
    state = read_state(world.store, run)
    if state is None:
        raise IntegrityError(f"run '{run}' has no journal")
    if w_ref(state.plan) != state.w_ref:
        raise IntegrityError(
            f"the plan kept for run '{run}' does not have the structure it began with",
            hint="holdfast verify",
        )
    return fence, state


def _lost(world: World, state: State, survey: Survey) -> list[Result]:
    """What a dead engine left: end its processes, finish or undo its writes, keep and put back outputs."""
    logs = {
        s: said_so_far(world.scratch, state.run, s, a.attempt) for s, a in state.running.items()
    }
    leftovers(world, state)
    outputs = Outputs(world.root, world.journal(state.run), world.store)

    @cache
    def recorded() -> frozenset[str]:  # read only if there is a change of files to ask about
        return frozenset(edit_of(state.run, event) for event in _events(world, state.run))

    taken_back: set[str] = set()

    def committed(key: str) -> bool:
        if key not in recorded():
            taken_back.add(key)
        return key in recorded()

    by_hand = outputs.recover(committed)
    theirs = _kept(world, outputs, by_hand) if taken_back else None
    if theirs is None:
        for path in by_hand:
            world.say(f"'{path}' was changed by hand meanwhile and is left as it is")
    bench = Bench(world, state, survey, outputs)
    conflicts = Conflicts(world, state, outputs, world.store.get)
    finisher = Finisher(world, state, survey, outputs, bench, conflicts)
    results = []
    for step_id, started in state.running.items():
        was_taken_back = f"{state.run}.{step_id}.{started.attempt}" in taken_back
        results.append(
            finisher.lost(
                started,
                INTERRUPTED,
                world.clock(),
                log=logs[step_id],
                unwatched=True,
                theirs=theirs if was_taken_back else None,
            )
        )
    return results


def _kept(world: World, outputs: Outputs, by_hand: Sequence[str]) -> Digest | None:
    """Store what a person wrote where changes were taken back: whoever makes them again begins with it."""
    if not by_hand:
        return None
    kept = outputs.keep_paths(by_hand)
    for _, content in kept.blobs:
        world.store.put(content)
    there = {entry.path: entry.digest for entry in kept.entries}
    for path in by_hand:
        version = f" and is kept: holdfast show {there[path][:12]}" if path in there else ""
        world.say(
            f"'{path}' was changed by hand meanwhile{version}; what is made again begins with it"
        )
    return kept.digest


def _events(world: World, run: RunId) -> Iterable[Event]:
    return (recorded.event for recorded in world.store.read(f"run:{run}"))


def supersede(world: World, project: str, line: str) -> RunId | None:
    """End earlier runs of the line that nobody drives any more; gives the latest run."""
    latest = None
    for row in _runs(world, project, line):
        latest = row.run
        while not _has_ended(world, row.run):
            holders = world.store.holders(project, line)
            if row.run in {holder.run for holder in holders}:
                break
            try:
                _supersede_one(world, row.run)
            except FencedError:  # another engine that joins does the same: look again
                if world.owner.engine not in {holder.owner.engine for holder in holders}:
                    raise  # this one was taken for dead meanwhile
        else:
            _tidy(world, row.run)
    return latest


def _tidy(world: World, run: RunId) -> None:
    """Remove what an ended run may have left: the names of what was removed last can come back."""
    Outputs(world.root, world.journal(run), world.store).all_placed()
    shutil.rmtree(os.path.join(world.scratch, run), ignore_errors=True)
    drop_worktrees(world.root, world.home, run)


def _runs(world: World, project: str, line: str) -> list[RunRow]:
    return [row for row in world.store.runs(line) if row.project == project]


def _has_ended(world: World, run: RunId) -> bool:
    journal = f"run:{run}"
    last = world.store.last(journal)
    return any(isinstance(r.event, RunEnded) for r in world.store.read(journal, max(0, last - 1)))


def _supersede_one(world: World, run: RunId) -> None:
    fence, state = _take_over(world, run, unless_driven=True)
    if state.ended:
        return
    survey = Survey(world.root, world.store, world.executor, state.plan, world.ignores)
    results = _lost(world, state, survey)
    facts: list[tuple[int, Event]] = []
    seq = state.seq

    def add(event: RunEvent, at: int) -> None:
        apply(state, Recorded(state.seq + 1, at, event))
        facts.append((at, event))

    if results:
        if state.status != "running":
            add(RunResumed(world.owner.engine), world.clock())
        for result in results:
            for event in settle(state, result.ending):
                add(event, result.at)
    add(RunEnded("superseded"), world.clock())
    world.store.commit(
        Batch(
            [Append(f"run:{run}", seq, facts, fence)],
            [row for result in results for row in result.artifacts],
            [blob for result in results for blob in result.blobs],
        )
    )
    outputs = Outputs(world.root, world.journal(run), world.store)
    for result in results:
        for key in result.applied:
            outputs.placed(key)


def _check_join(plan: Plan, options: Options) -> None:
    if not options.joined:
        return
    for step in plan.steps.values():
        if step.workspace == "shared" or step.runs_alone:
            raise UsageError(
                f"'{step.id}' works in the project directory and cannot run beside another engine",
                hint="say 'workspace: scratch' for it, or run without --join",
            )
