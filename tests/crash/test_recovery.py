"""Killed inside recovery, and inside the recovery of that, the end is still the same."""

import random
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.crash.faults import KILLED, Case, Reference, Report, Scene, Shim, each, lay, spread

RUN = ("run", "-j", "1")
RESUME = ("resume", "-j", "1")
DEPTH = 3  # resumes that are killed, one after the other


def crash_points(calls: Sequence[str]) -> list[list[int]]:
    """Where a run dies: with attempts under way, with files half placed, with journals to forget.

    What is removed last is removed when the run has ended: of those the first that leaves it open counts.
    """
    renames = [number for number, name in enumerate(calls, 1) if name == "renameat"]
    removals = [number for number, name in enumerate(calls, 1) if name == "rmdir"]
    return [[renames[1]], [renames[-1]], removals[len(removals) // 2 :: -1]]


def crashed(tmp_path: Path, shim: Shim, plan: str, which: Sequence[int]) -> list[Scene]:
    """Some of the runs that died so."""
    calls = shim.count(lay(tmp_path / "count", plan), *RUN)
    scenes = []
    for numbers in [crash_points(calls)[place] for place in which]:
        for number in numbers:
            scene = lay(tmp_path / f"crashed-{number}", plan)
            is_killed = scene.call(*RUN, fault=shim.fault(number)).code == KILLED
            if is_killed and scene.copied(f"open-{number}").call(*RESUME).code == 0:
                scenes.append(scene)
                break
    assert scenes
    return scenes


def kill_recovery(
    scenes: Sequence[Scene], shim: Shim, reference: Reference, report: Report, sample: int | None
) -> None:
    """Kill `resume`, then the `resume` after that, and the one after that.

    Over all cases each of the three is killed at every one of the calls, in different orders. Copies
    of one crash are copies of one run, and a resume ends all processes of its run: so one after the
    other.
    """

    def kill_all(scene: Scene) -> None:
        numbers = numbers_of(shim.count(scene.copied("count"), *RESUME), sample)
        with report.lock:
            report.total += len(numbers)
        dice = random.Random(scene.folder.name)
        others = [dice.sample(numbers, len(numbers)) for _ in range(DEPTH - 1)]
        for at in zip(numbers, *others, strict=True):
            kill(scene, at)

    def kill(scene: Scene, at: Sequence[int]) -> None:
        name = f"{scene.folder.name} resume {at}"
        case = Case(scene.copied(f"resume-{at[0]}"), reference, report, name)
        case.fired()  # the crash it begins with
        case.broken(case.scene.said(KILLED))
        for number in at:
            answer = case.scene.call(*RESUME, fault=shim.fault(number))
            journal = case.broken(answer)
            if answer.code == KILLED:
                case.fired()
                case.ended("killed")
            elif answer.code != 0:
                case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
            if journal.ended(journal.runs[-1]):
                break
        case.recovered()
        case.close()

    each(kill_all, scenes, threads=3)


def numbers_of(calls: Sequence[str], sample: int | None) -> list[int]:
    """A sample, or every call but those that make one of the many directories for contents."""
    if sample is not None:
        return spread(calls, sample, seed=3)
    return [n for n, name in enumerate(calls, 1) if name != "mkdir" or n % 16 == 0]


@pytest.mark.req("D11", "R74", "I1", "I2", "I7", "I9")
def test_killed_in_recovery_and_in_the_recovery_of_that(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D11 kill in recovery, small plan", "recovery")
    scenes = crashed(tmp_path, shim, "small", (0, 1, 2))
    kill_recovery(scenes, shim, reference("small"), report, 2)
    settle(report)
    assert report.fired > report.tried * 2, "the crash, its recovery, and the recovery of that"


@pytest.mark.soak("recovery")
@pytest.mark.req("D11", "R74", "I1", "I2", "I7", "I9")
@pytest.mark.parametrize(
    "plan, which, sample",
    [("small", 0, 120), ("small", 1, None), ("small", 2, 120)]
    + [("reference", which, 40) for which in range(3)],
)
def test_killed_at_every_call_of_recovery(
    plan: str,
    which: int,
    sample: int | None,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D11 kill in recovery, {plan} plan")
    scenes = crashed(tmp_path, shim, plan, (which,))
    kill_recovery(scenes, shim, reference(plan), report, sample)
    settle(report)


def restore(
    tmp_path: Path, shim: Shim, reference: Reference, report: Report, sample: int | None
) -> None:
    """Outputs were deleted; a run that writes them again from the store, and goes on, is killed."""
    done = lay(tmp_path / "done")
    assert done.call(*RUN).code == 0
    for name in ("right.txt", "again.txt", "pages.txt", "keep.txt"):
        (done.root / name).unlink()
    shutil.rmtree(done.root / "tree")
    words = (*RUN, "--force-node", "report")
    calls = shim.count(done.copied("count"), *words)

    def kill(number: int) -> None:
        scene = done.copied(f"kill-{number}")
        case = Case(scene, reference, report, f"restore {number}", forced={"report"})
        case.broken(scene.said(0))
        answer = scene.call(*words, fault=shim.fault(number))
        if answer.code == KILLED:
            case.fired()
        case.broken(answer)
        case.recovered()
        case.close()

    numbers = sorted({*numbers_of(calls, sample), *after_placing(calls)})
    report.total = len(numbers)
    each(kill, numbers)


def after_placing(calls: Sequence[str]) -> list[int]:
    """The files are there and that is recorded, but their journals are still to be forgotten."""
    found = []
    renames = [n for n, name in enumerate(calls) if name == "renameat"]
    for here, following in pairwise([*renames, len(calls)]):
        if "fdatasync" in calls[here:following]:
            stored = calls.index("fdatasync", here) + 1
            near = range(stored + 1, min(stored + 12, len(calls)) + 1)
            found += [n for n in near if calls[n - 1] in {"unlink", "unlinkat"}][:2]
    return found


@pytest.mark.req("D11", "R73", "R74", "I7")
def test_killed_while_outputs_are_written_again_from_the_store(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("kill while outputs are restored", "recovery")
    restore(tmp_path, shim, reference("reference"), report, 5)
    settle(report)


@pytest.mark.soak("recovery")
@pytest.mark.req("D11", "R73", "R74", "I7")
def test_killed_at_every_call_while_outputs_are_written_again(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("kill while outputs are restored")
    restore(tmp_path, shim, reference("reference"), report, None)
    settle(report)
