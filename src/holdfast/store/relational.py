"""A store in tables, whichever database has them: journals, runs, artifact index, claims, holders.

A batch is one transaction. Events are turned into text before the transaction begins, so that locks which
processes share are held for inserts only. Ids of lines and runs are remembered per process; a rolled back
transaction forgets them. Statements are those that SQLite and PostgreSQL both take; the few that differ
stand in the database.

One thread may write while another reads. Generators fetch a page of rows at a time and keep nothing
open between pages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Self, cast

from holdfast.errors import ConflictError, IntegrityError
from holdfast.model.artifact import Artifact, Status
from holdfast.model.digest import Digest
from holdfast.model.event import Event, Recorded
from holdfast.model.newest import Newest
from holdfast.model.plan import RunId, StepId
from holdfast.ports import (
    Append,
    Batch,
    ClaimKey,
    Errand,
    Holder,
    Kept,
    Owner,
    Raw,
    RunRow,
    Stat,
    Stored,
)
from holdfast.store import rows
from holdfast.store.blobs import SMALL, Blobs
from holdfast.store.codec import (
    class_of,
    decode,
    encode,
    first_hash,
    hash_of_row,
    kind_of_class,
    next_hash,
)
from holdfast.store.contents import INSERT, Contents
from holdfast.store.errands import Errands
from holdfast.store.holds import Holds
from holdfast.store.names import Names
from holdfast.store.refusals import (
    RUN,
    accepted_twice,
    begun_meanwhile,
    check_end,
    check_fence,
    first_batch,
    is_history,
    no_run,
    run_exists,
)
from holdfast.store.rows import artifact_from, artifact_values, keep_newest, path_key, raw
from holdfast.store.tables import Cursor, Row, Tables, Value
from holdfast.store.verify import problems

_Texts = list[tuple[int, str, str]]  # at, kind, body
_Small = list[tuple[bytes, bytes]]  # digest, content

_EVENTS = 1000  # events per query


class RelationalStore:
    """Fills the port `Store` with the tables of a database, and a place for large contents."""

    def __init__(self, database: Tables, files: Blobs) -> None:
        self._database = database
        self._files = files
        self._contents = Contents(database, files)
        self._names = Names(database)
        self._holds = Holds(database, self._names)
        self._errands = Errands(database)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # batches

    def commit(self, batch: Batch, *, wait: bool = True) -> None:
        texts, small = self._prepared(batch)
        self._names.write(lambda cursor: self._apply(cursor, batch, texts, small), wait=wait)
        if batch.released:
            self._database.hint()

    def open_run(
        self, run: RunId, project: str, line: str, batch: Batch, engine: str | None = None
    ) -> int:
        first = first_batch(run, batch)
        texts, small = self._prepared(first)

        def work(cursor: Cursor) -> int:
            self._holds.check_there(cursor, engine)
            if cursor.execute("SELECT 1 FROM run WHERE id = ?", (run,)).fetchone():
                raise run_exists(run)
            values = (run, self._names.line(cursor, project, line))
            cursor.execute("INSERT INTO run(id, line, fence) VALUES(?, ?, 1)", values)
            self._apply(cursor, first, texts, small)
            return 1

        return self._names.write(work)

    def take_run(
        self, run: RunId, engine: str | None = None, *, unless_driven: bool = False
    ) -> int:
        def work(cursor: Cursor) -> int:
            self._holds.check_there(cursor, engine)
            if unless_driven:
                self._holds.check_undriven(cursor, run, engine)
            raised = "UPDATE run SET fence = fence + 1 WHERE id = ? RETURNING fence"
            found = cursor.execute(f"{raised}, imported", (run,)).fetchall()
            if not found:
                raise no_run(run)
            if found[0][1]:
                raise is_history(run)
            return cast("int", found[0][0])

        return self._names.write(work)

    def add_runs(self, rows: Sequence[RunRow], batch: Batch) -> None:
        texts, small = self._prepared(batch)

        def work(cursor: Cursor) -> None:
            for row in rows:
                if cursor.execute("SELECT 1 FROM run WHERE id = ?", (row.run,)).fetchone():
                    raise run_exists(row.run)
                line = self._names.line(cursor, row.project, row.line)
                values = (row.run, line, row.fence, int(row.imported))
                if row.number:
                    cursor.execute(_ADD_NUMBERED, (row.number, *values))
                else:
                    cursor.execute(_ADD_RUN, values)
            if any(row.number for row in rows):
                self._database.count_on(cursor, "run")
            self._apply(cursor, batch, texts, small)

        self._names.write(work)

    def remove_run(self, run: RunId, batch: Batch) -> None:
        texts, small = self._prepared(batch)

        def work(cursor: Cursor) -> None:
            removed = "DELETE FROM run WHERE id = ? RETURNING 1"
            if not cursor.execute(removed, (run,)).fetchall():
                raise no_run(run)
            self._apply(cursor, batch, texts, small)
            journal = cursor.execute(
                "DELETE FROM journal WHERE name = ? RETURNING id", (f"{RUN}{run}",)
            ).fetchall()
            for (number,) in cast("list[tuple[int]]", journal):
                span = (number * rows.PLACE, (number + 1) * rows.PLACE)
                cursor.execute("DELETE FROM event WHERE place > ? AND place < ?", span)
            cursor.execute(_REMOVE_ROWS, (run,))

        self._names.write(work)

    def purge(self, digests: Sequence[Digest], numbers: Iterable[int], batch: Batch) -> None:
        texts, small = self._prepared(batch)
        unfit = [(number,) for number in numbers]

        def work(cursor: Cursor) -> None:
            self._contents.drop(cursor, digests)
            self._apply(cursor, batch, texts, small)
            cursor.executemany("UPDATE artifact SET reusable = 0 WHERE number = ?", unfit)

        for append in batch.appends[:1]:
            self._contents.mark(digests, append.journal, append.expected + 1)
        try:
            self._names.write(work)
        except (
            ConflictError
        ):  # what the mark names is another's word, perhaps about the same content
            self._contents.unmark(digests)
            raise
        self._contents.drop_files(digests)

    def _prepared(self, batch: Batch) -> tuple[list[_Texts], _Small]:
        """What can be done before the transaction; large contents become durable here."""
        texts = [[(at, *encode(event)) for at, event in item.events] for item in batch.appends]
        small: _Small = []
        for digest, content in batch.blobs:
            if len(content) <= SMALL:
                small.append((raw(digest), content))
            else:
                self._contents.put(content)
        return texts, small

    def _apply(self, cursor: Cursor, batch: Batch, texts: list[_Texts], small: _Small) -> None:
        for append, encoded in zip(batch.appends, texts, strict=True):
            self._append(cursor, append, encoded)
        for key, fence in batch.held:
            self._holds.check(cursor, key, fence)
        if small:
            cursor.executemany(INSERT, small)
        self._leave(cursor, "superseded", batch.superseded)
        if batch.artifacts:
            self._insert_artifacts(cursor, batch.artifacts)
        self._leave(cursor, "withdrawn", batch.withdrawn)
        for key, fence in batch.released:
            self._holds.release(cursor, key, fence)

    def _leave(self, cursor: Cursor, status: Status, artifacts: Iterable[Artifact]) -> None:
        """Mark rows that no longer stand."""
        for gone in artifacts:
            line = self._names.line(cursor, gone.project, gone.line)
            maker = self._names.maker(cursor, gone.run)
            cursor.execute(rows.LEAVE, rows.leaving_values(gone, line, maker, status))

    def _append(self, cursor: Cursor, append: Append, texts: _Texts) -> None:
        name = append.journal
        if texts and name.startswith(RUN):
            run = name.removeprefix(RUN)
            query = f"SELECT fence FROM run WHERE id = ?{self._database.lock}"
            fence = cursor.execute(query, (run,)).fetchone()
            check_fence(run, cast("int", fence[0]) if fence is not None else None, append)
        query = f"SELECT id, last, hash FROM journal WHERE name = ?{self._database.lock}"
        head = cursor.execute(query, (name,)).fetchone()
        journal, seq, chain = cast("tuple[int, int, bytes]", head or (0, 0, first_hash(name)))
        check_end(append, seq)
        if not texts:
            return
        if not journal:
            journal = self._begun(cursor, append, chain)
        place, new = journal * rows.PLACE, []
        for at, kind, body in texts:
            seq += 1
            chain = next_hash(chain, seq, at, kind, body)
            new.append((place + seq, at, kind, body, chain))
        cursor.executemany("INSERT INTO event VALUES(?, ?, ?, ?, ?)", new)
        cursor.execute("UPDATE journal SET last = ?, hash = ? WHERE id = ?", (seq, chain, journal))
        self._database.reach(journal, seq)

    def _begun(self, cursor: Cursor, append: Append, chain: bytes) -> int:
        """Make a journal; ConflictError if somebody else just did."""
        made = "INSERT INTO journal(name, last, hash) VALUES(?, 0, ?) ON CONFLICT DO NOTHING"
        found = cursor.execute(f"{made} RETURNING id", (append.journal, chain)).fetchall()
        if not found:
            raise begun_meanwhile(append)
        return cast("int", found[0][0])

    def _insert_artifacts(self, cursor: Cursor, artifacts: Iterable[Artifact]) -> None:
        values, names, line, maker = [], ("", "", ""), 0, 0
        for row in artifacts:
            if (row.project, row.line, row.run) != names:  # most are of one run
                names = (row.project, row.line, row.run)
                line = self._names.line(cursor, row.project, row.line)
                maker = self._names.maker(cursor, row.run)
            values.append(artifact_values(row, line, maker))
        try:
            cursor.executemany(rows.INSERT, values)
        except self._database.twice as error:
            raise accepted_twice(str(error)) from error

    def _write_many(self, statement: str, values: Sequence[Row]) -> None:
        """One statement for each set of values, in one transaction."""

        def work(cursor: Cursor) -> None:
            cursor.executemany(statement, values)

        if values:
            self._names.write(work)

    # journals and runs

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        for seq, at, kind, body in self._chained(journal, after):
            yield Recorded(seq, at, _decoded(journal, seq, kind, body))

    def kept(self, journal: str) -> Iterator[tuple[int, Kept]]:
        for seq, at, kind, body in self._chained(journal):
            yield at, Kept(class_of(kind), body, partial(_decoded, journal, seq, kind, body))

    def _chained(self, journal: str, after: int = 0) -> Iterator[tuple[int, int, str, str]]:
        """The rows of a journal, as far as the chain vouches for them."""
        head = self._database.rows("SELECT id, last, hash FROM journal WHERE name = ?", (journal,))
        if not head:
            return
        number, last, end = cast("tuple[int, int, bytes]", head[0])
        if after >= last:
            return
        chain = first_hash(journal) if after <= 0 else self._hash_at(journal, number, after)
        seq = max(after, 0)
        while seq < last:
            place = number * rows.PLACE
            page = self._database.rows(_READ, (place + seq, place + last, _EVENTS))
            if not page:
                break
            for row in cast("list[tuple[int, int, str, str, bytes]]", page):
                seq += 1
                chain = hash_of_row(chain, seq, row[1], row[2], row[3])
                if row[0] != place + seq or row[4] != chain:
                    raise IntegrityError(f"journal '{journal}' is damaged at event {seq}")
                yield seq, row[1], row[2], row[3]
        if seq != last or chain != end:
            raise IntegrityError(f"journal '{journal}' is damaged: it should end at event {last}")

    def told(
        self, journals: Iterable[str], kinds: Collection[type[Event]], since: int = 0
    ) -> Iterator[tuple[str, Recorded]]:
        names = ", ".join("?" * len(kinds))
        query = f"{rows.TOLD} AND kind IN ({names}) ORDER BY place LIMIT {_EVENTS}"
        wanted: tuple[Value, ...] = (since, *map(kind_of_class, kinds))
        for journal in journals:
            for place, end in self._database.rows(_SPAN, (journal,)):
                yield from self._told(journal, query, cast("int", place), (end, *wanted))

    def _told(
        self, journal: str, query: str, after: int, wanted: tuple[Value, ...]
    ) -> Iterator[tuple[str, Recorded]]:
        """One journal, page by page: a run may have a million such events."""
        while page := self._database.rows(query, (after, *wanted)):
            for place, at, kind, body in cast("list[tuple[int, int, str, str]]", page):
                after = rows.beyond(after, place, "event")
                seq = place % rows.PLACE
                yield journal, Recorded(seq, at, _decoded(journal, seq, kind, body))
            if len(page) < _EVENTS:
                return

    def raw(self, journal: str) -> Iterator[Raw]:
        seq, place = 0, self._journal_number(journal) * rows.PLACE
        while page := self._database.rows(_READ, (place + seq, place + rows.PLACE - 1, _EVENTS)):
            for found, at, kind, body, _ in cast("list[tuple[int, int, str, str, bytes]]", page):
                seq = rows.beyond(place + seq, found, "event") - place
                yield Raw(seq, at, kind, body)

    def _journal_number(self, journal: str) -> int:
        found = self._database.rows("SELECT id FROM journal WHERE name = ?", (journal,))
        return cast("int", found[0][0]) if found else 0

    def _hash_at(self, journal: str, number: int, seq: int) -> bytes:
        place = number * rows.PLACE + seq
        found = self._database.rows("SELECT hash FROM event WHERE place = ?", (place,))
        if not found and seq < self.last(journal):
            raise IntegrityError(f"journal '{journal}' is damaged: event {seq} is missing")
        return cast("bytes", found[0][0]) if found else b""

    def last(self, journal: str) -> int:
        found = self._database.rows("SELECT last FROM journal WHERE name = ?", (journal,))
        return cast("int", found[0][0]) if found else 0

    def end(self, journal: str) -> tuple[int, Digest]:
        found = self._database.rows("SELECT last, hash FROM journal WHERE name = ?", (journal,))
        if not found:
            return 0, Digest(first_hash(journal).hex())
        last, chain = found[0]
        if not isinstance(last, int) or not isinstance(chain, bytes):
            raise IntegrityError(f"the end of journal '{journal}' is damaged")
        return last, Digest(chain.hex())

    def journals(self) -> Sequence[str]:
        found = [row[0] for row in self._database.rows("SELECT name FROM journal ORDER BY id")]
        if not all(isinstance(name, str) for name in found):
            raise IntegrityError("the table of journals is damaged: a name is no text")
        return cast("list[str]", found)

    def runs(self, line: str | None = None, *, imported: bool = False) -> Sequence[RunRow]:
        found = self._database.rows(_RUNS, (line, line, int(imported)))
        return [
            RunRow(RunId(run), project, name, number, fence, history == 1)
            for run, project, name, number, fence, history in cast(
                "list[tuple[str, str, str, int, int, int]]", found
            )
        ]

    # artifacts

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        return self._one(rows.FIND_CONTENT if content else rows.FIND, project, line, step, raw(ref))

    def newest(self, project: str, line: str, step: StepId) -> Artifact | None:
        return self._one(rows.FIND_ANY, project, line, step)

    def newest_of_all(self, project: str, line: str) -> Newest:
        newest = Newest(project, line)
        take = partial(keep_newest, newest, project, line)
        known = self._names.known_line(project, line)
        if known is not None:
            self._database.each(rows.NEWEST_OF_ALL, (known,), take)
        return newest

    def _one(self, query: str, project: str, line: str, *values: Value) -> Artifact | None:
        known = self._names.known_line(project, line)
        found = self._database.rows(query, (known, *values)) if known is not None else ()
        return artifact_from(found[0]) if found else None

    def artifacts(
        self,
        *,
        project: str | None = None,
        line: str | None = None,
        step: StepId | None = None,
        run: RunId | None = None,
        status: Status | None = None,
        source: str | None = None,
        digest: Digest | None = None,
    ) -> Iterator[Artifact]:
        query, values = rows.page_query(
            {
                "project": project,
                "line": line,
                "step": step,
                "run": run,
                "status": status,
                "source": source,
                "digest": None if digest is None else raw(digest),
            }
        )
        after = 0
        while page := self._database.rows(query, (*values, after)):
            for row in page:
                artifact = artifact_from(row)
                after = rows.beyond(after, artifact.number, "artifact")
                yield artifact

    def steady(self) -> AbstractContextManager[None]:
        return self._database.steady()

    def replace_artifacts(self, rows: Callable[[], Iterable[Artifact]]) -> None:
        def work(cursor: Cursor) -> None:
            self._database.alone(cursor)
            given = list(rows())
            self._database.empty(cursor, "artifact")
            self._database.count_on(cursor, "artifact")
            self._insert_artifacts(cursor, given)

        self._names.write(work)

    # contents

    def put(self, content: bytes | Iterable[bytes]) -> Digest:
        return self._contents.put(content)

    def get(self, digest: Digest) -> bytes:
        return b"".join(self._contents.chunks(digest))

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        return self._contents.chunks(digest)

    def has(self, digest: Digest) -> bool:
        return self._contents.has(digest)

    def absent(self, digests: Iterable[Digest]) -> set[Digest]:
        return self._contents.absent(digests)

    def blobs(self) -> Iterator[Digest]:
        return self._contents.digests()

    def apart(self, digests: Iterable[Digest]) -> set[Digest]:
        return {*digests}  # others may remove what they find damaged

    def stored(self) -> Iterator[Stored]:
        return self._contents.stored()

    def forget(self, digests: Iterable[Digest], before: int) -> None:
        self._contents.forget(digests, before)

    # claims and holders

    def claim(self, key: ClaimKey, engine: str) -> int | None:
        return self._holds.claim(key, engine)

    def claims(self) -> Sequence[tuple[ClaimKey, str, int]]:
        return self._holds.claims()

    def enter(
        self, project: str, line: str, owner: Owner, *, alone: bool = False
    ) -> Sequence[Holder]:
        return self._holds.enter(project, line, owner, alone=alone)

    def beat(self, engine: str, *, sharing: bool, run: RunId | None = None) -> bool:
        return self._holds.beat(engine, sharing=sharing, run=run)

    def leave(self, engine: str) -> None:
        self._holds.leave(engine)

    def bury(self, holder: Holder) -> bool:
        return self._holds.bury(holder)

    def holders(self, project: str, line: str) -> Sequence[Holder]:
        return self._holds.holders(project, line)

    def held(self) -> Sequence[tuple[str, str, Holder]]:
        return self._holds.held()

    # errands

    def post(self, queue: str, parcel: Digest, engine: str) -> int:
        number = self._errands.post(queue, parcel, engine)
        self._database.hint()
        return number

    def take_errand(self, queues: Sequence[str], worker: str) -> Errand | None:
        return self._errands.take(queues, worker)

    def report(self, errand: Errand, report: Digest) -> bool:
        is_told = self._errands.report(errand, report)
        self._database.hint()
        return is_told

    def tell(self, errand: Errand, said: Sequence[tuple[str, bytes]]) -> bool:
        is_wanted = self._errands.tell(errand, said)
        self._database.hint()
        return is_wanted

    def heard(self, errand: int, after: int = 0) -> Sequence[tuple[int, str, bytes]]:
        return self._errands.heard(errand, after)

    def hints(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        return self._database.hints(wake)

    def errands(self, engine: str | None = None, worker: str | None = None) -> Sequence[Errand]:
        return self._errands.all_of(engine, worker)

    def call_off(self, errands: Collection[int]) -> None:
        self._errands.call_off(errands)
        self._database.hint()

    def withdraw(self, errands: Collection[int]) -> None:
        self._errands.withdraw(errands)

    # what is on disk

    def stats(self, paths: Iterable[str]) -> Mapping[str, tuple[Stat, Digest, bool]]:
        found = self._database.rows_many(rows.STATS, [(path_key(path),) for path in paths])
        return dict(rows.stat_from(row) for row in found)

    def remember_stats(self, items: Iterable[tuple[str, Stat, Digest, bool]]) -> None:
        self._write_many(rows.STAT, [rows.stat_values(*item) for item in items])

    def assure(self) -> None:
        self._database.assure()

    def check(self) -> Iterator[str]:
        yield from self._database.flaws()
        yield from problems(self._database, self._files)


_READ = "SELECT * FROM event WHERE place > ? AND place <= ? ORDER BY place LIMIT ?"
_SPAN = f"SELECT id * {rows.PLACE}, id * {rows.PLACE} + last FROM journal WHERE name = ?"
_RUNS = (
    "SELECT run.id, project, name, number, fence, imported FROM run"
    " JOIN line ON line.id = run.line WHERE (CAST(? AS TEXT) IS NULL OR name = ?) AND imported <= ?"
    " ORDER BY number"
)
_ADD_RUN = "INSERT INTO run(id, line, fence, imported) VALUES(?, ?, ?, ?)"
_ADD_NUMBERED = "INSERT INTO run(number, id, line, fence, imported) VALUES(?, ?, ?, ?, ?)"
_REMOVE_ROWS = "DELETE FROM artifact WHERE maker = (SELECT id FROM maker WHERE run = ?)"


def _decoded(journal: str, seq: int, kind: str, body: str) -> Event:
    try:
        return decode(kind, body)
    except IntegrityError as error:
        message = f"journal '{journal}', event {seq}: {error.message}"
        raise IntegrityError(message, hint=error.hint) from error
