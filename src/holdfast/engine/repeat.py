"""A run in which everything stands as the last one left it: begun and ended in one transaction.

Its journal holds the same facts as that of a run which looked at every step: who reads it cannot tell
which way was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from holdfast.core.fold import fold
from holdfast.core.state import Plans, State
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_plan
from holdfast.engine.lines import line_journal
from holdfast.engine.unchanged import (
    Note,
    Question,
    Tools,
    holds,
    is_at_end,
    pass_on,
    read_note,
)
from holdfast.engine.undo import settle_undone
from holdfast.engine.whole import assure_plan
from holdfast.engine.world import World
from holdfast.errors import ConflictError
from holdfast.model.event import (
    Event,
    Options,
    PlanExtended,
    Recorded,
    RunEnded,
    RunStarted,
    StepsReused,
)
from holdfast.model.fixed import frozen
from holdfast.model.line import RunOpened
from holdfast.model.plan import Plan, RunId, plan_digest
from holdfast.ports import Append, Batch


@frozen
class Repeated:
    """A run that came to nothing but reuse, as its journal tells it."""

    plan: Plan
    events: Sequence[Recorded]
    plans: Plans

    def state(self) -> State:
        """The run, folded."""
        return fold(self.plan, self.events, self.plans)


def repeat_run(
    world: World, plan: Plan, line: str, options: Options, tools: Callable[[], Tools]
) -> Repeated | None:
    """Begin and end a run in which every step is reused; None unless that is certain.

    `tools` asks the tools of the plan for their versions; it is only called if the rest may hold. Whoever
    follows the run is told by the caller, who has all of it at once.
    """
    if options.force or options.force_steps or options.joined:
        return None
    note = read_note(world, plan.project, line)
    if note is None or not is_at_end(world, note, plan.project, line):
        return None
    question = Question(plan, line, options, tools())
    if not holds(world, note, question):
        return None
    assure_plan(world.store, plan, line)
    hold = Hold(world, plan.project, line)
    hold.take(join=False)
    try:
        settle_undone(world, hold, plan.project, line)
        return _repeated(world, hold, note, question)
    finally:
        hold.release()


def _repeated(world: World, hold: Hold, note: Note, question: Question) -> Repeated | None:
    """Copy what the last run found. What was written to the line since it was looked at forbids it."""
    first, *reused, last = [recorded.event for recorded in world.store.read(f"run:{note.run}")]
    if not (isinstance(first, RunStarted) and last == RunEnded("completed")):
        return None
    items = sum(len(event.items) for event in reused if isinstance(event, StepsReused))
    grown = [event for event in reused if isinstance(event, PlanExtended)]
    wanted = len(question.plan.steps) + sum(len(event.added) for event in grown)
    if len(grown) + sum(isinstance(e, StepsReused) for e in reused) != len(reused):
        return None
    if items != wanted or (grown and grown[0].parent != plan_digest(question.plan)):
        return None
    run = RunId(f"r-{world.new_id()}")
    hold.run = run
    if not world.store.beat(world.owner.engine, sharing=hold.sharing, run=run):
        return None  # taken for dead meanwhile; whoever drives a run will say so
    start = replace(
        first,
        run=run,
        options=question.options,
        engine=world.owner.engine,
        previous=note.run,
        agreed=world.agreed,
    )
    at = world.clock()
    facts: list[tuple[int, Event]] = [(at, event) for event in (start, *reused, last)]
    journal = line_journal(question.plan.project, question.line)
    expected = world.store.last(journal)
    if not is_at_end(world, note, question.plan.project, question.line):
        return None
    batch = Batch(
        [
            Append(journal, expected, [(at, RunOpened(run))]),
            Append(f"run:{run}", 0, facts, 1),
        ]
    )
    try:
        project, line = question.plan.project, question.line
        world.store.open_run(run, project, line, batch, world.owner.engine)
    except ConflictError:
        if world.store.last(journal) == expected:
            raise
        return None
    pass_on(world, note, question, run)
    events = [Recorded(seq, at, event) for seq, (at, event) in enumerate(facts, 1)]
    return Repeated(question.plan, events, partial(read_plan, world.store))
