"""A run with many steps: its journal as an engine writes it, in one go."""

from pathlib import Path

from holdfast.core.refs import structure
from holdfast.core.waves import graph_of
from holdfast.engine.lines import line_journal
from holdfast.model.digest import digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptStarted,
    Event,
    Options,
    Reason,
    RunRested,
    RunStarted,
    Skipped,
    StepFailed,
    StepsSkipped,
)
from holdfast.model.line import PlanVersioned, RunOpened
from holdfast.model.plan import Need, Plan, RunId, Step, StepId, plan_bytes
from holdfast.ports import Append, Batch, Owner
from holdfast.store.sqlite import SqliteStore

WIDTH = 100  # steps side by side
LINE = "large"
AT = 1_700_000_000_000


def many(count: int, line: str = LINE) -> Plan:
    """Chains of steps side by side."""
    names = [StepId(f"s{number:05}") for number in range(count)]
    steps = {
        name: Step(name, shell="true", needs=(Need(names[at - WIDTH]),) if at >= WIDTH else ())
        for at, name in enumerate(names)
    }
    return Plan(line, steps)


def large_run(folder: Path, count: int, failing: str = "s00007", line: str = LINE) -> str:
    """A run of so many steps, of which one failed, with what comes after it; its id."""
    store, plan = SqliteStore.open(str(folder), create=True), many(count, line)
    run = RunId(f"r-{line}")
    digest, ref = store.put(plan_bytes(plan)), store.put(structure(plan))
    graph, made = graph_of(plan), store.put(b"made\n")
    below = graph.below([StepId(failing)]) - {StepId(failing)}
    facts: list[Event] = [
        RunStarted(run, line, "", digest, ref, Options(), engine="engine", previous=None)
    ]
    own = digest_bytes(b"own")
    for step in graph.order:
        if step in below:
            continue
        facts.append(AttemptStarted(step, 1, own, own, own, Reason("never_ran")))
        if step == failing:
            facts.append(AttemptFailed(step, 1, "command_failed"))
            facts.append(StepFailed(step, Reason("command_failed")))
            skipped = sorted(below, key=graph.rank.__getitem__)
            items = tuple(Skipped(one, "dependency_failed", StepId(failing)) for one in skipped)
            facts.append(StepsSkipped(items))
        else:
            facts.append(AttemptAccepted(step, 1, made, duration_ms=5))
    facts.append(RunRested("failed", Reason("command_failed")))
    said: list[Event] = [PlanVersioned(digest, ref, None, ""), RunOpened(run, "")]
    batch = Batch(
        [
            Append(line_journal("", line), 0, [(AT, one) for one in said]),
            Append(f"run:{run}", 0, [(AT + at, one) for at, one in enumerate(facts)], 1),
        ]
    )
    store.enter("", line, Owner("engine", "here", "boot", 1, "1", 0), alone=True)
    store.open_run(run, "", line, batch, "engine")
    store.leave("engine")
    store.close()
    return run
