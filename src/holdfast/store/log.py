"""The write-ahead log as it lies on disk, and whether it holds commits that SQLite no longer sees.

SQLite reads the log up to the first frame whose checksum does not hold and takes that for its end, as it
must after a power loss. If a bit of an old frame has changed, everything behind it is gone without a
word. Frames of one log carry the same salt, and with full synchronisation at most one commit can stand
behind a torn frame: its own. Two are proof that the log was whole once.

    log      magic, version, page size, checkpoints, salt (8 bytes), checksum (8 bytes): 32 bytes
    frame    page number, pages after a commit or 0, salt (8 bytes), checksum (8 bytes), the page
    index    in the file beside it: how many frames SQLite sees, and their salt

(sqlite.org/fileformat2.html, sqlite.org/walformat.html)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

_HEAD = 32
_FRAME_HEAD = 24
_INDEX = struct.Struct("=16xI12x8s")
_LITTLE = 0x377F0682  # the magic number of logs whose checksums read words that way
_READ_LOCKS = range(123, 128)  # bytes of the index that readers lock
_NEAR = 64  # frames behind the end in which one of this log must stand


def lost_commits(path: str) -> int:
    """How many commits stand behind the end that SQLite sees; 0 unless they prove that it is damaged."""
    try:
        with open(f"{path}-wal", "rb") as log:
            found = _lost(log.fileno(), path)
    except FileNotFoundError:
        return 0
    return found if found > 1 else 0


def _lost(log: int, path: str) -> int:
    head = os.pread(log, _HEAD, 0)
    if len(head) < _HEAD:
        return 0
    before, salt = _seen(path)
    is_whole = _holds(head)
    # A log that is begun anew has its new salt only in the index until the first frame is written.
    if salt != (head[16:24] if is_whole else bytes(8)):
        return 0
    frame = _FRAME_HEAD + _page_size(path)
    count = (os.fstat(log).st_size - _HEAD) // frame
    heads = (os.pread(log, _FRAME_HEAD, _HEAD + frame * n) for n in range(before, count))
    found = _commits(heads, salt if is_whole else b"")
    return found if _seen(path) == (before, salt) else 0  # else somebody writes it now


def _commits(heads: Iterable[bytes], salt: bytes) -> int:
    """How many frames with this salt end a commit; without a salt, with that of the first."""
    found, matching = 0, 0
    for number, head in enumerate(heads):
        if not matching and number >= _NEAR:
            break
        salt = salt or head[8:16]
        if head[8:16] == salt:
            matching += 1
            found += head[4:8] != bytes(4)
    return found


def _seen(path: str) -> tuple[int, bytes]:
    """How many frames SQLite reads, and the salt they have; zeros if it took the log for none."""
    try:
        with open(f"{path}-shm", "rb") as index:
            found = os.pread(index.fileno(), _INDEX.size, 0)
    except FileNotFoundError:
        return 0, b""
    return _INDEX.unpack(found) if len(found) == _INDEX.size else (0, b"")


def _page_size(path: str) -> int:
    with open(path, "rb") as database:
        size = database.read(18)[16:]
    return {0: 4096, 1: 65536}.get(found := int.from_bytes(size, "big"), found)


def _holds(head: bytes) -> bool:
    """Whether the checksum of the log's first bytes is right."""
    magic = int.from_bytes(head[:4], "big")
    order = "<" if magic == _LITTLE else ">"
    one = two = 0
    for a, b in struct.iter_unpack(f"{order}II", head[:24]):
        one = (one + a + two) & 0xFFFFFFFF
        two = (two + b + one) & 0xFFFFFFFF
    return (one, two) == struct.unpack(">II", head[24:32])


def log_size(path: str) -> int:
    """How many bytes the log of a database has."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


def log_readers(path: str) -> list[int]:
    """Other processes that have a read open now, as far as the kernel tells: by their locks on the index."""
    try:
        found = os.stat(f"{path}-shm")
        with open("/proc/locks", encoding="ascii", errors="replace") as table:
            lines = [line.split() for line in table]
    except OSError:
        return []
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    pids = {
        int(words[4])
        for words in lines
        if words[5:6] == [place] and words[6].isdecimal() and int(words[6]) in _READ_LOCKS
    }
    return sorted(pids - {os.getpid(), 0, -1})
