"""The tables of a SQLite store, as numbered steps from nothing to now.

`PRAGMA user_version` counts the steps that were applied and `application_id` says that the file is
ours. A released step is never edited; a change is a further step. A file with more steps than this
Holdfast knows is refused, never guessed at.

Constraints: about 2 KB per attempt besides its content, so few and narrow indexes; digests and
hashes are raw bytes, hex only at the edge; names that repeat in every row (line, run) are integers.

    line      project and name of a plan's line
    run       one row per run: its place in the order of creation, and the fence of its engine;
              `imported` ones are the history of another store
    journal   one row per journal: its name, its last sequence number and the hash of that
              event, so that a lost tail shows although the chain up to it still holds
    event     place = journal * 2^40 + seq: one integer key, so that a journal is a range, appends
              go to the right end of a full page, and no second index is needed
    maker     names of runs, as artifacts hold them; such a run need not exist here (imports)
    artifact  the index of results; `number` never repeats and the highest accepted one wins.
              `artifact_once` is the second wall under "accepted once": no step of a run is
              accepted twice, whatever the code does. `artifact_newest` has what stands of each step
              without a look at what stood before, `artifact_maker` what a run made: 1 µs for each
              row that is added
    blob      contents of at most 16 KB. A table with row ids: in a table keyed by digest a row
              above 1,000 bytes spills into a page of its own. `at` is the second in which it was
              last stored: what is young may be about to be named
    claim     who runs which step. The fence is the row id, never given twice, and a release removes
              the row: a late owner can never match again and nothing has to be kept
    errand    attempts that an engine wants somebody else to make, until they are taken back
    said      what such an attempt said so far, for whoever looks on
    holder    which engine says that it holds which line, and how often its heart has beaten
    stat      digests of files that were hashed before; a cache

Rejected: events keyed by (journal, seq) without row ids (a third more pages), status and superseded
flags that are rewritten (rows are append-only, "newest" is the highest number; only the withdrawal by
a person, which is rare, turns `accepted` into `withdrawn`), hex digests (twice the bytes in every
index), a row per claim for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import apsw

from holdfast.errors import StoreError

APPLICATION_ID = 0x484F4C44  # "HOLD"

_FIRST = """
CREATE TABLE line(
  id INTEGER PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, UNIQUE(project, name)
) STRICT;
CREATE TABLE run(
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
  line INTEGER NOT NULL REFERENCES line(id), fence INTEGER NOT NULL CHECK(fence > 0)
) STRICT;
CREATE TABLE journal(
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
  last INTEGER NOT NULL CHECK(last >= 0), hash BLOB NOT NULL CHECK(length(hash) = 32)
) STRICT;
CREATE TABLE event(
  place INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE TRIGGER event_is_kept BEFORE UPDATE ON event
  BEGIN SELECT RAISE(ABORT, 'events never change'); END;
CREATE TABLE maker(id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE artifact(
  number INTEGER PRIMARY KEY AUTOINCREMENT, line INTEGER NOT NULL REFERENCES line(id),
  step TEXT NOT NULL, config_ref BLOB NOT NULL, input_ref BLOB NOT NULL, own_ref BLOB NOT NULL,
  digest BLOB NOT NULL, status TEXT NOT NULL, source TEXT NOT NULL,
  maker INTEGER NOT NULL REFERENCES maker(id), attempt INTEGER NOT NULL, form TEXT NOT NULL,
  verified INTEGER NOT NULL, reusable INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;
CREATE INDEX artifact_find ON artifact(line, step, config_ref);
CREATE UNIQUE INDEX artifact_once ON artifact(maker, step, attempt)
  WHERE status = 'accepted' AND source = 'generated';
CREATE TABLE blob(
  id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, content BLOB NOT NULL
) STRICT;
CREATE TABLE claim(
  fence INTEGER PRIMARY KEY AUTOINCREMENT, line INTEGER NOT NULL REFERENCES line(id),
  step TEXT NOT NULL, config_ref BLOB NOT NULL, engine TEXT NOT NULL,
  UNIQUE(line, step, config_ref)
) STRICT;
CREATE INDEX claim_engine ON claim(engine);
CREATE TABLE holder(
  engine TEXT NOT NULL, line INTEGER NOT NULL REFERENCES line(id), host TEXT NOT NULL,
  boot TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, since INTEGER NOT NULL,
  run TEXT, beat INTEGER NOT NULL, sharing INTEGER NOT NULL, PRIMARY KEY(engine, line)
) STRICT, WITHOUT ROWID;
CREATE TABLE stat(
  path BLOB PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, digest BLOB NOT NULL,
  executable INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

_AGES_AND_IMPORTS = """
ALTER TABLE blob ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
"""

_ACCEPTED_ONCE = """
DROP INDEX artifact_once;
CREATE UNIQUE INDEX artifact_once ON artifact(maker, step)
  WHERE status = 'accepted' AND source = 'generated';
"""

_ERRANDS = """
CREATE TABLE errand(
  id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, parcel BLOB NOT NULL, engine TEXT NOT NULL,
  worker TEXT, fence INTEGER NOT NULL DEFAULT 0, report BLOB
) STRICT;
CREATE INDEX errand_free ON errand(queue, id) WHERE worker IS NULL;
CREATE INDEX errand_engine ON errand(engine);
CREATE INDEX errand_worker ON errand(worker);
CREATE TABLE said(
  id INTEGER PRIMARY KEY, errand INTEGER NOT NULL REFERENCES errand(id) ON DELETE CASCADE,
  stream TEXT NOT NULL, content BLOB NOT NULL
) STRICT;
CREATE INDEX said_errand ON said(errand, id);
"""

_MANY_ROWS = """
CREATE INDEX artifact_newest ON artifact(line, step, number)
  WHERE status = 'accepted' AND source <> 'imported';
CREATE INDEX artifact_maker ON artifact(maker);
CREATE INDEX event_purged ON event(place) WHERE kind = 'content_purged';
"""

MIGRATIONS = (_FIRST, _AGES_AND_IMPORTS, _ACCEPTED_ONCE, _ERRANDS, _MANY_ROWS)
VERSION = len(MIGRATIONS)

# How a store of an older format is read without changing it: views of this connection alone, which hide
# the tables and have the columns that are missing.
_NO_ERRANDS = """
PRAGMA temp_store = MEMORY;
CREATE TEMP VIEW errand AS SELECT 0 AS id, '' AS queue, x'' AS parcel, '' AS engine, NULL AS worker,
  0 AS fence, NULL AS report WHERE 0;
"""
AS_NOW = {
    3: _NO_ERRANDS,
    2: _NO_ERRANDS,
    1: f"""{_NO_ERRANDS}
CREATE TEMP VIEW blob AS SELECT id, digest, content, 0 AS at FROM main.blob;
CREATE TEMP VIEW run AS SELECT number, id, line, fence, 0 AS imported FROM main.run;
""",
}


def version_of(connection: apsw.Connection, name: str) -> int:
    """How many steps were applied; 0 for an empty file. StoreError for a file that is not ours.

    It is read as of one moment: another process may be making the tables.
    """
    with nullcontext() if connection.in_transaction else _one_moment(connection):
        version = connection.pragma("user_version")
        owner = connection.pragma("application_id")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version == 0 and owner == 0 and tables == (0,):
        return 0
    if owner != APPLICATION_ID or not isinstance(version, int):
        raise StoreError(
            f"'{name}' is not the database of a Holdfast store",
            hint="name another place: --store DIR, or HOLDFAST_STORE",
        )
    if version > VERSION:
        raise StoreError(
            f"store '{name}' has format {version}, this Holdfast knows formats up to {VERSION}",
            hint="upgrade holdfast",
        )
    return version


@contextmanager
def _one_moment(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def migrate(connection: apsw.Connection, name: str) -> None:
    """Apply the steps that are missing, all of them in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[version_of(connection, name) :]:
            connection.execute(step)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


SCHEMA = "SELECT type, name, sql FROM main.sqlite_schema WHERE name NOT GLOB 'sqlite_stat*'"


def schema_problems(version: int, found: Sequence[tuple[object, ...]]) -> Iterator[str]:
    """What the rows of `SCHEMA` lack, or have besides, if so many steps were applied."""
    memory = apsw.Connection(":memory:")
    try:
        for step in MIGRATIONS[:version]:
            memory.execute(step)
        made = {row[:2]: row[2] for row in memory.execute(SCHEMA)}
    finally:
        memory.close()
    there = {row[:2]: row[2] for row in found}
    for (kind, name), text in made.items():
        if (kind, name) not in there:
            yield f"its {kind} '{name}' is missing"
        elif there[kind, name] != text:
            yield f"its {kind} '{name}' is not the one that Holdfast makes"
    for kind, name in there.keys() - made.keys():
        yield f"it has a {kind!s} '{name!s}' that Holdfast does not make"
