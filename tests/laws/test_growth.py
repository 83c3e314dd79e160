"""Runs that grow, killed before and after every change of the store: nothing is ever half added."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.history import results
from holdfast.core.state import COMPLETE, State
from holdfast.engine.audit import audit
from holdfast.engine.journals import read_state
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.requests import ask, ask_to_add, check_needs
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.world import World
from holdfast.errors import UsageError
from holdfast.formats.fragment import check_added, held
from holdfast.model.event import AttemptAccepted, Options, PlanExtended
from holdfast.model.line import SkipRequested, StepsAdded
from holdfast.model.plan import (
    Limits,
    Plan,
    RunId,
    Step,
    StepId,
    fragment_bytes,
    fragment_steps,
    plan_digest,
)
from holdfast.ports import Candidate, File, Job, Store
from holdfast.store.memory import MemoryStore
from holdfast.testing import Answer, Crash, CrashingStore, ScriptedExecutor
from tests.laws.harness import LINE, Bed, When, drive, is_in_order
from tests.laws.plans import plan, step
from tests.laws.script import made, mishap
from tests.laws.test_crash import WHENS, copied

ADDS = "adds"


class Bits:
    """Reads fragments in the form in which they are stored: the steps here are none of the grammar's."""

    def read(self, content: bytes, file: str, of: Plan) -> Mapping[StepId, Step]:
        del file, of
        return fragment_steps(content)

    def check(self, of: Plan, added: Mapping[StepId, Step]) -> None:
        check_added(of, added)

    def held(self, of: Plan, added: Mapping[StepId, Step]) -> tuple[dict[StepId, Step], Limits]:
        return held(of, added)


def adding(one: Step, *more: Step) -> Step:
    """A step that adds others when it is accepted."""
    text = fragment_bytes({extra.id: extra for extra in more}).decode()
    return replace(one, values={**one.values, ADDS: text})


def executor(seed: int) -> ScriptedExecutor:
    def answer(job: Job) -> Answer:
        read = {need: given.content() for need, given in job.given.items()}
        ended = mishap(job.step, job.attempt, 0)
        if ended is not None:
            return ended
        content = made(job.step, read, len(job.feedback), 0)
        adds = str(job.step.values.get(ADDS, ""))
        fragments = (File("more.json", adds.encode()),) if adds else ()
        return Candidate("bytes", content, fragments=fragments)

    return ScriptedExecutor(answer, seed=seed)


class Field(Bed):
    """A bed in which runs can grow."""

    def grows(self, made_by: ScriptedExecutor, store: Store | None = None) -> World:
        return replace(self.world(made_by, store), fragments=Bits())


@st.composite
def growing(draw: st.DrawFn) -> Plan:
    """A plan some of whose steps add steps, which may add steps in their turn; one of them may fail.

    Two that fail could be a whole wave, which stops the run wherever it is.
    """
    numbers, broken = count(1), [*draw(st.sampled_from([(), ("broken",)]))]

    def fresh(above: list[str], depth: int) -> Step:
        needs = draw(st.sets(st.sampled_from(above), max_size=2)) if above else set()
        mode = draw(st.sampled_from(["", "", "gone-first", *broken])) if depth else ""
        if mode == "broken":
            broken.clear()
        one = step(f"s{next(numbers)}", *sorted(needs), mode=mode, retries=1)
        more = draw(st.integers(0, 2)) if depth < 2 else 0
        if not more:
            return one
        sure = [one.id, *sorted(needs)]  # only what is surely done by then is needed
        return adding(one, *[fresh(sure, depth + 1) for _ in range(more)])

    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 3))):
        steps.append(fresh([one.id for one in steps], 0))
    return plan(*steps)


def outcome(state: State) -> object:
    """What a run came to, whatever happened on the way."""
    steps = {
        step_id: (here.phase, here.config_ref, here.digest if here.phase in COMPLETE else None)
        for step_id, here in state.steps.items()
    }
    origins = {step_id: origin.step for step_id, origin in state.added.items()}
    return steps, origins, state.status, plan_digest(state.plan)


