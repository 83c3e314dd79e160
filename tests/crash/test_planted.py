"""The sweeps find what they are there for: bugs are planted, one at a time, in a copy of the package."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.planted import BUGS, Bug, look_for, plant
from tests.crash.report import Report

SAMPLE = ("a step may be accepted twice in a run",)


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_bug_can_still_be_planted(bug: Bug, tmp_path: Path) -> None:
    place = plant(bug, tmp_path)
    for edit in bug.edits:
        source = (place / "holdfast" / edit.file).read_text()
        compile(source, edit.file, "exec")


def find(bug: Bug, folder: Path) -> Report:
    report = Report(f"{bug.name}, by {bug.tests.partition('::')[0].partition(' ')[0]}", "planted")
    found = look_for(bug, plant(bug, folder), folder)
    report.tried += 1
    report.fired += 1
    shown = found.shows(bug)
    report.outcomes["found" if shown else "not found"] += 1
    if not shown:
        report.violations.append(f"{bug.name}: not found by {bug.tests}: {found.output[-3000:]}")
    return report


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.name in SAMPLE], ids=str)
def test_a_planted_bug_is_found(bug: Bug, tmp_path: Path, sweep: Callable[[Report], None]) -> None:
    report = find(bug, tmp_path)
    sweep(report)
    assert report.violations == []


@pytest.mark.soak("planted")
@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.name not in SAMPLE], ids=str)
def test_every_planted_bug_is_found(
    bug: Bug, tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    report = find(bug, tmp_path)
    sweep(report)
    assert report.violations == []
