"""What is asked is decided once, also by somebody who looked before anybody had written the question down."""

from pathlib import Path

import pytest

from holdfast.engine.decisions import Decisions, Given, Person
from holdfast.engine.runs import resume_run
from holdfast.errors import UsageError
from holdfast.model.line import ApprovalDecided, ApprovalRequested
from holdfast.model.plan import Plan, Step, StepId
from holdfast.ports import Outcome
from holdfast.store.memory import MemoryStore
from holdfast.testing import ScriptedExecutor, lost
from tests.laws.harness import LINE, Bed, Stage, amend, drive, start

ME, YOU = Person("me"), Person("you")


@pytest.mark.req("I11")
def test_a_held_step_that_somebody_else_decided_meanwhile_is_not_decided_again(
    tmp_path: Path,
) -> None:
    names = [StepId("a"), StepId("b")]
    steps = {name: Step(name, shell=name, effects="external") for name in names}
    bed = Bed(MemoryStore(), str(tmp_path))
    state = start(bed, Stage(Plan(LINE, steps)), ScriptedExecutor(lambda _: lost()))
    assert state.counts["waiting"] == 2

    mine = Decisions(bed.store, "", LINE, bed.clock)
    first, second = mine.wanted()
    yours = Decisions(bed.store, "", LINE, bed.clock)
    for wanted in yours.wanted()[1:]:
        yours.decide(wanted, YOU, Given(), yes=True)

    mine.decide(first, ME, Given(), yes=True)
    with pytest.raises(UsageError, match="was approved already by 'you'"):
        mine.decide(second, ME, Given(because="no"), yes=False)
    said = [r.event for r in bed.store.read(f"line:{LINE}")]
    decided = [event for event in said if isinstance(event, ApprovalDecided)]
    assert [(event.by, event.yes) for event in decided] == [("you", True), ("me", True)]


@pytest.mark.req("I11")
@pytest.mark.parametrize("yes", [True, False])
def test_a_held_step_that_goes_on_meanwhile_is_not_decided_any_more(
    tmp_path: Path, *, yes: bool
) -> None:
    name = StepId("a")
    fates: list[bytes | Outcome] = [b"made", lost()]
    first = Plan(LINE, {name: Step(name, shell="a", effects="external")})
    second = Plan(LINE, {name: Step(name, shell="b", effects="external")})
    bed = Bed(MemoryStore(), str(tmp_path))
    executor = ScriptedExecutor(lambda _: fates.pop(0))
    assert start(bed, Stage(first), executor).status == "completed"
    state = start(bed, Stage(second), executor)
    assert state.counts["waiting"] == 1

    mine = Decisions(bed.store, "", LINE, bed.clock)
    (wanted,) = mine.wanted()
    assert amend(bed.store, bed.clock, second, name, b"it did happen")
    world = bed.world(executor)
    assert drive(lambda: resume_run(world, state.run)).status == "completed"
    with pytest.raises(UsageError, match="waits for that no more"):
        mine.decide(wanted, ME, Given(because="late"), yes=yes)
    said = [r.event for r in bed.store.read(f"line:{LINE}")]
    assert not [event for event in said if isinstance(event, ApprovalRequested)]
