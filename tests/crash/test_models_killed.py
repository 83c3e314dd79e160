"""kill -9 while models answer: every request is accounted for, and no answer is asked for twice.

A call is stored before it is sent. One that had not left when its engine died is told apart from one that was
interrupted: what the server counted is what was answered and what was interrupted.
"""

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.testing.server import Asked, ModelServer, Reply, Say
from tests.cli.models import configure, step
from tests.cli.project import DEADLINE, Project, until
from tests.crash.report import Report
from tests.forge import Running

STEPS = 200
SEEDS = 8
ADRIFT = 1  # calls of each engine that may be noted as sent and killed before their first byte
PATIENCE = 4 * DEADLINE  # an engine of its own loads the library first


class Victim:
    """Answers, and kills the engine that asks: at once as a request comes, or a little later."""

    def __init__(self) -> None:
        self._engine: Running | None = None
        self._at = 0

    def aim(self, engine: Running, at: int) -> None:
        """The engine dies when the server has this many requests."""
        self._engine, self._at = engine, at

    def answer(self, asked: Asked) -> Reply:
        if self._engine is not None and asked.number == self._at:
            self._engine.send_signal(signal.SIGKILL)
        return Say(f"answer to {asked.last}", delay=0.01 * (asked.number % 3))


def kill_among_models(project: Project, report: Report, seed: int, kills: int) -> None:
    """One run of 200 steps whose engine is killed again and again."""
    choose, victim = random.Random(seed), Victim()
    project.plan({f"s{n}": step(f"number {n}") for n in range(STEPS)})
    with ModelServer(victim.answer) as server:
        configure(project, server.url, provider="at_once = 8")
        for number in range(kills):
            left = STEPS - len({asked.last for asked in server.requests})
            if not left:
                break
            at = len(server.requests) + choose.randrange(1, max(2, 2 * left // (kills - number)))
            engine = project.start("resume" if number else "run", "--yes", "-q")
            report.tried += 1
            if choose.random() < 0.5:
                victim.aim(engine, at)
            until(
                lambda: len(server.requests) >= at or engine.poll() is not None,  # noqa: B023
                "some were asked",
                PATIENCE,
            )
            engine.send_signal(signal.SIGKILL)
            engine.communicate()
            report.fired += engine.returncode == -signal.SIGKILL
        if project.status().data["status"] != "completed":
            assert project.call("resume", "--yes", "-q").code == 0
        requests = Counter(asked.last.removeprefix("# TASK\n") for asked in server.requests)
    account(project, report, requests, f"seed {seed}")


def account(project: Project, report: Report, requests: Counter[str], name: str) -> None:
    """Hold what the server counted against what the journal says."""
    events = project.events()
    started, answered = (
        Counter(event["step"] for event in events if event["event"] == kind)
        for kind in ("call_started", "call_answered")
    )
    run = project.status()
    cut = run.data["totals"]["interrupted_calls"]
    for n in range(STEPS):
        step_id, asked = f"s{n}", requests[f"number {n}"]
        if answered[step_id] != 1 or run.states[step_id] != "done":
            report.violations.append(f"{name}: {step_id} has {answered[step_id]} answers")
        if not 1 <= asked <= started[step_id]:
            report.violations.append(
                f"{name}: {step_id} was asked {asked} times, the journal says {started[step_id]}"
            )
    unsent = sum(len(event.get("unsent", ())) for event in events)
    if sum(started.values()) != STEPS + cut + unsent:
        report.violations.append(
            f"{name}: {sum(started.values())} calls, {STEPS} answers, {cut} interrupted, {unsent} unsent"
        )
    asked = sum(requests.values())
    if not 0 <= STEPS + cut - asked <= ADRIFT * report.fired:
        report.violations.append(f"{name}: {asked} asked, {STEPS} answers, {cut} interrupted")
    if project.call("verify").code:
        report.violations.append(f"{name}: the store is not sound")
    kinds = [event["event"] for event in events]
    last = max(place for place, kind in enumerate(kinds) if kind == "run_resumed")
    report.kept += kinds[:last].count("call_answered")
    report.work += list(run.states.values()).count("done")
    report.outcomes["asked"] += asked
    report.outcomes["interrupted"] += cut
    report.outcomes["not sent"] += unsent
    report.outcomes["adrift"] += STEPS + cut - asked


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.end()


@pytest.mark.req("R165")
def test_two_hundred_model_steps_are_killed_some_times(
    project: Project, settle: Callable[[Report], None]
) -> None:
    report = Report("kills among model steps", "random-kill")
    kill_among_models(project, report, seed=0, kills=3)
    settle(report)
    assert report.outcomes["interrupted"] > 0


@pytest.mark.soak("random-kill")
@pytest.mark.req("R165")
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_two_hundred_model_steps_are_killed_many_times(
    project: Project, settle: Callable[[Report], None], seed: int
) -> None:
    report = Report("kills among model steps")
    kill_among_models(project, report, seed, kills=25)
    settle(report)
    assert report.fired >= 15, "some moments come when all is done"
    assert report.outcomes["interrupted"] > 0
