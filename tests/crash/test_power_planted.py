"""Faults that only a power cut shows, planted one by one in a copy of the package: the sweep finds each."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import holdfast
from tests.crash.faults import Report, lay
from tests.crash.power import Outage, chosen, edit_of, recorded

Replaced = tuple[str, str, str]  # file, what stands there, what is planted


class Planted(NamedTuple):
    """One mistake, a part of what is said about it, and a part of the paths near which it shows."""

    name: str
    replaced: tuple[Replaced, ...]
    shows: str
    near: str = ""


NO_FSYNC_OF_A_BLOB = (
    "store/blobs.py",
    "                    self._sync(handle)\n                finally",
    "                    pass\n                finally",
)
NO_FSYNC_OF_ITS_DIRECTORY = (
    "store/blobs.py",
    "            os.rename(temp, path)\n        self._sync_directory(os.path.dirname(path))",
    "            os.rename(temp, path)",
)
NO_FSYNC_OF_A_NEW_DIRECTORY = (
    "store/blobs.py",
    "            self._make(name)\n        self._sync_directory(self._root)\n        there",
    "            self._make(name)\n        there",
)
BLOBS_AFTER_ROWS = (
    (
        "store/relational.py",
        "        texts, small = self._prepared(batch)\n        self._names.write(lambda",
        (
            "        texts, small = self._prepared(replace(batch, blobs=[b for b in batch.blobs"
            " if len(b[1]) <= SMALL]))\n        self._names.write(lambda"
        ),
    ),
    (
        "store/relational.py",
        "batch, texts, small), wait=wait)\n        if batch.released",
        "batch, texts, small), wait=wait)\n        self._prepared(batch)\n        if batch.released",
    ),
    (
        "store/relational.py",
        "from typing import",
        "from dataclasses import replace\nfrom typing import",
    ),
    ("engine/contents.py", "if len(content) > SMALL:", "if False:"),
)
ACK_BEFORE_COMMIT = (
    "engine/scribe.py",
    "        batch = self._batch(pending)\n",
    "        batch = self._batch(pending)\n        self._world.on_events(pending.events)\n",
)
KEPT_BEFORE_STORED = (
    "engine/loop.py",
    "        self._scribe.pending.words += words\n",
    "        [self._world.remind(line) for line in words]\n",
)
OUTPUTS_UNSYNCED = ("engine/scribe.py", "        self._outputs.secure(wrote)\n", "")
NO_FSYNC_OF_IMAGES = (
    "edits/tree.py",
    "        os.fchmod(descriptor, mode)\n        sync(descriptor)",
    "        os.fchmod(descriptor, mode)",
)
NO_HOME_FOR_JOURNALS = (
    "edits/journal.py",
    "            sync_directory(os.path.dirname(os.path.abspath(place)))",
    "            pass",
)
NO_FSYNC_AFTER_RENAME = (
    "edits/apply.py",
    "            _remove(parent, name)\n        sync(parent)",
    "            _remove(parent, name)",
)
NO_JOURNAL_NAME = (
    "edits/journal.py",
    (
        "            os.rename(_UNFINISHED, _JOURNAL, src_dir_fd=directory, dst_dir_fd=directory)\n"
        "            sync(directory)\n        sync_directory(os.path.dirname(place))"
    ),
    "            os.rename(_UNFINISHED, _JOURNAL, src_dir_fd=directory, dst_dir_fd=directory)",
)


EDIT = ".edit.1"  # in the name of the edit's journal


def synchronous(how: str) -> Replaced:
    return ("store/database.py", '"synchronous", "FULL"', f'"synchronous", "{how}"')


PLANTED = (
    Planted("no fsync of a blob", (NO_FSYNC_OF_A_BLOB,), "content"),
    Planted("no fsync of a blob's directory", (NO_FSYNC_OF_ITS_DIRECTORY,), "is missing"),
    Planted("no fsync of its new directory", (NO_FSYNC_OF_A_NEW_DIRECTORY,), "is missing"),
    Planted("row before blob", BLOBS_AFTER_ROWS, "is missing"),
    Planted("synchronous off", (synchronous("OFF"),), "IntegrityError"),
    Planted("synchronous normal", (synchronous("NORMAL"),), "IntegrityError"),
    Planted("told before commit", (ACK_BEFORE_COMMIT,), "told as accepted"),
    Planted("kept before stored", (KEPT_BEFORE_STORED,), "told as kept"),
    Planted("no fsync of a step's own outputs", (OUTPUTS_UNSYNCED,), "its files are others"),
    Planted("edit: no fsync of images and files", (NO_FSYNC_OF_IMAGES,), "", EDIT),
    Planted(
        "edit: no fsync of the place of journals", (NO_HOME_FOR_JOURNALS,), "neither done nor", EDIT
    ),
    Planted("edit: no fsync of the journal's names", (NO_JOURNAL_NAME,), "neither done nor", EDIT),
    Planted("edit: no fsync after rename", (NO_FSYNC_AFTER_RENAME,), "neither done nor", EDIT),
)


def copy_with(planted: Sequence[Replaced], folder: Path) -> dict[str, str]:
    """A copy of the package with something else in it; how a command finds that one."""
    package = folder / "holdfast"
    shutil.copytree(Path(holdfast.__file__).parent, package)
    for file, stands, instead in planted:
        place = package / file
        text = place.read_text()
        assert text.count(stands) == 1, f"'{stands}' is not in '{file}'"
        place.write_text(text.replace(stands, instead))
    env = {**os.environ, "PYTHONPATH": str(folder)}
    found = subprocess.run(
        [sys.executable, "-c", "import holdfast; print(holdfast.__file__)"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(found.stdout.strip()).parent == package
    return {"PYTHONPATH": str(folder)}


def look_for(planted: Planted, plan: str, size: int, strace: str, folder: Path) -> Outage:
    env = copy_with(planted.replaced, folder / "copy")
    scene = lay(folder / "recorded", plan)
    recording = recorded(strace, scene, "run", "-j", "2", env=env)
    assert recording.answer.code == 0, recording.answer.err
    edits = (edit_of(recording.before, scene.root),) if plan == "reference" else ()
    outage = Outage(recording, edits, Report(planted.name))
    some = chosen(recording, size, seed=7, near=planted.near)
    outage.sweep(lambda number: some.get(number, ()))
    return outage


def found(outage: Outage, planted: Planted) -> Report:
    """Whether it was found, as a report of its own: its violations are what is wanted."""
    shown = any(planted.shows in violation for violation in outage.report.violations)
    report = Report(f"power: {planted.name}", "planted", tried=len(outage.seen))
    report.fired, report.outcomes["states that show it"] = 1, len(outage.broken)
    report.violations += [] if shown else [f"{planted.name}: nobody saw it"]
    return report


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_fault_can_still_be_planted(planted: Planted) -> None:
    for file, stands, instead in planted.replaced:
        text = (Path(holdfast.__file__).parent / file).read_text()
        assert text.count(stands) == 1
        compile(text.replace(stands, instead), file, "exec")


@pytest.mark.req("D02")
def test_a_store_that_never_syncs_is_found_out(
    tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    planted = PLANTED[4]
    report = found(look_for(planted, "tiny", 60, strace, tmp_path), planted)
    sweep(report)
    assert report.violations == []


@pytest.mark.soak
@pytest.mark.req("D02", "D21")
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_every_planted_fault_is_found(
    planted: Planted, tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    report = found(look_for(planted, "reference", 600, strace, tmp_path), planted)
    sweep(report)
    assert report.violations == []
