"""The frames of a write-ahead log as they lie on disk, and what their own checksums prove.

The checksum of a frame goes on from that of the frame before it, and of the first from that of the log's
first bytes. So the frames hold together although those bytes were damaged, and are read without them.

    log      magic, version, page size, checkpoints, salt (8 bytes), checksum (8 bytes): 32 bytes
    frame    page number, pages after a commit or 0, salt (8 bytes), checksum (8 bytes), the page

(sqlite.org/fileformat2.html#walformat)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import NamedTuple

from holdfast.store.peek import peeking

HEAD = 32
FRAME_HEAD = 24
_ORDERS = {0x377F0682: "<", 0x377F0683: ">"}  # by magic number: how checksums read words
_WORDS = struct.Struct(">II")
_PAGE = 4096
_PAGES = frozenset(1 << power for power in range(9, 17))


def holds(head: bytes) -> bool:
    """Whether the first bytes of a log are whole, by their checksum."""
    order = _ORDERS.get(int.from_bytes(head[:4], "big"), "")
    return bool(order) and _sum(order, head[:24]) == _WORDS.unpack(head[24:HEAD])


def page_size(path: str, head: bytes) -> int:
    """The size of a page by the database, else by its log, else the one that we make."""
    with suppress(FileNotFoundError), peeking(path) as database:
        size = int.from_bytes(os.pread(database, 18, 0)[16:], "big")
        if size:
            return 65536 if size == 1 else size
    size = int.from_bytes(head[8:12], "big")
    return size if size in _PAGES else _PAGE


def first_salt(log: int) -> bytes:
    """The salt of the first frame."""
    return os.pread(log, FRAME_HEAD, HEAD)[8:16]


def proven_frames(log: int, size: int) -> int:
    """How many frames go on from each other, from the first on."""
    return sum(1 for _ in _proven(log, size))


def unsaved_commits(log: int, path: str) -> int:
    """How many commits the frames prove, from the first on, that the database does not have.

    A log that was copied into its database is begun anew from the front: what is left of it then, by a
    crash just there, is in the database page by page, and counts for nothing.
    """
    size = page_size(path, os.pread(log, HEAD, 0))
    found, before, other = 0, 0, set[int]()
    with ExitStack() as stack:
        database = None
        with suppress(FileNotFoundError):
            database = stack.enter_context(peeking(path))
        for frame in _proven(log, size):
            page, end = _WORDS.unpack(frame[:8])
            saved = database is not None and os.pread(database, size, (page - 1) * size)
            (other.discard if saved == frame[FRAME_HEAD:] else other.add)(page)
            if end:
                other = {page for page in other if page <= end} if end < before else other
                found, before = (found + 1 if other else 0), end
    return found


class _Log(NamedTuple):
    """A log whose checksums read words in this order."""

    handle: int
    size: int
    order: str

    def frame(self, number: int) -> bytes:
        whole = FRAME_HEAD + self.size
        found = os.pread(self.handle, whole, HEAD + whole * number)
        return found if len(found) == whole else b""

    def follows(self, frame: bytes, before: tuple[int, int]) -> bool:
        """Whether the checksum of a frame goes on from that one."""
        if not frame or frame[:4] == bytes(4):
            return False
        return _own(frame) == _sum(self.order, frame[:8] + frame[FRAME_HEAD:], before)

    def begins(self, frame: bytes) -> bool:
        """Whether this is the first frame: by what is left of the log's first bytes, or by the next frame."""
        if not frame:
            return False
        head = os.pread(self.handle, HEAD, 0)
        seeds = (_WORDS.unpack(head[24:]), _sum(self.order, head[:24]))
        if any(self.follows(frame, seed) for seed in seeds):
            return True
        second = self.frame(1)
        return frame[8:16] == second[8:16] and self.follows(second, _own(frame))


def _proven(log: int, size: int) -> Iterator[bytes]:
    """The frames from the first on that go on from each other, with its salt."""
    first = _Log(log, size, "<").frame(0)
    orders = (_Log(log, size, order) for order in _ORDERS.values())
    whole = next((each for each in orders if each.begins(first)), None)
    number, frame = 0, first
    while whole is not None:
        yield frame
        number, before = number + 1, _own(frame)
        frame = whole.frame(number)
        if frame[8:16] != first[8:16] or not whole.follows(frame, before):
            return


def _own(frame: bytes) -> tuple[int, int]:
    one, two = _WORDS.unpack(frame[16:FRAME_HEAD])
    return one, two


def _sum(order: str, content: bytes, before: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    one, two = before
    for a, b in struct.iter_unpack(f"{order}II", content):
        one = (one + a + two) & 0xFFFFFFFF
        two = (two + b + one) & 0xFFFFFFFF
    return one, two
