"""The store's own check: references, chains, contents. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from holdfast.errors import HoldfastError, IntegrityError
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.line import ContentPurged, RunImported
from holdfast.store.blobs import Blobs
from holdfast.store.codec import decode, encode, first_hash, hash_of_row
from holdfast.store.rows import PLACE, beyond
from holdfast.store.tables import Row, Tables, Value

_PAGE = 500


def problems(database: Tables, files: Blobs) -> Iterator[str]:
    """Everything that contradicts itself, one line each, with the journal or the step and run."""
    parts = (
        _journals(database),
        _references(database, files),
        _small(database),
        _large(database, files),
    )
    for part in parts:
        try:
            yield from part
        except HoldfastError as error:
            yield error.message


def _journals(database: Tables) -> Iterator[str]:
    heads = database.rows("SELECT id, name, last, hash FROM journal ORDER BY id")
    for number, name, last, end in cast("list[tuple[int, str, int, bytes]]", heads):
        if not _is_head(number, name, last, end):
            yield f"database: journal {number!s} is damaged: these are no columns of a journal"
            continue
        try:
            yield from _journal(database, number, name, last, end)
        except HoldfastError as error:
            yield f"journal '{name}': {error.message}"
    strays = "SELECT DISTINCT place / ? FROM event WHERE place / ? NOT IN (SELECT id FROM journal)"
    for row in database.rows(strays, (PLACE, PLACE)):
        yield f"database: events of a journal {row[0]!s} that is not there"


def _is_head(number: object, name: object, last: object, end: object) -> bool:
    """Whether these can be the columns of a journal: a damaged schema may take another table for it."""
    found = tuple(map(type, (number, name, last, end)))
    return found == (int, str, int, bytes)


def _journal(database: Tables, number: int, name: str, last: int, end: bytes) -> Iterator[str]:
    """Each event against its own hash, so that one changed event is one line."""
    chain, seq, place = first_hash(name), 0, number * PLACE
    while page := _events(database, place + seq, place + last):
        for found, at, kind, body, stored in cast("list[tuple[int, int, str, str, bytes]]", page):
            if found != place + seq + 1:
                yield f"journal '{name}': event {seq + 1} is missing"
            seq = beyond(place + seq, found, "event") - place
            if hash_of_row(chain, seq, at, kind, body) != stored:
                yield f"journal '{name}': event {seq} is damaged"
            elif problem := _text_problem(kind, body):
                yield f"journal '{name}': event {seq}: {problem}"
            chain = stored
    if seq != last:
        yield f"journal '{name}': event {last} is missing"
    elif chain != end:
        yield f"journal '{name}': its last event is not the one it ended with"


def _events(database: Tables, after: int, last: int) -> list[Row]:
    query = "SELECT * FROM event WHERE place > ? AND place <= ? ORDER BY place LIMIT ?"
    return database.rows(query, (after, last, _PAGE))


def _text_problem(kind: str, body: str) -> str:
    try:
        again = encode(decode(kind, body))
    except IntegrityError as error:
        return error.message
    return "" if again == (kind, body) else "its text is not the one Holdfast writes"


def _references(database: Tables, files: Blobs) -> Iterator[str]:
    query = (
        "SELECT digest FROM artifact WHERE digest NOT IN (SELECT digest FROM blob)"
        " GROUP BY digest ORDER BY min(number)"
    )
    absent, there = (
        _absent(database),
        set(files.digests()),
    )  # what is damaged is told with the files
    for row in database.rows(query):
        if not isinstance(row[0], bytes):
            yield "database: a row of 'artifact' has no digest"
            continue
        digest = Digest(row[0].hex())
        if digest not in there and not (digest in absent and _is_unused(database, digest)):
            yield f"{_owner(database, digest)} is missing"


def _absent(database: Tables) -> set[Digest]:
    """Contents that a person had removed, or that an imported run came without."""
    found: set[Digest] = set()
    query = "SELECT kind, body FROM event WHERE kind IN ('content_purged', 'run_imported')"
    for kind, body in cast("list[tuple[str, str]]", database.rows(query)):
        event = decode(kind, body)
        found.update(event.digests if isinstance(event, ContentPurged) else ())
        found.update(event.absent if isinstance(event, RunImported) else ())
    return found


def _is_unused(database: Tables, digest: Digest) -> bool:
    query = (
        "SELECT 1 FROM artifact WHERE digest = ? AND status = 'accepted' AND reusable = 1"
        " AND source <> 'imported'"
    )
    return not database.rows(query, (bytes.fromhex(digest),))


def _small(database: Tables) -> Iterator[str]:
    after = 0
    query = "SELECT id, digest, content FROM blob WHERE id > ? ORDER BY id LIMIT ?"
    while page := cast("list[tuple[int, Value, Value]]", database.rows(query, (after, _PAGE))):
        for number, key, content in page:
            after = beyond(after, number, "blob")
            if not isinstance(key, bytes):
                yield f"database: row {number} of 'blob' has no digest"
                continue
            digest = Digest(key.hex())
            if not isinstance(content, bytes) or digest_bytes(content) != digest:
                yield f"{_owner(database, digest)} is damaged"


def _large(database: Tables, files: Blobs) -> Iterator[str]:
    for digest in files.digests():
        try:
            for _ in files.chunks(digest):
                pass
        except HoldfastError as error:
            yield f"{_owner(database, digest)} is damaged: {error.message}"


def _owner(database: Tables, digest: Digest) -> str:
    """The content, and the first artifact that it is."""
    query = (
        "SELECT step, run FROM artifact JOIN maker ON maker.id = artifact.maker WHERE digest = ?"
        " ORDER BY number LIMIT 1"
    )
    for step, run in database.rows(query, (bytes.fromhex(digest),)):
        return f"content '{digest}' of step '{step!s}' in run '{run!s}'"
    return f"content '{digest}'"
