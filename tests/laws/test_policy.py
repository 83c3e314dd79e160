"""Failures, steps that are sent back, scarce things and effects, with a death at any change of the store."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.state import State
from holdfast.engine.audit import audit
from holdfast.engine.journals import read_state
from holdfast.engine.runs import resume_run, start_run
from holdfast.model.artifact import Verdict
from holdfast.model.event import AttemptStarted, EffectConfirmed, EffectStarted, Options, Recorded
from holdfast.model.plan import Limits, Plan, StepId
from holdfast.ports import Candidate, Job
from holdfast.store.memory import MemoryStore
from holdfast.testing import Answer, Crash, CrashingStore, ScriptedExecutor
from tests.laws.escalating import escalations
from tests.laws.harness import LINE, Bed, When, drive
from tests.laws.plans import plan, step
from tests.laws.script import mishap, verdict

slow = list(HealthCheck)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A tower whose top is refused until what it stands on was made again so often, and steps beside it."""
    refused = draw(st.integers(0, 3))
    spec = step("spec", text=0)
    top = replace(
        step("top", "mid", least=refused, skill=0, retries=draw(st.integers(0, 1))),
        escalate=tuple(draw(st.permutations(["spec", "mid"]))),
        rounds=draw(st.integers(1, 2)),
        patience=draw(st.sampled_from([None, 1, 2])),
    )
    beside = [
        replace(
            step(name, "spec", mode=draw(st.sampled_from(["", "", "broken", "gone-first"]))),
            priority=draw(st.sampled_from(["low", "normal", "critical"])),
            resources=draw(st.sampled_from([{}, {"gpu": 1}, {"gpu": 2}])),
            effects=draw(st.sampled_from(["none", "external"])),
            idempotent=draw(st.booleans()),
            retries=0,
        )
        for name in ("left", "right")
    ]
    return plan(
        spec,
        step("mid", "spec"),
        *beside,
        top,
        step("after", "top", "left"),
        limits=Limits(resources={"gpu": 2}),
    )


def getting_better() -> ScriptedExecutor:
    """Every step is as good as what it stands on; the spec is as good as it was often sent back."""

    def answer(job: Job) -> Answer:
        ended = mishap(job.step, job.attempt, 0)
        if ended is not None:
            return ended
        above = [given.content().decode() for given in job.given.values()]
        quality = len(job.feedback) if job.step.id == "spec" else _best(above)
        return f'{{"step": "{job.step.id}", "quality": {quality}}}'.encode()

    def judge(job: Job, candidate: Candidate) -> Verdict:
        return verdict(job.step.guards, candidate.content)

    return ScriptedExecutor(answer, judge=judge, seed=1)


def _best(texts: list[str]) -> int:
    return max((int(text.rpartition(" ")[2].rstrip("}")) for text in texts), default=0)


def settled(bed: Bed, state: State, executor: ScriptedExecutor) -> State:
    """People look at an escalated run and let it go on with what is left."""
    while state.status == "escalated" and state.counts["pending"]:
        run = state.run
        world = bed.world(executor)
        state = drive(lambda: resume_run(world, run, only=()))  # noqa: B023 - called right here
    return state


def check(bed: Bed, state: State) -> None:
    events = list(bed.store.read(f"run:{state.run}"))
    assert read_state(bed.store, state.run) == state
    assert audit(bed.store).problems == ()
    assert (state.escalation.code if state.escalation else None) == escalations(state.plan, events)[
        -1
    ]
    assert state.status in {"completed", "failed", "waiting", "escalated"}
    assert not state.running
    assert not any(state.taken.values())
    assert not state.reopening
    never_too_much(state.plan, events)
    keys_are_kept(state.plan, events)


def never_too_much(of: Plan, events: list[Recorded]) -> None:
    """At no moment do the attempts that run take more than there is."""
    running: set[StepId] = set()
    for recorded in events:
        name = getattr(recorded.event, "step", None)
        if isinstance(recorded.event, AttemptStarted):
            running.add(recorded.event.step)
        elif type(recorded.event).__name__.startswith("Attempt") and name in running:
            running.remove(name)
        assert sum(of.steps[s].resources.get("gpu", 0) for s in running) <= 2


def keys_are_kept(of: Plan, events: list[Recorded]) -> None:
    """Between a start and its confirmation an effect has one key."""
    started: dict[StepId, str] = {}
    refs: dict[StepId, str] = {}
    seen: dict[StepId, str] = {}
    for recorded in events:
        match recorded.event:
            case AttemptStarted(step=name, config_ref=ref):
                refs[name] = ref
            case EffectStarted(step=name, key=key):
                if name in started and seen[name] == refs[name]:
                    assert started[name] == key
                started[name], seen[name] = key, refs[name]
            case EffectConfirmed(step=name, key=key):
                assert started.pop(name) == key
            case _:
                pass
    assert all(of.steps[name].effects == "external" for name in seen)


@pytest.mark.req("R95", "R81", "R83", "I17", "R74")
@settings(max_examples=60, deadline=None, suppress_health_check=slow)
@given(
    of=plans(),
    at=st.integers(1, 25),
    when=st.sampled_from(["before", "after"]),
    barrier=st.booleans(),
)
def test_the_laws_hold_whatever_fails(
    root: str, of: Plan, at: int, when: When, barrier: bool
) -> None:
    bed = Bed(MemoryStore(), root)
    executor = getting_better()
    options = Options(barrier=barrier)
    world = bed.world(executor, CrashingStore(bed.store, at=at, when=when))
    crashed = False
    try:
        state = drive(lambda: start_run(world, of, LINE, options))
    except Crash:
        crashed = True
        rows = bed.store.runs(LINE)
        again = bed.world(executor)
        state = drive(
            lambda: resume_run(again, rows[-1].run) if rows else start_run(again, of, LINE, options)
        )
    state = settled(bed, state, executor)
    check(bed, state)
    for name in ("left", "right"):
        one = of.steps[StepId(name)]
        is_once = one.effects == "external" and not one.idempotent
        if crashed and is_once and one.values["mode"] == "" and not state.steps[one.id].stood:
            again_made = state.steps[StepId("spec")].sent_back
            assert executor.executed[name] <= 1 + again_made, "nobody asked to do it again"
    other = Bed(MemoryStore(), root)
    calm = getting_better()
    quiet = other.world(calm)
    whole = settled(other, drive(lambda: start_run(quiet, of, LINE, options)), calm)
    check(other, whole)


@pytest.mark.req("R95")
def test_a_tower_gets_through_when_its_spec_is_good_enough(root: str) -> None:
    top = replace(step("top", "spec", least=2, skill=0, retries=0), escalate=("spec",), rounds=2)
    of = plan(step("spec"), top)
    bed, executor = Bed(MemoryStore(), root), getting_better()
    world = bed.world(executor)
    state = drive(lambda: start_run(world, of, LINE, Options()))
    assert state.status == "completed"
    assert (executor.executed["spec"], executor.executed["top"]) == (3, 3)
    check(bed, state)
    rows = list(bed.store.artifacts(step=StepId("spec")))
    assert [row.status for row in rows] == ["superseded", "superseded", "accepted"]
