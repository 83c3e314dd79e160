"""A play is killed, its recovery is killed, and the recovery of that: one state comes of all of them."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.faults import KILLED, Report, Scene, Shim, spread
from tests.crash.playing import PlayCase, Stage, staged
from tests.crash.plays import PLAYS
from tests.crash.test_plays_killed import CALLS
from tests.postgres import Server

DEPTH = 3  # recoveries that are killed, one after the other
# Which command dies, at which call of which kind: files are half placed, a yes is used, a branch is made.
DEATHS = {
    "edit": (0, "renameat", 1),
    "approval": (2, "fdatasync", 4),
    "git": (0, "rename", -4),
    "reference": (0, "renameat", 2),
}
SLICES = 4


class Death:
    """A play that was killed, as often as it is needed, always in one place."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.place, kind, which = DEATHS[stage.play.name]
        numbers = [n for n, name in enumerate(stage.calls[self.place], 1) if name == kind]
        self._scene = stage.bases[self.place].copied("dead")
        self._act = stage.play.acts[self.place]
        fault = stage.shim.fault(numbers[which])
        self.answer = self._scene.call(*self._act.words, fault=fault)
        assert self.answer.code == KILLED
        self._kept = self._scene.folder.with_name("dead-kept")
        shutil.copytree(self._scene.folder, self._kept, symlinks=True)

    def laid(self) -> Scene:
        shutil.rmtree(self._scene.folder)
        shutil.copytree(self._kept, self._scene.folder, symlinks=True)
        return self._scene.at(self._scene.folder)

    def calls(self) -> list[str]:
        """Those of the recovery."""
        scene = self.laid()
        case = PlayCase(self.stage.play, scene, self.stage.wanted, Report("count"), "count")
        words = case.words(self._act)
        assert words is not None
        return self.stage.shim.count(scene, *words, code=self._act.code)

    def kill(self, at: tuple[int, ...], report: Report) -> None:
        case = PlayCase(self.stage.play, self.laid(), self.stage.wanted, report, f"recovery {at}")
        case.fired()  # the death it begins with
        case.broken(self.answer)
        for number in at:
            words = case.words(self._act)
            if words is None:
                break
            answer = case.scene.call(*words, fault=self.stage.shim.fault(number))
            case.broken(answer)
            if answer.code == KILLED:
                case.fired()
                case.ended("killed")
            else:
                break
        case.go_on(self.place)


def kill_recovery(stage: Stage, report: Report, sample: int, slice_: int, slices: int) -> None:
    """Over all cases each of the three is killed at every one of the calls, in different orders."""
    death = Death(stage)
    calls = death.calls()
    every = spread(calls, sample, seed=3) if sample else list(range(1, len(calls) + 1))
    dice = random.Random(stage.play.name)
    others = [dice.sample(every, len(every)) for _ in range(DEPTH - 1)]
    points = list(zip(every, *others, strict=True))[slice_::slices]
    report.total += len(points)
    for at in points:
        death.kill(at, report)


@pytest.mark.soak("recovery")
@pytest.mark.req("D11", "R74", "I1", "I2", "I7", "I9")
def test_a_ticket_killed_in_recovery_and_in_the_recovery_of_that(
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D11 kill in recovery, git", "recovery")
    with staged(PLAYS["git"], tmp_path, Shim(shim.library, CALLS), server) as stage:
        kill_recovery(stage, report, 6, 0, 1)
    settle(report)
    assert report.fired > report.tried * 2, "the death, its recovery, and the recovery of that"


@pytest.mark.soak("recovery")
@pytest.mark.req("D11", "R74", "I1", "I2", "I7", "I9")
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize(
    "name, sample", [("edit", 0), ("approval", 0), ("git", 0), ("reference", 120)]
)
def test_a_play_killed_at_every_call_of_recovery(
    name: str,
    sample: int,
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D11 kill at every call of recovery, {name}")
    with staged(PLAYS[name], tmp_path, Shim(shim.library, CALLS), server) as stage:
        kill_recovery(stage, report, sample, slice_, SLICES)
    settle(report)
