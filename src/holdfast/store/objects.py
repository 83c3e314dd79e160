"""Contents above 16 KB in an object storage that several machines share, named by SHA-256.

    PREFIX/ab/<sha256>            complete and durable since the moment it can be seen
    PREFIX/quarantine/<sha256>    found not to be what its name says
    PREFIX/purging/<sha256>       to be removed if the event that this names says that it was purged
    PREFIX/removing/<sha256>      somebody looks at this object to remove it

The digest is the key, so a content is spooled and hashed before anything is sent. An object appears
whole or not at all, whenever the process dies; of one that was sent in parts a kill leaves parts that
only the server sees, and a rule of the bucket for unfinished uploads removes them. What is there already
is believed if it is young and, read back, right; else it is put again, which repairs and renews it.

Whoever removes what is old must not meet somebody who stores it again, and a server removes without
conditions. So a remover first creates `removing/<sha256>`, then looks, and removes only what still is
what it judged; who put over an object looks afterwards for such a note, waits until it is gone, and looks
whether the object stayed. Either the remover saw the renewed object, or the other one sees the note.

Reads hash what they give. Copies on this machine save the way, not the question: the server is asked
whether the content still is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import IO, TYPE_CHECKING, cast

from holdfast.errors import IntegrityError, StoreError, UsageError
from holdfast.model.digest import Digest
from holdfast.store.blobs import FRESH, SMALL, unstored, verified
from holdfast.store.cache import LIMIT, Cache

if TYPE_CHECKING:
    from holdfast.store.bucket import Bucket, Found  # with its library, only for the types

PATIENCE = 30.0  # seconds in which a server may come back before it counts as gone
LEASE = 180  # seconds after which whoever wrote a note of removal must be dead
_ALONE = 60  # seconds after its note in which a remover must have asked for the removal
_TRIES = 5
_PIECE = 1024 * 1024
_WHOLE = 8 * 1024 * 1024  # bytes that are sent at once, and kept in memory until then
_KEY = re.compile("([0-9a-f]{2})/(\\1[0-9a-f]{62})")


class BlobObjects:
    """The contents of one store below an address like `s3://bucket/prefix`.

    `cache` is a directory for copies on this machine; a check of what the server holds goes without.
    """

    def __init__(
        self,
        location: str,
        cache: str | None,
        *,
        limit: int = LIMIT,
        patience: float = PATIENCE,
        now: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bucket = _bucket(location, patience)
        self._cache = Cache(cache, limit) if cache is not None else None
        self._now = now
        self._wait = wait
        self._damaged: dict[Digest, str] = {}  # by digest the tag of what was read

    def put(self, pieces: Iterable[bytes]) -> Digest:
        try:
            with tempfile.SpooledTemporaryFile(_WHOLE) as file:
                digest, size = _spool(file, pieces)
                body = file.read() if size <= _WHOLE else file
                if not isinstance(body, bytes) or not self._bucket.create(_key(digest), body):
                    self._settle(digest, size, body)
                self._copy(digest, size, file)
        except OSError as error:
            raise unstored(error) from error
        return digest

    def known(self, digest: Digest, size: int) -> bool:
        found = self._bucket.find(_key(digest))
        return found is not None and self._is_safe(found, size)

    def has(self, digest: Digest) -> bool:
        found = self._bucket.find(_key(digest))
        return found is not None and found.size > SMALL

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        if self._cache is not None and (file := self._cache.open(digest)) is not None:
            with file:
                if self._bucket.find(_key(digest)) is not None:
                    yield from verified(digest, iter(lambda: file.read(_PIECE), b""))
                    return
        yield from self._fetched(digest)

    def digests(self) -> Iterator[Digest]:
        for digest, _ in self._listed():
            yield digest

    def stored(self) -> Iterator[tuple[Digest, int, int]]:
        for digest, found in self._listed():
            yield digest, found.size, int(found.modified)

    def forget(self, digest: Digest, before: int | None = None) -> None:
        if before is None:
            self._bucket.delete(_key(digest))
        else:
            self._remove(digest, lambda found: found.modified < before)
        if self._cache is not None:
            self._cache.drop(digest)

    def forget_unfinished(self, before: int) -> None:
        for key, found in self._bucket.listed("removing"):
            if found.modified < before:
                self._bucket.delete(key)

    def quarantine(self, digest: Digest, content: bytes | None = None) -> None:
        with contextlib.suppress(StoreError):
            if content is not None:
                self._bucket.put(f"quarantine/{digest}", content)
            elif (tag := self._damaged.pop(digest, None)) is not None:
                self._bucket.copy(_key(digest), f"quarantine/{digest}")
                self._remove(digest, lambda found: found.tag == tag)

    def forget_damaged(self, digest: Digest) -> None:
        self._bucket.delete(f"quarantine/{digest}")

    def sync_removed(self, digests: Iterable[Digest]) -> None:
        """Nothing: what a server removed stays away."""

    def mark(self, digests: Iterable[Digest], words: str) -> None:
        for digest in digests:
            self._bucket.put(f"purging/{digest}", words.encode())

    def marked(self) -> dict[Digest, str]:
        found: dict[Digest, str] = {}
        for key, _ in self._bucket.listed("purging"):
            if (read := self._bucket.read(key)) is not None:
                words = b"".join(read[1]).decode("utf-8", "replace")
                found[Digest(key.rpartition("/")[2])] = words
        return found

    def unmark(self, digests: Iterable[Digest]) -> None:
        for digest in digests:
            self._bucket.delete(f"purging/{digest}")

    # inside

    def _settle(self, digest: Digest, size: int, body: bytes | IO[bytes]) -> None:
        """Make sure of an object that may be there already."""
        found = self._bucket.find(_key(digest))
        if found is not None and self._is_safe(found, size) and self._is_whole(digest):
            return
        for _ in range(_TRIES):
            if not isinstance(body, bytes):
                body.seek(0)
            self._bucket.put(_key(digest), body)
            self._await_removal(digest)
            found = self._bucket.find(_key(digest))
            if found is not None and found.size == size:
                return
        raise StoreError(f"content '{digest}' does not stay where it is stored")

    def _is_safe(self, found: Found, size: int) -> bool:
        """Whether an object has its size, and is too young to be removed by anybody."""
        return found.size == size and found.modified > self._now() - FRESH

    def _is_whole(self, digest: Digest) -> bool:
        read = self._bucket.read(_key(digest))
        try:
            return read is not None and all(True for _ in verified(digest, read[1]))
        except IntegrityError:
            return False

    def _fetched(self, digest: Digest) -> Iterator[bytes]:
        read = self._bucket.read(_key(digest))
        if read is None:
            if self._cache is not None:
                self._cache.drop(digest)
            raise IntegrityError(f"content '{digest}' is missing")
        found, pieces = read
        try:
            if self._cache is None:
                yield from verified(digest, pieces)
            else:
                yield from self._copied(self._cache, digest, found.size, pieces)
        except IntegrityError:
            self._damaged[digest] = found.tag
            raise

    def _copied(
        self, cache: Cache, digest: Digest, size: int, pieces: Iterable[bytes]
    ) -> Iterator[bytes]:
        with cache.copying(size) as copy:
            for piece in verified(digest, pieces):
                copy.write(piece)
                yield piece
            cache.keep(digest, copy)

    def _copy(self, digest: Digest, size: int, file: IO[bytes]) -> None:
        """Keep a copy of what was just stored: whoever needs it is often here."""
        if self._cache is None:
            return
        file.seek(0)
        with self._cache.copying(size) as copy:
            while piece := file.read(_PIECE):
                copy.write(piece)
            self._cache.keep(digest, copy)

    def _listed(self) -> Iterator[tuple[Digest, Found]]:
        for key, found in self._bucket.listed():
            if name := _KEY.fullmatch(key):
                yield Digest(name[2]), found

    def _remove(self, digest: Digest, is_it: Callable[[Found], bool]) -> None:
        """Remove an object if it still is what was judged; if another one looks at it, it is theirs."""
        began = self._now()
        if not self._bucket.create(f"removing/{digest}", b"-"):
            return
        found = self._bucket.find(_key(digest))
        if found is not None and is_it(found) and self._now() - began < _ALONE:
            self._bucket.delete(_key(digest))
        self._bucket.delete(f"removing/{digest}")

    def _await_removal(self, digest: Digest) -> None:
        """Wait until nobody is about to remove the object; a note that stays is of a dead process."""
        for _ in range(LEASE):
            if self._bucket.find(f"removing/{digest}") is None:
                return
            self._wait(1)
        self._bucket.delete(f"removing/{digest}")


def _bucket(location: str, patience: float) -> Bucket:
    try:
        room = import_module("holdfast.store.bucket")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        raise UsageError(
            f"contents in '{location}' need obstore, which is not installed",
            hint="pip install 'holdfast[s3]'",
        ) from None
    return cast("Bucket", room.Bucket(location, patience))


def _key(digest: Digest) -> str:
    return f"{digest[:2]}/{digest}"


def _spool(file: IO[bytes], pieces: Iterable[bytes]) -> tuple[Digest, int]:
    whole, size = hashlib.sha256(), 0
    for piece in pieces:
        whole.update(piece)
        size += len(piece)
        file.write(piece)
    file.seek(0)
    return Digest(whole.hexdigest()), size
