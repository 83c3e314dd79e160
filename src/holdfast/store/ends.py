"""Which event was stored last, in a file beside the database: by it a lost log is noticed.

A write-ahead log that is gone, empty or cut off looks to SQLite like one that was never written, and what
stood in it would be done a second time. So whoever has stored events says in `state.end` which was the
last: the number of its journal and its own. A database that does not have it has lost it.

It is written when the commit is on the disk and before anybody is told, and it is not synced. So after a
kill it is exact. A power cut may take it back to an earlier event, to zeros or to nothing: it then says
less, never more than what is stored. Two processes may write in another order than they commit: that too
only says less. If it cannot be written the store goes on, and what it says stays true, for numbers of
journals are given once and events are never taken away but with their journal.

It does not matter who moves the log into the database, and when: an event is looked for where SQLite
finds it. Whoever closes the database last clears the file, because then there is no log that could be
lost, and a back-up of the database alone may take its place. It is not removed: another process may have
it open.

    state.end    journal, event, checksum, as text of one length; `-` if the database was closed whole
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from typing import NamedTuple, Protocol

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SIZE = 52  # two numbers of 20 digits, a checksum of 8, two spaces, a line end and one to spare
_CLEARED = b"-".ljust(_SIZE - 1) + b"\n"


class End(NamedTuple):
    """The last event of a journal, both by their numbers."""

    journal: int
    event: int


class Queries(Protocol):
    """Whoever answers one query with its rows."""

    def __call__(self, statement: str, values: tuple[int, ...], /) -> list[tuple[object, ...]]:
        """All rows."""


def end_file(database: str) -> str:
    """The file that goes with a database."""
    return f"{os.path.splitext(database)[0]}.end"


def known_end(path: str) -> End | None:
    """What a file says; None if it says nothing, or nothing that can be believed."""
    with suppress(OSError):
        handle = os.open(path, _READ)
        try:
            return _parsed(os.read(handle, _SIZE + 1))
        finally:
            os.close(handle)
    return None


def has_end(rows: Queries, end: End) -> bool:
    """Whether a database has an event, or has had it until its journal was removed."""
    found = rows("SELECT last FROM journal WHERE id = ?", (end.journal,))
    if found:
        return isinstance(found[0][0], int) and found[0][0] >= end.event
    made = rows("SELECT seq FROM sqlite_sequence WHERE name = 'journal' AND seq >= ?", end[:1])
    return bool(made)


def _text(end: End) -> bytes:
    numbers = f"{end.journal} {end.event}".encode()
    return numbers.ljust(_SIZE - 10) + b" %08x\n" % zlib.crc32(numbers)


def _parsed(content: bytes) -> End | None:
    match content.split():
        case [journal, event, _] if journal.isdigit() and event.isdigit():
            end = End(int(journal), int(event))
            return end if content == _text(end) else None
        case _:
            return None


class EndFile:
    """The file of one database, kept open while it is written; what fails here disturbs nobody."""

    def __init__(self, database: str) -> None:
        self._path = end_file(database)
        self._handle: int | None = None

    def write(self, end: End) -> None:
        """This event is on the disk."""
        self._put(_text(end))

    def clear(self) -> None:
        """There is no log any more."""
        if known_end(self._path) is not None:
            self._put(_CLEARED)

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _put(self, content: bytes) -> None:
        with suppress(OSError):
            if self._handle is None:
                self._handle = os.open(self._path, _WRITE, 0o600)
            os.pwrite(self._handle, content, 0)
