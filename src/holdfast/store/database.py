"""The SQLite database under a store: two connections, one transaction at a time.

Writes go through one connection and reads through another, each behind its own lock, so that a
reader never waits for a commit in another thread; WAL lets a read that starts after a commit see
all of it. Every writing transaction begins with BEGIN IMMEDIATE: one that reads first and writes
later would fail at once when another process wrote in between, whatever the timeout. Reads fetch
all their rows before they return: no read transaction stays open, so the WAL can always be reset.

After an I/O error nothing this process believes about the file is certain (a second fsync may
succeed without the data): the database is poisoned, every later call fails, and closing does not
checkpoint. A forked child shares file locks with nobody; it may not use the connections of its
parent.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast, get_args

import apsw

from holdfast.errors import (
    LET_IN,
    BugError,
    HoldfastError,
    IntegrityError,
    LockedError,
    StoreError,
    UsageError,
    outside_fault,
)
from holdfast.model.artifact import Source, Status
from holdfast.store.aside import say_aside
from holdfast.store.blobs import sync_directory
from holdfast.store.ends import End, EndFile, end_file, has_end, known_end
from holdfast.store.fixed import fixed_name, mark_of, why_fixed
from holdfast.store.log import (
    counted,
    kept_copy,
    log_readers,
    log_size,
    lost_commits,
    orphaned_commits,
)
from holdfast.store.migrate import AS_NOW, SCHEMA, VERSION, migrate, schema_problems, version_of
from holdfast.store.peek import closed, opened, peeking
from holdfast.store.tables import Cursor, Row, Value

T = TypeVar("T")

BUSY_MS = 300_000  # a process that has the database locked for longer will not let go by itself
_TELL_MS = 2_000  # after so long it is said what is waited for
_LONGEST_NAP = 0.1
_SHORTLY = 1.0  # seconds in which others take turns
_IMPATIENT = 0.005  # seconds for whoever has something else to do
_IN_A_ROW = 16  # commits of one process while others wait
_LONGEST_TURN = 0.25  # seconds of them: a slow disk takes long for sixteen
_LATELY = 1.0  # seconds for which others are taken to be there
_WAL_LIMIT = 64 * 1024 * 1024
_MOST_PAGES = _WAL_LIMIT // 4096 - 64  # the log has a frame of 24 bytes around each
_CHECKPOINT_PAGES = 1000
_CHECKPOINT_COMMITS = 8
_WRITER_KIB = 16 * 1024  # of pages: more was measured to gain nothing
_READER_KIB = 4 * 1024
_LOOK_EVERY = 16  # commits between two looks at the size of the log
_TELLING = ("line", "run", "journal", "maker", "artifact")  # what was done
_STATUSES, _SOURCES = get_args(Status), get_args(Source)
_WORDS: tuple[str, ...] = (*_STATUSES, *_SOURCES)
# An index of some rows keeps those that no longer belong there, and SQLite finds nothing wrong with it.
_UNKNOWN = (
    f"SELECT number FROM artifact WHERE status NOT IN ({', '.join('?' * len(_STATUSES))})"
    f" OR source NOT IN ({', '.join('?' * len(_SOURCES))}) LIMIT 1"
)
_MAGIC = b"SQLite format 3\0"
_VERSIONS = slice(18, 20)  # of the header: which way the file is written and read


class Database:
    """Two connections to one file."""

    lock = ""  # a writing transaction has all of it
    skip = ""
    silence = "NULL"  # there is no clock but those of the processes
    twice = apsw.ConstraintError

    def __init__(
        self,
        path: str,
        *,
        create: bool,
        readonly: bool,
        whole: bool = False,
        busy_ms: int = BUSY_MS,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._path = path
        self._say = say
        self._views = ""  # stand before tables of an older format
        self.readonly = readonly
        self._whole = whole or not readonly
        self._busy_ms = busy_ms
        self._patience = _Patience(busy_ms, path, say)
        self._pid = os.getpid()
        self._refusal = ""  # why nothing may be done any more
        self._log_is_kept = False
        self._ends = EndFile(path)
        self._reached: End | None = None  # by the transaction that is being written
        self._commits = 0
        self._is_overgrown = False
        self._fixed = fixed_name(path) if readonly else ""
        self._mark = mark_of(path) if self._fixed else None
        self.lost = 0  # commits that a damaged log has and nobody can read
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        opened(path)
        try:
            self._open(create=create)
        except BaseException:
            closed(path)
            raise
        self._write_cursor = self._writer.cursor()
        self._read_cursor = self._reader.cursor()

    def _open(self, *, create: bool) -> None:
        path, busy_ms, readonly = self._path, self._busy_ms, self.readonly
        end = known_end(end_file(path))  # before any read: a process that writes now is ahead of it
        try:
            self._writer = self._connect(self._patience, _WRITER_KIB, create=create)
            try:
                self._prepare(end, create=create)
                patience = _Patience(busy_ms, path, self._say)
                self._reader = self._connect(patience, _READER_KIB, create=False)
                self._leave_log(self._reader, bool(self.lost) and readonly)
                self._reader.execute(self._views)
                self._reader.pragma("query_only", True)
            except BaseException:
                if self.lost:
                    self._leave_log(self._writer, True)
                self._writer.close()
                raise
        except apsw.Error as error:
            raise self._failure(error) from error

    def _connect(self, patience: _Patience, cache: int, *, create: bool) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        if self._fixed:
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(self._fixed or self._path, flags=flags)
        connection.set_busy_handler(patience.wait)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        # Plans must not depend on bound values: that would prepare a query again for each call.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.pragma("trusted_schema", False)
        connection.pragma("foreign_keys", True)
        connection.pragma("synchronous", "FULL")
        connection.pragma("journal_size_limit", _WAL_LIMIT)
        connection.set_wal_hook(_Checkpoints())
        connection.pragma("cache_size", -cache)
        return connection

    def _prepare(self, end: End | None, *, create: bool) -> None:
        """Bring the tables to this version unless it is only read; a store is only made when asked for."""
        try:
            version = version_of(self._writer, self._path)
        finally:
            self.lost = lost_commits(self._path, shared=not why_fixed(self._path))
        if self.lost:
            self._keep_damaged(version, end)
        if version == 0 and not create:
            raise UsageError(f"no store at '{os.path.dirname(self._path)}'", hint="holdfast run")
        if version and not self.lost and end is not None:
            self._check_end(end)
        if self.readonly:
            self._views = AS_NOW.get(version, "")
            self._writer.pragma("query_only", True)
        elif version < VERSION:
            self._writer.pragma("journal_mode", "WAL")
            migrate(self._writer, self._path)
            if version:
                self._say(f"the store had format {version}; it was brought to format {VERSION}")

    def _keep_damaged(self, version: int, end: End | None) -> None:
        """The log is damaged: whoever only reads leaves it as it is, whoever writes goes on beside it.

        Nobody goes on if there is nothing but the log. If an event is lost that was stored, nobody writes,
        nor reads what must be `whole`: what it tells of may have been done outside.
        """
        words = f"{counted(self.lost)} in '{self._path}-wal' cannot be read: it is damaged"
        self._leave_log(self._writer, self.readonly)
        kept = "" if self.readonly else kept_copy(self._path)
        if version == 0:
            raise IntegrityError(words, hint=_away(self._path))
        if self._whole and end is not None and not self._has(end):
            raise IntegrityError(words, hint=_without(self._path))
        if kept:
            self._say(f"{words}; what they accepted runs again, and the log is kept as '{kept}'")
        else:
            self._say(f"{words}; what is shown ends before them")

    def _check_end(self, end: End) -> None:
        """IntegrityError if the last event that was stored is not there; what is left of the log stays."""
        if not self._has(end):
            self._leave_log(self._writer, True)
            raise cut_off(self._path)

    def _has(self, end: End) -> bool:
        def rows(statement: str, values: tuple[int, ...]) -> list[tuple[object, ...]]:
            return self._writer.execute(statement, values).fetchall()

        return has_end(rows, end)

    @staticmethod
    def _leave_log(connection: apsw.Connection, leave: bool) -> None:
        """Whether closing leaves the log as it is."""
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(leave))

    # use

    def write(self, work: Callable[[Cursor], T], *, wait: bool = True) -> T:
        """Do the work in one transaction: when this returns, all of it is durable.

        Without `wait`, LockedError at once if another process has the database locked.
        """
        with self._write_lock:
            self.check_writable()
            self._patience.is_patient, self._reached = wait, None
            try:
                result = self._written(work)
            except (apsw.Error, UnicodeError) as error:
                raise self._failure(error) from error
            finally:
                self._patience.is_patient = True
        self._patience.give_way()
        return result

    def _written(self, work: Callable[[Cursor], T]) -> T:
        cursor = self._write_cursor
        cursor.execute("BEGIN IMMEDIATE")
        try:
            result = work(cursor)
            cursor.execute("COMMIT")
            if self._reached is not None:
                self._ends.write(self._reached)
            self._keep_log()
            self._watch_log()
        except BaseException:
            if self._writer.in_transaction:
                cursor.execute("ROLLBACK")
            raise
        return result

    def once(self, statement: str, values: Sequence[Value], seen: tuple[str, Row]) -> list[Row]:
        """One statement as a transaction of its own; it is done, or it is not."""
        del seen
        return self.write(lambda cursor: cursor.execute(statement, values).fetchall())

    def _keep_log(self) -> None:
        """After the first commit: the name of the WAL is durable too.

        SQLite syncs the directory when it makes the WAL, but does not say so if that fails.
        """
        if self._log_is_kept:
            return
        try:
            sync_directory(os.path.dirname(self._path))
        except OSError as error:
            self.poison(f"'{self._path}': {error}")
            fault, said = outside_fault(error), (error.strerror or str(error)).lower()
            raise StoreError(
                f"the database '{self._path}' cannot be synced: {said}",
                hint=fault.hint if fault else None,
            ) from error
        self._log_is_kept = True

    def _watch_log(self) -> None:
        """Say once if the log outgrows its limit because of a reader that never ends its read.

        SQLite cannot cut a reader off. As soon as it is gone, the next commits shrink the log again.
        """
        self._commits += 1
        if self._commits % _LOOK_EVERY:
            return
        size = log_size(self._path)
        if size <= _WAL_LIMIT:
            self._is_overgrown = False
        elif not self._is_overgrown and (readers := log_readers(self._path)):
            self._is_overgrown = True
            who = ", ".join(f"process {pid}" for pid in readers)
            self._say(
                f"'{self._path}-wal' has grown to {size >> 20} MB, because {who} has an old state"
                " of the database open; it shrinks when that ends"
            )

    @contextlib.contextmanager
    def steady(self) -> Iterator[None]:
        """Let every query see what the first one sees."""
        with self._read_lock:
            self._read_cursor.execute("BEGIN")
        try:
            yield
        finally:
            with self._read_lock:
                self._read_cursor.execute("ROLLBACK")

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """All rows of a query, as of everything committed so far."""
        with self._read_lock:
            self.check_usable()
            try:
                found = self._read_cursor.execute(statement, values).fetchall()
            except (apsw.Error, UnicodeError) as error:
                raise self._failure(error) from error
            self._check_fixed()
            return found

    def each(self, statement: str, values: Sequence[Value], take: Callable[[Row], None]) -> None:
        """Give each row of a query away, so that they are never all there; `take` asks nothing itself."""
        with self._read_lock:
            self.check_usable()
            try:
                for row in self._read_cursor.execute(statement, values):
                    take(row)
            except (apsw.Error, UnicodeError) as error:
                raise self._failure(error) from error
            self._check_fixed()

    def rows_many(self, statement: str, values: Sequence[Sequence[Value]]) -> list[Row]:
        """The rows of one query for each set of values, in that order."""
        with self._read_lock:
            self.check_usable()
            try:
                found = list(self._read_cursor.executemany(statement, values))
            except (apsw.Error, UnicodeError) as error:
                raise self._failure(error) from error
            self._check_fixed()
            return found

    def _check_fixed(self) -> None:
        """LockedError if a file that was taken for fixed is another now: what was read of it may be wrong."""
        if self._mark is not None and mark_of(self._path) != self._mark:
            raise LockedError(
                f"another process writes the database '{self._path}', and you cannot write beside it",
                hint="wait until it is done",
            )

    def alone(self, cursor: Cursor) -> None:
        """Whoever writes is alone."""

    def reach(self, journal: int, event: int) -> None:
        """What is said of it when the transaction is committed: see `ends`."""
        self._reached = End(journal, event)

    def empty(self, cursor: Cursor, table: str) -> None:
        """Without its indexes: SQLite finds no entry there for a row that is damaged, and gives up."""
        query = "SELECT name, sql FROM sqlite_schema WHERE tbl_name = ? AND type = 'index' AND sql <> ''"
        indexes = cursor.execute(query, (table,)).fetchall()
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name!s}")
        cursor.execute(f"DELETE FROM {table}")
        for _, made in indexes:
            cursor.execute(str(made))

    def count_on(self, cursor: Cursor, table: str) -> None:
        """A table that was emptied begins anew; numbers that were given are heeded by SQLite itself."""
        if not cursor.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall():
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))

    def hint(self) -> None:
        """Others look by themselves."""

    def hints(self, wake: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """There are none."""
        del wake
        return contextlib.nullcontext()

    def assure(self) -> None:
        """Compare each table that tells what was done with its indexes, and with those that it names.

        A bit that flipped in one of them hides a run or a result, and SQLite does not tell.
        """
        for table in _TELLING:
            for (told,) in self.rows(f"PRAGMA main.integrity_check({table})"):
                if told != "ok":
                    raise self._damaged(str(told))
            for _, number, parent, _ in self.rows(f"PRAGMA main.foreign_key_check({table})"):
                raise self._damaged(f"row {number!s} of '{table}' names no row of '{parent!s}'")
        for (number,) in self.rows(_UNKNOWN, _WORDS):
            raise self._damaged(f"row {number!s} of 'artifact' has a word that Holdfast has not")

    def _damaged(self, told: str) -> IntegrityError:
        return IntegrityError(
            f"the database '{self._path}' is damaged: {told}",
            hint=f"holdfast repair, or {_in_its_place(self._path)}",
        )

    def flaws(self) -> Iterator[str]:
        """Damaged pages, lost commits, tables that are not ours."""
        if self.lost:
            yield f"database: {counted(self.lost)} in its log cannot be read: it is damaged"
        try:
            yield from self._flaws()
        except HoldfastError as error:
            yield error.message

    def _flaws(self) -> Iterator[str]:
        for row in self.rows("PRAGMA integrity_check"):
            if row != ("ok",):
                yield f"database: {row[0]!s}"
        for table, number, parent, _ in self.rows("PRAGMA foreign_key_check"):
            yield f"database: row {number!s} of '{table!s}' names a missing row of '{parent!s}'"
        version = cast("int", self.rows("PRAGMA user_version")[0][0])
        for told in schema_problems(version, self.rows(SCHEMA)):
            yield f"database: {told}"

    # trust

    def check_usable(self) -> None:
        """StoreError if this object was poisoned, closed, or belongs to the parent of a fork."""
        if self._refusal:
            raise StoreError(self._refusal)
        if os.getpid() != self._pid:
            raise StoreError(
                "this store was opened by another process",
                hint="open the store again after a fork",
            )

    def check_writable(self) -> None:
        """StoreError as above; BugError if the store was opened to read."""
        self.check_usable()
        if self.readonly:
            raise BugError("a store that was opened to read was asked to write")

    def poison(self, why: str) -> None:
        """Refuse everything from now on."""
        self._refusal = f"this store can no longer be trusted; start again ({why})"

    def close(self) -> None:
        """Close both connections; in a forked child this does nothing."""
        if os.getpid() != self._pid or self._refusal == _CLOSED:
            return
        with self._write_lock, self._read_lock:
            for connection in (self._reader, self._writer):
                if self._refusal:
                    self._leave_log(connection, True)
                try:
                    connection.close()
                except apsw.Error as error:
                    raise self._failure(error) from error
            if not os.path.lexists(f"{self._path}-wal"):
                self._ends.clear()
            self._ends.close()
            self._refusal = _CLOSED
            closed(self._path)

    def _failure(self, error: apsw.Error | UnicodeError) -> HoldfastError:
        self._check_fixed()
        match error:
            case UnicodeEncodeError():
                return UsageError(f"{error.object!a} is not text that can be stored")
            case UnicodeError():
                return IntegrityError(f"the database '{self._path}' is damaged: {error}")
            case apsw.BusyError() | apsw.LockedError():
                return LockedError(
                    f"another process has had the database '{self._path}' locked"
                    f" for more than {self._busy_ms / 1000:g} s",
                    hint="end that process, or wait until it is done",
                )
            case apsw.FullError():
                return StoreError(
                    f"the disk that holds '{self._path}' is full",
                    hint="free some space, then resume",
                )
            case apsw.IOError():
                self.poison(f"'{self._path}': {error}")
                return StoreError(
                    f"the database '{self._path}' cannot be read or written: {error}",
                    hint="look whether the disk is full or fails, or files may not grow (ulimit -f),"
                    " then resume",
                )
            case apsw.CantOpenError() | apsw.ReadOnlyError() if why := why_fixed(self._path):
                return self._unwritable(why)
            case apsw.CantOpenError() if os.access(self._path, os.R_OK | os.W_OK):
                return StoreError(
                    f"the database '{self._path}' refused: {error}",
                    hint="let more files be open at once (ulimit -n), then resume",
                )
            case apsw.CantOpenError() | apsw.ReadOnlyError():
                return StoreError(
                    f"the database '{self._path}' refused: {error}",
                    hint=LET_IN,
                )
            case apsw.CorruptError():  # so SQLite also calls a page that the disk did not give
                return IntegrityError(
                    f"the database '{self._path}' is damaged, or the disk could not read it: {error}"
                )
            case apsw.NotADBError() | apsw.SQLError():  # our statements fit the tables that we make
                return IntegrityError(
                    f"the database '{self._path}' is damaged: {error}", hint="holdfast verify"
                )
            case _:
                return StoreError(f"the database '{self._path}' refused: {error}")

    def _unwritable(self, why: str) -> StoreError:
        """Where nothing can be written nobody can write, nor read what is only in the log."""
        more = ", and what is in its log can only be read elsewhere" if self.readonly else ""
        return StoreError(
            f"the database '{self._path}' {why}{more}",
            hint=f"cp -r {shlex.quote(os.path.dirname(self._path))} DIR, then use --store DIR",
        )


def check_log_has_database(path: str) -> None:
    """IntegrityError if there are commits whose database is gone: opening it would remove them too."""
    if commits := orphaned_commits(path):
        raise IntegrityError(
            f"'{path}' is missing or empty, and {counted(commits)} in '{path}-wal' belong to it",
            hint=_away(path),
        )


def check_header(path: str) -> None:
    """IntegrityError if the header says that the file is written or read in a way that SQLite has not.

    SQLite itself would read such a file, and refuse to write it. Of one that cannot be read it says so.
    """
    head = b""
    with contextlib.suppress(OSError), peeking(path) as file:
        head = os.pread(file, 20, 0)
    if head.startswith(_MAGIC) and not set(head[_VERSIONS]) <= {1, 2}:
        raise IntegrityError(
            f"the header of '{path}' is damaged",
            hint=f"{_in_its_place(path)}, or leave it behind: holdfast repair --start-over",
        )


def emptied(path: str) -> IntegrityError:
    """There were runs in this store, and its database has nothing of them: it, or its log, was lost."""
    return IntegrityError(
        f"'{path}' has lost its tables, and runs were begun in this store",
        hint=f"put '{path}' back with '{path}-wal', or leave it behind: holdfast repair --start-over",
    )


def cut_off(path: str) -> IntegrityError:
    """Events were stored that this database does not have: its log was lost, or a part of it."""
    return IntegrityError(
        f"'{path}-wal' is missing, cut off or damaged: '{path}' lacks the last event that was stored",
        hint=f"put '{path}-wal' back, or {_in_its_place(path)},"
        " or leave it behind: holdfast repair --start-over",
    )


def _without(path: str) -> str:
    """What to do about a damaged log: a person who knows what it told of may go on without it."""
    return (
        f"put '{path}-wal' back, or {_in_its_place(path)}; or look at what was done outside, and go on"
        f" without what cannot be read: rm {shlex.quote(end_file(path))}"
    )


def _in_its_place(path: str) -> str:
    """How a back-up is put back: the log of one database beside another would mix the two."""
    store = os.path.dirname(path)
    return f"move '{store}' aside and put all of it back from a back-up"


def _away(path: str) -> str:
    """The command that makes room for a new store and keeps what is left of this one."""
    store = os.path.dirname(path)
    return f"mv {shlex.quote(store)} {shlex.quote(f'{store}.damaged')}"


class _Patience:
    """Waits while another process has the lock; longer and longer naps, so that waiting costs nothing.

    SQLite serves nobody in turn: who has just let go is the first to ask again, and others may never be
    there in the moment between. So whoever had the lock some times in a row, or for a while, stays away for
    a nap if others wanted it too shortly before that turn.
    """

    def __init__(
        self,
        most_ms: int,
        path: str,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._most = most_ms / 1000
        self._path = path
        self._say = say
        self._since = 0.0
        self._told = False
        self._waited_at = -_LATELY
        self._began = 0.0  # the turn: when this process waited last, or made way
        self._in_a_row = 0
        self.is_patient = True

    def give_way(self) -> None:
        """After a commit: stay away for a moment if others had no turn for long."""
        self._in_a_row += 1
        now = self._clock()
        if self._in_a_row < _IN_A_ROW and now - self._began < _LONGEST_TURN:
            return
        if self._began - self._waited_at < _LATELY:
            self._sleep(_short_nap())
        self._began, self._in_a_row = now, 0

    def wait(self, tries: int) -> bool:
        """Whether to ask for the lock again; SQLite counts how often it did."""
        self._waited_at = self._began = self._clock()
        self._in_a_row = 0
        if tries == 0:
            self._since, self._told = self._waited_at, False
        waited = self._waited_at - self._since
        if waited >= (self._most if self.is_patient else _IMPATIENT):
            return False
        if waited * 1000 >= _TELL_MS and not self._told:
            self._told = True
            text = f"waiting: another process has the database '{self._path}' locked"
            say_aside(self._say, text)
        long = min(_LONGEST_NAP, 0.001 * 2 ** min(tries, 10))
        nap = _short_nap() if waited < _SHORTLY else long  # at first nobody is to be always late
        self._sleep(max(0.0, min(nap, self._most - waited)))
        return True


def _short_nap() -> float:
    """Seconds; another number each time, so that no two always ask at the same moment."""
    return random.uniform(0.002, 0.01)  # noqa: S311 - no secret


_CLOSED = "this store was closed"


class _Checkpoints:
    """Copies the log into the database when it holds 1000 pages or eight commits, whichever is more.

    It does so before the log reaches its limit, unless a single commit is larger.

    A log that is written over again is synced faster than one that grows: small commits keep it small. A
    large commit touches most pages of an index, and so does the next: to copy them after each one takes
    10 µs a step in a run of 100,000.
    """

    def __init__(self) -> None:
        self._pages = 0

    def __call__(self, connection: apsw.Connection, _: str, pages: int) -> int:
        last, self._pages = pages - self._pages, pages
        wanted = max(_CHECKPOINT_PAGES, _CHECKPOINT_COMMITS * last)
        if pages >= min(wanted, _MOST_PAGES - last):
            with contextlib.suppress(
                apsw.Error
            ):  # as SQLite does by itself: the next commit tries again
                connection.wal_checkpoint()
        return apsw.SQLITE_OK
