"""While another process swaps a directory for a link, no edit is written and no file is read outside."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.edits.editing import Edit, apply_edit
from holdfast.edits.workspace import Workspace
from holdfast.edits.write import history, read_file, recover_workspace, roll_back
from holdfast.errors import EditError
from tests.crash.report import Report
from tests.edits.test_tree import manifest

SWAPPER = """
import ctypes, os, sys
exchange = ctypes.CDLL(None, use_errno=True).renameat2
here, there, most = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]), int(sys.argv[3])
for number in range(most):
    if exchange(-100, here, -100, there, 2):
        sys.exit(f"no swap: {os.strerror(ctypes.get_errno())}")
    for _ in range(number * 7919 % 6000 if number % 2 else 0):
        pass  # the directory is in its place, so that something can be written at all
"""
INSIDE, OUTSIDE = b"inside 0\n", b"outside\n"
EDIT = """d/f
<<<<<<< SEARCH
inside {old}
=======
inside {new}
>>>>>>> REPLACE
both.txt
<<<<<<< SEARCH
inside {old}
=======
inside {new}
>>>>>>> REPLACE
"""


def build(base: Path) -> Workspace:
    for place in ("ws/d", "outside"):
        (base / place).mkdir(parents=True)
    for place in ("ws/d/f", "ws/both.txt"):
        (base / place).write_bytes(INSIDE)
    (base / "outside/f").write_bytes(OUTSIDE)
    (base / "ws/link").symlink_to(base / "outside")
    return Workspace(str(base / "ws"), state=str(base / "state"))


def race(base: Path, swaps: int) -> Counter[str]:
    """Edit, read and roll back until all swaps are made; what came of it."""
    if sys.platform != "linux":
        pytest.skip("the exchange of two names is Linux's")
    workspace = build(base)
    before = manifest(base / "outside")
    names = [str(base / "ws/d"), str(base / "ws/link"), str(swaps)]
    swapper = subprocess.Popen([sys.executable, "-I", "-S", "-c", SWAPPER, *names])
    seen: Counter[str] = Counter()
    number = 0
    while swapper.poll() is None:
        report = apply_edit(workspace, Edit(EDIT.format(old=number, new=number + 1)))
        if report.id:
            number += 1
            seen["written"] += 1
        seen["refused"] += not report.id
        assert all(OUTSIDE.decode() not in one.guidance for one in report.refusals)
        both = (base / "ws/both.txt").read_bytes()
        assert both == b"inside %d\n" % number, "all files of an edit or none"
        number -= taken_back(workspace, seen) if number > 1 else 0
        read(workspace, seen)
    assert swapper.returncode == 0
    assert manifest(base / "outside") == before
    assert recover_workspace(workspace) == []
    if swaps % 2:
        os.rename(base / "ws/link", base / "ws/d")
    content = (base / "ws/d/f").read_bytes()
    assert content == (base / "ws/both.txt").read_bytes() == b"inside %d\n" % number
    assert sorted(os.listdir(base / "ws/d")) == ["f"]
    assert sum(edit.state == "in conflict" for edit in history(workspace)) == 0
    return seen


def taken_back(workspace: Workspace, seen: Counter[str]) -> int:
    try:
        roll_back(workspace, "last")
    except EditError:
        seen["not rolled back"] += 1
        return 0
    seen["rolled back"] += 1
    return 1


def read(workspace: Workspace, seen: Counter[str]) -> None:
    for _ in range(20):
        try:
            found = read_file(workspace, "d/f")
        except EditError:
            seen["not read"] += 1
            continue
        if found is not None:
            assert found.content.startswith(b"inside ")
            assert found.digest == hashlib.sha256(found.content).hexdigest()
            seen["read"] += 1


@pytest.mark.req("D23", "I8")
def test_no_edit_and_no_reader_follows_a_link_that_is_swapped_in(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for number in range(20):  # on a busy machine a race may be over before anybody read
        seen += race(tmp_path / str(number), 6_000)
        if min(seen["read"], seen["written"], seen["not read"] + seen["refused"]):
            return
    pytest.fail(f"nobody met the other: {seen}")


@pytest.mark.soak("law")
@pytest.mark.req("D23", "I8")
def test_no_edit_and_no_reader_follows_a_link_in_many_swaps(
    tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    seen: Counter[str] = Counter()
    swaps = 100_000
    for number in range(2):
        seen += race(tmp_path / str(number), swaps)
    report = Report("D23 swapped for a link", kind="law", tried=2 * swaps, fired=2 * swaps)
    report.work, report.outcomes = seen["written"], seen
    sweep(report)
    assert min(seen[how] for how in ("read", "not read", "refused", "written")) > 0
