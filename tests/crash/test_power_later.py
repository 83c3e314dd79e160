"""The power goes while a run is taken up again, or while a person undoes, amends, purges or collects."""

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.crash.faults import KILLED, Reference, Report, Scene, Shim, lay
from tests.crash.power import Outage, chosen, edit_of, recorded
from tests.crash.power_disk import ENDS, Draw, moments
from tests.crash.power_trace import tree_of

EVERY: tuple[Draw, ...] = (*ENDS, 1, 2, 3)
Tree = dict[str, tuple[int, bytes | None]]  # as `tree_of` finds it


@pytest.mark.soak
@pytest.mark.req("D02", "D11", "I1", "I5", "I6", "I7")
@pytest.mark.parametrize("share", [0.45, 0.7, 0.8, 0.9])
def test_the_power_goes_while_a_killed_run_is_resumed(
    share: float,
    tmp_path: Path,
    strace: str,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    calls = shim.count(lay(tmp_path / "count"), "run", "-j", "1")
    scene, before = interrupted(tmp_path, shim, int(len(calls) * share))
    recording = recorded(strace, scene, "resume")
    assert recording.answer.code == 0, recording.answer.err
    report = Report(f"D02 power, resumed after {share:.0%}")
    outage = Outage(recording, (edit_of(before, scene.root),), report)
    outage.sweep(lambda _: EVERY)
    few = chosen(recording, 4, seed=5)
    outage.resume(lambda number: few.get(number, ()), tmp_path / "resumed", reference("reference"))
    settle(report)


def interrupted(folder: Path, shim: Shim, number: int) -> tuple[Scene, Tree]:
    """A project whose run was killed on its way, and how it lay before.

    At this call, or at an earlier one if it was over by then: it makes more calls or fewer, as it waits.
    """
    for place in range(number, 0, -10):
        scene = lay(folder / f"recorded-{place}")
        before = tree_of(scene.root)
        killed = scene.call("run", "-j", "1", fault=shim.fault(place))
        journal = scene.journal()
        if killed.code == KILLED and journal.runs and journal.ended(journal.runs[-1]) is None:
            return scene, before
    raise AssertionError(f"no run was killed before its end, from call {number} down")


def finished(folder: Path) -> Scene:
    """A project whose run is over."""
    scene = lay(folder)
    assert scene.call("run", "-j", "2").code == 0
    return scene


@pytest.mark.soak
@pytest.mark.req("D02", "D21", "I5", "I6", "I7")
def test_the_power_goes_while_an_edit_is_undone(
    tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    scene = finished(tmp_path)
    before = tree_of(scene.root)
    outage = swept(strace, scene, "undo", "edit")
    edit = edit_of(before, scene.root)
    assert edit.old != edit.new
    outage.edits = (edit,)
    again(outage, sweep)


@pytest.mark.soak
@pytest.mark.req("D02", "I1", "I5", "I6")
def test_the_power_goes_while_a_person_amends(
    tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    scene = finished(tmp_path)
    (scene.root / "mine.txt").write_text("mine\n" * 8000)
    again(swept(strace, scene, "amend", "large", "mine.txt"), sweep)


@pytest.mark.soak
@pytest.mark.req("D02", "I5", "I6")
def test_what_was_purged_stays_away(
    tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    scene = finished(tmp_path)
    digest = scene.journal().results()["large"]
    outage = swept(strace, scene, "purge", digest, "--because", "it holds a secret", "--yes")
    again(outage, sweep)


@pytest.mark.soak
@pytest.mark.req("D02", "I5", "I6")
def test_the_power_goes_while_old_runs_are_collected(
    tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    scene = finished(tmp_path)
    (scene.root / "words.txt").write_text("other words\n")
    assert scene.call("run", "-j", "2", "--force").code == 0
    database = apsw.Connection(str(scene.store / "state.db"))
    database.execute("UPDATE blob SET at = 0")  # what is young stays
    database.close()
    for path in scene.store.glob("blobs/??/*"):
        os.utime(path, (0, 0))
    again(swept(strace, scene, "gc", "--keep", "0s", "--yes"), sweep)


def swept(strace: str, scene: Scene, *words: str) -> Outage:
    recording = recorded(strace, scene, *words)
    assert recording.answer.code == 0, recording.answer.err
    return Outage(recording, (), Report(f"D02 power, {words[0]}"))


def again(outage: Outage, sweep: Callable[[Report], None]) -> None:
    """Every moment, every end, and three throws of the dice."""
    outage.sweep(lambda _: EVERY)
    report = outage.report
    sweep(report)
    assert report.violations == []
    assert 0 < report.fired <= report.tried
    assert report.outcomes["run"] == report.tried > moments(outage.recording)
