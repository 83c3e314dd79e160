"""Ending the runs before: an engine that was taken for dead meanwhile gives up."""

from pathlib import Path

import pytest

from holdfast.engine.runs import start_run, supersede
from holdfast.errors import FencedError
from holdfast.model.event import Options
from holdfast.model.plan import RunId
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
    assert supersede(world, state.project, LINE) is None
