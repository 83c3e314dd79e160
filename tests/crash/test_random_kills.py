"""kill -9 at any moment: the resumed result is the undisturbed one, and nothing finished runs again."""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.crash.faults import Case, Reference, Report, Scene, each, kill_after, lay, until

SHARE_BY_PROGRESS = 0.7  # the rest by the clock alone, which also meets the start of the process


def has_lines(scene: Scene, wanted: int) -> bool:
    return scene.lines() >= wanted


def kill_at_random(
    tmp_path: Path, reference: Reference, report: Report, seeds: range, threads: int = 2
) -> None:
    """Kill a run at a random moment, and every other time its resume too.

    The moment is a random part of its time, or a random number of begun and ended steps and a little
    more: on a busy machine the clock alone would mostly hit the start or the end.
    """
    scene = lay(tmp_path / "timed", "small")
    began = time.monotonic()
    assert scene.call("run", "-j", "2").code == 0
    whole = time.monotonic() - began

    def kill(seed: int) -> None:
        dice = random.Random(seed)
        case = Case(lay(tmp_path / f"case-{seed}", "small"), reference, report, f"seed {seed}")
        rounds = 2 if seed % 2 else 1
        words: tuple[str, ...] = ("run", "-j", "2")
        for _ in range(rounds):
            process = case.scene.start(*words)
            moment = dice.uniform(0.1, 1)
            if dice.random() < SHARE_BY_PROGRESS:
                wanted = case.scene.lines() + dice.randint(0, 11)
                until(partial(has_lines, case.scene, wanted), process)
                moment = dice.uniform(0, 0.1)
            killed = kill_after(process, moment * whole)
            answer = case.scene.said(process.wait())
            if killed:
                case.fired()
            elif answer.code != 0:
                case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
            journal = case.broken(answer)
            done = len(journal.steps)
            case.ended("ended" if not killed else "nothing yet" if not done else "half way")
            if not journal.runs or journal.ended(journal.runs[-1]):
                break
            words = ("resume", "-j", "2")
        case.recovered()
        case.close()

    each(kill, seeds, threads)


@pytest.mark.req("R74", "R88", "R73", "E12", "I1", "I2")
def test_killed_at_random_moments(
    tmp_path: Path, reference: Callable[[str], Reference], settle: Callable[[Report], None]
) -> None:
    report = Report("random kills")
    kill_at_random(tmp_path, reference("small"), report, range(24))
    settle(report)
    assert report.outcomes["half way"] > 0


@pytest.mark.soak("random-kill")
@pytest.mark.req("R74", "R88", "R73", "E12", "I1", "I2")
@pytest.mark.parametrize("hundred", [1, 2, 3])
def test_killed_at_three_hundred_random_moments(
    hundred: int,
    tmp_path: Path,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"random kills, {hundred}00s")
    kill_at_random(tmp_path, reference("small"), report, range(hundred * 100, hundred * 100 + 100))
    settle(report)
    assert report.outcomes["half way"] > 10
