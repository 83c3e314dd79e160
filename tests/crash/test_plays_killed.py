"""Plays of every kind, killed at each changing call of each of their commands, come to the same end."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.faults import KILLED, Report, Shim, spread
from tests.crash.playing import Stage, here, staged
from tests.crash.plays import PLAYS
from tests.crash.shim import SHIM_CALLS
from tests.postgres import Server

CALLS = (*SHIM_CALLS, "fork")  # also before a program is started: git is one
SLICES = {"reference": 12, "PostgreSQL": 4}
SLICE = 3  # of the small ones
ENDS = 2  # so often in a row a command ends by itself: then it has no call of that number
NEW_RUN_EVERY = 5  # of so many cases one goes on with `run`, which supersedes, instead of `resume`


def kill_at(stage: Stage, place: int, number: int, report: Report) -> bool:
    """One command is killed at one of its calls; False if it ended before that call."""
    case = stage.case(place, report, f"{place}-{number}")
    answer = case.scene.call(*stage.play.acts[place].words, fault=stage.shim.fault(number))
    was_killed = answer.code == KILLED
    if was_killed:
        case.fired()
    elif answer.code != stage.play.acts[place].code:
        case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
    journal = case.broken(answer)
    died = "killed" if journal.runs else "killed before it began"
    case.ended(died if was_killed else "ended before")
    case.go_on(place, anew=number % NEW_RUN_EVERY == 0)
    case.close()
    return was_killed


def kill_everywhere(stage: Stage, slice_: int, slices: int, report: Report) -> None:
    """Each command at one call after the other, until it ends by itself.

    How many calls there are is known only then: waiting makes some, and a busy machine waits longer. Copies
    of a run are one run, and a resume ends all its processes: so one case after the other.
    """
    report.total += len(stage.points()) // slices
    for place in range(len(stage.play.acts)):
        ended = 0
        for number in itertools.count(1 + slice_, slices):
            ended = 0 if kill_at(stage, place, number, report) else ended + 1
            if ended == ENDS:
                break


def tear(stage: Stage, report: Report, slice_: int, slices: int) -> None:
    """Die after half of a write, to the project or to what is kept at home of it."""
    writes = replace(stage.shim, calls=("write", "pwrite64"))
    for place, act in enumerate(stage.play.acts):
        count = stage.bases[place].copied(f"writes-{place}")
        calls = writes.count(count, *act.words, how="torn", code=act.code, under=here(count))
        count.remove()
        numbers = range(1 + slice_, len(calls) + 1, slices)
        report.total += len(numbers)
        for number in numbers:
            case = stage.case(place, report, f"torn-{place}-{number}")
            fault = writes.fault(number, "torn", here(case.scene))
            answer = case.scene.call(*act.words, fault=fault)
            if answer.code == KILLED:
                case.fired()
            elif answer.code != act.code:
                case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
            case.broken(answer)
            case.ended("torn" if answer.code == KILLED else "ended well")
            case.go_on(place)
            case.close()


def whole() -> list[tuple[str, int, int]]:
    found = ((name, SLICES.get(name, SLICE)) for name in PLAYS)
    return [(name, slice_, slices) for name, slices in found for slice_ in range(slices)]


@pytest.mark.req("D01", "R74", "R88", "R73", "I1", "I2", "I4", "I5", "I6", "I7", "I9", "I10")
@pytest.mark.parametrize(
    "name, sample",
    [("PostgreSQL", 2), pytest.param("reference", 12, marks=pytest.mark.soak("kill"))],
)
def test_a_play_killed_at_any_call(
    name: str,
    sample: int,
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D01 kill, {name}", "kill")
    with staged(PLAYS[name], tmp_path, Shim(shim.library, CALLS), server) as stage:
        points = stage.points()
        names = [call for calls in stage.calls for call in calls]
        for n in spread(names, sample, seed=1):
            kill_at(stage, *points[n - 1], report)
    settle(report)
    assert report.fired >= report.tried - 2, "the order of calls is nearly the same each time"


@pytest.mark.soak("kill")
@pytest.mark.req("D01", "R74", "R88", "R73", "I1", "I2", "I4", "I5", "I6", "I7", "I9", "I10")
@pytest.mark.parametrize("name, slice_, slices", whole())
def test_a_play_killed_at_every_call(
    name: str,
    slice_: int,
    slices: int,
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D01 kill at every call, {name}")
    with staged(PLAYS[name], tmp_path, Shim(shim.library, CALLS), server) as stage:
        kill_everywhere(stage, slice_, slices, report)
    settle(report)
    assert report.fired > 0.9 * report.tried, "all but the last ones of each command"


@pytest.mark.soak("short-torn-flip")
@pytest.mark.req("D06", "I1", "I5", "I7")
@pytest.mark.parametrize("slice_", range(SLICE))
@pytest.mark.parametrize("name", ["edit", "git", "reference"])
def test_a_play_dies_in_half_of_every_write(
    name: str,
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D06 torn writes, {name}")
    with staged(PLAYS[name], tmp_path, Shim(shim.library, CALLS), server) as stage:
        tear(stage, report, slice_, SLICE)
    settle(report)
    assert report.outcomes["torn"] > 0.9 * report.tried
