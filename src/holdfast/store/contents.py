"""Contents by digest: small ones as rows, large ones as files, one rule for both.

What a read finds damaged is moved out of the way (to `blobs/quarantine`), so that it counts as
missing and storing it again repairs it; a store opened to read leaves it where it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import cast

from holdfast.errors import IntegrityError, PurgedError
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.line import ContentPurged
from holdfast.ports import Stored
from holdfast.store.blobs import FRESH, SMALL, Blobs
from holdfast.store.codec import decode
from holdfast.store.refusals import damaged, purged
from holdfast.store.rows import PLACE, beyond, raw
from holdfast.store.tables import Cursor, Row, Tables, Value

_INSERT = "INSERT INTO blob(digest, content, at) VALUES(?, ?, unixepoch()) ON CONFLICT"
INSERT_AGAIN = f"{_INSERT}(digest) DO UPDATE SET content = excluded.content, at = excluded.at"
INSERT = (  # what is named again is young again, and what a disk made of it is mended
    f"{INSERT_AGAIN} WHERE blob.at <= excluded.at - {FRESH} OR blob.content <> excluded.content"
)

_AT_ONCE = 500  # digests in one question
_FORGOTTEN = 10_000  # contents removed at once
_AT = (
    "SELECT kind, body FROM event JOIN journal ON event.place = journal.id * ? + ?"
    " WHERE journal.name = ?"
)


class Contents:
    """The contents of one store."""

    def __init__(self, database: Tables, files: Blobs) -> None:
        self._database = database
        self._files = files

    def put(self, content: bytes | Iterable[bytes]) -> Digest:
        """Store content durably; a small one in a transaction of its own."""
        self._database.check_writable()
        if isinstance(content, bytes):
            return self._put_whole(content)
        start: list[bytes] = []
        pieces, size = iter(content), 0
        for piece in pieces:
            start.append(piece)
            size += len(piece)
            if size > SMALL:
                return self._files.put(_joined(start, pieces))
        return self._put_small(b"".join(start))

    def _put_whole(self, content: bytes) -> Digest:
        if len(content) <= SMALL:
            return self._put_small(content)
        digest = digest_bytes(content)
        return digest if self._files.known(digest, len(content)) else self._files.put((content,))

    def _put_small(self, content: bytes) -> Digest:
        digest = digest_bytes(content)
        fresh = "SELECT 1 FROM blob WHERE digest = ? AND content = ? AND at > unixepoch() - ?"
        if not self._database.rows(fresh, (raw(digest), content, FRESH)):
            self._write(INSERT_AGAIN, (raw(digest), content))
        return digest

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        """The content in pieces, verified before the last one is given."""
        found = self._database.rows("SELECT content FROM blob WHERE digest = ?", (raw(digest),))
        if not found:
            yield from self._file_chunks(digest)
            return
        content = found[0][0]
        if not isinstance(content, bytes) or digest_bytes(content) != digest:
            if not self._database.readonly:
                self._files.quarantine(digest, content if isinstance(content, bytes) else b"")
                self._write("DELETE FROM blob WHERE digest = ?", (raw(digest),))
            raise damaged(digest)
        yield content

    def _file_chunks(self, digest: Digest) -> Iterator[bytes]:
        try:
            yield from self._files.chunks(digest)
        except IntegrityError as error:
            if not self._database.readonly:
                self._files.quarantine(digest)
            if not self._files.has(digest) and (known := self._tombstone(digest)):
                raise known from error
            raise

    def _tombstone(self, digest: Digest) -> PurgedError | None:
        """What is known about the purge of a content that is not there; the last one counts."""
        query = "SELECT at, body FROM event WHERE kind = 'content_purged' ORDER BY place DESC"
        for at, body in cast("list[tuple[int, str]]", self._database.rows(query)):
            event = decode("content_purged", body)
            if isinstance(event, ContentPurged) and digest in event.digests:
                words = b""
                if event.because is not None and event.because != digest:
                    with contextlib.suppress(IntegrityError):
                        words = b"".join(self.chunks(event.because))
                return purged(digest, at, event, words.decode("utf-8", "replace"))
        return None

    def stored(self) -> Iterator[Stored]:
        """Everything with its size and when it was last stored."""
        after = 0
        query = (
            "SELECT id, digest, length(content), at FROM blob WHERE id > ? ORDER BY id LIMIT 1000"
        )
        while page := cast(
            "list[tuple[int, Value, Value, Value]]", self._database.rows(query, (after,))
        ):
            for number, digest, size, at in page:
                after = beyond(after, number, "blob")
                if not isinstance(size, int) or not isinstance(at, int):
                    raise _damaged(number)
                yield Stored(_digest(digest, number), size, at * 1000)
        for name, size, at in self._files.stored():
            yield Stored(name, size, at * 1000)

    def forget(self, digests: Iterable[Digest], before: int) -> None:
        """Remove contents but those stored since: some thousands of rows in a transaction, then files."""
        asked, second = iter(digests), before // 1000
        while given := list(islice(asked, _FORGOTTEN)):  # others take their turn in between
            self._forget(given, second)
        self._files.forget_unfinished(second)

    def _forget(self, digests: list[Digest], second: int) -> None:
        def work(cursor: Cursor) -> None:
            old = "DELETE FROM blob WHERE digest = ? AND at < ?"
            cursor.executemany(old, [(raw(digest), second) for digest in digests])

        self._database.write(work)
        for digest in digests:
            self._files.forget(digest, second)

    def drop(self, cursor: Cursor, digests: Iterable[Digest]) -> None:
        """Remove the rows of contents inside a writing transaction."""
        cursor.executemany("DELETE FROM blob WHERE digest = ?", [(raw(d),) for d in digests])

    def mark(self, digests: Iterable[Digest], journal: str, seq: int) -> None:
        """Let the next process that writes remove these files, if this one dies once the event is there."""
        self._files.mark(digests, f"{seq} {journal}")

    def unmark(self, digests: Iterable[Digest]) -> None:
        """It was refused: nobody removes anything."""
        self._files.unmark(digests)

    def drop_files(self, digests: Iterable[Digest]) -> None:
        """Remove the files of contents, those in quarantine too."""
        for digest in digests:
            self._files.forget(digest)
            self._files.forget_damaged(digest)
        self._files.sync_removed(digests)
        self._files.unmark(digests)

    def drop_marked(self) -> None:
        """Remove what a purge that was killed left; it counts only if its event was written."""
        for digest, words in self._files.marked().items():
            seq, _, journal = words.partition(" ")
            found = self._database.rows(_AT, (PLACE, int(seq) if seq.isdecimal() else 0, journal))
            for kind, body in cast("list[tuple[str, str]]", found):
                event = decode(kind, body) if kind == "content_purged" else None
                if isinstance(event, ContentPurged) and digest in event.digests:
                    self.drop_files([digest])
                else:  # something else happened instead
                    self._files.unmark([digest])

    def has(self, digest: Digest) -> bool:
        """Whether the content is there, judged by its size."""
        return self._small_size(digest) >= 0 or self._files.has(digest)

    def absent(self, digests: Iterable[Digest]) -> set[Digest]:
        """Which of these contents are not there, judged by their sizes."""
        large = self.without_row(digests)
        if len(large) > _AT_ONCE:
            there = {name for name, size, _ in self._files.stored() if size > SMALL}
            return large - there
        return {digest for digest in large if not self._files.has(digest)}

    def without_row(self, digests: Iterable[Digest]) -> set[Digest]:
        """Which of these contents are no rows: files, or not there."""
        asked, found = iter(digests), set[Digest]()
        while some := list(islice(asked, _AT_ONCE)):  # a line may have a million
            named = {raw(digest): digest for digest in some}
            marks = ", ".join("?" * len(named))
            query = f"SELECT digest FROM blob WHERE digest IN ({marks})"
            for (digest,) in cast("list[tuple[bytes]]", self._database.rows(query, tuple(named))):
                named.pop(digest, None)
            found.update(named.values())
        return found

    def _small_size(self, digest: Digest) -> int:
        query = "SELECT length(content) FROM blob WHERE digest = ?"
        found = self._database.rows(query, (raw(digest),))
        return cast("int", found[0][0]) if found else -1

    def digests(self) -> Iterator[Digest]:
        """The digests of everything stored."""
        after = 0
        query = "SELECT id, digest FROM blob WHERE id > ? ORDER BY id LIMIT 1000"
        while page := cast("list[tuple[int, Value]]", self._database.rows(query, (after,))):
            for number, digest in page:
                after = beyond(after, number, "blob")
                yield _digest(digest, number)
        yield from self._files.digests()

    def _write(self, statement: str, values: Row) -> None:
        def work(cursor: Cursor) -> None:
            cursor.execute(statement, values)

        self._database.write(work)


def _damaged(number: int) -> IntegrityError:
    return IntegrityError(f"row {number} of the contents is damaged", hint="holdfast verify")


def _digest(value: object, number: int) -> Digest:
    """The digest that a column holds; a disk may have made something else of it."""
    if not isinstance(value, bytes):
        raise _damaged(number)
    return Digest(value.hex())


def _joined(start: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from start
    yield from rest
