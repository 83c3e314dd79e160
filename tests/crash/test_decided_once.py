"""Approve and reject fired together, from commands and from programs: one decision, one execution at most."""

import multiprocessing as mp
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from holdfast import api, wire
from holdfast.cli.main import cli
from holdfast.core.state import State
from holdfast.engine.audit import audit
from holdfast.engine.hold import Hold
from holdfast.engine.loop import Engine
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.world import World
from holdfast.errors import HoldfastError
from holdfast.model.event import Options
from holdfast.model.line import ApprovalDecided
from holdfast.model.plan import Guard, Plan, Step, StepId
from holdfast.ports import Store

DEADLINE = 300.0
NO = "not today"


def approves(place: str, step: str) -> None:
    words = ["approve", step, "--yes", "--json", "--store", place]
    cli.main(words, prog_name="holdfast", standalone_mode=False)


def rejects(place: str, step: str) -> None:
    words = ["reject", step, "--because", NO, "--json", "--store", place]
    cli.main(words, prog_name="holdfast", standalone_mode=False)


def approves_by_program(place: str, step: str) -> None:
    api.approve(place, step)


HANDS: tuple[Callable[[str, str], None], ...] = (
    approves,
    rejects,
    approves,  # somebody clicks twice
    approves_by_program,
)


def decide(hand: int, place: str, steps: list[str], start: Barrier, told: "mp.Queue[str]") -> None:
    """One hand of the race, in a process of its own: at each step all of them try at once."""
    wins = []
    try:
        for step in steps:
            start.wait(DEADLINE)
            with suppress(HoldfastError):  # somebody was faster
                HANDS[hand](place, step)
                wins.append(step)
    except BaseException:
        start.abort()
        told.put(f"{hand}!{traceback.format_exc()}")
        raise
    told.put(f"{hand}:{','.join(wins)}")


class Place:
    """A line on which every step waits: half of them before an attempt, half with what it made."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.location = str(folder / "store")
        self.root = str(folder)
        self.executed: Counter[str] = Counter()
        names = [f"s{number:04}" for number in range(rounds)]
        steps = {}
        for number, name in enumerate(names):
            asks = {"approve": "always"} if number % 2 else {"guards": (Guard("human"),)}
            steps[StepId(name)] = Step(StepId(name), uses="python", run=("race:made",), **asks)
        self.names = names
        self.plan = Plan("race", steps)
        self.functions = {StepId(name): self._function(name) for name in names}

    def _function(self, name: str) -> Callable[[], str]:
        def made() -> str:
            self.executed[name] += 1
            return name

        return made

    def drive(self, begin: Callable[[World, Store], tuple[Hold, Engine]]) -> State:
        store = wire.open_store(self.location, create=True)
        try:
            wishes = wire.Wishes(functions=self.functions)
            world = wire.world_for(self.plan, self.root, self.location, store, wishes)
            return wire.drive(lambda: begin(world, store), world=world)
        finally:
            store.close()


def race(folder: Path, rounds: int) -> None:
    place = Place(folder, rounds)
    state = place.drive(lambda world, _: start_run(world, place.plan, "race", Options()))
    assert state.counts["waiting"] == rounds
    context = mp.get_context("spawn")
    start, told = context.Barrier(len(HANDS)), context.Queue()
    hands = [
        context.Process(target=decide, args=(hand, place.location, place.names, start, told))
        for hand in range(len(HANDS))
    ]
    for hand in hands:
        hand.start()
    patience = DEADLINE * max(1, rounds // 100)  # each decision reads the line as it is by then
    answers = [told.get(timeout=patience) for _ in hands]
    for hand in hands:
        hand.join(DEADLINE)
    wins: Counter[str] = Counter()
    yes: set[str] = set()
    for answer in answers:
        assert "!" not in answer, answer
        number, _, steps = answer.partition(":")
        for step in filter(None, steps.split(",")):
            wins[step] += 1
            yes |= {step} if "approves" in HANDS[int(number)].__name__ else set()
    assert wins == Counter(place.names), "somebody decided each, and nobody else did"
    before = place.executed.copy()
    after = place.drive(lambda world, _: resume_run(world, state.run, only=()))
    for number, name in enumerate(place.names):
        phase, ran = after.steps[StepId(name)].phase, place.executed[name] - before[name]
        made = 1 if number % 2 else 0  # the others were made before they were asked about
        assert before[name] == 1 - made
        assert (phase, ran) == (("done", made) if name in yes else ("failed", 0)), name
    _check_line(place, yes)


def _check_line(place: Place, yes: set[str]) -> None:
    """What the line says: one decision each, as the winner was told, and every use was covered."""
    store = wire.open_store(place.location)
    try:
        decided = [r.event for r in store.read("line:race") if isinstance(r.event, ApprovalDecided)]
        assert len(decided) == len(place.names) == len({event.approval for event in decided})
        assert sum(event.yes for event in decided) == len(yes)
        assert audit(store).problems == ()
    finally:
        store.close()


@pytest.mark.req("D18", "I11", "R173")
def test_of_many_hands_one_decides(tmp_path: Path) -> None:
    race(tmp_path, 30)


@pytest.mark.soak("decisions")
@pytest.mark.req("D18", "I11", "R173")
def test_of_many_hands_one_decides_a_thousand_times(tmp_path: Path) -> None:
    race(tmp_path, 1000)