def check(store: Store, state: State) -> None:
    """The state is what the journal says; the plan follows from what was accepted; the store is sound."""
    assert read_state(store, state.run) == state
    assert plan_digest(state.plan) == state.plan_digest
    events = list(store.read(f"run:{state.run}"))
    complete = {s: (h.config_ref, h.digest) for s, h in state.steps.items() if h.phase in COMPLETE}
    assert results(events) == complete
    is_in_order(state, events)
    times = Counter(r.event.step for r in events if isinstance(r.event, AttemptAccepted))
    assert set(times.values()) <= {1}, times
    assert whole(store, state.run)
    assert audit(store).problems == ()
    index = [replace(row, number=0) for row in store.artifacts()]
    assert rebuilt_index(store) == index


def whole(store: Store, run: RunId) -> bool:
    """Whether every accepted attempt that adds steps has added all of them, and remembers it."""
    state = read_state(store, run)
    if state is None:
        return True
    remembered = {
        recorded.event.step: set(recorded.event.added)
        for recorded in store.read(f"line:{LINE}")
        if isinstance(recorded.event, StepsAdded)
    }
    grown = [r.event for r in store.read(f"run:{run}") if isinstance(r.event, PlanExtended)]
    for step_id, here in state.steps.items():
        adds = str(state.plan.steps[step_id].values.get(ADDS, ""))
        if not adds:
            continue
        names = set(json.loads(adds)["steps"])
        extended = {name for event in grown if event.step == step_id for name in event.added}
        made_it = here.phase in COMPLETE and step_id not in state.gaps
        if extended != (names if made_it else set()):
            return False
        if made_it and remembered.get(step_id) != names:
            return False
    return True


def begin(bed: Field, of: Plan, seed: int, store: Store | None = None) -> State:
    world = bed.grows(executor(seed), store)
    return drive(lambda: start_run(world, of, LINE, Options()))


def go_on(bed: Field, run: RunId, seed: int, store: Store | None = None) -> State:
    world = bed.grows(executor(seed), store)
    return drive(lambda: resume_run(world, run))


def changes(bed: Field, of: Plan, seed: int) -> int:
    counting = CrashingStore(bed.store)
    begin(bed, of, seed, counting)
    return counting.changes


few = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.req("C24", "R32", "R74", "R86", "E17")
@few
@given(growing(), st.integers(0, 99))
def test_a_crash_at_any_point_of_an_addition_leaves_nothing_half_added(
    tmp_path_factory: pytest.TempPathFactory, of: Plan, seed: int
) -> None:
    root = str(tmp_path_factory.mktemp("grow"))
    bed = Field(MemoryStore(), root)
    state = begin(bed, of, seed)
    check(bed.store, state)
    expected = outcome(state)
    for at in range(1, changes(Field(MemoryStore(), root), of, seed) + 1):
        for when in WHENS:
            other = Field(MemoryStore(), root)
            assert outcome(after_a_crash(other, of, seed, at, when)) == expected


def after_a_crash(bed: Field, of: Plan, seed: int, at: int, when: When) -> State:
    try:
        return begin(bed, of, seed, CrashingStore(bed.store, at=at, when=when))
    except Crash:
        rows = bed.store.runs(LINE)
        if not rows:
            return begin(bed, of, seed)
        assert whole(bed.store, rows[-1].run)
        state = go_on(bed, rows[-1].run, seed)
        check(bed.store, state)
        return state


