"""Opening a store: what is made, what is refused, and what is left alone."""

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.errors import BugError, IntegrityError, StoreError, UsageError
from holdfast.model.digest import digest_bytes
from holdfast.model.line import StopRequested
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch
from holdfast.store.migrate import APPLICATION_ID, MIGRATIONS, VERSION, migrate, version_of
from holdfast.store.sqlite import SqliteStore

STOP = StopRequested(RunId("r-1"), now=True, by="ann")
ONE = Batch(appends=[Append("line:main", 0, [(1, STOP)])])


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / ".holdfast")


def files_below(place: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(Path(place).rglob("*"))
        if path.is_file()
    }


def test_a_new_store_ignores_itself_and_tells_back_ups(place: str) -> None:
    SqliteStore.open(place, create=True).close()
    made = files_below(place)
    assert made[".gitignore"] == b"*\n"
    assert made["blobs/CACHEDIR.TAG"].startswith(b"Signature: 8a477f597d28d172789f06886806bc55")
    assert set(made) == {".gitignore", "blobs/CACHEDIR.TAG", "locks/store.lock", "state.db"}
    assert os.stat(place).st_mode & 0o777 == 0o700


def test_what_was_stored_is_there_when_it_is_opened_again(place: str) -> None:
    with SqliteStore.open(place, create=True) as store:
        store.commit(ONE)
    for create in (True, False):
        with SqliteStore.open(place, create=create) as store:
            assert [item.event for item in store.read("line:main")] == [STOP]


@pytest.mark.parametrize("readonly", [False, True])
def test_a_store_is_only_made_when_asked_for(tmp_path: Path, readonly: bool) -> None:
    place = tmp_path / ".holdfast"
    with pytest.raises(UsageError, match="no store at"):
        SqliteStore.open(str(place), create=readonly, readonly=readonly)
    assert list(tmp_path.iterdir()) == []
    place.mkdir()
    (place / "state.db").touch()  # what a kill during creation leaves
    with pytest.raises(UsageError, match="no store at"):
        SqliteStore.open(str(place), create=False, readonly=readonly)
    assert files_below(str(place)) == {"state.db": b""}
    SqliteStore.open(str(place), create=True).close()


def test_a_store_opened_to_read_changes_nothing(place: str) -> None:
    with SqliteStore.open(place, create=True) as store:
        store.commit(ONE)
        store.put(b"x")
    before = files_below(place)
    with SqliteStore.open(place, create=False, readonly=True) as store:
        assert store.last("line:main") == 1
        assert store.get(digest_bytes(b"x")) == b"x"
        assert list(store.check()) == []
        with pytest.raises(BugError, match="asked to write"):
            store.commit(Batch(appends=[Append("line:main", 1, [(1, STOP)])]))
        with pytest.raises(BugError, match="asked to write"):
            store.put(b"z" * 100_000)
    assert files_below(place) == before


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store can be made at"):
        SqliteStore.open("/sys/store", create=True)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is no directory, and a store is one"):
        SqliteStore.open(str(tmp_path / "file" / "store"), create=True)


@pytest.mark.req("R68")
def test_a_store_of_an_older_holdfast_is_brought_to_the_present_format(place: str) -> None:
    os.makedirs(place)
    raw = apsw.Connection(f"{place}/state.db")
    raw.pragma("journal_mode", "WAL")
    raw.execute(MIGRATIONS[0])
    raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    raw.execute("PRAGMA user_version = 1")
    raw.execute("INSERT INTO line(project, name) VALUES('', 'main')")
    raw.execute("INSERT INTO run(id, line, fence) VALUES('r-1', 1, 1)")
    old = bytes.fromhex(digest_bytes(b"old"))
    raw.execute("INSERT INTO blob(digest, content) VALUES(?, ?)", (old, b"old"))
    raw.close()
    before, said = files_below(place), list[str]()
    with SqliteStore.open(place, create=False, readonly=True, say=said.append) as store:
        assert [row.imported for row in store.runs()] == [False]
        assert [(item.size, item.at) for item in store.stored()] == [(3, 0)]
        assert list(store.check()) == []
        assert store.get(digest_bytes(b"old")) == b"old"
    assert (files_below(place), said) == (before, [])
    with SqliteStore.open(place, create=False, say=said.append) as store:
        assert said == ["the store had format 1; it was brought to format 5"]
        assert [row.imported for row in store.runs()] == [False]
        assert [(item.size, item.at) for item in store.stored()] == [(3, 0)]
        assert list(store.check()) == []
    with SqliteStore.open(place, create=False, readonly=True, say=said.append) as store:
        assert store.get(digest_bytes(b"old")) == b"old"
    assert len(said) == 1


