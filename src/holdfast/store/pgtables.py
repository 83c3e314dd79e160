"""A PostgreSQL database under a store: two connections, opened when they are needed and again when lost.

A transaction that the server gave up on (a deadlock, a lost connection, a restart) is done again from its
beginning, which reads again all that it decides by. Only a commit may be lost in two ways: the server did
not get it, or its answer did not come. Every transaction counts up a row of its own process, so afterwards
the count says which it was; the row is locked by the transaction, so nobody reads it before the server has
decided. Session locks are not used, and a process that stands still in the midst of a transaction loses it
after some seconds: others do not wait for it.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import psycopg
from psycopg import errors, sql

from holdfast.errors import (
    BugError,
    ConflictError,
    HoldfastError,
    LockedError,
    StoreError,
    UsageError,
)
from holdfast.store.aside import say_aside
from holdfast.store.pgrefusals import REFUSED, refusal_of
from holdfast.store.pgschema import TABLES, TRIGGERS, VERSION
from holdfast.store.pgwatch import connect_watched
from holdfast.store.tables import Cursor, Row, Value

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import Params

T = TypeVar("T")

PATIENCE = 300.0  # seconds for a server that restarts; after that it will not come back by itself
_TELL = 2.0
_LONGEST_NAP = 1.0
_OLDEST = 140000  # server_version_num
_IMPATIENT_MS = 5
_STILL_MS = 15_000  # how long a process may stand still in a transaction
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
_GONE = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.TooManyConnections,
)
_SETTINGS = {
    "idle_in_transaction_session_timeout": f"{_STILL_MS}ms",
    "client_min_messages": "warning",
    "timezone": "UTC",
}
_SYNCED = frozenset({"on", "remote_apply"})
_CLOSED = "this store was closed"
_BETWEEN_HINTS = 0.02  # seconds
_LOOK = 0.5


class Address:
    """Where a store is: what libpq takes, and the schema. Shown without its password."""

    def __init__(self, url: str) -> None:
        base, _, query = url.partition("?")
        pairs = [pair for pair in query.split("&") if pair]
        names = [pair.removeprefix("schema=") for pair in pairs if pair.startswith("schema=")]
        rest = "&".join(pair for pair in pairs if not pair.startswith("schema="))
        self.schema = names[-1] if names else "holdfast"
        if not self.schema.isidentifier() or not self.schema.isascii():
            raise UsageError(f"'{self.schema}' cannot be the name of a schema")
        self.info = f"{base}?{rest}" if rest else base
        try:
            known = psycopg.conninfo.conninfo_to_dict(self.info)
        except psycopg.Error as error:
            said = str(error).strip().splitlines()
            raise UsageError(f"the address of the store is not right: {said[0]}") from None
        parts = {name: str(value) for name, value in known.items() if value is not None}
        self.user = parts.get("user", "")
        user = f"{self.user}@" if self.user else ""
        host = parts.get("host") or parts.get("hostaddr") or ""
        port = f":{parts['port']}" if "port" in parts else ""
        place = f"{user}{host if not host.startswith('/') else ''}{port}/{parts.get('dbname', '')}"
        socket = f"?host={host}" if host.startswith("/") else ""
        self.shown = f"postgresql://{place}{socket}"
        if self.schema != "holdfast":
            self.shown += f"{'&' if socket else '?'}schema={self.schema}"


class _Cursor:
    """Takes the statements of the store, where `?` stands for a value."""

    def __init__(self, connection: Connection[Row]) -> None:
        self._cursor = connection.cursor(binary=True)

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Cursor:
        self._cursor.execute(_translated(statement), values)
        return self

    def executemany(self, statement: str, values: Sequence[Row], /) -> object:
        if values:
            self._cursor.executemany(_translated(statement), cast("Sequence[Params]", values))
        return self

    def fetchone(self) -> Row | None:
        return self._cursor.fetchone() if self._has_rows else None

    def fetchall(self) -> list[Row]:
        return self._cursor.fetchall() if self._has_rows else []

    @property
    def _has_rows(self) -> bool:
        """As `description` tells it, without describing every column: this is asked of each statement."""
        result = self._cursor.pgresult
        return result is not None and result.nfields > 0


_known: dict[str, bytes] = {}


def _translated(statement: str) -> bytes:
    """The statement as psycopg takes it. There are a few hundred, each translated once."""
    found = _known.get(statement)
    if found is None:
        found = _known[statement] = statement.replace("%", "%%").replace("?", "%s").encode()
    return found


class PgTables:
    """Fills `Tables` with a schema of a PostgreSQL database."""

    lock = " FOR NO KEY UPDATE"
    skip = " FOR NO KEY UPDATE SKIP LOCKED"
    # A server that was away could not be told of any beat.
    silence = "extract(epoch FROM clock_timestamp() - greatest(beaten, pg_postmaster_start_time()))::float8"
    twice = errors.UniqueViolation

    def __init__(
        self,
        address: Address,
        *,
        readonly: bool = False,
        patience: float = PATIENCE,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.address = address
        self.readonly = readonly
        self._patience = patience
        self._say = say
        self._pid = os.getpid()
        self._refusal = ""
        self._session = str(uuid.uuid4())
        self._count = 0  # transactions of the session that were begun
        self._write_lock = threading.Lock()
        self._read_lock = threading.RLock()
        self._writer: Connection[Row] | None = None
        self._reader: Connection[Row] | None = None
        self._is_steady = False
        self._hinted = 0.0
        self.incarnation = ""
        self.blobs = ""

    # connections

    def connect(self) -> Connection[Row]:
        """A connection that commits durably and does not wait for ever for a process that stands still."""
        connection: Connection[Row] = connect_watched(
            self.address.info,
            connect_timeout=10,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=30_000,
            application_name="holdfast",
        )
        try:
            for name, value in _SETTINGS.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            path = f'"{self.address.schema}", pg_temp'
            connection.execute("SELECT set_config('search_path', %s, false)", (path,))
            self._check_server(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_server(self, connection: Connection[Row]) -> None:
        """StoreError if it is too old, or does not keep what it calls committed."""
        if connection.info.server_version < _OLDEST:
            raise StoreError(
                f"the server of '{self.address.shown}' is PostgreSQL"
                f" {connection.info.server_version // 10000}; 14 is the oldest that will do"
            )
        if _shown(connection, "synchronous_commit") not in _SYNCED:
            connection.execute("SET synchronous_commit = on")
        for name, wanted in (("synchronous_commit", _SYNCED), ("fsync", {"on"})):
            value = _shown(connection, name)
            if value not in wanted:
                raise StoreError(
                    f"the server of '{self.address.shown}' has '{name} = {value}':"
                    " what it calls committed may be gone after a crash",
                    hint=f"set {name} = on in its configuration",
                )

    def open(self) -> None:
        """See that there is a store of this format; UsageError if there is none."""
        with self._write_lock, self._failing():
            connection = self._answering()
            found = connection.execute(
                "SELECT to_regclass('meta') IS NOT NULL AND to_regclass('meta')::oid IN"
                " (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace(%s))",
                (f'"{self.address.schema}"',),
            ).fetchone()
            if found != (True,):
                self._check_may_use(connection)
                raise UsageError(
                    f"no store at '{self.address.shown}'",
                    hint="holdfast store init makes one",
                )
            row = connection.execute(
                "SELECT version, incarnation::text, blobs FROM meta"
            ).fetchone()
            version, self.incarnation, self.blobs = cast("tuple[int, str, str]", row)
        if version > VERSION:
            raise StoreError(
                f"store '{self.address.shown}' has format {version}, this Holdfast knows formats up"
                f" to {VERSION}",
                hint="upgrade holdfast",
            )
        if version < VERSION:
            raise StoreError(
                f"store '{self.address.shown}' has format {version}, this Holdfast wants {VERSION}",
                hint="holdfast store migrate",
            )
        if not self.readonly:
            self._see_incarnation()

    def _answering(self) -> Connection[Row]:
        """The first connection. A server that starts is waited for, one that nobody hears is not."""
        waiting = Waiting(self._patience, self.address.shown, self._say)
        while True:
            try:
                return self._connected_writer()
            except psycopg.OperationalError as error:
                if refusal_of(error) != "starting" or not waiting.rest():
                    raise

    def _check_may_use(self, connection: Connection[Row]) -> None:
        """StoreError if there is such a schema, and this role may not even look into it."""
        found = connection.execute(
            "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s",
            (self.address.schema,),
        ).fetchone()
        if found == (False,):
            raise StoreError(
                f"'{self._user()}' may not use the store at '{self.address.shown}'",
                hint="holdfast store migrate URL --role NAME, by its owner, lets a role use it",
            )

    def _see_incarnation(self) -> None:
        """If the data are on another server, or another timeline of it, take nothing for granted."""

        def work(cursor: Cursor) -> bool:
            row = cursor.execute(f"SELECT server, timeline FROM meta{self.lock}").fetchone()
            now = cursor.execute(INCARNATION).fetchone()
            if row == now or now is None:
                return False
            renewed = "UPDATE meta SET incarnation = gen_random_uuid(), server = ?, timeline = ?"
            cursor.execute(renewed, now)
            cursor.execute("UPDATE run SET fence = fence + 1000000")
            for table in ("claim", "errand", "holder"):
                cursor.execute(f"DELETE FROM {table}")
            return True

        if self.write(work):
            self._say(
                "the database was restored, or moved to another server: engines that worked with it"
                " before can write no more, and what they had not committed there runs again"
            )
        self.incarnation = str(self.rows("SELECT incarnation::text FROM meta")[0][0])

    def _connected_writer(self) -> Connection[Row]:
        if self._writer is None or self._writer.closed:
            self._writer = self.connect()
            if not self.readonly and self._count:
                self._begin_session(self._writer)
        return self._writer

    def _begin_session(self, connection: Connection[Row]) -> None:
        connection.execute(
            "INSERT INTO session(id, count) VALUES(%s, 0) ON CONFLICT DO NOTHING", (self._session,)
        )

    # use

    def write(self, work: Callable[[Cursor], T], *, wait: bool = True) -> T:
        with self._write_lock:
            self.check_writable()
            return self._made(work, wait=wait)

    def once(self, statement: str, values: Sequence[Value], seen: tuple[str, Row]) -> list[Row]:
        waiting = Waiting(self._patience, self.address.shown, self._say)
        unsure = False
        with self._write_lock:
            self.check_writable()
            while True:
                try:
                    cursor = _Cursor(self._connected_writer())
                    if unsure and (found := cursor.execute(*seen).fetchall()):
                        return found
                    unsure = True
                    return cursor.execute(statement, values).fetchall()
                except (psycopg.Error, UnicodeError) as error:
                    self._see_whether_away(error, waiting)

    def _see_whether_away(self, error: psycopg.Error | UnicodeError, waiting: Waiting) -> None:
        """Rest if the server gave up or is away; raises anything else, and the same after too long."""
        if isinstance(error, self.twice):
            raise ConflictError("another process stored the same meanwhile") from error
        if is_away(error):
            self._drop_writer()
        elif not isinstance(error, _AGAIN):
            raise self.failure(error) from error
        if not waiting.rest():
            raise self.failure(error) from error

    def _made(self, work: Callable[[Cursor], T], *, wait: bool) -> T:
        """One transaction, tried until it is made, refused, or nobody can be reached any more.

        Who does not want to wait waits for no lock, but for a server that is away: the commit may be made.
        """
        waiting = Waiting(self._patience, self.address.shown, self._say)
        unsure: tuple[int, T] | None = None  # a commit whose end nobody saw, and what it gives
        while True:
            try:
                connection = self._connected_writer()
                if unsure is not None and self._was_committed(connection, unsure[0]):
                    return unsure[1]
                unsure = None
                number = self._begin(connection, wait=wait)
                try:
                    result = work(_Cursor(connection))
                    unsure = (number, result)
                    connection.execute("COMMIT")
                except BaseException:
                    _roll_back(connection)
                    raise
                return result
            except (psycopg.Error, UnicodeError) as error:
                if isinstance(error, _AGAIN):
                    unsure = None
                self._see_whether_away(error, waiting)

    def _begin(self, connection: Connection[Row], *, wait: bool) -> int:
        """Begin a transaction and count it; gives its number."""
        if self._count == 0:
            self._begin_session(connection)
        self._count += 1
        limit = "" if wait else f"SET LOCAL lock_timeout = {_IMPATIENT_MS};"
        connection.execute(
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {limit}"
            f" UPDATE session SET count = {self._count}, at = now() WHERE id = '{self._session}'"
        )
        return self._count

    def _was_committed(self, connection: Connection[Row], number: int) -> bool:
        """Whether a transaction was committed whose end nobody saw."""
        query = "SELECT count FROM session WHERE id = %s FOR UPDATE"
        return connection.execute(query, (self._session,)).fetchone() == (number,)

    def _drop_writer(self) -> None:
        """Give up on the connection that writes."""
        if self._writer is not None:
            with contextlib.suppress(psycopg.Error):
                self._writer.close()
        self._writer = None

    @contextlib.contextmanager
    def steady(self) -> Iterator[None]:
        with self._read_lock:
            self._read(lambda one: one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            self._is_steady = True
            try:
                yield
            finally:
                self._is_steady = False
                if self._reader is not None:
                    with contextlib.suppress(psycopg.Error):
                        self._reader.execute("ROLLBACK")

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        return self._read(lambda one: _Cursor(one).execute(statement, values).fetchall())

    def each(self, statement: str, values: Sequence[Value], take: Callable[[Row], None]) -> None:
        def work(one: Connection[Row]) -> None:
            for row in _Cursor(one).execute(statement, values).fetchall():
                take(row)

        self._read(work)

    def rows_many(self, statement: str, values: Sequence[Sequence[Value]]) -> list[Row]:
        return [row for one in values for row in self.rows(statement, one)]

    def query(self, statement: str, values: Sequence[object]) -> list[Row]:
        """All rows of a query of PostgreSQL alone, where `%s` stands for a value."""
        return self._read(
            lambda one: one.cursor(binary=True).execute(statement.encode(), values).fetchall()
        )

    def _read(self, work: Callable[[Connection[Row]], T]) -> T:
        """Read; what was lost on the way is read again, unless it was to be of one moment."""
        waiting = Waiting(self._patience, self.address.shown, self._say)
        with self._read_lock:
            self.check_usable()
            while True:
                try:
                    if self._reader is None or self._reader.closed:
                        self._reader = self.connect()
                    return work(self._reader)
                except (psycopg.Error, UnicodeError) as error:
                    is_lost = is_away(error)
                    if is_lost and self._reader is not None:
                        self._reader.close()
                        self._reader = None
                    if not is_lost or self._is_steady or not waiting.rest():
                        raise self.failure(error) from error

    def alone(self, cursor: Cursor) -> None:
        cursor.execute("LOCK TABLE run, journal, artifact IN SHARE ROW EXCLUSIVE MODE")

    def reach(self, journal: int, event: int) -> None:
        """The server keeps its own log."""

    def empty(self, cursor: Cursor, table: str) -> None:
        cursor.execute(f"DELETE FROM {table}")

    def count_on(self, cursor: Cursor, table: str) -> None:
        cursor.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
        after = f"(SELECT coalesce(max(number), 0) + 1 FROM {table})"
        cursor.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), {after}, false)"
        )

    # hints

    def hint(self) -> None:
        """A message of its own, after the commit and not too often: it must not slow anything down."""
        now = time.monotonic()
        if now - self._hinted < _BETWEEN_HINTS:
            return
        self._hinted = now
        with self._write_lock, contextlib.suppress(psycopg.Error):
            if self._writer is not None and not self._writer.closed:
                self._writer.execute("SELECT pg_notify(%s, '')", (self._channel,))

    @contextlib.contextmanager
    def hints(self, wake: Callable[[], None]) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._listen, args=(wake, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _listen(self, wake: Callable[[], None], ended: threading.Event) -> None:
        """Pass hints on; without a connection there are none until there is one again."""
        while not ended.is_set():
            with contextlib.suppress(psycopg.Error, HoldfastError), self.connect() as connection:
                connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                while not ended.is_set():
                    for _ in connection.notifies(timeout=_LOOK, stop_after=1):
                        wake()
            ended.wait(_LOOK)

    @property
    def _channel(self) -> str:
        return f"holdfast_{self.address.schema}"

    # trust

    def assure(self) -> None:
        """Nothing is looked at: the server has checksums of its pages, and holds references itself."""

    def flaws(self) -> Iterator[str]:
        query = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(?)"
        schema = f'"{self.address.schema}"'
        there = {row[0] for row in self.rows(query, (schema,))}
        for table in TABLES:
            if table not in there:
                yield f"database: its table '{table}' is missing"
        query = (
            "SELECT tgrelid::regclass::text, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid ="
            " tgrelid WHERE relnamespace = to_regnamespace(?) AND tgenabled <> 'D'"
        )
        armed = {(str(row[0]), str(row[1])) for row in self.rows(query, (schema,))}
        for table, trigger in TRIGGERS:
            if (table, trigger) not in armed:
                yield f"database: the trigger '{trigger}' of '{table}' is missing or off"

    def check_usable(self) -> None:
        """StoreError if this object was closed, or belongs to the parent of a fork."""
        if self._refusal:
            raise StoreError(self._refusal)
        if os.getpid() != self._pid:
            raise StoreError(
                "this store was opened by another process",
                hint="open the store again after a fork",
            )

    def check_writable(self) -> None:
        self.check_usable()
        if self.readonly:
            raise BugError("a store that was opened to read was asked to write")

    def close(self) -> None:
        if os.getpid() != self._pid or self._refusal == _CLOSED:
            return
        with self._write_lock, self._read_lock, contextlib.suppress(psycopg.Error):
            if self._writer is not None and self._count and not self._writer.closed:
                self._writer.execute("DELETE FROM session WHERE id = %s", (self._session,))
        for connection in (self._reader, self._writer):
            if connection is not None:
                with contextlib.suppress(psycopg.Error):
                    connection.close()
        self._reader = self._writer = None
        self._refusal = _CLOSED

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, UnicodeError) as error:
            raise self.failure(error) from error

    def failure(self, error: psycopg.Error | UnicodeError) -> HoldfastError:
        """The error in our words; nothing of it shows a password."""
        shown = self.address.shown
        said = (str(error).strip().splitlines() or ["no reason given"])[0]
        match error:
            case UnicodeEncodeError():
                return UsageError(f"{error.object!a} is not text that can be stored")
            case UnicodeError():
                return StoreError(f"the database '{shown}' gave what is no text: {error}")
            case errors.LockNotAvailable():
                return LockedError(f"others have rows of the database '{shown}' locked")
            case errors.InsufficientPrivilege():
                return StoreError(
                    f"the database '{shown}' does not let '{self._user()}' do that: {said}",
                    hint="holdfast store init --role NAME gives a role what it needs",
                )
            case errors.DiskFull():
                return StoreError(
                    f"the disk of the database '{shown}' is full",
                    hint="free some space, then resume",
                )
            case psycopg.OperationalError() if words := REFUSED.get(refusal_of(error)):
                return StoreError(f"the database '{shown}' {words[0]}: {said}", hint=words[1])
            case psycopg.OperationalError() if error.sqlstate is None:
                return StoreError(
                    f"the database '{shown}' cannot be reached: {said}",
                    hint="is the server running, and is this its address?",
                )
            case _:
                return StoreError(f"the database '{shown}' refused: {said}")

    def _user(self) -> str:
        return self.address.user or "you"


# What a dump made again has another number for its tables, also on the same server.
INCARNATION = (
    "SELECT system_identifier::text || '/' || 'meta'::regclass::oid::text, timeline_id::bigint"
    " FROM pg_control_system(), pg_control_checkpoint()"
)


def _shown(connection: Connection[Row], setting: str) -> str:
    found = connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()
    return str(found[0]) if found else ""


def _roll_back(connection: Connection[Row]) -> None:
    if not connection.closed:
        with contextlib.suppress(psycopg.Error):
            connection.execute("ROLLBACK")


def is_away(error: Exception) -> bool:
    """Whether a server that answered before went, or is about to go or to come: not whether it refused."""
    if isinstance(error, (*_GONE, psycopg.InterfaceError)):  # the latter: the connection was closed
        return True
    if not isinstance(error, psycopg.OperationalError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(
        "08"
    )  # None: what libpq met on the way


class Waiting:
    """Naps that get longer, until patience ends; says once what is waited for."""

    def __init__(self, patience: float, shown: str, say: Callable[[str], None]) -> None:
        self._since = time.monotonic()
        self._patience = patience
        self._shown = shown
        self._say = say
        self._nap = 0.002
        self._told = False

    def rest(self) -> bool:
        """Whether to try again, after a nap."""
        waited = time.monotonic() - self._since
        if waited >= self._patience:
            return False
        if waited >= _TELL and not self._told:
            self._told = True
            say_aside(self._say, f"waiting: the database '{self._shown}' cannot be reached")
        time.sleep(self._nap * (0.5 + random.random()))  # noqa: S311 - so that not all wake at once
        self._nap = min(_LONGEST_NAP, 2 * self._nap)
        return True
