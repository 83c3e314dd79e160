"""Many processes take from one store at once: everything is done, and nothing twice."""

import collections
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.store.postgres import make_store
from tests.cli.project import finish_run
from tests.cli.team import Machine
from tests.crash.report import Report
from tests.postgres import Server, new_schema

ROOT = Path(__file__).parents[2]
PATIENCE = 900.0  # seconds: 32 engines on two cores


def raced(place: str, processes: int, errands: int) -> dict[str, float]:
    """What the bench of claims says: it is a process that starts the others."""
    words = [sys.executable, "-m", "bench.own.claims", place, str(processes), str(errands)]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    told: dict[str, float] = json.loads(said.stdout)
    return told


def place_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "sqlite":
        return str(folder / "store")
    running: Server = request.getfixturevalue("postgres")
    url = running.url(new_schema())
    make_store(url)
    return url


@pytest.mark.req("D13", "R67")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_32_processes_do_2000_errands_once_each_and_none_starves(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    told = raced(place_of(kind, request, tmp_path), 32, 2_000)
    assert (told["twice"], told["lost"]) == (0, 0)
    assert told["fewest"] > 0


@pytest.mark.soak
@pytest.mark.req("D13", "R67")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_64000_errands_of_many_processes(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    told = raced(place_of(kind, request, tmp_path), 32, 64_000)
    assert (told["twice"], told["lost"]) == (0, 0)
    assert told["fewest"] > 0


def engines_race(place: str, folder: Path, engines: int, steps: int) -> Report:
    """Engines of one line share its steps, each a process; every one of them must get some."""
    report = Report(f"D13 {engines} engines, {steps} steps", "other", total=steps)
    machine = Machine(folder / "race", place)
    try:
        body = "echo $HOLDFAST_STEP >> {log}; echo $HOLDFAST_STEP"
        line = body.format(log=machine.log)
        machine.plan({f"s{n}": {"shell": line} for n in range(steps)}, project="shop")
        words = ("run", "--json", "--join", "-j", "1", "--poll", "0.1", "--beat", "1")
        started = [machine.start(*words) for _ in range(engines)]
        runs = [finish_run(one, PATIENCE) for one in started]
        ran = collections.Counter(machine.log.read_text().split())
        done = [sum(state == "done" for state in run.states.values()) for run in runs]
        report.tried, report.fired, report.work = steps, engines, sum(done)
        report.violations += [
            f"engine ended with {run.code}: {run.err}" for run in runs if run.code
        ]
        report.violations += [
            f"{step} ran {count} times" for step, count in ran.items() if count > 1
        ]
        report.violations += [f"s{n} is lost" for n in range(steps) if f"s{n}" not in ran]
        if report.work != steps:
            report.violations.append(f"{report.work} acceptances for {steps} steps")
        if steps > engines * 50:  # of few steps one that starts late may find none left
            report.violations += ["an engine got nothing"] * done.count(0)
        if not machine.ok("verify").out.endswith("no problems\n"):
            report.violations.append("verify finds problems")
    finally:
        machine.end()
    return report


@pytest.mark.req("D13", "I2")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_engines_that_share_a_plan_do_each_step_once(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, sweep: Callable[[Report], None]
) -> None:
    report = engines_race(place_of(kind, request, tmp_path), tmp_path, 3, 60)
    sweep(report)
    assert not report.violations, report.violations[:10]


@pytest.mark.soak("other")
@pytest.mark.req("D13", "I2")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_32_engines_that_share_2000_steps_do_each_once(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, sweep: Callable[[Report], None]
) -> None:
    report = engines_race(place_of(kind, request, tmp_path), tmp_path, 32, 2_000)
    sweep(report)
    assert not report.violations, report.violations[:10]