def test_a_store_that_another_process_is_making_is_no_stranger(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")

    class Slow(apsw.Connection):
        """Another process makes the tables between two looks, unless it is kept off."""

        def execute(self, statements: str, *more: Any, **rest: Any) -> Any:
            if statements.startswith("SELECT"):
                with suppress(apsw.BusyError):
                    migrate(apsw.Connection(path), path)
            return super().execute(statements, *more, **rest)

    assert version_of(Slow(path), path) == 0


@pytest.mark.req("R68")
def test_a_store_of_a_newer_holdfast_is_refused(place: str) -> None:
    SqliteStore.open(place, create=True).close()
    raw = apsw.Connection(f"{place}/state.db")
    raw.execute(f"PRAGMA user_version = {VERSION + 1}")
    raw.close()
    before = files_below(place)
    for create in (True, False):
        with pytest.raises(StoreError, match=f"format {VERSION + 1}") as caught:
            SqliteStore.open(place, create=create)
        assert caught.value.hint == "upgrade holdfast"
    assert files_below(place) == before


def test_the_database_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    raw = apsw.Connection(str(tmp_path / "state.db"))
    raw.execute("CREATE TABLE theirs(x)")
    raw.close()
    with pytest.raises(StoreError, match="is not the database of a Holdfast store"):
        SqliteStore.open(str(tmp_path), create=False)
    with pytest.raises(StoreError, match="is not the database of a Holdfast store"):
        SqliteStore.open(str(tmp_path), create=True)
    raw = apsw.Connection(str(tmp_path / "state.db"))
    assert raw.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    raw.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(IntegrityError, match="is damaged"):
        SqliteStore.open(str(tmp_path), create=False)


def test_durability_is_set_on_both_connections(place: str) -> None:
    with SqliteStore.open(place, create=True) as store:
        for connection in (store._database._writer, store._database._reader):
            assert connection.pragma("journal_mode") == "wal"
            assert connection.pragma("synchronous") == 2
            assert connection.pragma("foreign_keys") == 1
            assert connection.pragma("trusted_schema") == 0


def test_a_closed_store_says_so(place: str) -> None:
    store = SqliteStore.open(place, create=True)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.last("line:main")
    with pytest.raises(StoreError, match="was closed"):
        store.put(b"x")


FORKED = """
import os, sys
from holdfast.errors import StoreError
from holdfast.ports import Batch
from holdfast.store.sqlite import SqliteStore
store = SqliteStore.open(sys.argv[1], create=True)
child = os.fork()
if not child:
    refused = 0
    for use in (lambda: store.commit(Batch()), lambda: store.last("x"), lambda: store.put(b"x")):
        try:
            use()
        except StoreError as error:
            refused += "opened by another process" in error.message
    store.close()
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
store.put(b"still mine")
store.close()
print("fine")
"""


def test_a_forked_child_may_not_use_the_store_of_its_parent(place: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, place],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")
    with SqliteStore.open(place, create=False) as store:
        assert store.has(digest_bytes(b"still mine"))


@pytest.mark.req("D09")
def test_a_lock_that_stays_is_an_error_and_one_that_ends_is_not(place: str) -> None:
    with SqliteStore.open(place, create=True, busy_ms=20) as store:
        other = apsw.Connection(f"{place}/state.db")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process has had the database"):
            store.commit(ONE)
        assert store.last("line:main") == 0  # reading goes on meanwhile
        other.execute("ROLLBACK")
        store.commit(ONE)
        assert store.last("line:main") == 1
        other.close()


@pytest.mark.req("D03")
def test_a_full_disk_is_an_error_that_passes(place: str) -> None:
    with SqliteStore.open(place, create=True) as store:
        writer = store._database._writer
        writer.pragma("max_page_count", writer.pragma("page_count"))
        big = Batch(appends=ONE.appends, blobs=[(digest_bytes(b"x" * 16000), b"x" * 16000)])
        with pytest.raises(StoreError, match="is full"):
            store.commit(big)
        assert store.last("line:main") == 0
        writer.pragma("max_page_count", 1_000_000)
        store.commit(big)
        assert store.last("line:main") == 1
        assert list(store.check()) == []


def test_a_reader_does_not_wait_for_a_writer_of_the_same_store(place: str) -> None:
    inside, done = threading.Event(), threading.Event()

    def slow(_: object) -> None:
        inside.set()
        assert done.wait(60)

    with SqliteStore.open(place, create=True) as store:
        store.commit(ONE)
        writer = threading.Thread(target=lambda: store._database.write(slow))
        writer.start()
        assert inside.wait(60)
        try:
            assert store.last("line:main") == 1
            assert store.find("p", "l", StepId("s"), digest_bytes(b"")) is None
        finally:
            done.set()
            writer.join()


def test_text_that_cannot_be_stored_is_the_fault_of_who_gave_it(place: str) -> None:
    with SqliteStore.open(place, create=True) as store:
        with pytest.raises(UsageError, match="is not text that can be stored"):
            store.commit(Batch(appends=[Append("line:\udcff", 0, [(1, STOP)])]))
        store.commit(ONE)


def test_events_cannot_be_changed_in_the_database(place: str) -> None:
    with SqliteStore.open(place, create=True) as store:
        store.commit(ONE)
        with pytest.raises(apsw.ConstraintError, match="events never change"):
            store._database._writer.execute("UPDATE event SET at = 0")


@pytest.mark.req("D02")
@pytest.mark.parametrize("left", [b"", b"\0\0"])
def test_a_store_whose_making_lost_its_power_ignores_itself_too(place: str, left: bytes) -> None:
    """A file that was not synced can come back empty or as zeros; it would stay so for ever."""
    os.makedirs(f"{place}/blobs")
    for name in (".gitignore", "blobs/CACHEDIR.TAG"):
        Path(place, name).write_bytes(left)
    SqliteStore.open(place, create=True).close()
    made = files_below(place)
    assert made[".gitignore"] == b"*\n"
    assert made["blobs/CACHEDIR.TAG"].startswith(b"Signature: 8a477f597d28d172789f06886806bc55")


@pytest.mark.req("D02")
def test_what_a_kill_leaves_of_the_making_is_no_store_that_was_used(place: str) -> None:
    """All but the database is there, and a content that was never finished."""
    SqliteStore.open(place, create=True).close()
    Path(place, "state.db").unlink()
    for folder in ("tmp", "ab"):
        Path(place, "blobs", folder).mkdir(exist_ok=True)
    Path(place, "blobs", "tmp", "0" * 32).write_bytes(b"half")
    with pytest.raises(UsageError, match="no store at"):
        SqliteStore.open(place, create=False)
    SqliteStore.open(place, create=True).close()


@pytest.mark.req("D07", "I17")
def test_a_content_is_enough_to_know_a_store_by_unless_a_database_was_moved_aside(
    place: str,
) -> None:
    with SqliteStore.open(place, create=True) as store:
        store.put(b"x" * 100_000)
    Path(place, "state.db").unlink()
    with pytest.raises(IntegrityError, match="has lost its tables"):
        SqliteStore.open(place, create=True)
    Path(place, "quarantine", "1").mkdir(parents=True)
    SqliteStore.open(place, create=True).close()


def test_what_a_person_wrote_there_stays(place: str) -> None:
    os.makedirs(place)
    Path(place, ".gitignore").write_bytes(b"!keep\n")
    SqliteStore.open(place, create=True).close()
    assert files_below(place)[".gitignore"] == b"!keep\n"
