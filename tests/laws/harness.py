"""Runs scenarios through the real engine, dies where it is told to, and checks the laws."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast.core.history import results
from holdfast.core.reasons import CODES
from holdfast.core.state import COMPLETE, State
from holdfast.core.views import person_row
from holdfast.engine.audit import audit
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_state
from holdfast.engine.lines import tell_line
from holdfast.engine.loop import Engine
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.world import World
from holdfast.model.artifact import Artifact
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    Options,
    Recorded,
    StepFailed,
    StepsReused,
    StepsSkipped,
    StepWaived,
)
from holdfast.model.line import LineEvent, StepAmended
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import Executor, Owner, Store
from holdfast.testing import Crash, CrashingStore, FakeClock, ScriptedExecutor
from tests.laws.escalating import escalations
from tests.laws.oracle import Fate, Oracle
from tests.laws.script import scripted

LINE = "law"
IDS = itertools.count(1)
STUCK_SECONDS = 30  # a run takes milliseconds; one that waits for nothing must fail, not hang
When = Literal["before", "after"]


@dataclass(frozen=True)
class Stage:
    """One run of a scenario, and what a person did before it."""

    plan: Plan
    options: Options = Options()
    salts: Mapping[StepId, int] = field(default_factory=dict)
    amended: tuple[tuple[StepId, bytes], ...] = ()


class Bed:
    """A store with the directories and names that engines on it need."""

    def __init__(self, store: Store, root: str) -> None:
        self.store = store
        self.root = root
        self.clock = FakeClock(1000, tick=1)

    def world(self, executor: Executor, store: Store | None = None, parallel: int = 4) -> World:
        engine = f"engine-{next(IDS)}"
        return World(
            store=store or self.store,
            executor=executor,
            root=self.root,
            home=self.root,
            owner=Owner(engine, "here", "boot", 1, engine, 0),
            clock=self.clock,
            new_id=lambda: f"{next(IDS):04}",
            gone=lambda _: True,
            sweep=lambda _: 0,
            ignores=lambda _: lambda _: None,
            parallel=parallel,
            poll_seconds=3600,
        )

    def amend(self, plan: Plan, step: StepId, content: bytes) -> None:
        amend(self.store, self.clock, plan, step, content)


def amend(store: Store, clock: Callable[[], int], plan: Plan, step: StepId, content: bytes) -> bool:
    """Put a person's version into the line's journal; false if there is no artifact yet."""
    newest = store.newest(plan.project, LINE, step)
    if newest is None:
        return False
    digest = store.put(content)

    def say() -> tuple[int, LineEvent, list[Artifact]]:
        latest = store.newest(plan.project, LINE, step) or newest
        run = store.runs(LINE)[-1].run
        event = StepAmended(
            step=step,
            config_ref=latest.config_ref,
            input_ref=latest.input_ref,
            own_ref=latest.own_ref,
            digest=digest,
            form="bytes",
            verified=True,
            by="me",
            because=None,
            replaces=latest.digest,
            after_run=run,
            after_seq=store.last(f"run:{run}"),
        )
        at = clock()
        return at, event, [person_row(event, plan.project, LINE, at)]

    tell_line(store, plan.project, LINE, say)
    return True


def drive(begin: Callable[[], tuple[Hold, Engine]]) -> State:
    """Begin a run and drive it; a crash leaves the hold as a dead process would."""
    hold, engine = begin()

    async def whole() -> None:
        async with asyncio.timeout(STUCK_SECONDS):
            await engine.drive()

    asyncio.run(whole())
    hold.release()
    return engine.state


def start(bed: Bed, stage: Stage, executor: Executor, store: Store | None = None) -> State:
    world = bed.world(executor, store)
    state = drive(lambda: start_run(world, stage.plan, LINE, stage.options))
    return go_on(bed, state, executor)


def resume(bed: Bed, run: RunId, executor: Executor) -> State:
    world = bed.world(executor)
    return go_on(bed, drive(lambda: resume_run(world, run)), executor)


def go_on(bed: Bed, state: State, executor: Executor) -> State:
    """A person lets an escalated run go on with what is left, without trying again what failed."""
    while state.status == "escalated" and state.counts["pending"]:
        world, run = bed.world(executor), state.run
        state = drive(lambda: resume_run(world, run, only=()))  # noqa: B023 - called right here
    return state


@dataclass
class Ended:
    """A run that came to its end or rest, and what was executed after the last crash."""

    state: State
    executor: ScriptedExecutor
    crashed: bool = False
    accepted_before: frozenset[StepId] = frozenset()
    executed_before: Counter[str] = field(default_factory=Counter)


def perform(
    bed: Bed,
    stage: Stage,
    *,
    seed: int = 0,
    at: int = 0,
    when: When = "before",
    anew: bool = False,
) -> Ended:
    """One stage; with `at`, the process dies at that change and another one goes on.

    It resumes the run, or with `anew` starts another one in its place.
    """
    for step, content in stage.amended:
        bed.amend(stage.plan, step, content)
    executor = scripted(stage.salts, seed=seed)
    runs = len(bed.store.runs(LINE))
    try:
        return Ended(
            start(bed, stage, executor, CrashingStore(bed.store, at=at, when=when)), executor
        )
    except Crash:
        before = executor.executed.copy()
    rows = bed.store.runs(LINE)
    if len(rows) == runs:
        return Ended(start(bed, stage, executor), executor, crashed=True, executed_before=before)
    run = rows[-1].run
    accepted = frozenset(accepted_steps(bed.store, run))
    state = start(bed, stage, executor) if anew else resume(bed, run, executor)
    return Ended(state, executor, True, accepted, before)


def accepted_steps(store: Store, run: RunId) -> Iterator[StepId]:
    for recorded in store.read(f"run:{run}"):
        if isinstance(recorded.event, AttemptAccepted):
            yield recorded.event.step


def changes_of(bed: Bed, stage: Stage) -> int:
    """How many changes of the store a stage asks for; the store of the bed is used up."""
    for step, content in stage.amended:
        bed.amend(stage.plan, step, content)
    store = CrashingStore(bed.store)
    start(bed, stage, scripted(stage.salts), store)
    return store.changes


# --- the laws ------------------------------------------------------------------------------------


def check(bed: Bed, ended: Ended, fates: Mapping[StepId, Fate], *, anew: bool = False) -> None:
    """Correct, minimal, resumable, explained; and the state is what the journal says."""
    state = ended.state
    assert read_state(bed.store, state.run) == state
    assert results(bed.store.read(f"run:{state.run}")) == {
        step_id: (step.config_ref, step.digest)
        for step_id, step in state.steps.items()
        if step.phase in COMPLETE
    }
    assert audit(bed.store).problems == ()
    is_correct(bed.store, state, fates, anew=anew)
    is_minimal(bed.store, ended, fates, anew=anew)
    is_explained(state, fates, anew=anew)
    is_in_order(state, list(bed.store.read(f"run:{state.run}")))


def is_correct(store: Store, state: State, fates: Mapping[StepId, Fate], *, anew: bool) -> None:
    for step_id, fate in fates.items():
        step = state.steps[step_id]
        if fate.phase in {"done", "reused"}:
            phases = {"done", "reused"} if anew else {fate.phase}
            assert step.phase in phases, (step_id, step.phase, fate)
            assert step.digest is not None
            assert store.get(step.digest) == fate.content, step_id
        else:
            assert step.phase == fate.phase, (step_id, step.phase, fate)
    whole = all(fate.phase in {"done", "reused"} for fate in fates.values())
    escalated = escalations(state.plan, store.read(f"run:{state.run}"))[-1]
    assert state.status == ("completed" if whole else "escalated" if escalated else "failed")
    assert (state.escalation.code if state.escalation else None) == escalated
    assert state.rest == (state.escalation if escalated else state.rest)


def is_minimal(
    store: Store, ended: Ended, fates: Mapping[StepId, Fate], *, anew: bool = False
) -> None:
    times = Counter(accepted_steps(store, ended.state.run))
    assert all(count == 1 for count in times.values()), times
    executed = ended.executor.executed
    for step_id, fate in fates.items():
        if not ended.crashed:
            assert executed[step_id] == fate.executed, (step_id, fate)
            assert ended.executor.judged[step_id] == fate.judged, (step_id, fate)
            continue
        again = executed[step_id] - ended.executed_before[step_id]
        if anew and fate.code == "forced":
            assert again <= fate.executed, "a new run was asked for it again"
        elif step_id in ended.accepted_before:
            assert again == 0, f"'{step_id}' was accepted before the crash and ran again"
        elif fate.phase in {"reused", "skipped"}:
            assert executed[step_id] == 0, (step_id, fate)
        else:  # what was under way is done once more; what failed is tried anew, with fresh budgets
            step = ended.state.plan.steps[step_id]
            fresh = 1 + step.retries + step.lost_retries if fate.phase == "failed" else 0
            assert again <= fate.executed + fresh, (step_id, fate)


def is_explained(state: State, fates: Mapping[StepId, Fate], *, anew: bool) -> None:
    for step_id, fate in fates.items():
        reason = state.steps[step_id].reason
        assert reason is not None, step_id
        assert reason.code in CODES
        if fate.phase == "skipped":
            phase = {"dependency_failed": "failed", "dependency_skipped": "skipped"}[reason.code]
            assert fates[StepId(reason.because[0])].phase == phase, step_id
        elif not anew:
            assert reason.code == fate.code, (step_id, reason, fate)


def is_in_order(state: State, events: list[Recorded]) -> None:
    """No step starts or is reused before everything it needs is complete, or lost if it goes on without."""
    complete: set[StepId] = set()
    lost: set[StepId] = set()

    def has_its_needs(step_id: StepId) -> bool:
        needs = state.plan.steps[step_id].needs
        return all(n.step in complete or (n.optional and n.step in lost) for n in needs)

    for recorded in events:
        event = recorded.event
        if isinstance(event, AttemptStarted):
            assert has_its_needs(event.step)
        elif isinstance(event, AttemptAccepted | StepWaived):
            complete.add(event.step)
        elif isinstance(event, StepsReused):
            for item in event.items:
                assert has_its_needs(item.step)
                complete.add(item.step)
        elif isinstance(event, StepFailed):
            lost.add(event.step)
        elif isinstance(event, StepsSkipped):
            lost |= {item.step for item in event.items}


def play(bed: Bed, stages: tuple[Stage, ...], *, seed: int = 0) -> State | None:
    """All stages without a crash, each checked against the oracle."""
    oracle = Oracle()
    state = None
    for stage in stages:
        fates = foretell(oracle, stage)
        ended = perform(bed, stage, seed=seed)
        check(bed, ended, fates)
        state = ended.state
    return state


def foretell(oracle: Oracle, stage: Stage) -> dict[StepId, Fate]:
    for step, content in stage.amended:
        oracle.amend(step, content)
    return oracle.run(stage.plan, stage.options, stage.salts)


def outcome(state: State) -> dict[StepId, tuple[object, ...]]:
    """What a run came to, without how often it had to be tried."""
    found: dict[StepId, tuple[object, ...]] = {}
    for step_id, step in state.steps.items():
        reason = None if step.phase == "skipped" else step.reason
        complete = step.phase in {"done", "reused"}
        found[step_id] = (step.phase, reason, step.config_ref, step.digest if complete else None)
    return found
