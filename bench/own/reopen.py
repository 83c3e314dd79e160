"""A run of many events that rests at its last step, and the time until that step is tried again.

`write FOLDER STEPS` makes it; `resume FOLDER STEPS` reopens it as `holdfast resume` does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import holdfast
from bench.own.warm import warm_up
from holdfast import wire
from holdfast.engine.runs import resume_run
from holdfast.model.plan import RunId

PROMISED = 50_000  # events


def one(number: int) -> str:
    return str(number)


def gate(began: str) -> str:
    """Refuse, unless a beginning is known; then say how long it is ago."""
    if not Path(began).exists():
        raise RuntimeError("not yet")
    return str(time.perf_counter() - float(Path(began).read_text(encoding="ascii")))


def plan_of(folder: Path, steps: int) -> holdfast.Plan:
    plan = holdfast.Plan("reopen", root=str(folder))
    names = [f"s{number}" for number in range(steps)]
    for number, name in enumerate(names):
        plan.step(name, one, values={"number": number}, inline=True)
    began = str(folder / "began")
    plan.step("gate", gate, needs=names, values={"began": began}, inline=True)
    return plan


def events_of(location: str, run: RunId) -> int:
    store = wire.open_store(location, readonly=True)
    try:
        return sum(1 for _ in store.read(f"run:{run}"))
    finally:
        store.close()


def write(plan: holdfast.Plan, folder: Path) -> dict[str, float]:
    result = holdfast.run(plan)
    assert result.status == "failed"
    return {"events": events_of(str(folder / ".holdfast"), result.state.run)}


def resume(plan: holdfast.Plan, folder: Path) -> dict[str, float]:
    warm_up()
    location = str(folder / ".holdfast")
    (folder / "began").write_text(str(time.perf_counter()), encoding="ascii")
    cpu = time.process_time()
    store = wire.open_store(location)
    try:
        run = store.runs(plan.name)[-1].run
        wishes = wire.Wishes(functions=plan.functions)
        world = wire.world_for(plan.build(), str(folder), location, store, wishes)
        state = wire.drive(lambda: resume_run(world, run), world=world)
        cpu = time.process_time() - cpu
        assert state.status == "completed"
        digest = state.steps[state.graph.order[-1]].digest
        assert digest is not None
        return {"wall": float(store.get(digest)), "cpu": cpu}
    finally:
        store.close()


def main() -> None:
    phase, folder, steps = sys.argv[1], Path(sys.argv[2]).absolute(), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    plan = plan_of(folder, steps)
    said = write(plan, folder) if phase == "write" else resume(plan, folder)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
