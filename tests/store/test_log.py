"""A write-ahead log that lost its beginning, and the ones that only look like it."""

import shutil
from pathlib import Path

import apsw
import pytest

from holdfast import wire
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.line import StopRequested
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch
from holdfast.store.log import lost_commits
from holdfast.store.sqlite import SqliteStore

COMMITS = 5
HEAD = 32
FRAME = 24 + 4096


def write(store: SqliteStore, count: int) -> None:
    """So many commits of one event each."""
    for _ in range(count):
        last = store.last("line:main")
        event = StopRequested(RunId("r-1"), now=True, by=f"person-{last + 1}")
        store.commit(Batch(appends=[Append("line:main", last, [(last, event)])]))


def killed(store: Path, copy: Path) -> Path:
    """What a kill would leave of a store that is open."""
    shutil.copytree(store, copy)
    (copy / "state.db-shm").unlink()
    return copy


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with commits in its database, and more of them in the log of a killed process."""
    with SqliteStore.open(str(tmp_path / "first"), create=True) as store:
        write(store, 2)
    with SqliteStore.open(str(tmp_path / "first"), create=False) as store:
        write(store, COMMITS)
        return killed(tmp_path / "first", tmp_path / "store")


def problems(place: Path) -> list[str]:
    with SqliteStore.open(str(place), create=False, readonly=True) as store:
        return list(store.check())


def lay(place: Path, log: bytes) -> None:
    """Put another log beside a database that nobody has open."""
    (place / "state.db-shm").unlink(missing_ok=True)
    (place / "state.db-wal").write_bytes(log)


def flipped(log: bytes, byte: int, bit: int) -> bytes:
    content = bytearray(log)
    content[byte] ^= 1 << bit
    return bytes(content)


@pytest.mark.req("D07")
@pytest.mark.parametrize("bit", [0, 2, 7])
def test_any_bit_of_the_first_bytes_of_a_log_is_found_and_the_log_stays(
    place: Path, bit: int
) -> None:
    whole = (place / "state.db-wal").read_bytes()
    for byte in range(HEAD):
        log = flipped(whole, byte, bit)
        lay(place, log)
        found = problems(place)
        told = f"database: {COMMITS} commits in its log cannot be read: it is damaged"
        assert found == [told], (byte, bit)
        assert (place / "state.db-wal").read_bytes() == log


@pytest.mark.req("D07")
def test_a_log_whose_first_bytes_are_zeros_is_found(place: Path) -> None:
    lay(place, bytes(HEAD) + (place / "state.db-wal").read_bytes()[HEAD:])
    assert len(problems(place)) == 1


def test_a_single_commit_behind_damaged_first_bytes_is_lost_too(tmp_path: Path) -> None:
    first = tmp_path / "first"
    SqliteStore.open(str(first), create=True).close()
    with SqliteStore.open(str(first), create=False) as store:
        write(store, 1)
        place = killed(first, tmp_path / "store")
    lay(place, flipped((place / "state.db-wal").read_bytes(), 20, 2))
    assert problems(place) == ["database: 1 commit in its log cannot be read: it is damaged"]


@pytest.mark.req("D02")
def test_what_a_crash_leaves_of_a_log_is_not_damage(place: Path, tmp_path: Path) -> None:
    """Cut anywhere, or torn in its last commit; a commit that nobody was told of is no event to look for."""
    whole = (place / "state.db-wal").read_bytes()
    (place / "state.end").unlink()
    cuts = [0, 1, HEAD - 1, HEAD, HEAD + 1, HEAD + 24, HEAD + FRAME]
    cuts += [len(whole) - FRAME, len(whole) - 1]
    for number, cut in enumerate(cuts):
        copy = tmp_path / f"cut-{number}"
        shutil.copytree(place, copy)
        (copy / "state.db-wal").write_bytes(whole[:cut])
        assert problems(copy) == [], cut
    lay(place, flipped(whole, -1, 0))
    assert problems(place) == []


@pytest.mark.req("D02")
def test_a_log_that_is_begun_anew_is_not_damage(tmp_path: Path) -> None:
    """All of it is in the database: whatever becomes of its first bytes then, nothing is lost."""
    first = tmp_path / "first"
    with SqliteStore.open(str(first), create=True) as store:
        write(store, COMMITS)
        store._database._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        copied = killed(first, tmp_path / "copied")
        write(store, 1)
        begun = killed(first, tmp_path / "begun")
    for place in (copied, begun):
        assert lost_commits(str(place / "state.db")) == 0
    old, new = ((each / "state.db-wal").read_bytes() for each in (copied, begun))
    assert old[HEAD + 2 * FRAME :][8:16] != new[16:24]  # frames of the old log stand behind the new
    torn = [new[:cut] + old[cut:] for cut in (1, 14, 18, 22, 26, HEAD)]
    for log in torn:
        lay(copied, log)
        shutil.copytree(copied, tmp_path / "torn")
        assert problems(tmp_path / "torn") == []
        shutil.rmtree(tmp_path / "torn")
    assert problems(begun) == []


def test_whoever_has_the_log_open_sees_its_commits_and_nothing_is_said(tmp_path: Path) -> None:
    place = tmp_path / "store"
    with SqliteStore.open(str(place), create=True) as store:
        write(store, COMMITS)
        with open(place / "state.db-wal", "r+b") as log:
            log.seek(20)
            log.write(b"damaged!")
        assert problems(place) == []
        write(store, 1)
    assert problems(place) == []
    with SqliteStore.open(str(place), create=False) as store:
        assert store.last("line:main") == COMMITS + 1


@pytest.fixture
def young(tmp_path: Path) -> Path:
    """A store of which all is still in the log: its first process was killed."""
    with SqliteStore.open(str(tmp_path / "first"), create=True) as store:
        write(store, COMMITS)
        place = killed(tmp_path / "first", tmp_path / "store")
    assert (place / "state.db").stat().st_size == FRAME - 24
    return place


def refused(place: Path, told: str) -> None:
    """Whoever reads or writes is told of the damage, and where to put it; the log stays."""
    log = (place / "state.db-wal").read_bytes()
    for create, readonly in ((False, True), (False, False), (True, False), (True, False)):
        with pytest.raises(IntegrityError, match=told) as caught:
            SqliteStore.open(str(place), create=create, readonly=readonly)
        assert caught.value.hint == f"mv {place} {place}.damaged"
        assert (place / "state.db-wal").read_bytes() == log
    with pytest.raises(IntegrityError, match=told):
        wire.has_store(str(place))
    assert (place / "state.db-wal").read_bytes() == log


@pytest.mark.req("D07")
@pytest.mark.parametrize("byte", [3, 20, HEAD + 40, HEAD + FRAME + 10])
def test_a_young_store_with_a_damaged_log_is_refused_and_kept(young: Path, byte: int) -> None:
    log = flipped((young / "state.db-wal").read_bytes(), byte, 2)
    lay(young, log)
    refused(young, "6 commits in '.*-wal' cannot be read: it is damaged")
    assert [each.name for each in young.glob("*damaged*")] == ["state.db-wal.damaged"]
    assert (young / "state.db-wal.damaged").read_bytes() == log


def test_a_young_store_is_a_store(young: Path) -> None:
    assert wire.has_store(str(young))
    assert problems(young) == []


@pytest.mark.req("D07")
@pytest.mark.parametrize("left", [None, b""])
def test_a_log_whose_database_is_gone_is_refused_and_kept(young: Path, left: bytes | None) -> None:
    (young / "state.db").unlink()
    if left is not None:
        (young / "state.db").write_bytes(left)
    refused(young, "is missing or empty, and 6 commits in '.*-wal' belong to it")
    lay(young, flipped((young / "state.db-wal").read_bytes(), 20, 2))
    refused(young, "is missing or empty, and 6 commits in '.*-wal' belong to it")


@pytest.mark.parametrize("log", [b"", b"\0" * 40, b"x" * 9000])
def test_a_log_without_commits_keeps_nobody_from_making_a_store(tmp_path: Path, log: bytes) -> None:
    (tmp_path / "state.db-wal").write_bytes(log)
    with pytest.raises(UsageError, match="no store at"):
        SqliteStore.open(str(tmp_path), create=False)
    assert not wire.has_store(str(tmp_path))
    SqliteStore.open(str(tmp_path), create=True).close()


def test_a_second_damaged_log_does_not_replace_the_first(place: Path) -> None:
    for number, name in enumerate(("damaged", "damaged-2"), 1):
        lay(place, flipped((place / "state.db-wal").read_bytes(), 20, 2))
        (place / "state.end").unlink()  # a person goes on without what is lost
        said: list[str] = []
        with SqliteStore.open(str(place), create=False, say=said.append) as store:
            (line,) = said
            assert f"and the log is kept as '{place}/state.db-wal.{name}'" in line
            write(store, number)
            again = killed(place, place.with_name(f"again-{number}"))
        assert problems(place) == []
        place = again
