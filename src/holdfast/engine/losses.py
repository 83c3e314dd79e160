"""What a dead engine left of a run: its processes ended, its outputs kept and put back, its attempts lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cache

from holdfast.core.decide import settle
from holdfast.core.fold import apply
from holdfast.core.moves import INTERRUPTED
from holdfast.core.refs import w_ref
from holdfast.core.state import State
from holdfast.engine.attempt import Bench, leftovers
from holdfast.engine.conflicts import Conflicts
from holdfast.engine.finish import Finisher
from holdfast.engine.journals import read_state
from holdfast.engine.outputs import Outputs, edit_key, edit_of
from holdfast.engine.result import Result
from holdfast.engine.sent import Left
from holdfast.engine.survey import Survey
from holdfast.engine.tee import said_so_far
from holdfast.engine.world import World
from holdfast.errors import FencedError, IntegrityError, UsageError
from holdfast.model.digest import Digest
from holdfast.model.event import Event, Recorded, RunEnded, RunEvent, RunResumed
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch


def take_over(world: World, run: RunId, *, unless_driven: bool = False) -> tuple[int, State]:
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


def lost(world: World, state: State, survey: Survey) -> list[Result]:
    """What a dead engine left: end its processes, finish or undo its writes, keep and put back outputs."""
    logs = {
        s: said_so_far(world.scratch, state.run, s, a.attempt) for s, a in state.running.items()
    }
    sent = Left(world.scratch, state.run, world.owner.boot)
    leftovers(world, state)
    journal = world.journal(state.run)
    outputs = Outputs(world.root, journal, world.store, hidden=world.hidden)

    @cache
    def recorded() -> frozenset[str]:  # read only if there is a change of files to ask about
        return frozenset(edit_of(state.run, event) for event in events_of(world, state.run))

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
    finisher = Finisher(world, state, survey, outputs, bench, conflicts, sent)
    results = []
    for step_id, started in state.running.items():
        was_taken_back = edit_key(state.run, step_id, started.attempt) in taken_back
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


def events_of(world: World, run: RunId) -> Iterable[Event]:
    """The events of a run in order."""
    return (recorded.event for recorded in world.store.read(f"run:{run}"))


def end_run(world: World, run: RunId) -> State:
    """End a run that nobody drives any more, and say how it stands then."""
    return _settle(world, run, RunEnded("superseded"))


def leave_run(world: World, run: RunId) -> None:
    """Take note of what a dead engine left of a run, and put back what it wrote; it can be resumed."""
    _settle(world, run)


def _settle(world: World, run: RunId, *more: RunEvent) -> State:
    batch, placed, state = closing(world, run, *more)
    if batch.appends:
        world.store.commit(batch)
        placed()
    return state


def closing(world: World, run: RunId, *more: RunEvent) -> tuple[Batch, Callable[[], None], State]:
    """What is to be recorded of a run that a dead engine left, and `more`; empty if it ended.

    What comes back with it is called once that is committed; then the run stands as the state says.
    """
    fence, state = take_over(world, run, unless_driven=True)
    if state.ended:
        return Batch([]), lambda: None, state
    survey = Survey(world.root, world.store, world.executor, state.plan, world.ignores)
    results = lost(world, state, survey)
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
    for event in more:
        add(event, world.clock())
    batch = Batch(
        [Append(f"run:{run}", seq, facts, fence)] if facts else [],
        [row for result in results for row in result.artifacts],
        [blob for result in results for blob in result.blobs],
    )

    def placed() -> None:
        outputs = Outputs(world.root, world.journal(run), world.store)
        for result in results:
            for key in result.applied:
                outputs.placed(key)

    return batch, placed, state


def put_back(world: World, state: State, runs: Collection[RunId]) -> None:
    """Put back what dead engines left of these runs: nobody may take it for a person's version."""
    driven = {holder.run for holder in world.store.holders(state.project, state.line)}
    for run in runs:
        if run not in driven:
            with suppress(FencedError):  # another engine does the same
                leave_run(world, run)
