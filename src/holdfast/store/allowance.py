"""How much of an export is read: a file from elsewhere may be small and unpack to anything.

Nobody who names a size is asked twice. Who names none gets what an export usually is: no more than a
hundred times its file, no text (the head, one event) that would fill the memory once it is parsed, and a
listing of half a million entries. The listing of a ZIP file is read in one piece before anything of it
can be judged.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from dataclasses import dataclass

MAX_BYTES = 20 * 10**9
MAX_RATIO = 100
_LEAST_BYTES = 100 * 10**6  # below that no ratio is worth a word
_LISTING, _TEXT, _CONTENT = 64 * 2**20, 32 * 2**20, 64 * 2**20


@dataclass(frozen=True, slots=True)
class Allowance:
    """Bytes: of all contents, and of what is read at once (a listing, a text, a content such as a plan)."""

    total: int
    listing: int = _LISTING
    text: int = _TEXT
    content: int = _CONTENT


def allowance(path: str, given: int | None) -> Allowance:
    """What may be read of a file; `given` is what a person said that it may unpack to."""
    if given is not None:
        return Allowance(given, max(given, _LISTING), given, given)
    return Allowance(min(MAX_BYTES, max(_LEAST_BYTES, MAX_RATIO * os.path.getsize(path))))


class TooMuchError(ValueError):
    """More was to be read at once than is allowed."""


class Bounded(io.BufferedReader):
    """A file of which no more than `most` bytes can be read at once."""

    def __init__(self, path: str, most: int) -> None:
        super().__init__(io.FileIO(path, opener=_open_file))
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        more = self._most + 1
        found = super().read(more if size is None or size < 0 else min(size, more))
        if len(found) > self._most:
            raise TooMuchError
        return found


def _open_file(path: str, flags: int) -> int:
    """Open what is a file: a pipe would be waited for, and a device has no end."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file", path)
