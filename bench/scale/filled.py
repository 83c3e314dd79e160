"""Look-ups in a store that grows: `python -m bench.scale.filled FOLDER [ROWS …]`, as JSON.

The store is a real one, made by runs of a small line. Beside that it has a line of 100,000 steps that was
made again and again, written by SQL into the tables and indexes of the store: so many events, artifacts and
small contents. Journals are chained and contents are what their names say, so all of it can be read; but a
journal tells only what was accepted. Each question is asked of other rows every time. Microseconds of CPU for
each answer, the median of some rounds; a look-up is flat if more rows do not make it slower.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import cast

import apsw

import holdfast
from holdfast import wire
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Batch, ClaimKey, Owner, Store
from holdfast.store.codec import encode, first_hash, next_hash
from holdfast.store.rows import PLACE

SIZES = (100_000, 1_000_000, 10_000_000)
WIDTH = 100_000  # steps of the line that was made again and again
ASKED, ROUNDS = 200, 5
KIND, ENGINE = "attempt_accepted", "bench"
_ROWS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :last)"
_EVENTS = f"""{_ROWS} INSERT INTO event SELECT :journal * {PLACE} + i + 1, 1700000000000 + i,
  '{KIND}', body(:run, i), chain(i) FROM n"""
_ARTIFACTS = f"""{_ROWS} INSERT INTO artifact(line, step, config_ref, input_ref, own_ref, digest, status,
  source, maker, attempt, form, verified, reusable, at)
  SELECT :line, 's' || i, mark(:run, i), mark(:run, i), mark(0, i), mark(:run, -i), 'accepted', 'generated',
  :maker, 1, 'bytes', 1, 1, 1700000000000 + i FROM n"""
_BLOBS = f"""{_ROWS} INSERT OR IGNORE INTO blob(digest, content, at)
  SELECT mark(:run, -i), CAST(:run || ' ' || -i AS BLOB), 1700000000 FROM n"""


def mark(run: int, number: int) -> bytes:
    """A digest that nothing else has."""
    return hashlib.sha256(b"%d %d" % (run, number)).digest()


class Chain:
    """The events of one run, each chained to the one before it."""

    def __init__(self, journal: str) -> None:
        self.end = first_hash(journal)
        self._body = ""

    def body(self, run: int, number: int) -> str:
        digest = Digest(mark(run, -number).hex())
        _, self._body = encode(AttemptAccepted(StepId(f"s{number}"), 1, digest))
        return self._body

    def chain(self, number: int) -> bytes:
        self.end = next_hash(self.end, number + 1, 1700000000000 + number, KIND, self._body)
        return self.end


def real(folder: Path) -> None:
    """A small line, run twice."""
    plan = holdfast.Plan("small", root=str(folder), project="bench")
    for number in range(200):
        plan.step(f"s{number}", one, values={"number": number}, inline=True)
    for _ in range(2):
        assert holdfast.run(plan, force=True).status == "completed"
    file = "name: small\nproject: bench\nsteps:\n" + "".join(
        f"  s{number}: {{run: [echo, '{number}']}}\n" for number in range(10)
    )
    (folder / "plan.yaml").write_text(file, encoding="utf-8")


def one(number: int) -> str:
    return str(number)


def fill(folder: Path, rows: int) -> None:
    """Let the large line have so many rows of each kind."""
    database = apsw.Connection(str(folder / ".holdfast" / "state.db"))
    database.create_scalar_function("mark", mark, deterministic=True)  # type: ignore[arg-type]
    database.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000")
    database.execute("INSERT OR IGNORE INTO line(project, name) VALUES('bench', 'large')")
    ((line,),) = database.execute("SELECT id FROM line WHERE name = 'large'").fetchall()
    count = "SELECT count(*) FROM maker WHERE run LIKE 'r-fill%'"
    there = cast("int", database.execute(count).fetchall()[0][0])
    for number in range(there + 1, rows // WIDTH + 1):
        run = f"r-fill{number:08}"
        with database:
            database.execute("INSERT INTO run(id, line, fence) VALUES(?, ?, 1)", (run, line))
            chain = Chain(f"run:{run}")
            database.create_scalar_function("body", chain.body)  # type: ignore[arg-type]
            database.create_scalar_function("chain", chain.chain)  # type: ignore[arg-type]
            journal = (f"run:{run}", WIDTH, chain.end)
            database.execute("INSERT INTO journal(name, last, hash) VALUES(?, ?, ?)", journal)
            journal_id = database.last_insert_rowid()
            database.execute("INSERT INTO maker(run) VALUES(?)", (run,))
            given = {
                "last": WIDTH - 1,
                "journal": journal_id,
                "line": line,
                "run": number,
                "maker": database.last_insert_rowid(),
            }
            for statement in (_EVENTS, _ARTIFACTS, _BLOBS):
                database.execute(statement, given)
            end = (chain.end, journal_id)
            database.execute("UPDATE journal SET hash = ? WHERE id = ?", end)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def measured(question: Callable[[int], object], chosen: Iterable[int]) -> float:
    """Microseconds of CPU for each answer."""
    numbers = list(chosen)
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for number in numbers:
            question(number)
        took.append((time.process_time() - began) / len(numbers))
    return round(statistics.median(took) * 1e6, 1)


def questions(store: Store, runs: int, small: RunId) -> dict[str, Callable[[int], object]]:
    """What the engine, the command and the page ask of a store, each for a number that says of which row."""

    def ref(number: int) -> Digest:
        return Digest(mark(number % runs + 1, number).hex())

    def run(number: int) -> RunId:
        return RunId(f"r-fill{number % runs + 1:08}")

    def step(number: int) -> StepId:
        return StepId(f"s{number}")

    def content(number: int) -> Digest:
        return Digest(mark(number % runs + 1, -(number % WIDTH)).hex())

    def claim(number: int) -> None:
        key = ClaimKey("bench", "large", step(number), ref(number))
        fence = store.claim(key, ENGINE)
        assert fence is not None
        store.commit(Batch(released=[(key, fence)]))

    def first(found: Iterable[object]) -> object:
        return next(iter(found), None)

    return {
        "artifact by key": lambda n: store.find("bench", "large", step(n), ref(n)),
        "newest artifact of a step": lambda n: store.newest("bench", "large", step(n)),
        "versions of a step": lambda n: first(
            store.artifacts(project="bench", line="large", step=step(n))
        ),
        "a step of a small line": lambda n: [
            *store.artifacts(project="bench", line="small", step=step(n % 200))
        ],
        "artifacts of a run": lambda n: first(store.artifacts(run=run(n))),
        "artifact of a step of a run": lambda n: first(
            store.artifacts(
                project="bench", line="large", run=run(n), step=step(n), status="accepted"
            )
        ),
        "is a content there": lambda n: store.has(content(n)),
        "read a content": lambda n: store.get(content(n)),
        "which of 500 contents are not there": lambda n: store.absent(
            content(n + i) for i in range(500)
        ),
        "last events of a run of 200 steps": lambda n: [*store.read(f"run:{small}", 400 - n % 3)],
        "last ten events of a run of 100,000": lambda n: [*store.read(f"run:{run(n)}", WIDTH - 10)],
        "how a journal ends": lambda n: store.end(f"run:{run(n)}"),
        "runs of a line": lambda _: store.runs("small"),
        "all claims, 100 of them": lambda _: store.claims(),
        "take a claim and give it up": claim,
    }


def hold(store: Store) -> None:
    """Be an engine that has a hundred claims."""
    store.enter("bench", "large", Owner(ENGINE, "host", "boot", 1, "1", 1))
    for number in range(100):
        store.claim(
            ClaimKey("bench", "large", StepId(f"s{number}"), Digest(mark(0, number).hex())), ENGINE
        )


def commands(folder: Path) -> dict[str, float]:
    """Seconds of CPU of whole commands about the small line."""
    asked = {
        "status": ["status"],
        "why": ["why", "s7"],
        "plan": ["plan"],
        "show": ["show", "s7"],
    }
    found = {}
    for name, words in asked.items():
        before = os.times()
        command = [sys.executable, "-P", "-m", "holdfast", *words]
        ended = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=600)
        after = os.times()
        used = after.children_user + after.children_system
        found[name] = round(used - before.children_user - before.children_system, 2)
        if ended.returncode:
            found[name] = -found[name]
            print(name, ended.stderr.decode()[-300:], file=sys.stderr)
    return found


def measure(folder: Path, rows: int) -> dict[str, object]:
    """All look-ups in a store with so many rows."""
    fill(folder, rows)
    chosen = random.Random(rows).sample(range(1, WIDTH), ASKED)
    location = wire.store_location(str(folder), None)
    with closing(wire.open_store(location, create=False)) as store:
        small = store.runs("small")[-1].run
        hold(store)
        asked = questions(store, rows // WIDTH, small)
        found: dict[str, object] = {}
        for name, question in asked.items():
            began = time.process_time()
            question(chosen[0])
            slow = time.process_time() - began > 0.2  # then one answer is enough
            found[name] = measured(question, chosen[: 1 if slow else ASKED])
        store.leave(ENGINE)
    return {"rows": rows, **found, **commands(folder)}


def main() -> None:
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".holdfast").exists():
        real(folder)
    for rows in [int(word) for word in sys.argv[2:]] or SIZES:
        print(json.dumps(measure(folder, rows)), flush=True)


if __name__ == "__main__":
    main()
