"""Claims on steps and holders of lines: who works on what, over processes.

A claim is free when nobody has it or when its engine holds no line any more; whether a silent
engine is dead is for others to judge, who then make it leave. Each of these is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import apsw

from holdfast.model.digest import Digest
from holdfast.model.plan import RunId, StepId
from holdfast.ports import ClaimKey, Holder, Owner
from holdfast.store.database import Database
from holdfast.store.names import Names
from holdfast.store.refusals import claim_lost, driven, not_there
from holdfast.store.rows import holder_from, raw

_HELD = "SELECT 1 FROM claim WHERE fence = ? AND line = ? AND step = ? AND config_ref = ?"
_RELEASE = "DELETE FROM claim WHERE fence = ? AND line = ? AND step = ? AND config_ref = ?"
_CLAIMED = "SELECT fence, engine FROM claim WHERE line = ? AND step = ? AND config_ref = ?"
_TAKE = "INSERT INTO claim(line, step, config_ref, engine) VALUES(?, ?, ?, ?)"
_CLAIMS = (
    "SELECT project, name, step, config_ref, engine, fence FROM claim"
    " JOIN line ON line.id = claim.line ORDER BY fence"
)
_ENTER = "INSERT OR REPLACE INTO holder VALUES(?, ?, ?, ?, ?, ?, ?, NULL, 0, 0)"
_BEAT = "UPDATE holder SET beat = beat + 1, sharing = ?, run = ? WHERE engine = ?"
_HOLDERS = (
    "SELECT engine, host, boot, pid, started, since, run, beat, sharing FROM holder"
    " JOIN line ON line.id = holder.line WHERE project = ? AND name = ? ORDER BY since, engine"
)
_HELD_LINES = (
    "SELECT engine, host, boot, pid, started, since, run, beat, sharing, project, name FROM holder"
    " JOIN line ON line.id = holder.line ORDER BY since, engine"
)


class Holds:
    """The claims and holders of one store."""

    def __init__(self, database: Database, names: Names) -> None:
        self._database = database
        self._names = names

    # claims

    def claim(self, key: ClaimKey, engine: str) -> int | None:
        """Take a claim; None while an engine that holds a line has it."""

        def work(cursor: apsw.Cursor) -> int | None:
            values = self._values(cursor, key)
            found = cursor.execute(_CLAIMED, values).fetchall()
            for fence, owner in cast("list[tuple[int, str]]", found):
                if owner == engine:
                    return fence
                if cursor.execute("SELECT 1 FROM holder WHERE engine = ?", (owner,)).fetchall():
                    return None
                cursor.execute("DELETE FROM claim WHERE fence = ?", (fence,))
            cursor.execute(_TAKE, (*values, engine))
            return cursor.connection.last_insert_rowid()

        return self._names.write(work)

    def check(self, cursor: apsw.Cursor, key: ClaimKey, fence: int) -> None:
        """FencedError unless the claim still has this fence; inside a writing transaction."""
        if not cursor.execute(_HELD, (fence, *self._values(cursor, key))).fetchall():
            raise claim_lost(key)

    def release(self, cursor: apsw.Cursor, key: ClaimKey, fence: int) -> None:
        """Give a claim up if it still has this fence; inside a writing transaction."""
        cursor.execute(_RELEASE, (fence, *self._values(cursor, key)))

    def _values(self, cursor: apsw.Cursor, key: ClaimKey) -> tuple[int, str, bytes]:
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

        def work(cursor: apsw.Cursor) -> list[Holder]:
            present = [holder_from(row) for row in cursor.execute(_HOLDERS, (project, line))]
            others = [holder for holder in present if holder.owner.engine != owner.engine]
            if not (alone and others):
                number = self._names.line(cursor, project, line)
                place = (owner.host, owner.boot, owner.pid, owner.started, owner.since)
                cursor.execute(_ENTER, (owner.engine, number, *place))
            return others

        return self._names.write(work)

    def beat(self, engine: str, *, sharing: bool, run: RunId | None) -> bool:
        """Count one heartbeat; false if there is no such holder."""

        def work(cursor: apsw.Cursor) -> bool:
            cursor.execute(_BEAT, (sharing, run, engine))
            return cursor.connection.changes() > 0

        return self._names.write(work)

    def leave(self, engine: str) -> None:
        """Remove a holder and its claims."""

        def work(cursor: apsw.Cursor) -> None:
            cursor.execute("DELETE FROM holder WHERE engine = ?", (engine,))
            cursor.execute("DELETE FROM claim WHERE engine = ?", (engine,))

        self._names.write(work)

    @staticmethod
    def check_there(cursor: apsw.Cursor, engine: str | None) -> None:
        """FencedError unless this engine holds a line; inside a writing transaction."""
        if engine is None:
            return
        if not cursor.execute("SELECT 1 FROM holder WHERE engine = ?", (engine,)).fetchall():
            raise not_there(engine)

    @staticmethod
    def check_undriven(cursor: apsw.Cursor, run: RunId, engine: str | None) -> None:
        """FencedError if another engine says that it drives this run; inside a writing transaction."""
        query = "SELECT 1 FROM holder WHERE run = ? AND engine IS NOT ?"
        if cursor.execute(query, (run, engine)).fetchall():
            raise driven(run)

    def bury(self, holder: Holder) -> bool:
        """Remove a holder if its heart did not move, and see to it that it can write no more."""

        def work(cursor: apsw.Cursor) -> bool:
            engine = holder.owner.engine
            removed = "DELETE FROM holder WHERE engine = ? AND beat = ? RETURNING run"
            found = cursor.execute(removed, (engine, holder.beat)).fetchall()
            if not found:
                return False
            cursor.execute("DELETE FROM claim WHERE engine = ?", (engine,))
            raised = "UPDATE run SET fence = fence + 1 WHERE id = ?"
            undriven = "NOT EXISTS (SELECT 1 FROM holder WHERE holder.run = run.id)"
            cursor.execute(f"{raised} AND {undriven}", found[0])  # else it was taken over already
            return True

        return self._names.write(work)

    def held(self) -> Sequence[tuple[str, str, Holder]]:
        """Who says that it holds which line: project, line, holder."""
        return [
            (cast("str", project), cast("str", line), holder_from(tuple(rest)))
            for *rest, project, line in self._database.rows(_HELD_LINES)
        ]

    def holders(self, project: str, line: str) -> Sequence[Holder]:
        """Who says that it holds this line, in the order they came."""
        return [holder_from(row) for row in self._database.rows(_HOLDERS, (project, line))]
