"""Killed at any changing call of a run, the run that goes on ends as if nothing had happened."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.crash.faults import (
    CALLS,
    KILLED,
    Case,
    Fault,
    Reference,
    Report,
    Shim,
    by_strace,
    each,
    lay,
    spread,
)

RUN = ("run", "-j", "1")
SLICES = 8
STRACED = 3
NEW_RUN_EVERY = 5  # of so many cases one goes on with `run`, which supersedes, instead of `resume`


def kill_at(
    tmp_path: Path, reference: Reference, report: Report, faults: Sequence[Fault]
) -> dict[str, bool]:
    """Kill the reference plan by each fault; tells which of them fired."""
    fired: dict[str, bool] = {}
    report.total += len(faults)

    def kill(numbered: tuple[int, Fault]) -> None:
        number, fault = numbered
        case = Case(lay(tmp_path / f"case-{number}"), reference, report, fault.name)
        answer = case.scene.call(*RUN, fault=fault)
        fired[fault.name] = answer.code == KILLED
        if fired[fault.name]:
            case.fired()
        elif answer.code != 0:
            case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
        journal = case.broken(answer)
        case.ended("killed" if journal.runs else "killed before it began")
        case.recovered(*(["run"] if number % NEW_RUN_EVERY == 0 else []))
        case.close()

    each(kill, enumerate(faults, 1))
    return fired


@pytest.mark.req("D01", "R74", "R88", "R73", "I1", "I2", "I4", "I5", "I6", "I7", "I9")
@pytest.mark.parametrize("sample", [14, pytest.param(40, marks=pytest.mark.soak("kill"))])
def test_killed_at_any_call_of_any_thread(
    sample: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    calls = shim.count(lay(tmp_path / "count"), *RUN)
    assert {"write", "pwrite64", "fsync", "fdatasync", "renameat", "unlinkat", "mkdir"} <= {*calls}
    report = Report("D01 kill, all threads", "kill")
    faults = [shim.fault(number) for number in spread(calls, sample, seed=1)]
    kill_at(tmp_path, reference("reference"), report, faults)
    settle(report)
    assert report.fired >= report.tried - 2, "the order of calls is nearly the same each time"


@pytest.mark.soak("kill")
@pytest.mark.req("D01", "R74", "R88", "I1", "I2", "I4", "I5", "I6", "I7", "I9")
@pytest.mark.parametrize("slice_", range(SLICES))
def test_killed_at_every_call_of_every_thread(
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    calls = shim.count(lay(tmp_path / "count"), *RUN)
    report = Report("D01 kill at every call, all threads")
    numbers = range(1 + slice_, len(calls) + 1, SLICES)
    kill_at(tmp_path, reference("reference"), report, [shim.fault(n) for n in numbers])
    settle(report)


def most_of(strace: str, scene_folder: Path) -> dict[str, int]:
    """How often the busiest thread makes each call: no later number can fire."""
    scene = lay(scene_folder)
    log = scene_folder / "strace.log"
    trace = ("-f", "-b", "execve", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}")
    assert scene.call(*RUN, fault=Fault("nothing", (strace, *trace))).code == 0
    counts: dict[tuple[str, str], int] = {}
    for line in log.read_text().splitlines():
        thread, _, rest = line.partition(" ")
        call = rest.strip().partition("(")[0]
        if call in CALLS:
            counts[call, thread] = counts.get((call, thread), 0) + 1
    most: dict[str, int] = {}
    for (call, _), count in counts.items():
        most[call] = max(most.get(call, 0), count)
    return most


@pytest.mark.req("D01", "R74", "R88", "I1", "I2", "I4", "I5", "I6", "I7", "I9")
def test_killed_at_calls_that_the_kernel_counts(
    tmp_path: Path,
    strace: str,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    most = most_of(strace, tmp_path / "count")
    calls = [call for call in CALLS for _ in range(most.get(call, 0))]
    first = {call: calls.index(call) for call in most}
    report = Report("D01 kill by strace", "kill")
    faults = [
        by_strace(strace, calls[place - 1], place - first[calls[place - 1]])
        for place in spread(calls, 7, seed=2)
    ]
    kill_at(tmp_path, reference("reference"), report, faults)
    settle(report)


@pytest.mark.soak("kill")
@pytest.mark.req("D01", "R74", "R88", "I1", "I2", "I4", "I5", "I6", "I7", "I9")
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_numbers_that_the_kernel_counts_until_the_run_ends_by_itself(
    call: str,
    tmp_path: Path,
    strace: str,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    """One in three, the shim kills at all of them; fewer of the many `mkdir` that are all alike."""
    most = most_of(strace, tmp_path / "count").get(call, 0)
    if not most:
        pytest.skip(f"the engine never calls {call}")
    report = Report("D01 kill at calls that the kernel counts")
    numbers = range(1, most + 1, 24 if call == "mkdir" else STRACED)
    faults = [by_strace(strace, call, number) for number in numbers]
    kill_at(tmp_path, reference("reference"), report, faults)
    late = by_strace(strace, call, most * 2 + 20)
    assert kill_at(tmp_path / "late", reference("reference"), report, [late]) == {late.name: False}
    settle(report)
