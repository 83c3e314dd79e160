"""The file of an index: a cache in SQLite that can be deleted at any time.

    file      a path with its stamp and the content it has
    content   what was found in one content, by the name git gives it and the language it is read in
    symbol    what a content defines        import_   what it asks for
    words     FTS5 over path, symbols and text of each file; keeps no text
    commit_   commits whose messages are known   change   the paths they touched   said   FTS5 over messages

Nothing in it is true for ever: a file of another version, or one that SQLite finds damaged, is removed
and made again. Writers take turns by a lock file, so that a killed one leaves nothing behind; each part
of an update is one transaction.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence

import apsw

from holdfast.errors import StoreError

VERSION = 1
Value = None | int | float | bytes | str
Row = tuple[Value, ...]
_BUSY_MS = 60_000
_APPLICATION = 0x48464342  # told from other databases by this
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE content (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, language TEXT NOT NULL, parsed INTEGER NOT NULL,
  flaws INTEGER NOT NULL, lines INTEGER NOT NULL, names TEXT NOT NULL, UNIQUE (key, language));
CREATE TABLE file (
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, stamp TEXT NOT NULL, size INTEGER NOT NULL,
  state TEXT NOT NULL, content INTEGER NOT NULL);
CREATE INDEX file_content ON file (content);
CREATE TABLE symbol (
  content INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, line INTEGER NOT NULL,
  end INTEGER NOT NULL, scope TEXT NOT NULL, signature TEXT NOT NULL);
CREATE INDEX symbol_content ON symbol (content);
CREATE INDEX symbol_name ON symbol (name COLLATE NOCASE);
CREATE TABLE import_ (
  content INTEGER NOT NULL, name TEXT NOT NULL, line INTEGER NOT NULL, item TEXT NOT NULL);
CREATE INDEX import_content ON import_ (content);
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
            with self.alone():
                self._connection = self._usable()
        except OSError as error:
            raise StoreError(f"the index '{path}' cannot be made: {error.strerror}") from error

    def _usable(self) -> apsw.Connection:
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
            except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeError) as error:
                if last:
                    raise StoreError(f"the index '{self.path}' cannot be made: {error}") from error
                self._say(f"the index '{self.path}' is damaged; it is made again")
            except apsw.Error as error:
                raise StoreError(f"the index '{self.path}' cannot be used: {error}") from error
            self._remove()
        raise StoreError(f"the index '{self.path}' cannot be made")

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
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


def _connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path)
    connection.set_busy_timeout(_BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.pragma("trusted_schema", False)
    connection.pragma("cache_size", -64 * 1024)
    return connection


def _prepare(connection: apsw.Connection) -> bool:
    """Make the tables if there are none; whether they are of this version."""
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "NORMAL")
    version = connection.pragma("user_version")
    if version == VERSION and connection.pragma("application_id") == _APPLICATION:
        return True
    if version or connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        return False
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(_TABLES)
    connection.pragma("application_id", _APPLICATION)
    connection.pragma("user_version", VERSION)
    connection.execute("COMMIT")
    return True
