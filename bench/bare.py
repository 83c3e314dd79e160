"""The limit: an asyncio loop over the graph with one SQLite row per step, and nothing else.

`normal` commits each step (WAL, synchronous=NORMAL), `full` also waits for the disk each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3

from bench.case import Case, Timing, report


class Loop:
    """One pass over a graph: rows that are there under the same key are taken, the rest is made."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.graph = dict(case.graph)
        self.values: dict[int, str] = {}
        self.db = sqlite3.connect(f"{case.folder}/bare.db", isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(f"PRAGMA synchronous={'FULL' if case.variant == 'full' else 'NORMAL'}")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS step(id INTEGER PRIMARY KEY, key TEXT, value TEXT)"
        )
        rows = self.db.execute("SELECT id, key, value FROM step")
        self.known: dict[int, tuple[str, str]] = {row[0]: (row[1], row[2]) for row in rows}

    async def step(self, number: int) -> str:
        return self.case.step(number, [self.values[need] for need in self.graph[number]])

    async def one(self, number: int, key: str) -> None:
        value = await self.step(number)
        self.db.execute("INSERT OR REPLACE INTO step VALUES(?, ?, ?)", (number, key, value))
        self.values[number] = value

    def key(self, number: int) -> str:
        inputs = "|".join(self.values[need] for need in self.graph[number])
        return hashlib.sha256(f"{number}{self.case.salt_of(number)}|{inputs}".encode()).hexdigest()

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
                key, known = self.key(number), self.known.get(number)
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
    case = Case.given()
    loop = Loop(case)
    with Timing() as timing:
        asyncio.run(loop.run())
    report(loop.values[case.last], timing, case.executed, began=case.began)


if __name__ == "__main__":
    main()
