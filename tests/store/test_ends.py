"""A log that is lost is noticed by the last event that was stored; a sound store is never refused for it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from holdfast.errors import IntegrityError
from holdfast.model.event import RunResumed
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch
from holdfast.store.ends import End, known_end
from holdfast.store.sqlite import SqliteStore
from tests.store.test_log import COMMITS, killed, problems, write

LOG, END = "state.db-wal", "state.end"
RUN = RunId("r-1")


def begin_run(store: SqliteStore) -> None:
    store.open_run(RUN, "p", "l", Batch(appends=[Append("run:r-1", 0, [(0, RunResumed("e"))])]))


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A store with two events that was closed."""
    place = tmp_path / "closed"
    with SqliteStore.open(str(place), create=True) as store:
        write(store, 2)
    return place


@contextmanager
def living(place: Path) -> Iterator[SqliteStore]:
    """Somebody has the store open and has stored events: all of them are in the log."""
    with SqliteStore.open(str(place), create=False) as store:
        write(store, COMMITS)
        yield store


@pytest.fixture
def left(closed: Path, tmp_path: Path) -> Path:
    """What a killed process left of such a store."""
    with living(closed):
        return killed(closed, tmp_path / "left")


def last(place: Path) -> int:
    with SqliteStore.open(str(place), create=False) as store:
        return store.last("line:main")


def lost(place: Path) -> None:
    """Whoever reads or writes is told, and nothing changes by it."""
    log = (place / LOG).read_bytes() if (place / LOG).exists() else b""
    for create, readonly in ((False, True), (False, False), (True, False)):
        with pytest.raises(IntegrityError, match="is missing, cut off or damaged") as caught:
            SqliteStore.open(str(place), create=create, readonly=readonly)
        assert "holdfast repair --start-over" in (caught.value.hint or "")
        assert (place / LOG).read_bytes() == log


@pytest.mark.req("D07", "I17")
def test_a_log_is_lost_if_it_ends_before_what_was_told_and_never_else(
    closed: Path, tmp_path: Path
) -> None:
    """As of a power cut both may be of any moment, but the log is never behind."""
    logs, ends = [b""], [b""]
    with SqliteStore.open(str(closed), create=False) as store:
        for _ in range(3):
            write(store, 1)
            logs.append((closed / LOG).read_bytes())
            ends.append((closed / END).read_bytes())
        whole = killed(closed, tmp_path / "whole")
    for stored, log in enumerate(logs):
        for told, end in enumerate(ends):
            place = tmp_path / f"{stored}-{told}"
            shutil.copytree(whole, place)
            (place / LOG).write_bytes(log)
            (place / END).write_bytes(end)
            if stored < told:
                lost(place)
            else:
                assert problems(place) == []
                assert last(place) == 2 + stored


@pytest.mark.req("D07", "I17")
def test_a_log_that_is_gone_is_lost(left: Path) -> None:
    (left / LOG).unlink()
    lost(left)
    lost(left)


@pytest.mark.req("D02")
def test_what_a_kill_leaves_is_whole_and_so_is_its_copy(left: Path, tmp_path: Path) -> None:
    assert known_end(str(left / END)) == End(1, 2 + COMMITS)
    shutil.copytree(left, tmp_path / "copy")
    left.rename(tmp_path / "moved")
    for name in ("copy", "moved"):
        assert problems(tmp_path / name) == []
        assert last(tmp_path / name) == 2 + COMMITS


def foreign_close(place: Path) -> None:
    """Another program moves the log into the database and removes it."""
    raw = apsw.Connection(str(place / "state.db"))
    raw.execute("SELECT * FROM event").fetchall()
    raw.close()


def foreign_restart(place: Path) -> None:
    """Another program begins the log anew, and dies."""
    raw = apsw.Connection(str(place / "state.db"))
    raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    raw.execute("SELECT * FROM event").fetchall()
    raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    raw.execute("INSERT INTO line(project, name) VALUES('p', 'l')")
    raw.close()


