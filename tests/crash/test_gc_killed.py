"""Killed at any changing call of `gc` or `purge`, the store is whole and what stood still stands."""

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.crash.faults import KILLED, Report, Scene, Shim, each, lay, spread, unsound

GC = ("gc", "--keep", "0s", "--yes")
SAMPLE = 6


@pytest.fixture
def old(tmp_path: Path) -> Scene:
    """A project with runs that may go; all contents are old."""
    scene = lay(tmp_path / "old", "small")
    for words in (("run",), ("run", "--force"), ("run", "--force")):
        assert scene.call(*words).code == 0
    database = apsw.Connection(str(scene.store / "state.db"))
    database.execute("UPDATE blob SET at = 0")
    database.close()
    for path in scene.store.glob("blobs/??/*"):
        os.utime(path, (0, 0))
    return scene


def kill_at(
    scene: Scene, words: tuple[str, ...], numbers: list[int], shim: Shim, report: Report
) -> None:
    """Kill a command at each of these calls, then give it again."""
    report.total = len(numbers)

    def kill(number: int) -> None:
        case = scene.copied(str(number))
        answer = case.call(*words, fault=shim.fault(number))
        wrong = [*unsound(case.store)]
        again = case.call(*words)
        if again.code not in {0, 2}:
            wrong.append(f"again ended with {again.code}: {again.err}")
        wrong += [f"again: {problem}" for problem in unsound(case.store)]
        rebuilt = case.call("rebuild", "--json")
        if '"changed": false' not in rebuilt.out:
            wrong.append(f"another index: {rebuilt.out}{rebuilt.err}")
        with report.lock:
            report.tried += 1
            report.fired += answer.code == KILLED
            report.kept += len(case.journal().steps)
            report.work += 1
            report.violations += [f"{report.name}: call {number}: {what}" for what in wrong]
        if not wrong:
            case.remove()

    each(kill, numbers)


@pytest.mark.req("R187")
def test_gc_killed_at_any_call(old: Scene, shim: Shim, settle: Callable[[Report], None]) -> None:
    calls = shim.count(old.copied("count"), *GC)
    report = Report("gc killed", "kill")
    kill_at(old, GC, spread(calls, SAMPLE, seed=3), shim, report)
    settle(report)
    assert report.fired >= report.tried - 2


@pytest.mark.soak("kill")
@pytest.mark.req("R187")
def test_gc_killed_at_every_call(old: Scene, shim: Shim, settle: Callable[[Report], None]) -> None:
    calls = shim.count(old.copied("count"), *GC)
    report = Report("gc killed at every call")
    kill_at(old, GC, list(range(1, len(calls) + 1)), shim, report)
    settle(report)


@pytest.mark.soak("kill")
def test_purge_killed_at_every_call(
    old: Scene, shim: Shim, settle: Callable[[Report], None]
) -> None:
    words = ("purge", min(old.journal().results().values()), "--because", "x", "--yes")
    calls = shim.count(old.copied("count"), *words)
    report = Report("purge killed at every call")
    kill_at(old, words, list(range(1, len(calls) + 1)), shim, report)
    settle(report)
