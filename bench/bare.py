"""The limit: an asyncio loop over the graph with one SQLite row per step, and nothing else.

`normal` commits each step (WAL, synchronous=NORMAL), `full` also waits for the disk each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import sys
import time
from pathlib import Path

import shapes


async def step(number: int, needs: list[str]) -> str:
    return shapes.body(number, needs)


class Loop:
    """One pass over a graph: rows that are there under the same key are taken, the rest is made."""

    def __init__(self, shape: str, size: int, folder: str, variant: str) -> None:
        self.graph = dict(shapes.make(shape, size))
        self.values: dict[int, str] = {}
        self.executed = 0
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(f"PRAGMA synchronous={'FULL' if variant == 'full' else 'NORMAL'}")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS step(id INTEGER PRIMARY KEY, key TEXT, value TEXT)"
        )
        rows = self.db.execute("SELECT id, key, value FROM step")
        self.known: dict[int, tuple[str, str]] = {row[0]: (row[1], row[2]) for row in rows}

    async def one(self, number: int, key: str) -> None:
        value = await step(number, [self.values[need] for need in self.graph[number]])
        self.db.execute("INSERT OR REPLACE INTO step VALUES(?, ?, ?)", (number, key, value))
        self.values[number] = value
        self.executed += 1

    async def run(self) -> None:
        missing = {number: len(needs) for number, needs in self.graph.items()}
        below: dict[int, list[int]] = {}
        for number, needs in self.graph.items():
            for need in needs:
                below.setdefault(need, []).append(number)
        ready = [number for number, count in missing.items() if not count]
        while ready:
            tasks = []
            for number in ready:
                inputs = "|".join(self.values[need] for need in self.graph[number])
                key = hashlib.sha256(f"{number}|{inputs}".encode()).hexdigest()
                known = self.known.get(number)
                if known is not None and known[0] == key:
                    self.values[number] = known[1]
                else:
                    tasks.append(asyncio.create_task(self.one(number, key)))
            if tasks:
                await asyncio.gather(*tasks)
            following = []
            for number in ready:
                for dependent in below.get(number, ()):
                    missing[dependent] -= 1
                    if not missing[dependent]:
                        following.append(dependent)
            ready = following


def main() -> None:
    shape, size, folder, variant = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    loop = Loop(shape, size, folder, variant)
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(loop.run())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    last = next(reversed(loop.graph))
    ok = loop.values[last] == shapes.expected(shape, size)
    print(json.dumps({"wall": wall, "cpu": cpu, "executed": loop.executed, "ok": ok}))


main()
