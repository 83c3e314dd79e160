"""The laws of plans with conditions and optional needs, whatever people do with their runs.

Each step makes `x` or `n`, or fails, as its luck says for each time it is tried. A condition asks for `x`.
When a run rests, everything in it must follow from what stands now: nothing was made or left out on a
version that is no more.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.state import COMPLETE, PHASES, State
from holdfast.engine.audit import audit
from holdfast.engine.fork import fork_run, free_name
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_state
from holdfast.engine.lines import tell_line
from holdfast.engine.loop import Engine
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.world import World
from holdfast.errors import HoldfastError
from holdfast.model.artifact import Artifact
from holdfast.model.condition import references
from holdfast.model.event import Options
from holdfast.model.line import LineEvent, SkipRequested
from holdfast.model.plan import Need, Plan, RunId, Step, StepId
from holdfast.ports import Job
from holdfast.store.memory import MemoryStore
from holdfast.testing import Answer, Crash, CrashingStore, ScriptedExecutor, failed
from tests.laws.choosing import Choose, by_seed, several
from tests.laws.harness import LINE, Bed, drive, go_on

Begin = Callable[[World], tuple[Hold, Engine]]
Act = Literal["resume", "retry", "skip", "fork"]
ACTS: tuple[Act, ...] = ("resume", "retry", "skip", "fork")
LUCK = ("x", "n", "-")  # `-` fails
LOST = {"failed", "skipped"}
BY_CONDITION = {"condition_unmet", "condition_above"}


class Story(NamedTuple):
    """A plan, what each step comes to when it is tried again and again, and what people do in the end."""

    plan: Plan
    luck: dict[StepId, str]
    acts: tuple[tuple[Act, int], ...]


def a_story(choose: Choose, most: int) -> Story:
    steps: dict[StepId, Step] = {}
    for number in range(choose(range(3, most + 1))):
        name = StepId(f"s{number}")
        needs = [
            Need(s, "data", optional=choose([False, True])) for s in several(choose, list(steps), 2)
        ]
        when = None
        if choose(range(2)) and needs:
            when = {f"steps.{choose(needs).step}.output": {"equals": "x"}}
        above = [need.step for need in needs]
        escalate = (choose(above),) if choose(range(3)) == 0 and above else ()
        steps[name] = Step(name, shell=name, needs=tuple(needs), when=when, escalate=escalate)
    luck = {name: "".join(choose(LUCK) for _ in range(3)) for name in steps}
    acts = tuple((choose(ACTS), choose(range(most))) for _ in range(choose(range(1, 4))))
    return Story(Plan(LINE, steps), luck, acts)


class Play:
    """A run of a story, and what people do with it."""

    def __init__(self, story: Story, root: str) -> None:
        self.story = story
        self.bed = Bed(MemoryStore(), root)
        self.tries: Counter[str] = Counter()
        self.executor = ScriptedExecutor(self._answer)
        self.dies_at = 0

    def _answer(self, job: Job) -> Answer:
        luck = self.story.luck[job.step.id]
        now = luck[min(self.tries[job.step.id], len(luck) - 1)]
        self.tries[job.step.id] += 1
        return failed("no") if now == "-" else now.encode()

    def begin(self) -> State:
        return self._drive(lambda world: start_run(world, self.story.plan, LINE, Options()), LINE)

    def _drive(self, begin: Begin, line: str, run: RunId | None = None) -> State:
        """Drive a run until it rests; if its process dies on the way, another one goes on with it."""
        dying = CrashingStore(self.bed.store, at=self.dies_at)
        world = self.bed.world(self.executor, dying)
        try:
            return self._rest(drive(lambda: begin(world)))
        except Crash:
            whole, runs = self.bed.world(self.executor), self.bed.store.runs(line)
        there = run or (runs[-1].run if runs else None)
        if there is None:
            return self._rest(drive(lambda: begin(whole)))
        return self._rest(drive(lambda: resume_run(whole, there, only=())))

    def act(self, state: State, act: Act, number: int) -> State:
        """Do it if it fits; the run that is looked at from now on."""
        fitting = _fitting(state, act)
        if not fitting:
            return state
        step = fitting[number % len(fitting)]
        if act == "fork":
            line = free_name(self.bed.store, state, None)
            return self._drive(lambda world: fork_run(world, state, step, line), line)
        if act == "skip":
            self._ask_to_skip(state, step)
        only = {"resume": None, "skip": ()}.get(act, (step,))
        return self._drive(
            lambda world: resume_run(world, state.run, only=only), state.line, state.run
        )

    def _ask_to_skip(self, state: State, step: StepId) -> None:
        words = self.bed.store.put(b"without it")

        def say() -> tuple[int, LineEvent, list[Artifact]]:
            return self.bed.clock(), SkipRequested(state.run, step, "me", words), []

        tell_line(self.bed.store, state.project, state.line, say)

    def _rest(self, state: State) -> State:
        state = go_on(self.bed, state, self.executor)
        check(self.bed, state)
        return state


def _fitting(state: State, act: Act) -> list[StepId]:
    """The steps with which people may do that."""
    if act == "fork":
        return list(state.steps)
    if state.ended:
        return []
    phases = {"retry": {"failed", "waiting"}, "skip": {"failed", "skipped", "waiting"}}
    wanted = phases.get(act, set(PHASES))
    found = [s for s, here in state.steps.items() if here.phase in wanted]
    return [*found, *state.gaps] if act == "retry" else found


def check(bed: Bed, state: State) -> None:
    assert read_state(bed.store, state.run) == state
    assert audit(bed.store).problems == ()
    assert state.status in {"completed", "failed", "waiting", "escalated"}, state.status
    for step_id, here in state.steps.items():
        if step_id not in state.gaps:
            _follows(bed, state, step_id, here.phase)


def _follows(bed: Bed, state: State, step_id: StepId, phase: str) -> None:
    """Where a step stands follows from where those stand that it needs."""
    step, code = state.plan.steps[step_id], _code(state, step_id)
    strict = [need.step for need in step.needs if not need.optional]
    lost = [need for need in strict if state.steps[need].phase in LOST]
    if phase in COMPLETE:
        assert not lost, step_id
        assert _holds(bed, state, step), step_id
    elif code == "condition_unmet":
        assert not _holds(bed, state, step), step_id
    elif phase == "skipped":
        unmet = [need for need in lost if _code(state, need) in BY_CONDITION]
        assert unmet if code == "condition_above" else len(lost) > len(unmet), (step_id, code)
    elif phase == "pending":
        waits = [n.step for n in step.needs if state.steps[n.step].phase in {"pending", "waiting"}]
        assert waits or state.status == "escalated", step_id


def _code(state: State, step_id: StepId) -> str:
    reason = state.steps[step_id].reason
    return reason.code if reason is not None and state.steps[step_id].phase == "skipped" else ""


def _holds(bed: Bed, state: State, step: Step) -> bool:
    """Whether the condition of a step holds by what stands now."""
    if step.when is None:
        return True
    (compared,) = references(step.when)
    above = state.steps[StepId(compared.name)]
    return (
        above.phase in COMPLETE and above.digest is not None and bed.store.get(above.digest) == b"x"
    )


def whole(story: Story, root: str, dies_at: int = 0) -> State:
    play = Play(story, root)
    play.dies_at = dies_at
    state = play.begin()
    for act, number in story.acts:
        state = play.act(state, act, number)
    return state


FEW, MANY = 200, 600  # stories of the sample, and of the sweep in which processes die


@pytest.mark.req("R182")
@pytest.mark.parametrize("part", range(4))
def test_everything_follows_from_what_stands(root: str, part: int) -> None:
    for seed in range(part, FEW, 4):
        _tell(seed, 7, root)


@pytest.mark.req("R73", "R182")
@pytest.mark.parametrize("part", range(4))
def test_everything_follows_though_processes_die(root: str, part: int) -> None:
    for seed in range(part, FEW // 2, 4):
        _tell(seed, 7, root, dies_at=1 + seed % 11)


@pytest.mark.soak
@pytest.mark.req("R182")
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(FEW, 10**9))
def test_everything_follows_in_many_stories(root: str, seed: int) -> None:
    _tell(seed, 9, root)


@pytest.mark.soak
@pytest.mark.req("R73", "R182")
@pytest.mark.parametrize("part", range(4))
def test_everything_follows_in_many_stories_though_processes_die(root: str, part: int) -> None:
    for seed in range(part, MANY, 4):
        _tell(seed, 7, root, dies_at=1 + seed % 11)


def _tell(seed: int, most: int, root: str, dies_at: int = 0) -> None:
    story = a_story(by_seed(random.Random(seed)), most)
    try:
        whole(story, root, dies_at)
    except (AssertionError, HoldfastError) as error:
        raise AssertionError(f"seed {seed}: {error}\n{told(story)}") from error


def told(story: Story) -> str:
    lines = [
        f"{step.id}: {story.luck[step.id]} needs {[n.step + '?' * n.optional for n in step.needs]}"
        f" when {step.when} escalate {step.escalate}"
        for step in story.plan.steps.values()
    ]
    return "\n".join([*lines, str(story.acts)])
