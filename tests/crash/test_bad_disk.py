"""A disk that refuses a sync, or takes half of a write: nothing is told that is not stored."""

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.disk import DISK_FAILED, RUN, Point, refused
from tests.crash.faults import (
    KILLED,
    Case,
    Fault,
    Reference,
    Report,
    Scene,
    Shim,
    by_strace,
    each,
    lay,
    left_running,
    spread,
    unsound,
)
from tests.crash.playing import staged
from tests.crash.plays import PLAYS, WORK
from tests.postgres import Server

SYNCS = ("fsync", "fdatasync")
SLICES = 6


def refuse(
    tmp_path: Path, reference: Reference, report: Report, faults: Sequence[Fault], plan: str
) -> None:
    def fail(numbered: tuple[int, Fault]) -> None:
        number, fault = numbered
        case = Case(lay(tmp_path / f"case-{number}", plan), reference, report, fault.name)
        answer = case.scene.call(*RUN, fault=fault)
        if answer.code == DISK_FAILED:
            case.fired()
        elif answer.code != 0:
            case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
        journal = case.broken(answer)
        case.ended("refused" if answer.code else "ended well")
        if answer.code == 0 and journal.ended(journal.runs[-1]) != "completed":
            case.violated("it ended with 0 and is not completed")
        for process in left_running(journal.runs):
            case.violated(process)
        case.recovered()
        case.close()

    each(fail, enumerate(faults, 1))


