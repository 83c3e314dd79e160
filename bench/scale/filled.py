"""Look-ups in a store that grows: `python -m bench.scale.filled FOLDER [ROWS …]`, as JSON.

The store has a small line, made by runs, and beside it one of 100,000 steps that was made again and again,
written as rows: so many events, artifacts and small contents. Each question is asked of other rows every
time. Microseconds of CPU for each answer, the median of some rounds; a look-up is flat if more rows do
not make it slower.
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
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store
from holdfast.store.rows import PLACE

SIZES = (100_000, 1_000_000, 10_000_000)
WIDTH = 100_000  # steps of the line that was made again and again
ASKED, ROUNDS = 200, 5
_ROWS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :last)"
_EVENTS = f"""{_ROWS} INSERT INTO event SELECT :journal * {PLACE} + i + 1, 1700000000000 + i,
  'attempt_accepted', '{{"step":"s' || i || '","attempt":1,"digest":"' || lower(hex(zeroblob(32))) || '"}}',
  zeroblob(32) FROM n"""
_ARTIFACTS = f"""{_ROWS} INSERT INTO artifact(line, step, config_ref, input_ref, own_ref, digest, status,
  source, maker, attempt, form, verified, reusable, at)
  SELECT :line, 's' || i, mark(:run, i), mark(:run, i), mark(0, i), mark(:run, -i), 'accepted', 'generated',
  :maker, 1, 'bytes', 1, 1, 1700000000000 + i FROM n"""
_BLOBS = f"""{_ROWS} INSERT OR IGNORE INTO blob(digest, content, at)
  SELECT mark(:run, -i), CAST(i AS BLOB), 1700000000 FROM n"""


def mark(run: int, number: int) -> bytes:
    """A digest that nothing else has."""
    return hashlib.sha256(b"%d %d" % (run, number)).digest()


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
    database.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000")
    database.execute("INSERT OR IGNORE INTO line(project, name) VALUES('bench', 'large')")
    ((line,),) = database.execute("SELECT id FROM line WHERE name = 'large'").fetchall()
    count = "SELECT count(*) FROM maker WHERE run LIKE 'r-fill%'"
    there = cast("int", database.execute(count).fetchall()[0][0])
    for number in range(there + 1, rows // WIDTH + 1):
        run = f"r-fill{number:08}"
        with database:
            database.execute("INSERT INTO run(id, line, fence) VALUES(?, ?, 1)", (run, line))
            journal = (f"run:{run}", WIDTH, bytes(32))
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
        "is a content there": lambda n: store.has(Digest(mark(n % runs + 1, -n).hex())),
        "events of a run since": lambda n: [*store.read(f"run:{small}", 400 - n % 3)],
        "how a journal ends": lambda n: store.end(f"run:{run(n)}"),
        "runs of a line": lambda _: store.runs("small"),
    }


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
        asked = questions(store, rows // WIDTH, small)
        found: dict[str, object] = {}
        for name, question in asked.items():
            began = time.process_time()
            question(chosen[0])
            slow = time.process_time() - began > 0.2  # then one answer is enough
            found[name] = measured(question, chosen[: 1 if slow else ASKED])
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
