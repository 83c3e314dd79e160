"""kill -9 at any moment: the resumed result is the undisturbed one, and nothing finished runs again.

Killed are an engine, a process of one of its steps, or one of two engines that share a line; some are
stopped and continued before. `make soak ONLY=random-kill` fires a thousand, with `KILLS=200` so many.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.crash.faults import (
    Answer,
    Case,
    Reference,
    Report,
    Running,
    Scene,
    each,
    kill_after,
    lay,
    pause,
    until,
)
from tests.crash.looks import descendants, kill_process

SHARE_BY_PROGRESS = 0.7  # the rest by the clock alone, which also meets the start of the process
KILLS = int(os.environ.get("KILLS", "1000"))  # that fire, at least
SLICES = 14
SIZE = -(-KILLS // 10 * 14 // SLICES)  # seeds of a slice; some end before they are killed
QUICK = ("--poll", "0.05", "--beat", "0.1", "--lease", "1")
RUN = ("run", "-j", "2")
RESUME = ("resume", "-j", "2")
LINES = {"small": 12, "reference": 22, "joint": 20}  # begun and ended steps of a plan


def has_lines(scene: Scene, wanted: int) -> bool:
    return scene.lines() >= wanted


@dataclass
class Killer:
    """What all cases of a sweep share."""

    folder: Path
    reference: Callable[[str], Reference]
    report: Report
    whole: float  # seconds that an undisturbed run of the small plan takes

    def case(self, plan: str, seed: int) -> Case:
        scene = lay(self.folder / f"case-{seed}", plan)
        return Case(scene, self.reference(plan), self.report, f"seed {seed}")

    def moment(self, case: Case, process: Running, most: int, dice: random.Random) -> float:
        """Wait until a random number of steps began and ended; how long to wait after that.

        Sometimes it is a random part of the whole time alone: on a busy machine the clock would mostly
        hit the start or the end.
        """
        if dice.random() >= SHARE_BY_PROGRESS:
            return dice.uniform(0.1, 0.9) * self.whole
        wanted = case.scene.lines() + dice.randint(0, most - 3)
        until(partial(has_lines, case.scene, wanted), process)
        return dice.uniform(0, 0.1) * self.whole

    def ended(self, case: Case, answer: Answer, *, killed: bool) -> bool:
        """One command is over; tells whether there is a run that can go on."""
        if killed:
            case.fired()
        elif answer.code != 0:
            case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
        journal = case.broken(answer)
        case.ended("ended" if not killed else "half way" if journal.steps else "nothing yet")
        return bool(journal.runs) and journal.ended(journal.runs[-1]) is None


def kill_engine(killer: Killer, seed: int, dice: random.Random) -> None:
    """A run, and every other time its resume too."""
    plan = "reference" if seed % 5 == 0 else "small"
    case = killer.case(plan, seed)
    words = RUN
    for _ in range(2 if seed % 2 else 1):
        engine = case.scene.start(*words)
        killed = kill_after(engine, killer.moment(case, engine, LINES[plan], dice))
        if not killer.ended(case, case.scene.said(engine.wait()), killed=killed):
            break
        words = RESUME
    case.recovered()
    case.close()


def stop_engine(killer: Killer, seed: int, dice: random.Random) -> None:
    """An engine that stands still for a while, goes on, and is killed while it stands or later."""
    case = killer.case("small", seed)
    engine = case.scene.start(*RUN)
    pause(engine, killer.moment(case, engine, LINES["small"], dice))
    engine.send_signal(signal.SIGSTOP)
    pause(engine, dice.uniform(0, 0.2) * killer.whole)
    if dice.random() < 0.7:
        engine.send_signal(signal.SIGCONT)
    killed = kill_after(engine, dice.uniform(0, 0.3) * killer.whole)
    killer.ended(case, case.scene.said(engine.wait()), killed=killed)
    case.recovered()
    case.close()


def kill_below(engine: Running, dice: random.Random) -> bool:
    """Kill one of the processes below; they come and go, and an engine that ended gives its number away."""
    found = descendants(engine.pid)
    return bool(found) and not pause(engine, 0) and kill_process(dice.choice(found))


def kill_worker(killer: Killer, seed: int, dice: random.Random) -> None:
    """A process of a step: the engine goes on, or says that the step failed."""
    plan = "reference" if seed % 2 else "small"
    case = killer.case(plan, seed)
    engine = case.scene.start(*RUN)
    wanted = dice.randint(0, LINES[plan] - 4)
    until(partial(has_lines, case.scene, wanted), engine)
    if until(partial(kill_below, engine, dice), engine):
        case.fired()
    answer = case.scene.said(engine.wait(60))
    journal = case.broken(answer)
    case.ended("step failed" if answer.code else "step went on")
    if answer.code not in {0, 1} or (answer.code and journal.ended(journal.runs[-1])):
        case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
    case.recovered()
    case.close()


def kill_one_of_two(killer: Killer, seed: int, dice: random.Random) -> None:
    """Two engines share a line; the one that is left ends the plan."""
    case = killer.case("joint", seed)
    scene = case.scene
    engines = [scene.start(*RUN, "--join", *QUICK, voice=f"-{n}") for n in (0, 1)]
    one = dice.randrange(2)
    moment = killer.moment(case, engines[one], LINES["joint"], dice)
    if dice.random() < 0.3:
        engines[one].send_signal(signal.SIGSTOP)
        pause(engines[one], dice.uniform(0, 0.2) * killer.whole)
        engines[one].send_signal(signal.SIGCONT)
    killed = kill_after(engines[one], moment)
    with suppress(subprocess.TimeoutExpired):
        engines[1 - one].wait(60)
    engines[1 - one].kill()
    answers = [scene.said(engine.wait(), f"-{n}") for n, engine in enumerate(engines)]
    killer.ended(case, answers[one], killed=killed)
    killer.ended(case, answers[1 - one], killed=False)
    case.recovered()
    case.close()


WAYS = (kill_engine, kill_engine, kill_one_of_two, kill_worker, kill_engine, stop_engine)


def undisturbed(folder: Path) -> float:
    """The seconds of one run; of several the shortest counts, since a slow moment would delay all kills."""
    scene = lay(folder, "small")
    began = time.monotonic()
    assert scene.call(*RUN).code == 0
    return time.monotonic() - began


def kill_at_random(
    tmp_path: Path, reference: Callable[[str], Reference], report: Report, seeds: range
) -> None:
    whole = min(undisturbed(tmp_path / f"timed-{number}") for number in range(3))
    killer = Killer(tmp_path, reference, report, whole)
    report.total = len(seeds)
    for plan in LINES:
        reference(plan)  # found before two threads ask for it

    def kill(seed: int) -> None:
        WAYS[seed % len(WAYS)](killer, seed, random.Random(seed))

    each(kill, seeds)


@pytest.mark.req("R74", "R88", "R73", "E12", "I1", "I2")
def test_killed_at_random_moments(
    tmp_path: Path, reference: Callable[[str], Reference], settle: Callable[[Report], None]
) -> None:
    report = Report("random kills", "random-kill")
    kill_at_random(tmp_path, reference, report, range(2 * len(WAYS)))
    settle(report)
    assert report.outcomes["half way"] > 0
    assert report.outcomes["step went on"] + report.outcomes["step failed"] == 2


@pytest.mark.soak("random-kill")
@pytest.mark.req("R74", "R88", "R73", "E12", "I1", "I2")
@pytest.mark.parametrize("slice_", range(SLICES))
def test_killed_at_many_random_moments(
    slice_: int,
    tmp_path: Path,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("random kills")
    first = 100 + slice_ * SIZE
    kill_at_random(tmp_path, reference, report, range(first, first + SIZE))
    settle(report)
    assert report.fired >= SIZE * 0.72, "as many in all as were asked for"
    assert report.outcomes["half way"] > SIZE // 10
