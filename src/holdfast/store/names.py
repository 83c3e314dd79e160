"""Names that stand in many rows, as integers that this process remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from holdfast.store.tables import Cursor, Tables

T = TypeVar("T")
_MAKE_LINE = "INSERT INTO line(project, name) VALUES(?, ?) ON CONFLICT DO NOTHING"
_MAKE_MAKER = "INSERT INTO maker(run) VALUES(?) ON CONFLICT DO NOTHING"
_LINE = "SELECT id FROM line WHERE project = ? AND name = ?"


class Names:
    """The ids of lines, and of runs that made artifacts. Their rows are never removed."""

    def __init__(self, database: Tables) -> None:
        self._database = database
        self._lines: dict[tuple[str, str], int] = {}
        self._makers: dict[str, int] = {}

    def write(self, work: Callable[[Cursor], T], *, wait: bool = True) -> T:
        """A transaction that may make ids; if it fails they are not there, and forgotten.

        The same if the database does it again from its beginning.
        """
        tries = 0

        def counted(cursor: Cursor) -> T:
            nonlocal tries
            tries += 1
            if tries > 1:
                self._forget()
            return work(cursor)

        try:
            return self._database.write(counted, wait=wait)
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        self._lines.clear()
        self._makers.clear()

    def line(self, cursor: Cursor, project: str, line: str) -> int:
        """The id of a line inside a writing transaction; makes it if need be."""
        known = self._lines.get((project, line))
        if known is None:
            names = (project, line)
            cursor.execute(_MAKE_LINE, names)
            found = cursor.execute(_LINE, names).fetchall()
            known = self._lines[names] = cast("int", found[0][0])
        return known

    def maker(self, cursor: Cursor, run: str) -> int:
        """The id of a run that made artifacts, inside a writing transaction."""
        known = self._makers.get(run)
        if known is None:
            cursor.execute(_MAKE_MAKER, (run,))
            found = cursor.execute("SELECT id FROM maker WHERE run = ?", (run,)).fetchall()
            known = self._makers[run] = cast("int", found[0][0])
        return known

    def known_line(self, project: str, line: str) -> int | None:
        """The id of a line, for a reader; None if there is no such line."""
        known = self._lines.get((project, line))
        if known is None:
            found = self._database.rows(_LINE, (project, line))
            if found:
                known = self._lines[project, line] = cast("int", found[0][0])
        return known
