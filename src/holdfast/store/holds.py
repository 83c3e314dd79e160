"""Claims on steps and holders of lines: who works on what, over processes.

A claim is free when nobody has it or when its engine holds no line any more; whether a silent
engine is dead is for others to judge, who then make it leave. Each of these is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from holdfast.model.digest import Digest
from holdfast.model.plan import RunId, StepId
from holdfast.ports import ClaimKey, Holder, Owner
from holdfast.store.errands import Errands
from holdfast.store.names import Names
from holdfast.store.refusals import claim_lost, driven, not_there
from holdfast.store.rows import holder_from, raw
from holdfast.store.tables import Cursor, Tables

_MINE = "WHERE line = ? AND step = ? AND config_ref = ? AND engine = ?"
_HELD = "SELECT 1 FROM claim WHERE fence = ? AND line = ? AND step = ? AND config_ref = ?"
_RELEASE = "DELETE FROM claim WHERE fence = ? AND line = ? AND step = ? AND config_ref = ?"
_FREE = (
    "DELETE FROM claim WHERE line = ? AND step = ? AND config_ref = ? AND engine <> ?"
    " AND NOT EXISTS (SELECT 1 FROM holder WHERE holder.engine = claim.engine)"
)
_TAKE = (
    "INSERT INTO claim(line, step, config_ref, engine) VALUES(?, ?, ?, ?)"
    " ON CONFLICT DO NOTHING RETURNING fence"
)
_CLAIMS = (
    "SELECT project, name, step, config_ref, engine, fence FROM claim"
    " JOIN line ON line.id = claim.line ORDER BY fence"
)
_ENTER = (
    "INSERT INTO holder(engine, line, host, boot, pid, started, since, run, beat, sharing)"
    " VALUES(?, ?, ?, ?, ?, ?, ?, NULL, 0, 0) ON CONFLICT(engine, line) DO UPDATE SET"
    " host = excluded.host, boot = excluded.boot, pid = excluded.pid, started = excluded.started,"
    " since = excluded.since, run = NULL, beat = 0, sharing = 0"
)
_BEAT = "UPDATE holder SET beat = beat + 1, sharing = ?, run = ? WHERE engine = ? RETURNING 1"
_HOLDER = "engine, host, boot, pid, started, since, run, beat, sharing"
_LINES = "FROM holder JOIN line ON line.id = holder.line"


class Holds:
    """The claims and holders of one store."""

    def __init__(self, database: Tables, names: Names) -> None:
        self._database = database
        self._names = names
        columns = f"{_HOLDER}, {database.silence} AS silent"
        by_age = "ORDER BY since, engine"
        where = "WHERE project = ? AND name = ?"
        self._holders = f"SELECT {columns} {_LINES} {where} {by_age}"
        self._held = f"SELECT {columns}, project, name {_LINES} {by_age}"

    # claims

    def claim(self, key: ClaimKey, engine: str) -> int | None:
        """Take a claim; None while an engine that holds a line has it."""

        def work(cursor: Cursor) -> int | None:
            values = self._values(cursor, key)
            cursor.execute(_FREE, (*values, engine))
            found = cursor.execute(_TAKE, (*values, engine)).fetchall()
            if not found:
                found = cursor.execute(
                    f"SELECT fence FROM claim {_MINE}", (*values, engine)
                ).fetchall()
            return cast("int", found[0][0]) if found else None

        return self._names.write(work)

    def check(self, cursor: Cursor, key: ClaimKey, fence: int) -> None:
        """FencedError unless the claim still has this fence; inside a writing transaction."""
        held = f"{_HELD}{self._database.lock}"
        if not cursor.execute(held, (fence, *self._values(cursor, key))).fetchall():
            raise claim_lost(key)

    def release(self, cursor: Cursor, key: ClaimKey, fence: int) -> None:
        """Give a claim up if it still has this fence; inside a writing transaction."""
        cursor.execute(_RELEASE, (fence, *self._values(cursor, key)))

    def _values(self, cursor: Cursor, key: ClaimKey) -> tuple[int, str, bytes]:
        return self._names.line(cursor, key.project, key.line), key.step, raw(key.config_ref)

    def claims(self) -> Sequence[tuple[ClaimKey, str, int]]:
        """All claims in the order they were taken."""
        rows = cast("list[tuple[str, str, str, bytes, str, int]]", self._database.rows(_CLAIMS))
        return [
            (ClaimKey(project, line, StepId(step), Digest(ref.hex())), engine, fence)
            for project, line, step, ref, engine, fence in rows
        ]

    # holders

    def enter(
        self, project: str, line: str, owner: Owner, *, alone: bool = False
    ) -> Sequence[Holder]:
        """Register a holder and tell the others; with `alone` only if there are none."""

        def work(cursor: Cursor) -> list[Holder]:
            number = self._names.line(cursor, project, line)
            cursor.execute(f"SELECT id FROM line WHERE id = ?{self._database.lock}", (number,))
            present = cursor.execute(self._holders, (project, line)).fetchall()
            found = map(holder_from, present)
            others = [holder for holder in found if holder.owner.engine != owner.engine]
            if not (alone and others):
                place = (owner.host, owner.boot, owner.pid, owner.started, owner.since)
                cursor.execute(_ENTER, (owner.engine, number, *place))
            return others

        return self._names.write(work)

    def beat(self, engine: str, *, sharing: bool, run: RunId | None) -> bool:
        """Count one heartbeat; false if there is no such holder."""

        def work(cursor: Cursor) -> bool:
            return bool(cursor.execute(_BEAT, (int(sharing), run, engine)).fetchall())

        return self._names.write(work)

    def leave(self, engine: str) -> None:
        """Remove a holder and its claims."""

        def work(cursor: Cursor) -> None:
            cursor.execute("DELETE FROM holder WHERE engine = ?", (engine,))
            cursor.execute("DELETE FROM claim WHERE engine = ?", (engine,))
            Errands.drop(cursor, engine)

        self._names.write(work)

    def check_there(self, cursor: Cursor, engine: str | None) -> None:
        """FencedError unless this engine holds a line; inside a writing transaction."""
        if engine is None:
            return
        there = f"SELECT 1 FROM holder WHERE engine = ?{self._database.lock}"
        if not cursor.execute(there, (engine,)).fetchall():
            raise not_there(engine)

    @staticmethod
    def check_undriven(cursor: Cursor, run: RunId, engine: str | None) -> None:
        """FencedError if another engine says that it drives this run; inside a writing transaction."""
        query = "SELECT 1 FROM holder WHERE run = ? AND engine IS DISTINCT FROM ?"
        if cursor.execute(query, (run, engine)).fetchall():
            raise driven(run)

    def bury(self, holder: Holder) -> bool:
        """Remove a holder if its heart did not move, and see to it that it can write no more.

        An engine that holds several lines is dead on all of them, also on those it came to since.
        """

        def work(cursor: Cursor) -> bool:
            engine = holder.owner.engine
            removed = "DELETE FROM holder WHERE engine = ? AND beat = ? RETURNING run"
            found = cursor.execute(removed, (engine, holder.beat)).fetchall()
            if not found:
                return False
            rest = "DELETE FROM holder WHERE engine = ? RETURNING run"
            found += cursor.execute(rest, (engine,)).fetchall()
            cursor.execute("DELETE FROM claim WHERE engine = ?", (engine,))
            Errands.drop(cursor, engine)
            raised = "UPDATE run SET fence = fence + 1 WHERE id = ?"
            undriven = "NOT EXISTS (SELECT 1 FROM holder WHERE holder.run = run.id)"
            for run in set(found):  # one that another drives was taken over already
                cursor.execute(f"{raised} AND {undriven}", run)
            return True

        return self._names.write(work)

    def held(self) -> Sequence[tuple[str, str, Holder]]:
        """Who says that it holds which line: project, line, holder."""
        return [
            (cast("str", project), cast("str", line), holder_from(tuple(rest)))
            for *rest, project, line in self._database.rows(self._held)
        ]

    def holders(self, project: str, line: str) -> Sequence[Holder]:
        """Who says that it holds this line, in the order they came."""
        return [holder_from(row) for row in self._database.rows(self._holders, (project, line))]