@pytest.mark.req("C24")
@few
@given(growing(), st.integers(0, 99))
def test_a_later_run_grows_the_same_without_doing_anything_again(
    tmp_path_factory: pytest.TempPathFactory, of: Plan, seed: int
) -> None:
    bed = Field(MemoryStore(), str(tmp_path_factory.mktemp("grow")))
    first = begin(bed, of, seed)
    said = bed.store.last(f"line:{LINE}")
    again_by = executor(seed + 1)
    world = bed.grows(again_by)
    again = drive(lambda: start_run(world, of, LINE, Options()))
    check(bed.store, again)
    assert again.plan == first.plan
    done = {s for s, here in first.steps.items() if here.phase in COMPLETE}
    assert {s for s, here in again.steps.items() if here.phase == "reused"} == done
    assert not again_by.executed.keys() & done
    assert bed.store.last(f"line:{LINE}") == said + 1, "the line learns nothing but the run"


@pytest.mark.req("R32", "R90", "C34")
@few
@given(growing(), st.integers(0, 99), st.data())
def test_what_people_ask_of_a_dead_run_is_done_exactly_once(
    tmp_path_factory: pytest.TempPathFactory, of: Plan, seed: int, data: st.DataObject
) -> None:
    root = str(tmp_path_factory.mktemp("ask"))
    most = changes(Field(MemoryStore(), root), of, seed)
    bed = Field(MemoryStore(), root)
    try:
        begin(bed, of, seed, CrashingStore(bed.store, at=data.draw(st.integers(2, most))))
        return
    except Crash:
        rows = bed.store.runs(LINE)
    if not rows:  # it died before there was a run
        return
    run = rows[-1].run
    names = ask_something(bed, run, data)
    held = bed.store
    assert isinstance(held, MemoryStore)
    whole_way = Field(copied(held), root)
    counting = CrashingStore(whole_way.store)
    state = go_on(whole_way, run, seed, counting)
    check_asked(whole_way, state, names)
    for at in range(1, counting.changes + 1, 2):
        other = Field(copied(held), root)
        try:
            again = go_on(other, run, seed, CrashingStore(other.store, at=at, when="before"))
        except Crash:
            again = go_on(other, run, seed)
        check_asked(other, again, names)
        assert outcome(again) == outcome(state)


def ask_something(bed: Field, run: RunId, data: st.DataObject) -> set[StepId]:
    """Ask for two steps after one that may still get through, and to go on without another."""
    state = read_state(bed.store, run)
    assert state is not None
    if state.ended:
        return set()
    above = data.draw(st.sampled_from(list(state.graph.order)))
    more = {StepId("by-me"): step("by-me", above), StepId("after"): step("after", "by-me")}
    try:
        check_needs(state, more)
    except UsageError:
        return set()
    ask_to_add(bed.store, state, more, "me", "wanted", bed.clock)
    why = bed.store.put(b"why")
    skipped = data.draw(st.sampled_from(list(state.graph.order)))
    ask(bed.store, state, SkipRequested(run, skipped, "me", why), bed.clock)
    return {*more}


def check_asked(bed: Field, state: State, names: set[StepId]) -> None:
    check(bed.store, state)
    events = [r.event for r in bed.store.read(f"run:{state.run}")]
    answers = [getattr(event, "request", 0) for event in events]
    asked = Counter(answer for answer in answers if answer)
    assert all(times == 1 for times in asked.values()), "each request is answered once"
    if names:
        added = {s for s, origin in state.added.items() if origin.request}
        assert added in ({*names}, set())


def test_requests_wait_until_somebody_resumes_and_a_bad_one_is_refused(tmp_path: Path) -> None:
    bed = Field(MemoryStore(), str(tmp_path))
    state = begin(bed, plan(step("a"), step("b", "a", mode="broken", retries=0)), 1)
    assert state.status == "failed"
    ask_to_add(bed.store, state, {StepId("x"): step("x", "a")}, "me", "", bed.clock)
    ask_to_add(bed.store, state, {StepId("x"): step("x", "a")}, "me", "", bed.clock)
    again = go_on(bed, state.run, 1)
    assert again.steps[StepId("x")].phase == "done"
    kinds = [type(r.event).__name__ for r in bed.store.read(f"run:{state.run}")]
    assert (kinds.count("PlanExtended"), kinds.count("RequestRefused")) == (1, 1)
    check(bed.store, again)
