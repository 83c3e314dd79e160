"""A reader that never ends its read: the log grows, it is said who does it, and then it shrinks again.

SQLite cannot cut a reader of another program off, and cannot begin its log anew while there is one. So
the promise is: our own readers never are such readers, a foreign one is named once, nothing else is lost
by it, and when it is gone the log is within its limit again.
"""

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast.model.digest import digest_bytes
from holdfast.model.event import RunResumed
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch
from holdfast.store.sqlite import SqliteStore
from tests.crash.faults import Report, unsound

LIMIT = 64 << 20
EVENTS = 100_000
SMALL = 16 << 10
RUN = RunId("r-1")
FOREIGN = """
import sys, apsw
connection = apsw.Connection(sys.argv[1] + "/state.db")
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM event").fetchall()
print("reads", flush=True)
sys.stdin.read()
"""
OURS = """
import sys
from holdfast.store.sqlite import SqliteStore
store = SqliteStore.open(sys.argv[1], create=False)
reading = store.read("run:r-1")
next(reading)
print("reads", flush=True)
sys.stdin.read()
"""


@contextmanager
def reader(code: str, store: Path) -> Iterator[int]:
    """A process that has read, and then does nothing; its id."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reads\n"
    try:
        yield process.pid
    finally:
        process.communicate("")


def log_of(store: Path) -> int:
    log = store / "state.db-wal"
    return log.stat().st_size if log.exists() else 0


def opened(place: Path, said: list[str]) -> SqliteStore:
    store = SqliteStore.open(str(place), create=True, say=said.append)
    first = Append("run:r-1", 0, [(0, RunResumed("e")), (1, RunResumed("e"))])
    store.open_run(RUN, "p", "l", Batch(appends=[first]))
    return store


def write(store: SqliteStore, megabytes: int, dice: random.Random) -> None:
    """So much content in small pieces, one commit for each megabyte."""
    for _ in range(megabytes):
        contents = [dice.randbytes(SMALL) for _ in range((1 << 20) // SMALL)]
        store.commit(Batch(blobs=[(digest_bytes(content), content) for content in contents]))


@pytest.mark.req("D10", "I16")
def test_a_foreign_reader_is_named_and_the_log_shrinks_when_it_is_gone(tmp_path: Path) -> None:
    said: list[str] = []
    dice = random.Random(10)
    with opened(tmp_path, said) as store:
        with reader(FOREIGN, tmp_path) as pid:
            write(store, 96, dice)
            assert log_of(tmp_path) > LIMIT
            (line,) = said
            assert f"because process {pid} has an old state of the database open" in line
        write(store, 40, dice)
        assert log_of(tmp_path) <= LIMIT
        assert len(said) == 1


@pytest.mark.req("D10", "I16")
def test_an_idle_reader_of_ours_holds_nothing_back(tmp_path: Path) -> None:
    said: list[str] = []
    with opened(tmp_path, said) as store:
        with reader(OURS, tmp_path):
            write(store, 96, random.Random(11))
            assert log_of(tmp_path) <= LIMIT
        assert said == []


@pytest.mark.req("D10", "I16")
def test_large_commits_keep_the_log_within_its_limit(tmp_path: Path) -> None:
    said: list[str] = []
    dice = random.Random(12)
    most = 0
    with opened(tmp_path, said) as store:
        for _ in range(12):
            contents = [dice.randbytes(SMALL) for _ in range((9 << 20) // SMALL)]
            store.commit(Batch(blobs=[(digest_bytes(content), content) for content in contents]))
            most = max(most, log_of(tmp_path))
    assert most <= LIMIT
    assert said == []


@pytest.mark.req("D10")
def test_nobody_is_blamed_for_a_commit_that_is_larger_than_the_limit(tmp_path: Path) -> None:
    said: list[str] = []
    dice = random.Random(13)
    with opened(tmp_path, said) as store:
        for _ in range(2):
            contents = [dice.randbytes(SMALL) for _ in range((70 << 20) // SMALL)]
            store.commit(Batch(blobs=[(digest_bytes(content), content) for content in contents]))
        write(store, 20, dice)
        assert log_of(tmp_path) <= LIMIT
    assert said == []


@pytest.mark.soak("other")
@pytest.mark.req("D10", "I16")
def test_a_run_of_a_hundred_thousand_events_beside_a_reader(
    tmp_path: Path, settle: Callable[[Report], None]
) -> None:
    """The engine goes on, the log recovers, and nothing is missing."""
    report = Report("D10 100,000 events beside an idle reader")
    place = tmp_path / ".holdfast"
    first = holdfast.Plan("first", root=str(tmp_path))
    first.step("a", lambda: "a", inline=True)
    assert holdfast.run(first).status == "completed"
    steps = EVENTS // 2
    report.tried = 1
    with reader(FOREIGN, place):
        plan = holdfast.Plan("many", root=str(tmp_path))
        for number in range(steps):
            plan.step(f"s{number}", _kilobyte, values={"number": number}, inline=True)
        result = holdfast.run(plan)
        report.fired = 1
        report.kept = result.state.counts["done"]
        report.outcomes[f"log of {log_of(place) >> 20} MB beside the reader"] += 1
        if log_of(place) <= LIMIT:
            report.violations.append("the reader held nothing back: this is no test of it")
    with SqliteStore.open(str(place), create=False) as store:
        events = store.last(f"run:{result.run}")
    if events < EVENTS:
        report.violations.append(f"only {events} events")
    if result.status != "completed" or report.kept != steps:
        report.violations.append(f"{result.status} after {report.kept} steps")
    again = holdfast.Plan("again", root=str(tmp_path))
    for number in range(2000):
        again.step(f"s{number}", _kilobyte, values={"number": number}, inline=True)
    report.work = holdfast.run(again).state.counts["done"]
    report.outcomes[f"log of {log_of(place) >> 20} MB after it"] += 1
    if log_of(place) > LIMIT:
        report.violations.append(f"the log still has {log_of(place)} bytes")
    report.violations += unsound(place)
    settle(report)


def _kilobyte(number: int) -> str:
    return f"{number:08}" * 128
