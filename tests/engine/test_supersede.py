"""Ending the runs before: an engine that was taken for dead meanwhile gives up."""

from pathlib import Path

import pytest

from holdfast.engine.runs import start_run, supersede
from holdfast.errors import FencedError
from holdfast.model.event import Options
from holdfast.ports import Outcome
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
