"""The laws with people in them: decisions at any moment, a crash at any change, and nothing is done twice."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.state import State
from holdfast.engine.audit import audit
from holdfast.engine.decisions import Decisions, Given, Person, Wanted
from holdfast.engine.journals import read_state
from holdfast.engine.runs import resume_run, start_run
from holdfast.model.artifact import Verdict
from holdfast.model.event import AttemptStarted, Options
from holdfast.model.line import ApprovalUsed, Scope
from holdfast.model.plan import Guard, Need, Plan, Step, StepId
from holdfast.ports import Candidate, Job, Store
from holdfast.store.memory import MemoryStore
from holdfast.testing import Crash, CrashingStore, ScriptedExecutor
from tests.laws.harness import LINE, Bed, drive

MOST_ROUNDS = 60
ME = Person("me")
Gate = Literal["", "step", "edge", "guard", "answer"]


def step(number: int, gate: Gate, *needs: Need, retries: int = 0) -> Step:
    name = StepId(f"s{number}")
    if gate == "answer":
        return Step(name, uses="human", needs=needs)
    approve = "always" if gate == "step" else ""
    guards = (Guard("human", name="eye"),) if gate == "guard" else ()
    return Step(name, shell=name, needs=needs, approve=approve, guards=guards, retries=retries)  # type: ignore[arg-type]


def plan_of(gates: list[Gate], above: list[int | None]) -> Plan:
    """A plan in which each step needs one before it, or none; an edge asks only where there is one."""
    steps = {}
    for number, (gate, need) in enumerate(zip(gates, above, strict=True)):
        needs: tuple[Need, ...] = ()
        if need is not None and number:
            kind = "approval" if gate == "edge" else "data"
            needs = (Need(StepId(f"s{need % number}"), kind),)  # type: ignore[arg-type]
        made = step(number, gate, *needs)
        steps[made.id] = made
    return Plan(LINE, steps)


class People:
    """Decide what waits: who is refused is refused always; the rest gets a yes, of any scope."""

    def __init__(self, store: Store, bed: Bed, refused: frozenset[str], scopes: tuple[Scope, ...]):
        self._store, self._bed = store, bed
        self._refused, self._scopes = refused, scopes
        self._made = 0

    def decide(self) -> int:
        """Decide everything that waits; how many there were."""
        decisions = Decisions(self._store, "", LINE, self._bed.clock)
        wanted = {item.approval.id: item for item in decisions.wanted()}
        for item in wanted.values():
            self._one(decisions, item)
        return len(wanted)

    def _one(self, decisions: Decisions, wanted: Wanted) -> None:
        gate = wanted.approval.request.gate
        if wanted.step in self._refused:
            decisions.decide(wanted, ME, Given(because="no"), yes=False)
            return
        self._made += 1
        scope = self._scopes[self._made % len(self._scopes)]
        content = self._store.put(f"given for {wanted.step}".encode())
        if gate == "answer":
            given = Given(content=content)
        else:
            given = Given("once" if gate == "step" and scope == "content" else scope)
        decisions.decide(wanted, ME, given, yes=True)


class Play:
    """One run from its start to its end, with people who decide whenever it rests or was killed."""

    def __init__(
        self, plan: Plan, folder: Path, refused: frozenset[str], scopes: tuple[Scope, ...]
    ):
        self.plan, self.refused = plan, refused
        self.bed = Bed(MemoryStore(), str(folder))
        self.people = People(self.bed.store, self.bed, refused, scopes)
        self.executor = ScriptedExecutor(lambda job: f"made {job.step.id}", judge=_judge)
        self.died = False

    def whole(self, crashes: Callable[[], Store]) -> State:
        for _ in range(MOST_ROUNDS):
            state = self._once(crashes())
            moved = self.people.decide()
            if state is not None and not moved and state.status != "running":
                return state
        raise AssertionError("it never came to its end")

    def _once(self, store: Store) -> State | None:
        """Start the run or go on with it; None if the process died."""
        world = self.bed.world(self.executor, store)
        rows = self.bed.store.runs(LINE)
        known = read_state(self.bed.store, rows[-1].run) if rows else None
        if known is not None and known.status in {"completed", "failed"}:
            return known
        try:
            if known is None:
                return drive(lambda: start_run(world, self.plan, LINE, Options()))
            return drive(lambda: resume_run(world, rows[-1].run, only=()))
        except Crash:
            self.died = True
            return None


def _judge(job: Job, _: Candidate) -> Verdict:
    asks = any(guard.kind == "human" for guard in job.step.guards)
    return Verdict("ask", "eye") if asks else Verdict("accept")


def check(play: Play, state: State) -> None:
    """Whatever happened on the way: the same end, each attempt under a yes, nothing behind a no."""
    store, plan = play.bed.store, play.plan
    assert audit(store).problems == ()
    assert read_state(store, state.run) == state
    uses = [r.event for r in store.read(f"line:{LINE}") if isinstance(r.event, ApprovalUsed)]
    starts = [
        r.event for r in store.read(f"run:{state.run}") if isinstance(r.event, AttemptStarted)
    ]
    used = Counter(use.step for use in uses)
    expected = _expected(plan, play.refused)
    assert {s: here.phase for s, here in state.steps.items()} == expected
    for step_id, asked in plan.steps.items():
        ran = play.executor.executed[step_id]
        assert ran <= sum(started.step == step_id for started in starts)
        if asked.asks_first:
            assert ran <= used[step_id], f"'{step_id}' ran more often than somebody said yes"
        if asked.asks_first and step_id in play.refused:
            assert ran == 0, f"'{step_id}' ran although everybody said no"
        if asked.uses == "human":
            assert ran == 0
    for started in starts:
        assert bool(started.approvals) == plan.steps[started.step].asks_first


def _expected(plan: Plan, refused: frozenset[str]) -> dict[StepId, str]:
    found: dict[StepId, str] = {}
    for step_id, asked in plan.steps.items():
        above = [found[need.step] for need in asked.needs]
        gated = asked.asks_first or asked.guards
        if any(phase != "done" for phase in above):
            found[step_id] = "skipped"
        else:
            found[step_id] = "failed" if gated and step_id in refused else "done"
    return found


ONE = plan_of(["", "edge", "step", "guard", "answer", ""], [None, 0, 1, 2, 3, 4])
WIDE = plan_of(["guard", "step", "answer", "edge", "guard"], [None, None, None, 0, 1])
CASES = {
    "a chain": (ONE, frozenset[str](), ("once",)),
    "a chain with a no": (ONE, frozenset({"s3"}), ("run", "once")),
    "beside each other": (WIDE, frozenset({"s1"}), ("content", "once", "run")),
}


@pytest.mark.req("I11", "R173", "C20")
@pytest.mark.parametrize("name", CASES)
def test_a_crash_at_any_change_keeps_the_laws(name: str, tmp_path: Path) -> None:
    plan, refused, scopes = CASES[name]
    calm = Play(plan, tmp_path / "calm", refused, scopes)  # type: ignore[arg-type]
    counting = CrashingStore(calm.bed.store)
    check(calm, calm.whole(lambda: counting))
    assert counting.changes > 15
    for at in range(1, counting.changes + 1):
        for when in ("before", "after"):
            play = Play(plan, tmp_path / f"{at}{when}", refused, scopes)  # type: ignore[arg-type]
            dying = CrashingStore(play.bed.store, at=at, when=when)
            whole = play.bed.store
            check(play, play.whole(lambda: whole if play.died else dying))  # noqa: B023 - used at once
            assert play.died


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(1, 6))
    gates = draw(
        st.lists(
            st.sampled_from(["", "step", "edge", "guard", "answer"]),
            min_size=count,
            max_size=count,
        )
    )
    above = draw(st.lists(st.none() | st.integers(0, 5), min_size=count, max_size=count))
    return plan_of(gates, above)  # type: ignore[arg-type]


@pytest.mark.req("I11", "R173")
@settings(max_examples=40, deadline=None)
@given(
    plan=plans(),
    refused=st.frozensets(st.sampled_from([f"s{n}" for n in range(6)]), max_size=2),
    scopes=st.lists(st.sampled_from(["once", "run", "content"]), min_size=1, max_size=3),
    crashes=st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=6),
)
def test_crashes_again_and_again_keep_the_laws(
    plan: Plan,
    refused: frozenset[str],
    scopes: list[Scope],
    crashes: list[tuple[int, bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    play = Play(plan, tmp_path_factory.mktemp("people"), refused, tuple(scopes))
    pending = iter(crashes)

    def store() -> Store:
        at, after = next(pending, (0, False))
        return CrashingStore(play.bed.store, at=at, when="after" if after else "before")

    check(play, play.whole(store))
