"""What is asked of a store again and again finds its rows by an index, however many there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import digest_bytes
from holdfast.model.event import RunEnded
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch
from holdfast.store.migrate import MIGRATIONS
from holdfast.store.sqlite import SqliteStore

REF, STEP, RUN = digest_bytes(b"one"), StepId("a"), RunId("r-1")
# A range of row numbers without an end is a walk over the whole table as well; an index of few rows is none.
WALK = re.compile(
    r"SCAN (event|artifact|blob|journal|a)\b(?! USING INDEX event_purged)"
    r"|SEARCH (artifact|a) USING INTEGER PRIMARY KEY \(rowid>\?\)"
)


def _row() -> Artifact:
    return Artifact("p", "main", STEP, REF, REF, REF, REF, "accepted", "generated", RUN, 1)


def _missing(store: SqliteStore) -> None:
    with pytest.raises(IntegrityError):
        store.get(digest_bytes(b"none"))


ASKED: dict[str, Callable[[SqliteStore], object]] = {
    "by key": lambda s: s.find("p", "main", STEP, REF),
    "by content": lambda s: s.find("p", "main", STEP, REF, content=True),
    "newest": lambda s: s.newest("p", "main", STEP),
    "newest of all": lambda s: s.newest_of_all("p", "main"),
    "of a step": lambda s: list(s.artifacts(project="p", line="main", step=STEP)),
    "of a step of any line": lambda s: list(s.artifacts(step=STEP)),
    "of a step and a digest": lambda s: list(s.artifacts(project="p", step=STEP, digest=REF)),
    "of a run": lambda s: list(s.artifacts(run=RUN)),
    "accepted in a run": lambda s: list(s.artifacts(run=RUN, status="accepted")),
    "of a step in a run": lambda s: list(
        s.artifacts(project="p", line="main", run=RUN, step=STEP, status="accepted")
    ),
    "events since": lambda s: list(s.read(f"run:{RUN}", 1)),
    "events of a kind": lambda s: list(s.told([f"run:{RUN}"], [RunEnded])),
    "end of a journal": lambda s: s.end(f"run:{RUN}"),
    "last of a journal": lambda s: s.last(f"run:{RUN}"),
    "a content": lambda s: s.get(REF),
    "a content that is not there": _missing,
    "contents": lambda s: s.absent([REF, digest_bytes(b"none")]),
    "supersede": lambda s: s.commit(Batch([], superseded=[_row()])),
    "remove a run": lambda s: s.remove_run(RUN, Batch([])),
}


@pytest.fixture
def told() -> Iterator[list[str]]:
    """The statements of all connections that are made meanwhile."""
    statements: list[str] = []

    def listen(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: statements.append(event["sql"]))

    apsw.connection_hooks.append(listen)
    yield statements
    apsw.connection_hooks.remove(listen)


def filled(place: Path) -> SqliteStore:
    store = SqliteStore.open(str(place), create=True)
    events = [(n, RunEnded("completed")) for n in range(3)]
    batch = Batch([Append(f"run:{RUN}", 0, events, 1)], artifacts=[_row()], blobs=[(REF, b"one")])
    store.open_run(RUN, "p", "main", batch)
    return store


def walks(
    statements: list[str], tables: tuple[str, ...] = MIGRATIONS, walk: re.Pattern[str] = WALK
) -> list[str]:
    """The statements that look at every row of a table that grows, with how."""
    memory = apsw.Connection(":memory:")
    for table in tables:
        memory.execute(table)
    found: list[str] = []
    for statement in dict.fromkeys(statements):
        if not statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
            continue
        values = (None,) * statement.count("?")
        rows = memory.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        found += [f"{row[3]}: {statement}" for row in rows if walk.match(str(row[3]))]
    memory.close()
    return found


def test_a_step_is_not_looked_for_among_all_that_its_run_made(
    tmp_path: Path, told: list[str]
) -> None:
    with filled(tmp_path) as store:
        told.clear()
        ASKED["of a step in a run"](store)
    assert walks(told, walk=re.compile("SEARCH a USING INDEX artifact_maker")) == []


@pytest.mark.req("E7")
@pytest.mark.parametrize("name", ASKED)
def test_no_table_that_grows_is_walked(name: str, tmp_path: Path, told: list[str]) -> None:
    with filled(tmp_path) as store:
        told.clear()
        ASKED[name](store)
        assert any(re.search(r"\b(event|artifact|blob|journal)\b", one) for one in told)
        assert walks(told) == []


def test_without_the_indexes_of_large_stores_it_would_be_told(
    tmp_path: Path, told: list[str]
) -> None:
    with filled(tmp_path) as store:
        told.clear()
        for name in ("of a run", "remove a run", "a content that is not there"):
            ASKED[name](store)
    assert len(walks(told, MIGRATIONS[:-1])) >= 3
