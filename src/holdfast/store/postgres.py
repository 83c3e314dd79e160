"""A store in PostgreSQL, for many engines on many machines.

    postgresql://USER@HOST:PORT/DATABASE[?schema=NAME]

The tables are made once, by `holdfast store init`, by whoever owns the database; whoever runs plans needs
a role that reads and adds, and neither makes nor changes tables. Large contents are in the database too,
unless the store was made with a place in object storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self, cast

import psycopg
from psycopg import sql

from holdfast.errors import StoreError, UsageError
from holdfast.model.digest import Digest
from holdfast.ports import Stat
from holdfast.store import rows
from holdfast.store.blobs import Blobs
from holdfast.store.objects import BlobObjects
from holdfast.store.pgcheck import table_flaws
from holdfast.store.pgschema import MIGRATIONS, RIGHTS, VERSION
from holdfast.store.pgtables import INCARNATION, PATIENCE, Address, PgTables
from holdfast.store.pieces import BlobRows
from holdfast.store.relational import RelationalStore
from holdfast.store.verify import problems

if TYPE_CHECKING:
    from psycopg import Connection

    from holdfast.store.tables import Row

_STATS = (
    "SELECT path, size, mtime_ns, ctime_ns, inode, digest, executable FROM stat"
    " WHERE machine = %s AND path = ANY(%s)"
)
_STAT = (
    "INSERT INTO stat(machine, path, size, mtime_ns, ctime_ns, inode, digest, executable)"
    " VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(machine, path) DO UPDATE SET size = excluded.size,"
    " mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, inode = excluded.inode,"
    " digest = excluded.digest, executable = excluded.executable, at = now()"
)


class PostgresStore(RelationalStore):
    """Fills the port `Store` with a schema of a PostgreSQL database.

    `machine` names this start of this machine: digests of files are known to it alone.
    """

    _database: PgTables

    def __init__(self, database: PgTables, machine: str, cache: str | None) -> None:
        super().__init__(database, _large(database, cache))
        self._machine = machine

    @classmethod
    def open(
        cls,
        url: str,
        *,
        machine: str = "",
        cache: str | None = None,
        readonly: bool = False,
        patience: float = PATIENCE,
        say: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Open the store at an address; UsageError if there is none, and nothing is made.

        `cache` is a directory of this machine for copies of large contents that are elsewhere.
        """
        database = PgTables(Address(url), readonly=readonly, patience=patience, say=say)
        try:
            database.open()
            store = cls(database, machine, cache)
            if not readonly:
                store._contents.drop_marked()
        except BaseException:
            database.close()
            raise
        return store

    @property
    def shown(self) -> str:
        """Its address without a password."""
        return self._database.address.shown

    @property
    def incarnation(self) -> str:
        """Changes when the database was restored or moved to another server."""
        return self._database.incarnation

    def check(self) -> Iterator[str]:
        """As every store does; large contents are checked where they are, not as copies."""
        yield from self._database.flaws()
        with self._database.connect() as connection:
            yield from table_flaws(connection, self._database.address.schema)
        yield from problems(self._database, _large(self._database, None))

    def clock(self) -> int:
        """What time it is on the server, in milliseconds since 1970."""
        query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        return cast("int", self._database.query(query, ())[0][0])

    def facts(self) -> dict[str, int | str]:
        """What there is to know of the database itself."""
        server = self._database.query("SELECT current_setting('server_version')", ())
        return {
            "format": VERSION,
            "server": f"PostgreSQL {server[0][0]!s}",
            "incarnation": self.incarnation,
            "large": self._database.blobs or "in the database",
        }

    def stats(self, paths: Iterable[str]) -> Mapping[str, tuple[Stat, Digest, bool]]:
        keys = [rows.path_key(path) for path in paths]
        found = self._database.query(_STATS, (self._machine, keys)) if keys else []
        return dict(rows.stat_from(row) for row in found)

    def remember_stats(self, items: Iterable[tuple[str, Stat, Digest, bool]]) -> None:
        values = [(self._machine, *rows.stat_values(*item)) for item in items]
        self._write_many(_STAT, values)


