"""Artifacts as rows of the index, and the queries that read them."""

from __future__ import annotations

from contextlib import suppress
from sys import intern
from typing import cast

from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact, Form, Source, Status
from holdfast.model.digest import Digest
from holdfast.model.newest import Newest
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Holder, Owner, Stat
from holdfast.store.tables import Row, Value

INSERT = (
    "INSERT INTO artifact(line, step, config_ref, input_ref, own_ref, digest, status, source,"
    " maker, attempt, form, verified, reusable, at) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_SELECT = (
    "SELECT line.project, line.name, a.step, a.config_ref, a.input_ref, a.own_ref, a.digest,"
    " a.status, a.source, maker.run, a.attempt, a.form, a.verified, a.reusable, a.at, a.number"
    " FROM artifact a JOIN line ON line.id = a.line JOIN maker ON maker.id = a.maker"
)
_NEWEST = " ORDER BY a.number DESC LIMIT 1"
_STANDS = " AND a.status = 'accepted' AND a.source <> 'imported'"
_STEP = f" WHERE a.line = ? AND a.step = ?{_STANDS}"
FIND = f"{_SELECT}{_STEP} AND a.reusable = 1 AND a.config_ref = ?{_NEWEST}"
FIND_CONTENT = f"{_SELECT}{_STEP} AND a.reusable = 1 AND a.input_ref = ?{_NEWEST}"
FIND_ANY = f"{_SELECT}{_STEP}{_NEWEST}"
NEWEST_OF_ALL = (  # the columns of `_SELECT` after the line
    "SELECT a.step, a.config_ref, a.input_ref, a.own_ref, a.digest, a.status, a.source, maker.run,"
    " a.attempt, a.form, a.verified, a.reusable, a.at, a.number"
    " FROM (SELECT max(a.number) AS newest FROM artifact a"
    f" WHERE a.line = ?{_STANDS} GROUP BY a.step) AS found"
    " JOIN artifact a ON a.number = found.newest JOIN maker ON maker.id = a.maker"
)
LEAVE = (
    "UPDATE artifact SET status = ? WHERE line = ? AND step = ? AND status = 'accepted'"
    " AND config_ref = ? AND digest = ? AND maker = ? AND attempt = ? AND at = ?"
)
PLACE = 1 << 40  # event.place = journal * PLACE + seq
TOLD = "SELECT place, at, kind, body FROM event WHERE place > ? AND place <= ? AND at >= ?"
_PAGE = 500
_LENGTHS = [64] * 4
_FORMS = frozenset({"bytes", "program", "tree"})


_Columns = tuple[
    str, str, str, bytes, bytes, bytes, bytes, Status, Source, str, int, Form, int, int, int, int
]


def raw(digest: str) -> bytes:
    """The 32 bytes of a digest; whatever is not 64 lower-case hex digits is refused."""
    try:
        value = bytes.fromhex(digest)
    except ValueError:
        value = b""
    if len(value) != 32 or value.hex() != digest:  # noqa: PLR2004 - SHA-256
        raise IntegrityError(f"'{digest}' is not a digest")
    return value


def _raw_refs(row: Artifact) -> bytes:
    """The 4 × 32 bytes of what a row names; all are looked at together, which takes a third of the time."""
    names = (row.config_ref, row.input_ref, row.own_ref, row.digest)
    together = "".join(names)
    if [*map(len, names)] == _LENGTHS:
        with suppress(ValueError):
            found = bytes.fromhex(together)
            if found.hex() == together:
                return found
    return b"".join(map(raw, names))  # says which is none


def artifact_values(row: Artifact, line: int, maker: int) -> Row:
    """What `INSERT` binds for a row."""
    refs = _raw_refs(row)
    return (
        line,
        row.step,
        refs[:32],
        refs[32:64],
        refs[64:96],
        refs[96:],
        row.status,
        row.source,
        maker,
        row.attempt,
        row.form,
        int(row.verified),
        int(row.reusable),
        row.at,
    )


def leaving_values(row: Artifact, line: int, maker: int, status: Status) -> Row:
    """What `LEAVE` binds for a row that gets this status."""
    refs = (raw(row.config_ref), raw(row.digest))
    return (status, line, row.step, *refs, maker, row.attempt, row.at)


def beyond(after: int, number: int, table: str) -> int:
    """The row to read on from; IntegrityError if it is not a later one.

    A damaged page gives rows in another order: who reads page by page would never come to an end.
    """
    if number <= after:
        raise IntegrityError(
            f"the database is damaged: row {number} of '{table}' comes after row {after}",
            hint="holdfast verify",
        )
    return number


