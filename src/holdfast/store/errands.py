"""Errands: attempts that an engine wants somebody else to make.

An errand is taken once. Whether the one who took it still lives is for the engine that posted it to judge,
by its heart; it then posts a further attempt. So an errand never comes back into its queue, and a worker
that comes back late finds it gone.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from typing import cast

from holdfast.model.digest import Digest
from holdfast.ports import Errand
from holdfast.store.rows import raw
from holdfast.store.tables import Cursor, Row, Tables

_COLUMNS = "id, queue, parcel, engine, worker, fence, report"
_POST = "INSERT INTO errand(queue, parcel, engine) VALUES(?, ?, ?) RETURNING id"
_REPORT = (
    "UPDATE errand SET report = ? WHERE id = ? AND fence = ? AND worker = ? AND report IS NULL"
    " RETURNING id"
)


class Errands:
    """The errands of one store."""

    def __init__(self, database: Tables) -> None:
        self._database = database

    def post(self, queue: str, parcel: Digest, engine: str) -> int:
        """Make an errand."""
        values = (queue, raw(parcel), engine)
        found = self._database.write(lambda cursor: cursor.execute(_POST, values).fetchall())
        return cast("int", found[0][0])

    def take(self, queues: Sequence[str], worker: str) -> Errand | None:
        """Take the oldest free one, in one statement."""
        if not queues:
            return None
        names = ", ".join("?" * len(queues))
        free = (
            f"SELECT id FROM errand WHERE worker IS NULL AND queue IN ({names}) ORDER BY id LIMIT 1"
        )
        lives = "EXISTS (SELECT 1 FROM holder WHERE engine = ?)"
        query = (
            f"UPDATE errand SET worker = ?, fence = ? WHERE id = ({free}{self._database.skip})"
            f" AND worker IS NULL AND {lives} RETURNING {_COLUMNS}"
        )
        fence = secrets.randbits(62)  # tells this very call from any other
        mine = f"SELECT {_COLUMNS} FROM errand WHERE worker = ? AND fence = ?"
        values: Row = (worker, fence, *queues, worker)
        found = self._database.once(query, values, (mine, (worker, fence)))
        return _from(found[0]) if found else None

    def report(self, errand: Errand, report: Digest) -> bool:
        """Say how it ended."""
        values = (raw(report), errand.id, errand.fence, errand.worker)
        told = "SELECT id FROM errand WHERE report = ? AND id = ? AND fence = ? AND worker = ?"
        return bool(self._database.once(_REPORT, values, (told, values)))

    def all_of(self, engine: str | None, worker: str | None) -> list[Errand]:
        """Those of an engine, or of a worker, or all."""
        asked = {"engine": engine, "worker": worker}
        wanted = {name: value for name, value in asked.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in wanted) or "1 = 1"
        query = f"SELECT {_COLUMNS} FROM errand WHERE {where} ORDER BY id"
        return [_from(row) for row in self._database.rows(query, tuple(wanted.values()))]

    def tell(self, errand: Errand, said: Sequence[tuple[str, bytes]]) -> bool:
        """Pass on what a step says."""
        mine = f"SELECT engine FROM errand WHERE id = ? AND fence = ? AND worker = ?{self._database.lock}"

        def work(cursor: Cursor) -> bool:
            found = cursor.execute(mine, (errand.id, errand.fence, errand.worker)).fetchall()
            if not found or not found[0][0]:
                return False
            values: list[Row] = [(errand.id, stream, content) for stream, content in said]
            cursor.executemany("INSERT INTO said(errand, stream, content) VALUES(?, ?, ?)", values)
            return True

        return self._database.write(work)

    def heard(self, errand: int, after: int) -> list[tuple[int, str, bytes]]:
        """What was passed on after a number."""
        query = "SELECT id, stream, content FROM said WHERE errand = ? AND id > ? ORDER BY id"
        return cast("list[tuple[int, str, bytes]]", self._database.rows(query, (errand, after)))

    def call_off(self, errands: Collection[int]) -> None:
        """Remove what nobody took, and let whoever took one know."""

        def work(cursor: Cursor) -> None:
            values: list[Row] = [(number,) for number in errands]
            cursor.executemany("DELETE FROM errand WHERE id = ? AND worker IS NULL", values)
            cursor.executemany("UPDATE errand SET engine = '' WHERE id = ?", values)

        self._database.write(work)

    def withdraw(self, errands: Collection[int]) -> None:
        """Remove them."""
        values: list[Row] = [(number,) for number in errands]
        if values:
            gone = "DELETE FROM errand WHERE id = ?"
            self._database.write(lambda cursor: cursor.executemany(gone, values))

    @staticmethod
    def drop(cursor: Cursor, engine: str) -> None:
        """Remove those of an engine, inside a writing transaction."""
        cursor.execute("DELETE FROM errand WHERE engine = ?", (engine,))


def _from(row: Row) -> Errand:
    number, queue, parcel, engine, worker, fence, report = cast(
        "tuple[int, str, bytes, str, str | None, int, bytes | None]", row
    )
    told = None if report is None else Digest(report.hex())
    return Errand(number, queue, Digest(parcel.hex()), engine, worker, fence, told)
