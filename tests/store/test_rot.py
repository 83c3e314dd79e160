"""Bits that change on their own: found, named, and never served."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import apsw
import pytest

from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import digest_bytes
from holdfast.model.event import Recorded
from holdfast.model.line import RunOpened, StopRequested
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch
from holdfast.store.codec import first_hash, next_hash
from holdfast.store.rows import PLACE
from holdfast.store.sqlite import SqliteStore

LARGE = b"large content " * 5000
SMALL = b"small content of the step"
EVENTS = [
    (number, StopRequested(RunId("r-1"), now=True, by=f"person-{number}")) for number in range(1, 6)
]


def row(step: str, content: bytes) -> Artifact:
    digest = digest_bytes(content)
    return Artifact(
        "p",
        "l",
        StepId(step),
        digest,
        digest,
        digest,
        digest,
        "accepted",
        "generated",
        RunId("r-1"),
        1,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with SqliteStore.open(str(tmp_path / "store"), create=True) as store:
        store.put(LARGE)
        store.commit(
            Batch(
                appends=[Append("line:main", 0, EVENTS), Append("line:other", 0, EVENTS)],
                artifacts=[row("big", LARGE), row("small", SMALL)],
                blobs=[(digest_bytes(SMALL), SMALL)],
            )
        )
        assert list(store.check()) == []
    return tmp_path / "store"


@pytest.fixture
def raw(place: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(place / "state.db"))
    yield connection
    connection.close()


def flip(path: Path, mark: bytes) -> None:
    """Change one bit where a file last holds these bytes: a page that was split leaves them behind."""
    content = bytearray(path.read_bytes())
    content[content.rindex(mark) + len(mark) - 1] ^= 1
    path.write_bytes(content)


def problems(place: Path) -> list[str]:
    with SqliteStore.open(str(place), create=False, readonly=True) as store:
        return list(store.check())


@pytest.mark.req("D07")
def test_a_bit_of_a_content_file(place: Path) -> None:
    digest = digest_bytes(LARGE)
    path = place / "blobs" / digest[:2] / digest
    content = bytearray(LARGE)
    content[-1] ^= 1
    path.write_bytes(content)
    found = problems(place)
    assert len(found) == 1
    assert digest in found[0]
    assert "step 'big' in run 'r-1'" in found[0]
    assert path.exists()  # a check changes nothing
    store = SqliteStore.open(str(place), create=False)
    with store, pytest.raises(IntegrityError, match=digest):
        store.get(digest)


@pytest.mark.parametrize("left", [b"", b"short"])
def test_a_content_file_that_was_emptied_is_one_problem(place: Path, left: bytes) -> None:
    digest = digest_bytes(LARGE)
    (place / "blobs" / digest[:2] / digest).write_bytes(left)
    (found,) = problems(place)
    assert f"content '{digest}' of step 'big' in run 'r-1' is damaged" in found


def test_a_content_file_that_is_gone_is_one_problem(place: Path) -> None:
    digest = digest_bytes(LARGE)
    (place / "blobs" / digest[:2] / digest).unlink()
    assert problems(place) == [f"content '{digest}' of step 'big' in run 'r-1' is missing"]


@pytest.mark.req("D07")
def test_a_bit_of_a_content_in_the_database(place: Path) -> None:
    flip(place / "state.db", SMALL)
    digest = digest_bytes(SMALL)
    assert problems(place) == [f"content '{digest}' of step 'small' in run 'r-1' is damaged"]
    with SqliteStore.open(str(place), create=False) as store:
        with pytest.raises(IntegrityError, match=digest):
            store.get(digest)
        assert not store.has(digest)
        assert (place / "blobs" / "quarantine" / digest).exists()
        store.put(SMALL)
        assert list(store.check()) == []


@pytest.mark.req("D07")
def test_a_bit_of_an_event(place: Path, raw: apsw.Connection) -> None:
    raw.execute("DELETE FROM event WHERE place > ?", (2 * PLACE,))
    raw.execute("DELETE FROM journal WHERE name = 'line:other'")
    raw.execute("VACUUM")
    raw.close()
    flip(place / "state.db", b"person-3")
    assert problems(place) == ["journal 'line:main': event 3 is damaged"]
    with SqliteStore.open(str(place), create=False) as store:
        given: list[Recorded] = []
        with pytest.raises(IntegrityError, match="journal 'line:main' is damaged at event 3"):
            given.extend(store.read("line:main"))
        assert [item.seq for item in given] == [1, 2]
        with pytest.raises(IntegrityError, match="journal 'line:main' is damaged at event 3"):
            list(store.kept("line:main"))
        assert [item.seq for item in store.read("line:main", after=3)] == [4, 5]


@pytest.mark.req("D07")
@pytest.mark.parametrize("seq,told", [(3, "event 3 is missing"), (5, "event 5 is missing")])
def test_an_event_that_is_lost(place: Path, raw: apsw.Connection, seq: int, told: str) -> None:
    raw.execute("DELETE FROM event WHERE place = ?", (PLACE + seq,))
    found = problems(place)
    assert f"journal 'line:main': {told}" in found
    assert not any("line:other" in problem for problem in found)
    with SqliteStore.open(str(place), create=False) as store:
        with pytest.raises(IntegrityError, match="journal 'line:main' is damaged"):
            list(store.read("line:main"))
        assert len(list(store.read("line:other"))) == 5


def test_an_end_that_was_replaced_together_with_its_hash(place: Path, raw: apsw.Connection) -> None:
    found = raw.execute("SELECT hash FROM event WHERE place = ?", (PLACE + 4,)).fetchall()
    before = found[0][0]
    assert isinstance(before, bytes)
    body = '{"run":"r-2","now":true,"by":"mallory"}'
    values = (PLACE + 5, 5, "stop_requested", body, next_hash(before, 5, 5, "stop_requested", body))
    raw.execute("DELETE FROM event WHERE place = ?", (PLACE + 5,))
    raw.execute("INSERT INTO event VALUES(?, ?, ?, ?, ?)", values)
    assert problems(place) == ["journal 'line:main': its last event is not the one it ended with"]
    store = SqliteStore.open(str(place), create=False)
    with store, pytest.raises(IntegrityError, match="should end at event 5"):
        list(store.read("line:main"))


def test_an_event_of_a_newer_holdfast_is_named_with_its_place(place: Path) -> None:
    with SqliteStore.open(str(place), create=False) as store:
        store.commit(Batch(appends=[Append("line:new", 0, [(1, RunOpened(RunId("r-1")))])]))
    raw = apsw.Connection(str(place / "state.db"))
    numbers = raw.execute("SELECT id FROM journal WHERE name = 'line:new'").fetchall()
    number = numbers[0][0]
    assert isinstance(number, int)
    link = next_hash(first_hash("line:new"), 1, 1, "run_dreamt", "{}")
    raw.execute("DELETE FROM event WHERE place = ?", (number * PLACE + 1,))
    raw.execute("INSERT INTO event VALUES(?, 1, 'run_dreamt', '{}', ?)", (number * PLACE + 1, link))
    raw.execute("UPDATE journal SET hash = ? WHERE id = ?", (link, number))
    raw.close()
    assert problems(place) == ["journal 'line:new': event 1: there is no event 'run_dreamt'"]
    with SqliteStore.open(str(place), create=False) as store:
        with pytest.raises(IntegrityError, match="journal 'line:new', event 1") as caught:
            list(store.read("line:new"))
        assert "newer Holdfast" in str(caught.value)


@pytest.mark.req("D07")
def test_a_page_of_the_database(place: Path, raw: apsw.Connection) -> None:
    found = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'event'").fetchall()
    size = raw.pragma("page_size")
    page = found[0][0]
    assert isinstance(page, int)
    assert isinstance(size, int)
    raw.close()
    with open(place / "state.db", "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 16)
    found_problems = problems(place)
    assert found_problems
    assert all("database" in problem or "journal" in problem for problem in found_problems)
    store = SqliteStore.open(str(place), create=False)
    with store, pytest.raises(IntegrityError, match="is damaged"):
        list(store.read("line:main"))


@pytest.mark.req("D07")
@pytest.mark.parametrize("told", [True, False])
def test_a_frame_of_the_log_takes_away_what_came_after_but_changes_nothing(
    place: Path, tmp_path: Path, told: bool
) -> None:
    """If somebody was told of it, it is damage; else it may have been torn as it was written."""
    copy = tmp_path / "copy"
    with SqliteStore.open(str(place), create=False) as store:
        for number in range(6, 9):
            event = StopRequested(RunId("r-1"), now=True, by=f"person-{number}")
            store.commit(Batch(appends=[Append("line:main", number - 1, [(number, event)])]))
        shutil.copytree(place, copy)
    os.unlink(copy / "state.db-shm")
    log = bytearray((copy / "state.db-wal").read_bytes())
    log[log.rindex(b"person-8")] ^= 1
    (copy / "state.db-wal").write_bytes(log)
    if told:
        with pytest.raises(IntegrityError, match="lacks the last event that was stored"):
            problems(copy)
        return
    (copy / "state.end").unlink()
    with SqliteStore.open(str(copy), create=False) as store:
        people = [getattr(item.event, "by", "") for item in store.read("line:main")]
        assert people == [f"person-{number}" for number in range(1, 8)]
        assert list(store.check()) == []


def test_events_without_a_journal_are_named(place: Path, raw: apsw.Connection) -> None:
    raw.execute("DELETE FROM journal WHERE name = 'line:other'")
    assert problems(place) == ["database: events of a journal 2 that is not there"]


@pytest.mark.req("D07")
@pytest.mark.parametrize(
    "statement,told",
    [
        ("DROP TABLE stat", "its table 'stat' is missing"),
        ("DROP TABLE claim", "its table 'claim' is missing"),
        ("DROP INDEX artifact_find", "its index 'artifact_find' is missing"),
        ("DROP INDEX artifact_once", "its index 'artifact_once' is missing"),
        ("DROP TRIGGER event_is_kept", "its trigger 'event_is_kept' is missing"),
        (
            "PRAGMA user_version = 2",
            "its index 'artifact_once' is not the one that Holdfast makes",
        ),
        (
            "CREATE TRIGGER more AFTER INSERT ON event BEGIN DELETE FROM event; END",
            "it has a trigger 'more' that Holdfast does not make",
        ),
    ],
)
def test_tables_that_are_not_as_holdfast_makes_them(
    place: Path, raw: apsw.Connection, statement: str, told: str
) -> None:
    raw.execute(statement)
    assert f"database: {told}" in problems(place)


@pytest.mark.req("D07")
def test_a_bit_of_the_name_of_a_table(place: Path) -> None:
    """SQLite finds no fault in it: the statements of a store do not fit it any more."""
    flip(place / "state.db", b"CREATE TABLE journal(\n  i")
    assert "database: its table 'journal' is not the one that Holdfast makes" in problems(place)
    store = SqliteStore.open(str(place), create=False)
    with store, pytest.raises(IntegrityError, match="is damaged: no such column") as caught:
        list(store.read("line:main"))
    assert caught.value.hint == "holdfast verify"


@pytest.mark.req("D07")
@pytest.mark.parametrize("other", ["blob", "sqlite_autoindex_journal_1", "event", "run"])
def test_a_bit_of_the_place_of_a_table(place: Path, raw: apsw.Connection, other: str) -> None:
    """SQLite takes the rows of another table for those of this one."""
    raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    raw.execute("PRAGMA writable_schema = ON")
    root = "(SELECT rootpage FROM sqlite_schema WHERE name = ?)"
    raw.execute(f"UPDATE sqlite_schema SET rootpage = {root} WHERE name = 'journal'", (other,))
    raw.close()
    assert problems(place)
    with SqliteStore.open(str(place), create=False) as store:
        try:
            names = store.journals()
        except IntegrityError:
            return
        assert all(isinstance(name, str) for name in names)
        for name in ("line:main", *names):
            with contextlib.suppress(IntegrityError):
                list(store.read(name))


@pytest.mark.req("D07")
def test_a_bit_of_the_number_of_a_row(place: Path, raw: apsw.Connection) -> None:
    """Rows in another order: whoever reads page by page comes to an end, and is told."""
    root = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'artifact'").get
    raw.close()
    database = place / "state.db"
    whole, size, told = database.read_bytes(), 4096, []
    for at in range((root - 1) * size, root * size):
        if whole[at] != 1:  # as the number of the first row is
            continue
        database.write_bytes(whole[:at] + b"\x65" + whole[at + 1 :])
        with contextlib.suppress(IntegrityError):
            assert problems(place)
        with SqliteStore.open(str(place), create=False) as store:
            try:
                list(islice(store.artifacts(), 9))
            except IntegrityError as error:
                told.append(error.message)
    assert any("row 2 of 'artifact' comes after row 101" in words for words in told), told


@pytest.mark.req("D07")
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE artifact SET maker = 9", "names no row of 'maker'"),
        ("UPDATE artifact SET line = 9", "names no row of 'line'"),
    ],
)
def test_a_store_whose_tables_contradict_each_other_is_not_assured(
    place: Path, raw: apsw.Connection, statement: str, told: str
) -> None:
    raw.execute("PRAGMA foreign_keys = 0")
    raw.execute(statement)
    for readonly in (True, False):
        with SqliteStore.open(str(place), create=False, readonly=readonly) as store:
            with pytest.raises(IntegrityError, match=told) as caught:
                store.assure()
            assert (caught.value.hint or "").startswith("holdfast repair, or move ")


@pytest.mark.req("D07")
def test_an_index_that_lost_an_entry_is_found_and_the_table_can_be_filled_again(
    place: Path,
) -> None:
    flip(place / "state.db", b"big")
    with SqliteStore.open(str(place), create=False) as store:
        with pytest.raises(IntegrityError, match="artifact"):
            store.assure()
        store.replace_artifacts(lambda: [row("big", LARGE), row("small", SMALL)])
        store.assure()
        assert list(store.check()) == []