def keep_newest(newest: Newest, project: str, line: str, row: Row) -> None:
    """Take a row of `NEWEST_OF_ALL`. Words that come for the first time, and odd rows, are looked at."""
    step, at, number, words = row[0], row[12], row[13], row[5:12]
    with suppress(TypeError):  # what should be bytes is none
        if newest.pack(step, cast("tuple[bytes, ...]", row[1:5]), words, at, number):
            return
    artifact = artifact_from((project, line, *row))
    newest.learn(words, artifact)
    newest.add(artifact)


def artifact_from(row: Row) -> Artifact:
    """An artifact from the columns of `_SELECT`, which stand in the order of its fields.

    IntegrityError if a disk made something else of a column: its type is a bit like any other. Words that
    most rows have in common are one text for all of them: a line may have a million rows.
    """
    (
        project,
        line,
        step,
        config,
        needs,
        own,
        digest,
        status,
        source,
        run,
        attempt,
        form,
        verified,
        reusable,
        at,
        number,
    ) = cast("_Columns", row)
    if form not in _FORMS or step.__class__ is not str:
        raise _damaged(number)
    try:
        return Artifact(
            intern(project),
            intern(line),
            StepId(step),
            Digest(config.hex()),
            Digest(needs.hex()),
            Digest(own.hex()),
            Digest(digest.hex()),
            intern(status),  # type: ignore[arg-type]  # the same text
            intern(source),  # type: ignore[arg-type]
            RunId(intern(run)),
            attempt,
            intern(form),  # type: ignore[arg-type]
            verified == 1,
            reusable == 1,
            at,
            number,
        )
    except (AttributeError, TypeError):
        raise _damaged(number) from None


def _damaged(number: int) -> IntegrityError:
    return IntegrityError(f"row {number} of the artifact index is damaged", hint="holdfast rebuild")


_COLUMNS = {
    "project": "line.project",
    "line": "line.name",
    "step": "a.step",
    "run": "maker.run",
    "status": "a.status",
    "source": "a.source",
    "digest": "a.digest",
}


def page_query(asked: dict[str, Value]) -> tuple[str, list[Value]]:
    """The query for one page of rows and its values but the last: the number to start after."""
    wanted = {name: value for name, value in asked.items() if value is not None}
    where = "".join(f"{_COLUMNS[name]} = ? AND " for name in wanted)
    if "step" in wanted and "project" not in wanted:  # the index has the line before the step
        where += "a.line IN (SELECT id FROM line) AND "
    columns = _SELECT
    if "step" in wanted:  # a step has few rows, a run may have a million
        columns = _SELECT.replace("maker.id = a.maker", "maker.id = +a.maker")
    query = f"{columns} WHERE {where}a.number > ? ORDER BY a.number LIMIT {_PAGE}"
    return query, list(wanted.values())


def holder_from(row: Row) -> Holder:
    """A holder from engine, host, boot, pid, started, since, run, beat, sharing, silence."""
    engine, host, boot, pid, started, since, run, beat, sharing, silent = cast(
        "tuple[str, str, str, int, str, int, str | None, int, int, float | None]", row
    )
    owner = Owner(engine, host, boot, pid, started, since)
    return Holder(owner, None if run is None else RunId(run), beat, sharing == 1, silent)


STATS = "SELECT path, size, mtime_ns, ctime_ns, inode, digest, executable FROM stat WHERE path = ?"
STAT = "INSERT OR REPLACE INTO stat VALUES(?, ?, ?, ?, ?, ?, ?)"
_SIGN = 1 << 63  # SQLite's integers have a sign, inode numbers do not


def path_key(path: str) -> bytes:
    """A path as bytes: file names may hold what no text column takes."""
    return path.encode("utf-8", "surrogatepass")


def stat_values(path: str, stat: Stat, digest: Digest, executable: bool) -> Row:
    """What `STAT` binds."""
    inode = stat.inode - 2 * _SIGN if stat.inode >= _SIGN else stat.inode
    key = path_key(path)
    return key, stat.size, stat.mtime_ns, stat.ctime_ns, inode, raw(digest), int(executable)


def stat_from(row: Row) -> tuple[str, tuple[Stat, Digest, bool]]:
    """A cached digest by path, from the columns of `STATS`."""
    key, size, mtime, ctime, inode, digest, executable = cast(
        "tuple[bytes, int, int, int, int, bytes, int]", row
    )
    try:
        stat = Stat(size, mtime, ctime, inode + 2 * _SIGN if inode < 0 else inode)
        return key.decode("utf-8", "surrogatepass"), (stat, Digest(digest.hex()), executable == 1)
    except (AttributeError, TypeError):
        raise IntegrityError("a row of the digests of files is damaged") from None