@pytest.mark.req("D04", "I1")
def test_a_sync_that_fails_once_ends_the_engine_and_nothing_is_told(
    tmp_path: Path,
    strace: str,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    syncs = replace(shim, calls=SYNCS)
    calls = syncs.count(lay(tmp_path / "count"), *RUN)
    report = Report("D04 sync fails once")
    faults = [syncs.fault(number, "error") for number in spread(calls, 3, seed=4)]
    faults += [
        by_strace(strace, call, n, "error=EIO") for call, n in zip(SYNCS, (3, 8), strict=True)
    ]
    refuse(tmp_path, reference("reference"), report, faults, "reference")
    settle(report)
    assert report.outcomes["refused"] > report.tried / 2


# Where something is made durable: log, content, its directory, both images of an edit, the project.
SYNCED = (
    ".holdfast/state.db-wal",
    ".holdfast/blobs/tmp/",
    ".holdfast/blobs/",
    ".holdfast/apply/",
    ".holdfast-",
)


@pytest.mark.req("D04", "I1")
def test_a_sync_that_fails_is_noticed_wherever_it_is(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D04 a sync of each kind of file fails once")
    points = [Point(SYNCS, 1, "error", under) for under in SYNCED]
    refused(tmp_path, shim, reference("small"), report, points, "small", lambda _: {DISK_FAILED})
    settle(report)
    assert report.fired == len(SYNCED)


@pytest.mark.soak("errno")
@pytest.mark.req("D04", "I1")
@pytest.mark.parametrize("slice_", range(2))
@pytest.mark.parametrize("by", ["shim", "strace"])
def test_every_sync_fails_once(
    by: str,
    slice_: int,
    tmp_path: Path,
    strace: str,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    syncs = replace(shim, calls=SYNCS)
    calls = syncs.count(lay(tmp_path / "count"), *RUN)
    report = Report(f"D04 every sync fails once, by {by}")
    faults = [syncs.fault(number + 1, "error") for number in range(len(calls))]
    if by == "strace":
        faults = [
            by_strace(strace, call, number + 1, "error=EIO")
            for call in SYNCS
            for number in range(calls.count(call))
        ]
    refuse(tmp_path, reference("reference"), report, faults[slice_::2], "reference")
    settle(report)


def cut(
    tmp_path: Path,
    shim: Shim,
    reference: Reference,
    report: Report,
    how: str,
    sample: int | None,
    slice_: int = 0,
) -> None:
    """Half of a write under the project, in the store and outside it.

    How many writes there are before one differs a little from run to run: the few to files of content are
    also counted by themselves, so that none is missed.
    """
    writes = replace(shim, calls=("write", "pwrite64"))
    first, second = lay(tmp_path / "count"), lay(tmp_path / "count-contents")
    calls = writes.count(first, *RUN, how=how, under=str(first.root))
    contents = writes.count(second, *RUN, how=how, under=str(second.store / "blobs"))

    def tear(number: int, inside: str = "") -> None:
        scene = lay(tmp_path / f"case-{number}-{inside.replace('/', '-')}")
        case = Case(scene, reference, report, f"write {number} {how} {inside}")
        log, under = scene.folder / "fault.txt", str(scene.root / inside)
        answer = scene.call(*RUN, fault=writes.fault(number, how, under, str(log)))
        if "fired" in log.read_text().split():
            case.fired()
        if answer.code not in ({0} if how == "short" else {0, KILLED}):
            case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
        case.broken(answer)
        case.recovered()
        case.close()

    every = range(1 + slice_, len(calls) + 1, SLICES)
    each(tear, spread(calls, sample, seed=5) if sample else every)
    if not slice_:
        for number in range(1, len(contents) + 1):
            tear(number, ".holdfast/blobs")


@pytest.mark.req("D05", "D06", "I1", "I5", "I7")
@pytest.mark.parametrize("how", ["short", "torn"])
def test_a_write_may_be_short_or_torn(
    how: str,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D05 D06 {how} writes")
    cut(tmp_path, shim, reference("reference"), report, how, 4)
    settle(report)


@pytest.mark.soak("short-torn-flip")
@pytest.mark.req("D05", "D06", "I1", "I5", "I7")
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("how", ["short", "torn"])
def test_every_write_may_be_short_or_torn(
    how: str,
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D05 D06 every write {how}")
    cut(tmp_path, shim, reference("reference"), report, how, None, slice_)
    settle(report)


WRITERS = {  # what is written by whom, and where: half of each write is done
    "export": (("export", "@", "../told.zip"), "told.zip"),
    "back-up": (("export", "--all", "../all.zip"), "all.zip"),
    "views": (("export", "--views"), "project/.holdfast"),
    "log of a ticket": (WORK, "home"),
}


@pytest.mark.req("D05", "I5")
@pytest.mark.parametrize(
    "writer, sample",
    [
        ("export", 2),
        *(pytest.param(name, 0, marks=pytest.mark.soak("short-torn-flip")) for name in WRITERS),
    ],
)
def test_every_writer_goes_on_after_half_of_a_write(
    writer: str,
    sample: int,
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    sweep: Callable[[Report], None],
) -> None:
    words, under = WRITERS[writer]
    writes = replace(shim, calls=("write", "pwrite64"))
    report = Report(f"D05 short writes, {writer}")
    with staged(PLAYS["git" if words == WORK else "linear"], tmp_path, shim, server) as stage:
        begun = stage.ended if words != WORK else stage.bases[0]
        whole = begun.copied("count")
        calls = writes.count(whole, *words, how="short", under=str(whole.folder / under))
        assert calls
        numbers = spread(calls, sample, seed=7) if sample else range(1, len(calls) + 1)
        report.total = len(numbers)
        for number in numbers:
            scene = begun.copied(f"case-{number}")
            log = scene.folder / "fault.txt"
            fault = writes.fault(number, "short", str(scene.folder / under), str(log))
            answer = scene.call(*words, fault=fault)
            report.tried += 1
            report.fired += "fired" in log.read_text().split()
            report.work += 1
            if answer.code:
                report.violations.append(f"write {number} ended with {answer.code}: {answer.err}")
            report.violations += [f"write {number}: {wrong}" for wrong in unwritten(scene, under)]
            scene.remove()
    sweep(report)
    assert not report.violations
    assert report.fired == report.tried


def unwritten(scene: Scene, under: str) -> Iterator[str]:
    """What cannot be read back: an archive, a view, a log."""
    yield from unsound(scene.store)
    place = scene.folder / under
    if place.suffix == ".zip":
        with zipfile.ZipFile(place) as archive:
            if bad := archive.testzip():
                yield f"'{bad}' in the archive is damaged"
        return
    found = [*place.rglob("*.json")]
    if not found:
        yield "nothing was written"
    for path in found:
        try:
            json.loads(path.read_bytes())
        except ValueError as error:
            yield f"'{path.name}': {error}"