def _large(database: PgTables, cache: str | None) -> Blobs:
    return BlobObjects(database.blobs, cache) if database.blobs else BlobRows(database)


def make_store(url: str, *, blobs: str = "", role: str = "") -> tuple[str, bool]:
    """Make the tables, or bring them up to date, and let a role use them; gives what is there now.

    The address without its password, and whether anything was made. All in one transaction.
    """
    tables = PgTables(Address(url))
    if blobs:
        _try_blobs(blobs)
    try:
        with tables.connect() as connection, connection.transaction():
            # Whoever comes second waits until the first is done, grants and all.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('holdfast store init'))")
            made = _migrated(connection, tables.address.schema, blobs)
            if role:
                _grant(connection, tables.address.schema, role)
            return tables.address.shown, made
    except psycopg.Error as error:
        raise tables.failure(error) from error
    finally:
        tables.close()


def _try_blobs(location: str) -> None:
    """StoreError or UsageError if nothing can be stored there and read again."""
    place = BlobObjects(location, None)
    trial = b"a trial of Holdfast, which may be removed\n" * 1_000
    digest = place.put((trial,))
    if b"".join(place.chunks(digest)) != trial:
        raise StoreError(f"'{location}' does not give back what is stored there")
    place.forget(digest)


def _migrated(connection: Connection[Row], schema: str, blobs: str) -> bool:
    with connection.transaction():
        connection.execute(
            sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
            if not _has_schema(connection, schema)
            else sql.SQL("SELECT 1")
        )
        version = _version(connection)
        if version > VERSION:
            raise StoreError(
                f"the store has format {version}, this Holdfast knows formats up to {VERSION}",
                hint="upgrade holdfast",
            )
        for step in MIGRATIONS[version:]:
            connection.execute(step.replace("{schema}", f'"{schema}"').encode())
        if version == 0:
            connection.execute(
                "INSERT INTO meta SELECT 1, %s, gen_random_uuid(), server, timeline, %s"
                f" FROM ({INCARNATION}) AS now(server, timeline)",
                (VERSION, blobs),
            )
        else:
            _check_blobs(connection, blobs)
            connection.execute("UPDATE meta SET version = %s", (VERSION,))
    return version < VERSION


def _has_schema(connection: Connection[Row], schema: str) -> bool:
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
    return found.fetchone() is not None


def _version(connection: Connection[Row]) -> int:
    """How many steps were applied."""
    query = "SELECT to_regclass(current_schema() || '.meta') IS NOT NULL"
    if connection.execute(query).fetchone() != (True,):
        return 0
    found = connection.execute("SELECT version FROM meta").fetchone()
    return cast("int", found[0]) if found else 0


def _check_blobs(connection: Connection[Row], blobs: str) -> None:
    found = connection.execute("SELECT blobs FROM meta").fetchone()
    if blobs and found != (blobs,):
        there = f"'{found[0]!s}'" if found and found[0] else "the database"
        raise UsageError(
            f"large contents of this store are in {there}, and stay there",
            hint="holdfast push brings runs into another store",
        )


def _grant(connection: Connection[Row], schema: str, role: str) -> None:
    """Let a role do what running plans takes, and nothing else."""
    name, place = sql.Identifier(role), sql.Identifier(schema)
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
        raise UsageError(f"the server has no role '{role}'", hint=f'CREATE ROLE "{role}" LOGIN')
    with connection.transaction():
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(place, name))
        for table, rights in RIGHTS.items():
            connection.execute(
                sql.SQL("GRANT {} ON {} TO {}").format(
                    sql.SQL(rights), sql.Identifier(schema, table), name
                )
            )
        connection.execute(
            sql.SQL("GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {} TO {}").format(
                place, name
            )
        )
