"""Copies of contents that live elsewhere, in a directory of this machine, within a size.

    CACHEDIR.TAG           back-up programs may leave this tree out
    tmp/<random>           being written; left behind by a kill, removed when room is made
    ab/<sha256>            a copy; its time is when it was last used

Nothing here is the truth: a copy is hashed before any of it is given, and a damaged one is removed. So
nothing is synced, any file may go at any moment, and a disk that cannot be written means no copies. Each
process counts what it writes and looks at the whole directory when the count says that it is full, or
after a sixteenth of the limit, to see what others wrote. The copies used longest ago go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from typing import BinaryIO

from holdfast.model.digest import Digest
from holdfast.store.blobs import FRESH, make_tree

LIMIT = 4 * 1024**3
_PIECE = 1024 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LOOKS = 16  # looks at the directory while it is filled once
_ROOM = 8  # one part in so many is left free when something had to go


class Cache:
    """The copies in one directory, which any number of processes may use at once."""

    def __init__(self, root: str, limit: int = LIMIT) -> None:
        self._root = root
        self._limit = limit
        self._used = limit  # unknown: the first copy looks
        self._written = 0  # since the last look

    def open(self, digest: Digest) -> BinaryIO | None:
        """A copy that was just verified, open at its start; None if there is none."""
        try:
            file = open(self._path(digest), "rb", opener=_plainly)  # noqa: SIM115 - given away
        except OSError:
            return None
        try:
            whole = hashlib.sha256()
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                while piece := file.read(_PIECE):
                    whole.update(piece)
            if whole.hexdigest() == digest:
                file.seek(0)
                os.utime(file.fileno())
                return file
        except OSError:
            pass
        file.close()
        self.drop(digest)
        return None

    @contextlib.contextmanager
    def copying(self, size: int) -> Iterator[Copy]:
        """Take a copy of so many bytes along; it stays only if it is kept."""
        copy = self._begin(size)
        try:
            yield copy
        finally:
            self._written += copy.size
            self._used += copy.size
            copy.end()

    def keep(self, digest: Digest, copy: Copy) -> None:
        """Let a copy that is whole and verified be found."""
        path = self._path(digest)
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            copy.move(path)

    def drop(self, digest: Digest) -> None:
        """Remove a copy."""
        with contextlib.suppress(OSError):
            os.unlink(self._path(digest))

    def _path(self, digest: Digest) -> str:
        return os.path.join(self._root, digest[:2], digest)

    def _begin(self, size: int) -> Copy:
        path = os.path.join(self._root, "tmp", secrets.token_hex(16))
        if size > self._limit:
            return Copy(path, None)
        try:
            make_tree(self._root)
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            full = self._used + size > self._limit
            if full or self._written > self._limit // _LOOKS:
                self._make_room(size)
            return Copy(path, os.fdopen(os.open(path, _NEW, 0o600), "wb"))
        except OSError:
            return Copy(path, None)

    def _make_room(self, size: int) -> None:
        files = sorted(self._files(), key=lambda item: item[1])
        self._used, self._written = sum(item[0] for item in files), 0
        if self._used + size <= self._limit:
            return
        for used, _, path in files:
            with contextlib.suppress(OSError):
                os.unlink(path)
            self._used -= used
            if self._used + size <= self._limit - self._limit // _ROOM:
                return

    def _files(self) -> Iterator[tuple[int, float, str]]:
        """Each file with its size and when it was used; what a kill left unfinished is removed."""
        for folder in list(os.scandir(self._root)):
            if not folder.is_dir(follow_symlinks=False):
                continue
            for entry in list(os.scandir(folder)):
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if folder.name != "tmp":
                        yield found.st_size, found.st_mtime, entry.path
                    elif found.st_mtime < time.time() - FRESH:
                        os.unlink(entry.path)


def _plainly(path: str, _: int) -> int:
    return os.open(path, _OLD)


class Copy:
    """A file that fills while its content passes by; nothing without a file, or once a write failed."""

    def __init__(self, path: str, file: BinaryIO | None) -> None:
        self._path = path
        self._file = file
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Add to the copy, as long as that works."""
        try:
            if self._file is not None:
                self._file.write(piece)
                self.size += len(piece)
        except OSError:
            self.end()

    def move(self, path: str) -> None:
        """Give it its name, if it has all bytes."""
        if self._file is not None:
            self._file.flush()
            os.rename(self._path, path)

    def end(self) -> None:
        """Close it, and remove what has no name."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # of the bytes that it still holds
                self._file.close()
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._file = None
