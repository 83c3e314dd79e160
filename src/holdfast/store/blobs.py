"""Contents above 16 KB: one file each, named by the SHA-256 of what is in it.

    blobs/CACHEDIR.TAG            back-up programs may leave this tree out
    blobs/tmp/<random>            being written; left behind by a kill, never read
    blobs/ab/<sha256>             complete and durable since the moment it has this name
    blobs/quarantine/<sha256>     found not to be what its name says
    blobs/purging/<sha256>        to be removed if the event that this names says that it was purged

Written as: temporary file (created, never opened by another name or through a link) → all bytes, in
a loop, hashed on the way → fsync → rename → fsync of the directory. The name appears only when the
bytes are durable, and `put` returns only when the name is durable too: a fact committed after that
can never name content that a power loss takes away. Equal content is stored once; a file of another
size under the name is damage and replaced. A directory is made when the first file goes there, and all
256 of them when a few were needed; those that are there are synced once per process, also when another
process made them, because its sync may still be to come.

After a failed fsync nothing may be believed, so the store is poisoned; a second fsync could succeed
without the data. Reads hash what they give. What does not match is moved to `quarantine`, so that
storing the content again repairs it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from holdfast.errors import IntegrityError, StoreError, outside_fault, shut_out
from holdfast.model.digest import Digest

SMALL = 16 * 1024  # contents up to this size live in the database
FRESH = 600  # seconds for which a content counts as just stored
_OTHER_KIND = frozenset({errno.ELOOP, errno.ENXIO, errno.ENOTDIR})  # a link, a socket
_PIECE = 1024 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_TAG = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n# Contents kept by Holdfast, named by digest.\n"
)

_NAME = re.compile("[0-9a-f]{64}")
_SHARD = re.compile("[0-9a-f]{2}")
_FEW = 8  # directories that are made one by one

Write = Callable[[int, memoryview], int]


class Blobs(Protocol):
    """Where the large contents of a store live; each is whole and durable once `put` gave its digest."""

    def put(self, pieces: Iterable[bytes]) -> Digest:
        """Store the content durably; gives its digest."""

    def known(self, digest: Digest, size: int) -> bool:
        """Whether content of this size is there durably, and is safe from whoever removes what is old."""

    def has(self, digest: Digest) -> bool:
        """Whether something is there that can be this content; what has a small size cannot."""

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        """The content in pieces; the last is held back until the whole is verified."""

    def digests(self) -> Iterator[Digest]:
        """The names of all contents, in order."""

    def stored(self) -> Iterator[tuple[Digest, int, int]]:
        """Each content with its size and the second in which it was last stored."""

    def forget(self, digest: Digest, before: int | None = None) -> None:
        """Remove a content, unless it was stored again since that second."""

    def forget_unfinished(self, before: int) -> None:
        """Remove what a killed process left half done before that second."""

    def quarantine(self, digest: Digest, content: bytes | None = None) -> None:
        """Take what a read found damaged away from its name; the bytes stay for whoever asks why."""

    def forget_damaged(self, digest: Digest) -> None:
        """Remove what lies in quarantine under this name."""

    def sync_removed(self, digests: Iterable[Digest]) -> None:
        """Let what was removed stay away, also after a power cut; before that nobody may forget it."""

    def mark(self, digests: Iterable[Digest], words: str) -> None:
        """Write down, durably, that contents are about to be removed for good, and on whose word."""

    def marked(self) -> dict[Digest, str]:
        """What was written down so and is not done, each with its words."""

    def unmark(self, digests: Iterable[Digest]) -> None:
        """It is done."""


class BlobFiles:
    """The tree of content files of one store."""

    def __init__(self, root: str, poison: Callable[[str], None], write: Write = os.write) -> None:
        self._root = root
        self._poison = poison
        self._write = write
        self._shards: set[str] | None = (
            None  # directories that are there durably; None before the first use
        )

    def put(self, pieces: Iterable[bytes]) -> Digest:
        """Store the content durably; gives its digest."""
        try:
            self._begin()
            temp = os.path.join(self._root, "tmp", secrets.token_hex(16))
            handle = os.open(temp, _NEW, 0o600)
            try:
                try:
                    digest, size = self._fill(handle, pieces)
                    self._sync(handle)
                finally:
                    os.close(handle)
                self._settle(temp, digest, size)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temp)
                raise
        except OSError as error:
            raise unstored(error) from error
        return digest

    def known(self, digest: Digest, size: int) -> bool:
        """Whether a file of this size has the name, durably."""
        try:
            if self._size(digest) != size:
                return False
            self._have_shard(digest)
            self._freshen(digest)
            self._sync_directory(os.path.dirname(self._path(digest)))
        except OSError as error:
            raise unstored(error) from error
        return True

    def has(self, digest: Digest) -> bool:
        """Whether there is a file that can be this content; one of a small size cannot."""
        return self._size(digest) > SMALL

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        """The content in pieces; the last is held back until the whole is verified."""
        try:
            handle = os.open(self._path(digest), _OLD)
        except FileNotFoundError:
            raise IntegrityError(f"content '{digest}' is missing") from None
        except OSError as error:
            if error.errno in _OTHER_KIND:
                raise IntegrityError(f"content '{digest}' is not a file") from error
            raise _unread(f"content '{digest}' cannot be opened", error) from error
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise IntegrityError(f"content '{digest}' is not a file")
            yield from verified(digest, iter(lambda: os.read(handle, _PIECE), b""))
        except OSError as error:
            raise StoreError(f"content '{digest}' cannot be read: {error}") from error
        finally:
            os.close(handle)

    def digests(self) -> Iterator[Digest]:
        """The names of all files, in order."""
        for shard in range(256):
            folder = os.path.join(self._root, f"{shard:02x}")
            try:
                names = sorted(os.listdir(folder))
            except (FileNotFoundError, NotADirectoryError):
                continue  # then none of its contents is there
            except OSError as error:
                raise _unread(f"'{folder}' cannot be read", error) from error
            yield from map(Digest, filter(_NAME.fullmatch, names))

    def stored(self) -> Iterator[tuple[Digest, int, int]]:
        """Each file with its size and the second in which it was last stored."""
        for digest in self.digests():
            with contextlib.suppress(FileNotFoundError):
                found = os.lstat(self._path(digest))
                yield digest, found.st_size, int(found.st_mtime)

    def forget(self, digest: Digest, before: int | None = None) -> None:
        """Remove a file, unless it was stored again since that second."""
        try:
            if before is None or os.lstat(self._path(digest)).st_mtime < before:
                os.unlink(self._path(digest))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StoreError(f"content '{digest}' cannot be removed: {error}") from error

    def forget_unfinished(self, before: int) -> None:
        """Remove what a killed process left half written before that second."""
        with contextlib.suppress(OSError):
            for entry in list(os.scandir(os.path.join(self._root, "tmp"))):
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    os.unlink(entry.path)

    def forget_damaged(self, digest: Digest) -> None:
        """Remove what lies in quarantine under this name."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._root, "quarantine", digest))

    def sync_removed(self, digests: Iterable[Digest]) -> None:
        """Let these files stay away, also after a power cut; before that nobody may forget them."""
        places = {os.path.dirname(self._path(digest)) for digest in digests}
        for place in sorted({*places, os.path.join(self._root, "quarantine")}):
            with contextlib.suppress(FileNotFoundError):
                self._sync_directory(place)

    def mark(self, digests: Iterable[Digest], words: str) -> None:
        """Write down, durably, that files are about to be removed for good, and on whose word."""
        folder = os.path.join(self._root, "purging")
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            for digest in digests:
                with open(os.path.join(folder, digest), "w", encoding="utf-8") as file:
                    file.write(words)
                    file.flush()
                    self._sync(file.fileno())
            self._sync_directory(folder)
            self._sync_directory(self._root)
        except OSError as error:
            raise StoreError(f"nothing can be purged: {error}") from error

    def marked(self) -> dict[Digest, str]:
        """What was written down so and is not done, each with its words."""
        folder, found = os.path.join(self._root, "purging"), {}
        with contextlib.suppress(FileNotFoundError):
            for name in filter(_NAME.fullmatch, os.listdir(folder)):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    found[Digest(name)] = file.read()
        return found

    def unmark(self, digests: Iterable[Digest]) -> None:
        """It is done."""
        for digest in digests:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._root, "purging", digest))

    def _freshen(self, digest: Digest) -> None:
        """Storing again what is there counts: whoever removes what is old must see that."""
        path = self._path(digest)
        with contextlib.suppress(OSError):
            if os.lstat(path).st_mtime < time.time() - FRESH:
                os.utime(path, follow_symlinks=False)

    def quarantine(self, digest: Digest, content: bytes | None = None) -> None:
        """Take damaged content away from its name; the bytes stay for whoever asks why."""
        folder = os.path.join(self._root, "quarantine")
        with contextlib.suppress(OSError):
            os.makedirs(folder, 0o700, exist_ok=True)
            if content is None:
                os.rename(self._path(digest), os.path.join(folder, digest))
            else:
                self.forget_damaged(digest)  # a new file tells by its directory that it came
                with open(os.path.join(folder, digest), "xb") as file:
                    file.write(content)

    # inside

    def _path(self, digest: Digest) -> str:
        return os.path.join(self._root, digest[:2], digest)

    def _size(self, digest: Digest) -> int:
        try:
            found = os.lstat(self._path(digest))
        except OSError:
            return -1
        return found.st_size if stat.S_ISREG(found.st_mode) else -1

    def _fill(self, handle: int, pieces: Iterable[bytes]) -> tuple[Digest, int]:
        whole, size = hashlib.sha256(), 0
        for piece in pieces:
            whole.update(piece)
            size += len(piece)
            rest = memoryview(piece)
            while rest:
                written = self._write(handle, rest)
                if written <= 0:
                    raise OSError(errno.EIO, "nothing was written")
                rest = rest[written:]
        return Digest(whole.hexdigest()), size

    def _settle(self, temp: str, digest: Digest, size: int) -> None:
        path = self._path(digest)
        self._have_shard(digest)
        if self._size(digest) == size:
            self._freshen(digest)
            os.unlink(temp)
        else:
            os.rename(temp, path)
        self._sync_directory(os.path.dirname(path))

    def _begin(self) -> set[str]:
        """The directories that are there, durably."""
        if self._shards is None:
            make_tree(self._root)
            self._make("tmp")
            there = {*filter(_SHARD.fullmatch, os.listdir(self._root))}
            self._sync_directory(self._root)
            self._sync_directory(os.path.dirname(self._root))
            self._shards = there
        return self._shards

    def _have_shard(self, digest: Digest) -> None:
        """Have the directory of a content. Each costs a sync, so that a store of many has all at once."""
        there = self._begin()
        if digest[:2] in there:
            return
        new = (digest[:2],) if len(there) < _FEW else tuple(f"{one:02x}" for one in range(256))
        for name in new:
            self._make(name)
        self._sync_directory(self._root)
        there.update(new)

    def _make(self, name: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(self._root, name), 0o700)

    def _sync_directory(self, path: str) -> None:
        handle = os.open(path, _FOLDER)
        try:
            self._sync(handle)
        finally:
            os.close(handle)

    def _sync(self, handle: int) -> None:
        try:
            os.fsync(handle)
        except OSError as error:
            self._poison(f"a file of '{self._root}' could not be synced: {error}")
            raise StoreError(f"content cannot be stored durably: {error}") from error


def verified(digest: Digest, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces; the last is held back until the whole is what the digest says."""
    whole, held = hashlib.sha256(), b""
    for piece in pieces:
        whole.update(piece)
        if held:
            yield held
        held = piece
    if whole.hexdigest() != digest:
        raise IntegrityError(f"content '{digest}' is damaged")
    yield held


def unstored(error: OSError) -> StoreError:
    """A disk that refused a content."""
    return StoreError(f"content cannot be stored: {error}", hint=_way_out(error))


def _unread(what: str, error: OSError) -> StoreError:
    return StoreError(f"{what}: {error}", hint=_way_out(error))


def _way_out(error: OSError) -> str | None:
    fault = outside_fault(error) or shut_out(error)
    return fault.hint if fault else None


def make_tree(root: str) -> None:
    """Create the top of the tree with its tag."""
    os.makedirs(root, 0o700, exist_ok=True)
    write_once(f"{root}/CACHEDIR.TAG", _TAG)


def write_once(path: str, content: bytes) -> None:
    """Write a file that is never written again, durably; only what a power cut emptied is replaced."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as there:
        if there.read(len(content)).strip(b"\0"):
            return
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, _FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
