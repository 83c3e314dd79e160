"""The same claims in bare SQL: what a store that does nothing else can do.

`python -m bench.own.bareclaims STORE PROCESSES JOBS`, as `bench.own.claims`: one statement takes a job,
another one notes that it was done. PostgreSQL: `UPDATE … SKIP LOCKED`. SQLite: `BEGIN IMMEDIATE`,
WAL, synced.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.queues import Queue

import psycopg

_FREE = "SELECT id FROM job WHERE owner IS NULL ORDER BY id LIMIT 1"
_TAKE = "UPDATE job SET owner = {0}, fence = fence + 1 WHERE id = ({1}) RETURNING id, fence"
_TABLES = (
    "DROP TABLE IF EXISTS job",
    "DROP TABLE IF EXISTS done",
    "CREATE TABLE job(id INTEGER PRIMARY KEY, owner INTEGER, fence INTEGER DEFAULT 0)",
    "CREATE TABLE done(job INTEGER, fence INTEGER, owner INTEGER)",
)
Take = Callable[[], int | None]  # take one job and note that it is done; None if there is none


def main() -> None:
    place, processes, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    run = _in_postgres if "://" in place else _in_file
    _make(place, count)
    context = mp.get_context("fork")
    said: Queue[list[int]] = context.Queue()
    ready = context.Barrier(processes + 1)
    workers = [
        context.Process(target=_work, args=(run, place, number, said, ready))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    ready.wait()
    began = time.perf_counter()
    taken = [said.get() for _ in workers]
    took = time.perf_counter() - began
    for worker in workers:
        worker.join()
    times = Counter(number for one in taken for number in one)
    counts = [len(one) for one in taken]
    print(
        json.dumps(
            {
                "per_second": round(count / took, 1),
                "twice": sum(times.values()) - len(times),
                "lost": count - len(times),
                "fewest": min(counts),
                "most": max(counts),
            }
        )
    )


def _work(
    run: Callable[[str, int], Take], place: str, number: int, said: Queue[list[int]], ready: object
) -> None:
    take, taken = run(place, number), []
    ready.wait()  # type: ignore[attr-defined]
    while (job := take()) is not None:
        taken.append(job)
    said.put(taken)


def _make(place: str, count: int) -> None:
    if "://" in place:
        with psycopg.connect(_plain(place), autocommit=True) as connection:
            for table in _TABLES:
                connection.execute(table.encode())
            connection.execute(
                "INSERT INTO job(id) SELECT * FROM generate_series(1, %s::int)", (count,)
            )
        return
    os.makedirs(place, exist_ok=True)
    database = sqlite3.connect(_file(place), isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    for table in _TABLES:
        database.execute(table)
    database.execute("BEGIN")
    database.executemany("INSERT INTO job(id) VALUES(?)", [(n + 1,) for n in range(count)])
    database.execute("COMMIT")
    database.close()


def _in_postgres(place: str, number: int) -> Take:
    connection = psycopg.connect(_plain(place), autocommit=True)
    statement = _TAKE.format("%s", f"{_FREE} FOR UPDATE SKIP LOCKED").encode()

    def take() -> int | None:
        row = connection.execute(statement, (number,)).fetchone()
        if row is None:
            return None
        connection.execute("INSERT INTO done VALUES(%s, %s, %s)", (*row, number))
        return int(row[0])

    return take


def _in_file(place: str, number: int) -> Take:
    database = sqlite3.connect(_file(place), isolation_level=None, timeout=60)
    database.execute("PRAGMA synchronous = FULL")
    statement = _TAKE.format("?", _FREE)

    def take() -> int | None:
        database.execute("BEGIN IMMEDIATE")
        row = database.execute(statement, (number,)).fetchone()
        database.execute("COMMIT")
        if row is None:
            return None
        database.execute("INSERT INTO done VALUES(?, ?, ?)", (*row, number))
        return int(row[0])

    return take


def _plain(place: str) -> str:
    """The address of the database, without the part that names a store in it."""
    return place.partition("&schema=")[0]


def _file(place: str) -> str:
    return os.path.join(place, "bare.db")


if __name__ == "__main__":
    main()
