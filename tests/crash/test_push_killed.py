"""Killed at any changing call of a push, the other store is whole, and the same command ends it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import wire
from tests.crash.faults import KILLED, Report, Scene, Shim, each, lay, spread, unsound

PUSH = ("push", "../there")
SAMPLE = 5


@pytest.fixture
def ended(tmp_path: Path) -> Scene:
    """A project with two runs that both made everything."""
    scene = lay(tmp_path / "ended", "small")
    for words in (("run",), ("run", "--force")):
        assert scene.call(*words).code == 0
    return scene


def kill_at(scene: Scene, numbers: list[int], shim: Shim, report: Report) -> None:
    """Kill a push at each of these calls, then give it again."""
    report.total = len(numbers)

    def kill(number: int) -> None:
        case = scene.copied(str(number))
        there = case.folder / "there"
        answer = case.call(*PUSH, fault=shim.fault(number))
        wrong = [*unsound(there)] if wire.has_store(str(there)) else []
        again = case.call(*PUSH)
        if again.code:
            wrong.append(f"again ended with {again.code}: {again.err}")
        wrong += [f"again: {problem}" for problem in (*unsound(there), *unsound(case.store))]
        if _ends(there) != _ends(case.store):
            wrong.append("other journals")
        rebuilt = case.call("rebuild", "--json", "--store", "../there")
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


def _ends(place: Path) -> dict[str, tuple[int, str]]:
    """How the journals of all runs end."""
    store = wire.open_store(str(place), readonly=True)
    try:
        journals = [f"run:{row.run}" for row in store.runs(imported=True)]
        return {journal: store.end(journal) for journal in journals}
    finally:
        store.close()


@pytest.mark.req("R187")
def test_push_killed_at_any_call(
    ended: Scene, shim: Shim, settle: Callable[[Report], None]
) -> None:
    calls = shim.count(ended.copied("count"), *PUSH)
    report = Report("push killed", "kill")
    kill_at(ended, spread(calls, SAMPLE, seed=5), shim, report)
    settle(report)
    assert report.fired >= report.tried - 2


@pytest.mark.soak("kill")
@pytest.mark.req("R187")
def test_push_killed_at_every_call(
    ended: Scene, shim: Shim, settle: Callable[[Report], None]
) -> None:
    calls = shim.count(ended.copied("count"), *PUSH)
    report = Report("push killed at every call")
    kill_at(ended, list(range(1, len(calls) + 1)), shim, report)
    settle(report)
