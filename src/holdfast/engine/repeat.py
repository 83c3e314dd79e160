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
    end_of,
    holds,
    is_at_end,
    pass_on,
    read_note,
)
from holdfast.engine.undo import settle_undone
from holdfast.engine.whole import assure_plan
from holdfast.engine.world import World
from holdfast.errors import ConflictError
from holdfast.model.event import Event, Options, Recorded, RunStarted
from holdfast.model.fixed import frozen
from holdfast.model.line import RunOpened
from holdfast.model.plan import Plan, RunId
from holdfast.ports import Append, Batch, Kept, event_of


@frozen
class Repeated:
    """A run that came to nothing but reuse, as its journal tells it."""

    plan: Plan
    at: int
    told: Sequence[Event | Kept]
    plans: Plans

    @property
    def events(self) -> list[Recorded]:
        """Its journal, read only now: most who ask for a run want to know how it ended."""
        return [Recorded(seq, self.at, event_of(one)) for seq, one in enumerate(self.told, 1)]

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
    """Copy what the last run found, as it was when the note was left.

    What was written to the line since it was looked at forbids it.
    """
    journal = f"run:{note.run}"
    if end_of(world, journal) != note.ran:
        return None
    before = [event for _, event in world.store.kept(journal)]
    first = before[0].read() if before else None
    if not isinstance(first, RunStarted):
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
        ready=world.ready(question.plan),
        file=world.file,
    )
    at = world.clock()
    told: list[Event | Kept] = [start, *before[1:]]
    journal = line_journal(question.plan.project, question.line)
    expected = world.store.last(journal)
    if not is_at_end(world, note, question.plan.project, question.line):
        return None
    batch = Batch(
        [
            Append(journal, expected, [(at, RunOpened(run))]),
            Append(f"run:{run}", 0, [(at, event) for event in told], 1),
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
    return Repeated(question.plan, at, told, partial(read_plan, world.store))