def own_look(place: Path) -> None:
    SqliteStore.open(str(place), create=False, readonly=True).close()


@pytest.mark.parametrize("saved", [foreign_close, foreign_restart, own_look])
def test_whoever_moves_the_log_into_the_database_may(
    left: Path, saved: Callable[[Path], None]
) -> None:
    saved(left)
    (left / LOG).unlink(missing_ok=True)
    assert problems(left) == []
    assert last(left) == 2 + COMMITS


def test_a_back_up_of_the_database_alone_takes_the_place_of_one_that_was_closed(
    closed: Path, tmp_path: Path
) -> None:
    shutil.copy(closed / "state.db", tmp_path / "back-up")
    with living(closed):
        pass
    assert known_end(str(closed / END)) is None
    assert last(closed) == 2 + COMMITS
    shutil.copy(tmp_path / "back-up", closed / "state.db")
    assert last(closed) == 2


def test_only_who_closes_last_clears_it(closed: Path) -> None:
    with living(closed) as store:
        SqliteStore.open(str(closed), create=False, readonly=True).close()
        with SqliteStore.open(str(closed), create=False) as other:
            begin_run(other)
        assert known_end(str(closed / END)) == End(2, 1)
        write(store, 1)
        assert known_end(str(closed / END)) == End(1, 3 + COMMITS)
    assert known_end(str(closed / END)) is None


def test_the_last_event_may_have_been_removed_with_its_journal(
    closed: Path, tmp_path: Path
) -> None:
    with living(closed) as store:
        before = (closed / LOG).stat().st_size
        begin_run(store)
        store.remove_run(RUN, Batch())
        assert known_end(str(closed / END)) == End(2, 1)
        place = killed(closed, tmp_path / "left")
    shutil.copytree(place, tmp_path / "cut")
    assert problems(place) == []
    os.truncate(tmp_path / "cut" / LOG, before)
    lost(tmp_path / "cut")


def flip(place: Path) -> None:
    content = bytearray(place.read_bytes())
    content[0] ^= 1
    place.write_bytes(content)


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(place: Path) -> None:
        place.unlink()
        make(place)

    return replace


@pytest.mark.req("D02")
@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink,
        flip,
        lambda place: place.write_bytes(b""),
        lambda place: place.write_bytes(bytes(52)),
        lambda place: place.write_bytes(place.read_bytes()[:20]),
        lambda place: place.write_bytes(place.read_bytes() * 2),
        replaced(Path.mkdir),
        replaced(os.mkfifo),
        replaced(lambda place: place.symlink_to("nowhere")),
        replaced(lambda place: place.symlink_to("/dev/zero")),
    ],
)
def test_what_cannot_be_believed_says_nothing_and_disturbs_nobody(
    left: Path, harm: Callable[[Path], None]
) -> None:
    harm(left / END)
    assert problems(left) == []
    with SqliteStore.open(str(left), create=False) as store:
        write(store, 1)
    assert last(left) == 3 + COMMITS
    assert not (left / "nowhere").exists()


def test_what_was_rolled_back_is_not_said(closed: Path) -> None:
    with living(closed) as store:

        def work(_: object) -> None:
            store._database.reach(1, 99)
            raise KeyError

        with pytest.raises(KeyError):
            store._database.write(work)
        store.put(b"no event")
        assert known_end(str(closed / END)) == End(1, 2 + COMMITS)


@pytest.mark.req("D02")
def test_a_store_whose_tables_are_all_that_a_kill_left_is_a_store(tmp_path: Path) -> None:
    with SqliteStore.open(str(tmp_path / "first"), create=True):
        place = killed(tmp_path / "first", tmp_path / "left")
    assert not (place / END).exists()
    (place / LOG).unlink()
    with SqliteStore.open(str(place), create=True) as store:
        write(store, 1)
