"""Looking into the files of a database leaves the locks that SQLite has on them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import wire
from holdfast.store import peek
from holdfast.store.log import lost_commits
from holdfast.store.sqlite import SqliteStore

# Bytes that SQLite locks as long as a connection is there: of the index, and of the database.
HELD = {"-shm": (128, 1), "": (0x40000002, 510)}
TRIES = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, int(sys.argv[3]), int(sys.argv[2]))
    except OSError:
        print("held")
"""


def is_held(path: Path, suffix: str) -> bool:
    """Whether another process is kept from locking these bytes."""
    start, length = HELD[suffix]
    words = [sys.executable, "-c", TRIES, f"{path}{suffix}", str(start), str(length)]
    return subprocess.run(words, capture_output=True, check=True).stdout == b"held\n"


@pytest.mark.req("D18")
@pytest.mark.parametrize("suffix", HELD)
def test_an_open_store_keeps_its_locks_whatever_is_looked_at(tmp_path: Path, suffix: str) -> None:
    place, database = str(tmp_path / "store"), tmp_path / "store" / "state.db"
    SqliteStore.open(place, create=True).close()
    store = SqliteStore.open(place, create=False)
    try:
        store.put(b"something")
        assert is_held(database, suffix), "opening looked into the files already"
        assert wire.has_store(place)
        assert lost_commits(str(database)) == 0
        other = SqliteStore.open(place, create=False, readonly=True)
        other.close()
        assert is_held(database, suffix)
    finally:
        store.close()


def test_descriptors_go_with_the_last_store(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    stores = [SqliteStore.open(str(tmp_path), create=True) for _ in range(3)]
    for store in stores:
        store.close()
    assert set(os.listdir("/proc/self/fd")) <= before
    assert not peek._open
    assert not peek._kept
