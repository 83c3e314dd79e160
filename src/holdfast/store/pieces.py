"""Large contents as rows: pieces of 1 MB, for a store that has no files and no object storage.

A content is stored whole in one transaction, so there is nothing unfinished to remove. What a read finds
damaged stays where it is, marked, and counts as missing; storing it again puts it right.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest
from holdfast.store.blobs import FRESH, SMALL
from holdfast.store.rows import raw
from holdfast.store.tables import Cursor, Row, Tables

_PIECE = 1024 * 1024
_IN_MEMORY = 32 * _PIECE
_PAGE = 500
_FRESH = "UPDATE large SET at = unixepoch() WHERE digest = ? AND size = ? AND damaged = 0"
_LARGE = (
    "INSERT INTO large(digest, size, at) VALUES(?, ?, unixepoch()) ON CONFLICT(digest) DO UPDATE SET"
    " size = excluded.size, at = excluded.at, damaged = 0"
)


class BlobRows:
    """The large contents of one store."""

    def __init__(self, database: Tables) -> None:
        self._database = database

    def put(self, pieces: Iterable[bytes]) -> Digest:
        """Store the content durably; gives its digest."""
        whole, size = hashlib.sha256(), 0
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
            for piece in pieces:
                whole.update(piece)
                size += len(piece)
                spool.write(piece)
            digest = Digest(whole.hexdigest())
            if not self.known(digest, size):
                file = cast("BinaryIO", spool)
                self._database.write(lambda cursor: _insert(cursor, digest, size, file))
        return digest

    def known(self, digest: Digest, size: int) -> bool:
        """Whether it is there, whole; it counts as just stored then."""
        query = (
            "SELECT at > unixepoch() - ? FROM large WHERE digest = ? AND size = ? AND damaged = 0"
        )
        found = self._database.rows(query, (FRESH // 2, raw(digest), size))
        if not found:
            return False
        if found[0][0]:
            return True
        freshened = f"{_FRESH} RETURNING 1"
        return bool(
            self._database.write(
                lambda cursor: cursor.execute(freshened, (raw(digest), size)).fetchall()
            )
        )

    def has(self, digest: Digest) -> bool:
        """Whether there is one that can be this content."""
        query = "SELECT size FROM large WHERE digest = ? AND damaged = 0"
        found = self._database.rows(query, (raw(digest),))
        return bool(found) and cast("int", found[0][0]) > SMALL

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        """The content in pieces; the last is held back until the whole is verified."""
        if not self.has(digest):
            raise IntegrityError(f"content '{digest}' is missing")
        whole, held, part = hashlib.sha256(), b"", 0
        query = "SELECT content FROM piece WHERE digest = ? AND part = ?"
        while found := self._database.rows(query, (raw(digest), part)):
            piece = cast("bytes", found[0][0])
            whole.update(piece)
            if held:
                yield held
            held, part = piece, part + 1
        if whole.hexdigest() != digest:
            raise IntegrityError(f"content '{digest}' is damaged")
        yield held

    def digests(self) -> Iterator[Digest]:
        """All that are there, in order."""
        return (digest for digest, _, _ in self.stored())

    def stored(self) -> Iterator[tuple[Digest, int, int]]:
        """Each with its size and the second in which it was last stored."""
        after = b""
        query = "SELECT digest, size, at FROM large WHERE digest > ? AND damaged = 0 ORDER BY digest LIMIT ?"
        while page := cast(
            "list[tuple[bytes, int, int]]", self._database.rows(query, (after, _PAGE))
        ):
            for digest, size, at in page:
                after = digest
                yield Digest(digest.hex()), size, at

    def forget(self, digest: Digest, before: int | None = None) -> None:
        """Remove one, unless it was stored again since."""
        age = "" if before is None else " AND at < ?"
        values: Row = (raw(digest),) if before is None else (raw(digest), before)
        self._run(f"DELETE FROM large WHERE digest = ?{age}", values)

    def forget_unfinished(self, before: int) -> None:
        """There is nothing unfinished but what was damaged."""
        self._run("DELETE FROM large WHERE damaged = 1 AND at < ?", (before,))

    def forget_damaged(self, digest: Digest) -> None:
        """Remove what was found damaged."""
        self._run("DELETE FROM large WHERE damaged = 1 AND digest = ?", (raw(digest),))

    def sync_removed(self, digests: Iterable[Digest]) -> None:
        """What is removed from a database is removed."""

    def quarantine(self, digest: Digest, content: bytes | None = None) -> None:
        """Let a damaged content count as missing."""
        if content is None:
            self._run("UPDATE large SET damaged = 1 WHERE digest = ?", (raw(digest),))

    def mark(self, digests: Iterable[Digest], words: str) -> None:
        """Let the next process that writes remove these, if this one dies."""
        marked = (
            "INSERT INTO marked(digest, words) VALUES(?, ?)"
            " ON CONFLICT(digest) DO UPDATE SET words = excluded.words"
        )
        values: list[Row] = [(raw(digest), words) for digest in digests]
        self._database.write(lambda cursor: cursor.executemany(marked, values))

    def marked(self) -> dict[Digest, str]:
        """What a purge that was killed may have left."""
        found = cast(
            "list[tuple[bytes, str]]", self._database.rows("SELECT digest, words FROM marked")
        )
        return {Digest(digest.hex()): words for digest, words in found}

    def unmark(self, digests: Iterable[Digest]) -> None:
        """They are removed, or will not be."""
        for digest in digests:
            self._run("DELETE FROM marked WHERE digest = ?", (raw(digest),))

    def _run(self, statement: str, values: Row) -> None:
        self._database.write(lambda cursor: cursor.execute(statement, values))


def _insert(cursor: Cursor, digest: Digest, size: int, file: BinaryIO) -> None:
    """All of it inside one transaction, which may be done again."""
    file.seek(0)
    cursor.execute(_LARGE, (raw(digest), size))
    cursor.execute("DELETE FROM piece WHERE digest = ?", (raw(digest),))
    part = 0
    while piece := file.read(_PIECE):
        cursor.execute(
            "INSERT INTO piece(digest, part, content) VALUES(?, ?, ?)", (raw(digest), part, piece)
        )
        part += 1
