"""Bytes that the store takes for each step with an artifact of 1 KB, after a truncating checkpoint."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from pathlib import Path

import holdfast
from bench import shapes

SIZE = 1024


def text(number: int, **needs: str) -> str:
    """1 KB that no other step has and nothing can press together."""
    given = "".join(sorted(needs.values()))
    parts = (hashlib.sha256(f"{number}|{part}|{given}".encode()) for part in range(SIZE // 64))
    return "".join(part.hexdigest() for part in parts)


def main() -> None:
    folder, steps = Path(sys.argv[1]).absolute(), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    plan = holdfast.Plan("stored", root=str(folder))
    graph = shapes.make("layered", steps)
    for number, needs in graph:
        names = [f"s{need}" for need in needs]
        plan.step(f"s{number}", text, needs=names, values={"number": number}, inline=True)
    result = holdfast.run(plan)
    assert result.status == "completed"
    assert all(len(result[f"s{number}"].content) == SIZE for number in (0, steps))
    store = folder / ".holdfast"
    with sqlite3.connect(store / "state.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    stored = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    print(json.dumps({"bytes": stored / len(graph)}))


if __name__ == "__main__":
    main()
