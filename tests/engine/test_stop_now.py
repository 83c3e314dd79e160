"""Stopping now, at every moment at which something was stored, ends the run at rest and loses nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.runs import resume_run, start_run
from holdfast.model.event import Options, Recorded
from holdfast.model.plan import Need, Plan, Step, StepId
from holdfast.store.memory import MemoryStore
from holdfast.testing import ScriptedExecutor
from tests.laws.harness import LINE, Bed, drive

STEPS = {
    StepId(name): Step(StepId(name), uses="script", needs=tuple(Need(StepId(n)) for n in needs))
    for name, needs in (("a", ""), ("b", ""), ("c", "ab"), ("d", "c"))
}
PLAN = Plan(LINE, STEPS)


@pytest.mark.req("R175")
@pytest.mark.parametrize("moment", range(2, 8))
@pytest.mark.parametrize("now", [True, False])
def test_a_run_stopped_at_any_moment_rests_and_can_be_resumed(
    moment: int, now: bool, tmp_path: Path
) -> None:
    bed = Bed(MemoryStore(), str(tmp_path))
    executor = ScriptedExecutor(lambda job: job.step.id.encode())
    told: list[int] = []

    def on_events(_: list[Recorded]) -> None:
        told.append(1)
        if len(told) == moment:
            engine.stop(now=now)

    world = replace(bed.world(executor), on_events=on_events)
    hold, engine = start_run(world, PLAN, LINE, Options())

    async def whole() -> None:
        async with asyncio.timeout(30):
            await engine.drive()

    asyncio.run(whole())
    hold.release()
    accepted = {s for s, step in engine.state.steps.items() if step.phase == "done"}
    assert engine.state.status == ("paused" if len(accepted) < len(STEPS) else "completed")
    before = executor.executed.copy()
    if engine.state.status == "paused":
        state = drive(lambda: resume_run(bed.world(executor), engine.state.run))
        assert state.status == "completed"
    assert all(executor.executed[step] == before[step] for step in accepted)
