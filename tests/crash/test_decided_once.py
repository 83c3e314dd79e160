"""Approve and reject fired together, by command, page and program: one decision, one execution at most."""

import http.client
import json
import multiprocessing as mp
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.event import Options
from holdfast.model.line import ApprovalDecided, ApprovalRequested
from holdfast.model.plan import Guard, Plan, Step, StepId
from holdfast.ports import Store
from tests.crash.report import Report

DEADLINE = 300.0
NO = "not today"


@dataclass(frozen=True)
class Asked:
    """What waits: how the command calls it, and how the page does."""

    step: str
    run: str
    approval: str
    subject: str


@dataclass(frozen=True)
class At:
    """Where it waits: a store, and a browser that was let into its page."""

    place: str
    port: int
    cookie: str
    token: str


def approves(at: At, asked: Asked) -> None:
    words = ["approve", asked.step, "--yes", "--json", "--store", at.place]
    cli.main(words, prog_name="holdfast", standalone_mode=False)


def rejects(at: At, asked: Asked) -> None:
    words = ["reject", asked.step, "--because", NO, "--json", "--store", at.place]
    cli.main(words, prog_name="holdfast", standalone_mode=False)


def approves_by_program(at: At, asked: Asked) -> None:
    api.approve(at.place, asked.step)


def approves_on_the_page(at: At, asked: Asked) -> None:
    _clicks(at, asked, answer="yes", scope="once")


def rejects_on_the_page(at: At, asked: Asked) -> None:
    _clicks(at, asked, answer="no", because=NO)


def _clicks(at: At, asked: Asked, **more: str) -> None:
    """As the script of the page sends it; 409 is how it says that somebody was faster."""
    body = {"run": asked.run, "approval": asked.approval, "subject": asked.subject, **more}
    headers = {
        "Host": f"127.0.0.1:{at.port}",
        "Origin": f"http://127.0.0.1:{at.port}",
        "Content-Type": "application/json",
        "Cookie": at.cookie,
        "X-Holdfast-Token": at.token,
    }
    connection = http.client.HTTPConnection("127.0.0.1", at.port, timeout=DEADLINE)
    try:
        connection.request("POST", "/approvals/decide", json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    assert answer.status in {200, 409}, (answer.status, text)
    if answer.status == 409:
        raise UsageError(text)


HANDS: tuple[Callable[[At, Asked], None], ...] = (
    approves,
    rejects,
    approves_by_program,
    approves_on_the_page,
    approves_on_the_page,  # somebody clicks twice
    rejects_on_the_page,
)


def decide(hand: int, at: At, waits: list[Asked], start: Barrier, told: "mp.Queue[str]") -> None:
    """One hand of the race, in a process of its own: at each step all of them try at once."""
    wins = []
    try:
        for asked in waits:
            start.wait(DEADLINE)
            with suppress(HoldfastError):  # somebody was faster
                HANDS[hand](at, asked)
                wins.append(asked.step)
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

    def asked(self, state: State) -> list[Asked]:
        """Everything that waits, in the order of the steps."""
        store = wire.open_store(self.location)
        try:
            read = (recorded.event for recorded in store.read("line:race"))
            found = {e.step: e for e in read if isinstance(e, ApprovalRequested)}
        finally:
            store.close()
        events = [found[StepId(name)] for name in self.names]
        return [Asked(e.step, state.run, e.approval, e.subject) for e in events]

    def drive(self, begin: Callable[[World, Store], tuple[Hold, Engine]]) -> State:
        store = wire.open_store(self.location, create=True)
        try:
            wishes = wire.Wishes(functions=self.functions)
            world = wire.world_for(self.plan, self.root, self.location, store, wishes)
            return wire.drive(lambda: begin(world, store), world=world)
        finally:
            store.close()


@contextmanager
def page(place: str) -> Iterator[At]:
    """The page of a store, and somebody who was let in."""
    words = [sys.executable, "-m", "holdfast", "ui", "--no-browser", "--store", place]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().decode().strip()
            port = int(address.split("/")[2].rpartition(":")[2])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            connection.request("GET", address.partition(str(port))[2])
            answer = connection.getresponse()
            cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]
            answer.read()
            connection.request("GET", "/door/token", headers={"Cookie": cookie})
            token = json.loads(connection.getresponse().read())["token"]
            connection.close()
            yield At(place, port, cookie, token)
        finally:
            server.terminate()


def race(folder: Path, rounds: int) -> Counter[str]:
    place = Place(folder, rounds)
    state = place.drive(lambda world, _: start_run(world, place.plan, "race", Options()))
    assert state.counts["waiting"] == rounds
    context = mp.get_context("spawn")
    start, told = context.Barrier(len(HANDS)), context.Queue()
    waits = place.asked(state)
    patience = DEADLINE * max(1, rounds // 100)  # each decision reads the line as it is by then
    with page(place.location) as at:
        hands = [
            context.Process(target=decide, args=(hand, at, waits, start, told))
            for hand in range(len(HANDS))
        ]
        for hand in hands:
            hand.start()
        answers = [told.get(timeout=patience) for _ in hands]
        for hand in hands:
            hand.join(DEADLINE)
    wins: Counter[str] = Counter()
    by: Counter[str] = Counter()
    yes: set[str] = set()
    for answer in answers:
        assert "!" not in answer, answer
        number, _, steps = answer.partition(":")
        for step in filter(None, steps.split(",")):
            wins[step] += 1
            yes |= {step} if "approves" in HANDS[int(number)].__name__ else set()
            by[HANDS[int(number)].__name__] += 1
    assert wins == Counter(place.names), "somebody decided each, and nobody else did"
    before = place.executed.copy()
    after = place.drive(lambda world, _: resume_run(world, state.run, only=()))
    for number, name in enumerate(place.names):
        phase, ran = after.steps[StepId(name)].phase, place.executed[name] - before[name]
        made = 1 if number % 2 else 0  # the others were made before they were asked about
        assert before[name] == 1 - made
        assert (phase, ran) == (("done", made) if name in yes else ("failed", 0)), name
    _check_line(place, yes)
    return by


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
    race(tmp_path, 24)


@pytest.mark.soak("other")
@pytest.mark.req("D18", "I11", "R173")
def test_of_many_hands_one_decides_a_thousand_times(
    tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    report = Report("decided by many hands at once")
    by = race(tmp_path, 1000)
    report.tried = report.fired = 1000
    report.work = sum(by.values())
    report.outcomes.update(by)
    sweep(report)
    assert all(by[hand.__name__] for hand in HANDS), by
