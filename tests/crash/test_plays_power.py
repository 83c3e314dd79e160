"""The power goes at any moment of the reference plan: its commands, its ticket, and what git stores of it.

All commands are one recording, so what one told and did not sync may be lost during the next.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import HoldfastError
from tests.crash.faults import Report, Scene, Shim
from tests.crash.playing import PlayCase, Stage, approved_by, decided, staged
from tests.crash.plays import BRANCH, EDITED, PLAYS
from tests.crash.power import Outage, chosen
from tests.crash.power_check import Checker, Edit, part_of, told_by, without_shards
from tests.crash.power_disk import ENDS, Cut, Disk, Draw, lay_out, moments, states
from tests.crash.power_trace import Op, Recording, record, tree_of
from tests.crash.scene import Answer, read_journal
from tests.postgres import Server

SLICES = 8
BLOCK = 8  # moments in a row: neighbours leave equal disks
DICE = 3
RESUMED_EVERY = 120
KEPT = ("project", "home")  # of the scene: the project, and what is kept at home about its tickets
CHANGED = ("keep.txt", "tree")


def _inside(path: str) -> bool:
    return path.partition("/")[0] in KEPT


def recorded(strace: str, scene: Scene, stage: Stage) -> Recording:
    """Record every command of a play, and make sure that what is replayed is what happened."""
    ops: list[Op] = []
    before = {path: file for path, file in tree_of(scene.folder).items() if _inside(path)}
    for act in stage.play.acts:
        last = ops[-1].line + 1 if ops else 0
        found = record(strace, scene, *act.words, env={}, root=scene.folder)
        assert found.answer.code == act.code, found.answer.err
        ops += [
            op._replace(line=op.line + last, began=op.began + last)
            for op in found.ops
            if op.kind in {"out", "err"} or op.path == "*" or _inside(op.path)
        ]
    disk = Disk(before)
    for op in ops:
        disk.follow(op)
    real = {path: file for path, file in tree_of(scene.folder).items() if _inside(path)}
    replayed = {path: tuple(file) for path, file in disk.all().items()}
    wrong = sorted(path for path in real.keys() | replayed if real.get(path) != replayed.get(path))
    assert not wrong, f"the replayed disk is another one: {wrong[:10]}"
    return Recording(before, tuple(ops), scene.said(stage.play.acts[-1].code))


class PlayChecker(Checker):
    """Asks the same of the project, and that git has what it was told to keep."""

    def check(self, cut: Cut) -> tuple[str, list[str]]:
        place = self._place / "play"
        lay_out(without_shards(cut.state), place)
        root = place / "project"
        try:
            journal = read_journal(root / ".holdfast")
            lost = approved_by(cut.told) - decided(journal)
            found = [f"told as approved, but not in the journal: {sorted(lost)}"] if lost else []
            how, more = self._looked(root, told_by(cut.told))
            return how, [*found, *more, *_unkept(root, cut.told)]
        except HoldfastError as error:
            return "refused", [f"{type(error).__name__}: {error}"]
        finally:
            shutil.rmtree(place)


def _unkept(root: Path, told: Answer) -> Iterator[str]:
    """A branch that is there has all its objects, and one that was told of is there."""
    tip = root / ".git" / "refs" / "heads" / BRANCH
    is_told = f"branch {BRANCH} is at" in told.out
    if not tip.exists():
        if is_told:
            yield "told as delivered, but there is no branch"
        return
    words = ["git", "rev-list", "--objects", BRANCH]
    done = subprocess.run(words, cwd=root, capture_output=True, check=False, text=True)
    if done.returncode:
        yield f"a branch lost what it is made of: {done.stderr}"


class PlayOutage(Outage):
    """The states of a whole play."""

    def checker(self, place: Path) -> Checker:
        return PlayChecker(place, self.edits)

    def go_on(self, stage: Stage, scene: Scene, wanted: Callable[[int], Iterable[Draw]]) -> None:
        """From these states let the real commands go on, always in one place: tickets are found by it."""
        kept = scene.folder.with_name("kept")
        shutil.copytree(scene.folder, kept)
        for number, cut in enumerate(states(self.recording, wanted)):
            shutil.rmtree(scene.folder)
            lay_out(cut.state, scene.folder)
            shutil.copy(kept / "script.json", scene.folder)
            case = PlayCase(
                stage.play, scene.at(scene.folder), stage.wanted, self.report, cut.title
            )
            case.fired()
            case.broken(cut.told)
            case.ended("resumed")
            case.go_on(0, anew=number % 3 == 0)


def outage_of(strace: str, stage: Stage, name: str) -> tuple[PlayOutage, Scene]:
    """Record a play; its edit of four files, if it has one, is whole or did not happen."""
    scene = stage.bases[0].copied("recorded")
    before = part_of(tree_of(scene.root), *CHANGED)
    recording = recorded(strace, scene, stage)
    edit = Edit(before, part_of(tree_of(scene.root), *CHANGED))
    edits = (edit,) if EDITED.keys() <= stage.play.files.keys() else ()
    return PlayOutage(recording, edits, Report(name, "power")), scene


def near_work(recording: Recording) -> str:
    """Something that only the ticket writes."""
    assert any(".git/refs" in op.path for op in recording.ops)
    return ".git/refs"


@pytest.mark.soak("power")
@pytest.mark.req("D02", "D21", "I1", "I5", "I6", "I7")
@pytest.mark.parametrize("slice_", range(SLICES))
def test_nothing_told_by_a_play_is_lost_with_the_power(
    slice_: int,
    tmp_path: Path,
    strace: str,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    with staged(PLAYS["reference"], tmp_path, shim, server) as stage:
        outage, scene = outage_of(strace, stage, "D02 power, reference, every moment")
        assert near_work(outage.recording)
        last = moments(outage.recording) - 1
        everything: tuple[Draw, ...] = (*ENDS, *range(1, DICE + 1))

        def here(number: int) -> bool:
            return number // BLOCK % SLICES == slice_

        def few(number: int) -> tuple[Draw, ...]:
            chosen = here(number) and (number % RESUMED_EVERY == 0 or number == last)
            return ("none", number) if chosen else ()

        outage.sweep(lambda number: everything if here(number) else ())
        outage.go_on(stage, scene, few)
    settle(outage.report)
    assert len(outage.seen) > 1_250, "ten thousand in all"


@pytest.mark.soak("power")
@pytest.mark.req("D02", "D21", "I1", "I5", "I6", "I7")
def test_some_states_of_a_play_after_the_power_went(
    tmp_path: Path,
    strace: str,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    with staged(PLAYS["reference"], tmp_path, shim, server) as stage:
        outage, scene = outage_of(strace, stage, "D02 power, reference")
        some = chosen(outage.recording, 60, seed=2)
        outage.sweep(lambda number: some.get(number, ()))
        few = chosen(outage.recording, 2, seed=3)
        outage.go_on(stage, scene, lambda number: few.get(number, ()))
    settle(outage.report)
