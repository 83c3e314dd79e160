"""Ending the runs before: an engine that was taken for dead meanwhile gives up."""

from pathlib import Path

import pytest

from holdfast.core.waves import graph_of
from holdfast.engine.journals import knowing, read_state
from holdfast.engine.runs import start_run, supersede
from holdfast.errors import FencedError
from holdfast.model.event import Options
from holdfast.model.plan import RunId, plan_bytes
from holdfast.ports import Batch, Outcome
from holdfast.store.memory import MemoryStore
from holdfast.testing import ScriptedExecutor
from tests.laws.harness import LINE, Bed, drive
from tests.laws.plans import plan, step


@pytest.mark.req("I10", "D16")
def test_an_engine_that_was_buried_does_not_try_for_ever(tmp_path: Path) -> None:
    bed = Bed(MemoryStore(), str(tmp_path))
    failing = ScriptedExecutor(lambda _: Outcome("failed", code="command_failed"))
    world = bed.world(failing)
    state = drive(lambda: start_run(world, plan(step("y")), LINE, Options()))
    assert state.status == "failed"
    late = bed.world(failing)
    late.store.enter(state.project, LINE, late.owner, alone=False)
    (mine,) = late.store.holders(state.project, LINE)
    assert late.store.bury(mine)
    with pytest.raises(FencedError):
        supersede(late, state.project, LINE)


@pytest.mark.req("I10")
def test_a_run_that_was_collected_while_one_looked_is_nobodys_previous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = Bed(MemoryStore(), str(tmp_path))
    failing = ScriptedExecutor(lambda _: Outcome("failed", code="command_failed"))
    first = bed.world(failing)
    state = drive(lambda: start_run(first, plan(step("y")), LINE, Options()))
    world = bed.world(failing)
    world.store.enter(state.project, LINE, world.owner, alone=False)
    take = world.store.take_run

    def late(run: RunId, engine: str | None = None, *, unless_driven: bool = False) -> int:
        world.store.remove_run(run, Batch([]))  # ended by another engine, then collected
        return take(run, engine, unless_driven=unless_driven)

    monkeypatch.setattr(world.store, "take_run", late)
    assert supersede(world, state.project, LINE) == (None, None)


def test_a_run_that_is_ended_stands_as_its_journal_tells(tmp_path: Path) -> None:
    bed = Bed(MemoryStore(), str(tmp_path))
    failing = ScriptedExecutor(lambda _: Outcome("failed", code="command_failed"))
    asked = plan(step("x"), step("y"))
    rested = drive(lambda: start_run(bed.world(failing), asked, LINE, Options()))
    world = bed.world(failing)
    world.store.enter(rested.project, LINE, world.owner, alone=False)
    with knowing(plan_bytes(asked), asked, graph_of(asked)):
        latest, left = supersede(world, rested.project, LINE)
    assert latest == rested.run
    assert left is not None
    assert left.plan is asked, "it was not worked out again"
    assert (left.status, left) == ("superseded", read_state(world.store, rested.run))
    assert supersede(world, rested.project, LINE) == (latest, None), "nothing had to be read"
    again = read_state(world.store, rested.run)
    assert again is not None
    assert again.plan is not asked, "what a caller has may change"
