"""Killed at any call, a run that was begun under a key is begun exactly once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.faults import KILLED, Case, Reference, Report, Shim, each, lay, spread

RUN = ("run", "-j", "1", "--key", "once", "--json")


def admit(
    tmp_path: Path, shim: Shim, reference: Reference, report: Report, sample: int | None
) -> None:
    calls = shim.count(lay(tmp_path / "count", "tiny"), *RUN)

    def kill(number: int) -> None:
        case = Case(lay(tmp_path / f"case-{number}", "tiny"), reference, report, f"call {number}")
        answer = case.scene.call(*RUN, fault=shim.fault(number))
        if answer.code == KILLED:
            case.fired()
        journal = case.broken(answer)
        case.ended("admitted" if journal.runs else "not yet admitted")
        case.recovered(*RUN)
        begun = case.scene.begun()
        case.finished(case.scene.call(*RUN))
        after = case.scene.journal()
        if [key for _, key in after.opened] != ["once"] or len(after.runs) != 1:
            case.violated(f"the runs of one key: {after.opened}")
        if journal.runs and after.runs != journal.runs:
            case.violated("the run that was admitted is not the one that went on")
        if case.scene.begun() != begun:
            case.violated("the third call under the key did something")
        case.close()

    numbers = spread(calls, sample or len(calls), seed=12)
    report.total = len(numbers)
    each(kill, numbers)


@pytest.mark.req("D12", "R74", "I1")
def test_one_key_is_one_run_whenever_it_was_killed(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D12 admission", "kill")
    admit(tmp_path, shim, reference("tiny"), report, 10)
    settle(report)
    assert min(report.outcomes["admitted"], report.outcomes["not yet admitted"]) > 0


@pytest.mark.soak("kill")
@pytest.mark.req("D12", "R74", "I1")
def test_one_key_is_one_run_killed_at_every_call(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D12 admission, killed at every call")
    admit(tmp_path, shim, reference("tiny"), report, None)
    settle(report)
