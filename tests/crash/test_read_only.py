"""A store on a disk where nothing can be written: it is read as ever, or it is said why not."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import LockedError, StoreError
from holdfast.model.line import StopRequested
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch
from holdfast.store.sqlite import SqliteStore
from tests.crash import plans
from tests.crash.disk import DISK_FAILED
from tests.crash.faults import Scene

LOG = "state.db-wal"
EVENTS = 8


def remount(disk: Path, *options: str) -> None:
    words = ["mount", "-o", ",".join(("remount", *options)), str(disk)]
    subprocess.run(words, check=True)


def write(store: SqliteStore, count: int) -> None:
    for _ in range(count):
        last = store.last("line:main")
        event = StopRequested(RunId("r-1"), now=True, by="ann")
        store.commit(Batch(appends=[Append("line:main", last, [(last, event)])]))


def reader(place: Path) -> SqliteStore:
    return SqliteStore.open(str(place), create=False, readonly=True)


@pytest.fixture
def killed(disk: Callable[[int], Path], tmp_path: Path) -> Path:
    """A store with a log that a killed process left, on a disk of its own."""
    place = disk(16) / "store"
    with SqliteStore.open(str(tmp_path / "first"), create=True) as store:
        write(store, EVENTS)
        shutil.copytree(tmp_path / "first", place)
    return place


@pytest.mark.req("D08")
def test_every_command_that_reads_works_on_a_read_only_disk(
    tmp_path: Path, disk: Callable[[int], Path]
) -> None:
    place, scene = disk(512), Scene(tmp_path / "case")
    large = plans.noted("head -c 50000 /dev/zero")
    plan = {"name": "p", "steps": {"a": {"shell": "echo a"}, "b": {"shell": large, "needs": ["a"]}}}
    plans.write_project(scene.root, plan, {})
    shutil.move(scene.root, place / "project")
    scene.root.symlink_to(place / "project")
    assert scene.call("run").code == 0
    reads = [("plan",), ("status",), ("show", "b"), ("why", "a"), ("history",), ("verify",)]
    before = [scene.call(*words).out for words in reads]
    remount(place, "ro")
    for words, out in zip(reads, before, strict=True):
        answer = scene.call(*words)
        assert (answer.code, answer.err) == (0, "")
        if words[0] in {"show", "verify"}:
            assert answer.out == out
    answer = scene.call("run", "--force")
    assert answer.code == DISK_FAILED
    assert "state.db' is on a read-only file system\nhint: cp -r " in answer.err
    remount(place, "rw")
    assert scene.call("run", "--force").code == 0


@pytest.mark.req("D08")
def test_a_log_is_read_if_its_index_is_there_and_else_it_is_said_what_to_do(killed: Path) -> None:
    remount(killed.parent, "ro")
    with reader(killed) as store:
        assert store.last("line:main") == EVENTS
        assert list(store.check()) == []
    remount(killed.parent, "rw")
    (killed / "state.db-shm").unlink()
    remount(killed.parent, "ro")
    with pytest.raises(StoreError, match="read-only file system, and what is in its log") as caught:
        reader(killed)
    assert caught.value.hint == f"cp -r {killed} DIR, then use --store DIR"


@pytest.mark.req("D07", "D08")
@pytest.mark.parametrize("byte", [20, -3 * (24 + 4096)])
def test_a_damaged_log_is_found_on_a_read_only_disk_too(
    tmp_path: Path, disk: Callable[[int], Path], byte: int
) -> None:
    """The index that the killed process left says that all is well."""
    place, first = disk(16) / "store", tmp_path / "first"
    SqliteStore.open(str(first), create=True).close()
    with SqliteStore.open(str(first), create=False) as store:
        write(store, EVENTS)
        shutil.copytree(first, place)
    log = bytearray((place / LOG).read_bytes())
    log[byte] ^= 4
    (place / LOG).write_bytes(log)
    remount(place.parent, "ro")
    with reader(place) as store:
        found = list(store.check())
    assert len(found) == 1
    assert "in its log cannot be read: it is damaged" in found[0]


@pytest.mark.req("D08")
def test_what_somebody_else_can_write_is_not_taken_for_fixed(
    tmp_path: Path, disk: Callable[[int], Path]
) -> None:
    disk(1)  # skipped without the right to mount
    place, seen = tmp_path / "store", tmp_path / "seen"
    seen.mkdir()
    with SqliteStore.open(str(place), create=True) as store:
        write(store, 1)
    subprocess.run(["mount", "--bind", str(place), str(seen)], check=True)
    try:
        remount(seen, "bind", "ro")
        with reader(seen) as looked:
            assert looked.last("line:main") == 1
            with SqliteStore.open(str(place), create=False) as store:
                write(store, 1)
                with pytest.raises(LockedError, match="another process writes the database"):
                    looked.last("line:main")
        with reader(seen) as looked:
            assert looked.last("line:main") == 2
    finally:
        subprocess.run(["umount", "--lazy", str(seen)], check=True)
