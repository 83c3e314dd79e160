"""What a store asks of a database: transactions, rows, and the few things that databases do differently.

Statements have `?` where values stand. Values are what both databases take: no booleans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

T = TypeVar("T")
Value = None | int | float | bytes | str
Row = tuple[Value, ...]


class Cursor(Protocol):
    """Runs statements inside a writing transaction."""

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Cursor:
        """Run one statement."""

    def executemany(self, statement: str, values: Sequence[Row], /) -> object:
        """Run one statement for each set of values."""

    def fetchone(self) -> Row | None:
        """The next row of the last statement."""

    def fetchall(self) -> list[Row]:
        """All rows of the last statement that are left."""


class Tables(Protocol):
    """The tables of one store."""

    @property
    def readonly(self) -> bool:
        """Whether it was opened only to read."""

    @property
    def lock(self) -> str:
        """What follows a SELECT whose rows stay as they are until the transaction ends."""

    @property
    def skip(self) -> str:
        """What follows a SELECT of a row that nobody else is about to change, inside of an UPDATE."""

    @property
    def silence(self) -> str:
        """How many seconds a row of `holder` has not beaten by the clock of the database, as SQL."""

    @property
    def twice(self) -> type[Exception]:
        """What is raised by an insert of what may be there only once."""

    def write(self, work: Callable[[Cursor], T], *, wait: bool = True) -> T:
        """Do the work in one transaction: when this returns, all of it is durable.

        The work may be done again from its beginning if the database gave up on the first try. Without
        `wait`, LockedError at once if others keep it from being done.
        """

    def once(self, statement: str, values: Sequence[Value], seen: tuple[str, Row]) -> list[Row]:
        """One statement as a transaction of its own; gives its rows.

        `seen` is a query that gives the same rows if it was done, for whoever did not hear of its end.
        """

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """All rows of a query, as of everything committed so far."""

    def each(self, statement: str, values: Sequence[Value], take: Callable[[Row], None]) -> None:
        """Give each row of a query away, so that they are never all there; `take` asks nothing itself.

        What was lost on the way is read again from the first row.
        """

    def rows_many(self, statement: str, values: Sequence[Sequence[Value]]) -> list[Row]:
        """The rows of one query for each set of values, in that order."""

    def steady(self) -> AbstractContextManager[None]:
        """Let every query see what the first one sees."""

    def alone(self, cursor: Cursor) -> None:
        """Let nobody else write until the transaction ends."""

    def reach(self, journal: int, event: int) -> None:
        """The transaction that is being written adds an event; both by their numbers."""

    def empty(self, cursor: Cursor, table: str) -> None:
        """Remove all rows of a table, whatever its indexes hold."""

    def count_on(self, cursor: Cursor, table: str) -> None:
        """Let the next row of a table be numbered after the last one that it has."""

    def hint(self) -> None:
        """Let others know that it may be worth to look; it need not arrive."""

    def hints(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """While it lasts, be woken by others."""

    def check_writable(self) -> None:
        """StoreError if nothing may be written here any more."""

    def assure(self) -> None:
        """IntegrityError if a table that tells what was done contradicts its indexes or another table."""

    def flaws(self) -> Iterator[str]:
        """What is wrong with the database itself, one line each."""

    def close(self) -> None:
        """End its connections."""
