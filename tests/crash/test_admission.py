"""Killed at any call, a run that was begun under a key is begun exactly once."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.crash.faults import (
    KILLED,
    Case,
    Reference,
    Report,
    Scene,
    Shim,
    each,
    lay,
    spread,
)

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


DETACHED = ("run", "--detach", "-j", "1", "--key", "once", "--json")


def detach(
    tmp_path: Path, shim: Shim, reference: Reference, report: Report, sample: int | None
) -> None:
    """Kill who starts a run in the background: it goes on by itself, or was never begun."""
    calls = shim.count(counted := lay(tmp_path / "count", "tiny"), *DETACHED)
    wait_for_rest(counted)

    def kill(number: int) -> None:
        case = Case(lay(tmp_path / f"case-{number}", "tiny"), reference, report, f"call {number}")
        answer = case.scene.call(*DETACHED, fault=shim.fault(number))
        if answer.code == KILLED:
            case.fired()
        wait_for_rest(case.scene)
        journal = case.broken(answer)
        case.ended("begun" if journal.runs else "not begun")
        case.recovered(*RUN)
        after = case.scene.journal()
        if [key for _, key in after.opened] != ["once"] or len(after.runs) != 1:
            case.violated(f"the runs of one key: {after.opened}")
        if journal.runs and after.runs != journal.runs:
            case.violated("the run that was begun is not the one that went on")
        case.close()

    numbers = spread(calls, sample or len(calls), seed=12)
    report.total = len(numbers)
    each(kill, numbers)


def wait_for_rest(scene: Scene) -> None:
    """Until nobody works in this project any more."""
    place = os.fsencode(scene.root)
    pause = threading.Event()
    while any(_is_at_work(pid, place) for pid in filter(str.isdigit, os.listdir("/proc"))):
        pause.wait(0.05)


def _is_at_work(pid: str, place: bytes) -> bool:
    with suppress(OSError):  # it may go while it is looked at
        words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
        return b"holdfast" in words and os.readlink(b"/proc/%s/cwd" % pid.encode()) == place
    return False


@pytest.mark.soak("kill")
@pytest.mark.req("D12", "R74", "I1")
def test_a_run_in_the_background_is_begun_once_whenever_its_starter_was_killed(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D12 admission in the background", "kill")
    detach(tmp_path, shim, reference("tiny"), report, None)
    settle(report)
    assert min(report.outcomes["begun"], report.outcomes["not begun"]) > 0
