"""Work does not grow with what is stored: counted in steps of SQLite's machine, not in time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptAccepted, RunResumed
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch, ClaimKey, Owner
from holdfast.store import holds, rows
from holdfast.store.sqlite import SqliteStore

RUN = RunId("r-1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.open(str(tmp_path / "store"), create=True) as opened:
        first = Append("run:r-1", 0, [(0, RunResumed("e"))])
        opened.open_run(RUN, "p", "l", Batch(appends=[first]))
        yield opened


def ref(number: int) -> Digest:
    return digest_bytes(str(number).encode())


def batch(first: int, count: int) -> Batch:
    numbers = range(first, first + count)
    contents = [str(number).encode() for number in numbers]
    return Batch(
        appends=[
            Append(
                "run:r-1",
                first,
                [(1, AttemptAccepted(StepId(f"s{number}"), 1, ref(number))) for number in numbers],
                1,
            )
        ],
        artifacts=[
            Artifact(
                "p",
                "l",
                StepId(f"s{number}"),
                ref(number),
                ref(number),
                ref(number),
                ref(number),
                "accepted",
                "generated",
                RUN,
                1,
            )
            for number in numbers
        ],
        blobs=[(digest_bytes(content), content) for content in contents],
    )


def steps_of(connection: apsw.Connection, work: Callable[[], object]) -> int:
    """How many instructions the database ran for this work."""
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return False

    connection.set_progress_handler(step, 1)
    try:
        work()
    finally:
        connection.set_progress_handler(None)
    return count


@pytest.mark.req("E7")
def test_storing_costs_the_same_after_thousands(store: SqliteStore) -> None:
    writer = store._database._writer
    store.commit(batch(1, 1))
    early = steps_of(writer, lambda: store.commit(batch(2, 1)))
    store.commit(batch(3, 4000))
    late = steps_of(writer, lambda: store.commit(batch(4003, 1)))
    assert early == late > 0


@pytest.mark.req("E7")
def test_finding_costs_the_same_after_thousands(store: SqliteStore) -> None:
    reader = store._database._reader
    store.commit(batch(1, 2))

    def work() -> None:
        assert store.find("p", "l", StepId("s1"), ref(1))
        assert store.newest("p", "l", StepId("s2"))
        assert store.has(ref(1))
        assert store.last("run:r-1")

    work()
    early = steps_of(reader, work)
    store.commit(batch(3, 4000))
    late = steps_of(reader, work)
    assert 0 < late <= early + 5


def test_a_claim_costs_the_same_after_hundreds(store: SqliteStore) -> None:
    writer = store._database._writer
    store.enter("p", "l", Owner("a", "h", "b", 1, "s", 0))
    keys = [ClaimKey("p", "l", StepId(f"s{number}"), ref(number)) for number in range(300)]
    store.claim(keys[0], "a")
    early = steps_of(writer, lambda: store.claim(keys[1], "a"))
    for key in keys[2:-1]:
        store.claim(key, "a")
    late = steps_of(writer, lambda: store.claim(keys[-1], "a"))
    assert early == late > 0


@pytest.mark.parametrize(
    "query",
    [
        rows.FIND,
        rows.FIND_CONTENT,
        rows.FIND_ANY,
        rows.STATS,
        holds._HELD,
        holds._FREE,
        f"SELECT fence FROM claim {holds._MINE}",
        rows.page_query({"project": "p", "line": "l", "step": "s"})[0],
        "SELECT id, last, hash FROM journal WHERE name = ?",
        "SELECT content FROM blob WHERE digest = ?",
        "SELECT fence FROM run WHERE id = ?",
        "DELETE FROM claim WHERE engine = ?",
    ],
)
def test_no_query_of_a_step_reads_a_whole_table(store: SqliteStore, query: str) -> None:
    count = query.count("?")
    plan = store._database.rows(f"EXPLAIN QUERY PLAN {query}", [None] * count)
    told = [str(row[3]) for row in plan]
    assert told
    assert not [line for line in told if line.startswith("SCAN")]


def test_small_commits_keep_the_log_small(store: SqliteStore, tmp_path: Path) -> None:
    for number in range(1, 300):  # each writes seven pages or more
        store.commit(batch(number, 1))
    log = tmp_path / "store" / "state.db-wal"
    assert 500 < log.stat().st_size / 4096 < 1100


def test_large_commits_may_fill_it_further(store: SqliteStore, tmp_path: Path) -> None:
    for number in range(5):
        store.commit(batch(1 + number * 2000, 2000))
    log = tmp_path / "store" / "state.db-wal"
    assert log.stat().st_size / 4096 > 1100
