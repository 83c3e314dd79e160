"""The file of an index: a cache in SQLite that can be deleted at any time.

    file      a path with its stamp and the content it has
    content   what was found in one content, by the name git gives it and the language it is read in;
              `state` says why it is not parsed
    words     FTS5 over path, symbols and text of each file; keeps no text
    commit_   commits whose messages are known   change   the paths they touched   said   FTS5 over messages

Nothing in it is true for ever: an index of another version, or one that SQLite finds damaged, is removed
and made again. Only what says in its header that it is an index, or lies where indexes lie, is ever
removed; any other file is refused before anything beside it is touched. Writers take turns by a lock
file, so that a killed one leaves nothing behind; each part of an update is one transaction.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence

import apsw

from holdfast.errors import StoreError, UsageError

VERSION = 2
USUAL = (".holdfast", "code.db")  # where the index of a project lies, within it
Value = None | int | float | bytes | str
Row = tuple[Value, ...]
_BUSY_MS = 60_000
_APPLICATION = 0x48464342  # told from other databases by this
_HEADER = 100  # bytes; SQLite keeps the number of the application at 68
_MAGIC = b"SQLite format 3\0"
_BESIDE = {  # what SQLite keeps beside a file, and how that begins
    "-wal": (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"),
    "-shm": (),
    "-journal": (b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", b"\0" * 8),
}
_TABLES = """
CREATE TABLE content (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, language TEXT NOT NULL, lines INTEGER NOT NULL,
  parsed INTEGER NOT NULL, flaws INTEGER NOT NULL, symbols TEXT NOT NULL, imports TEXT NOT NULL,
  names TEXT NOT NULL, state TEXT NOT NULL, UNIQUE (key, language));
CREATE TABLE file (
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, stamp TEXT NOT NULL, size INTEGER NOT NULL,
  content INTEGER NOT NULL);
CREATE INDEX file_content ON file (content);
CREATE TABLE commit_ (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, at INTEGER NOT NULL);
CREATE VIEW placed AS SELECT id, row_number() OVER (ORDER BY at DESC, name) - 1 AS place FROM commit_;
CREATE TABLE change (commit_ INTEGER NOT NULL, path BLOB NOT NULL);
CREATE INDEX change_commit ON change (commit_);
CREATE VIRTUAL TABLE words USING fts5(
  path, symbols, text, content='', contentless_delete=1, tokenize='porter unicode61');
CREATE VIRTUAL TABLE said USING fts5(
  message, content='', contentless_delete=1, tokenize='porter unicode61');
INSERT INTO words (words, rank) VALUES ('hashsize', 33554432);
"""


class Database:
    """One connection to the file of an index; `path` is ':memory:' for one that nobody keeps."""

    def __init__(self, path: str, say: Callable[[str], None] = lambda _: None) -> None:
        self.path = path
        self._say = say
        self._lock: int | None = None
        try:
            self._check()
            with self.alone():
                self._connection = self._usable()
        except OSError as error:
            raise StoreError(f"the index '{path}' cannot be made: {error.strerror}") from error

    def _check(self) -> bool:
        """Whether it is an index or nothing yet; UsageError for a file that must not be removed."""
        if self.path == ":memory:" or _is_ours(self.path):
            return True
        if _is_usual(self.path):
            return False
        raise UsageError(
            f"'{self.path}' is no index of a code base, so it is left as it is",
            hint="name another file, or remove it if nobody needs it",
        )

    def _usable(self) -> apsw.Connection:
        if not self._check():
            self._say(f"the index '{self.path}' is damaged; it is made again")
            self._remove()
        for last in (False, True):
            try:
                connection = _connect(self.path)
                try:
                    if _prepare(connection):
                        return connection
                    self._say(f"the index '{self.path}' is of another version; it is made again")
                except BaseException:
                    connection.close()
                    raise
                connection.close()
            except (
                apsw.CorruptError,
                apsw.NotADBError,
                apsw.SQLError,
                UnicodeDecodeError,
            ) as error:
                if last:
                    raise StoreError(f"the index '{self.path}' cannot be made: {error}") from error
                self._say(f"the index '{self.path}' is damaged; it is made again")
            except apsw.Error as error:
                raise StoreError(f"the index '{self.path}' cannot be used: {error}") from error
            self._remove()
        raise StoreError(f"the index '{self.path}' cannot be made")

    def _remove(self) -> None:
        self._check()
        for suffix in ("", *_BESIDE):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path + suffix)

    def renew(self) -> None:
        """Begin again with an empty index; only while `alone`."""
        with contextlib.suppress(apsw.Error):
            self._connection.close()
        self._say(f"the index '{self.path}' is damaged; it is made again")
        self._remove()
        self._connection = self._usable()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from changing the index; they wait. May be nested."""
        if self._lock is not None or self.path == ":memory:":
            yield
            return
        self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(self._lock)
            self._lock = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[apsw.Cursor]:
        """One transaction: all of it, or nothing."""
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                cursor.execute("ROLLBACK")
            raise

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """All rows of a query."""
        return self._connection.cursor().execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _is_ours(path: str) -> bool:
    """Whether a file says that it is an index, or is empty or not there with nothing beside it."""
    head = _head(path)
    if head:
        return head.startswith(_MAGIC) and head[68:72] == _APPLICATION.to_bytes(4, "big")
    beside = ((_head(path + suffix), begins) for suffix, begins in _BESIDE.items())
    return all(not found or found.startswith(begins) for found, begins in beside)


def _head(path: str) -> bytes:
    """The beginning of a file; nothing if there is none. OSError for what is no regular file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(_HEADER)


def _is_usual(path: str) -> bool:
    """Whether a path is where indexes lie unless somebody says otherwise."""
    return os.path.abspath(path).split(os.sep)[-2:] == [*USUAL]


def _connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path)
    connection.set_busy_timeout(_BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.pragma("trusted_schema", False)
    connection.pragma("cache_size", -64 * 1024)
    return connection


def _prepare(connection: apsw.Connection) -> bool:
    """Make the tables if there are none; whether they are of this version."""
    version, kind = connection.pragma("user_version"), connection.pragma("application_id")
    is_new = (
        not version and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    )
    if is_new and kind != _APPLICATION:
        connection.pragma("application_id", _APPLICATION)  # before WAL, so that it is in the file
    elif not is_new and (version, kind) != (VERSION, _APPLICATION):
        return False
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "NORMAL")
    if not is_new:
        return True
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(_TABLES)
    connection.pragma("user_version", VERSION)
    connection.execute("COMMIT")
    return True
