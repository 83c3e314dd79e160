"""Whether a write-ahead log holds commits that SQLite no longer sees.

SQLite reads the log up to the first frame whose checksum does not hold and takes that for its end, as it
must after a power loss. If a bit of an old frame has changed, everything behind it is gone without a
word. Frames of one log carry the same salt, and with full synchronisation at most one commit can stand
behind a torn frame: its own. Two are proof that the log was whole once.

If a bit of the log's first bytes has changed, SQLite sees no frame at all. Those bytes are synced before
any frame is written, so every commit that is whole behind them was one, and is lost unless the database
has it. The index says nothing then: SQLite copies the salt into it before it looks at the checksum.

    index    in the file beside the log: how many frames SQLite sees, and their salt

(sqlite.org/walformat.html; the log itself: see `frames`)
"""

from __future__ import annotations

import filecmp
import itertools
import os
import shutil
import struct
from collections.abc import Iterable

from holdfast.store.blobs import sync_directory
from holdfast.store.frames import (
    FRAME_HEAD,
    HEAD,
    first_salt,
    holds,
    page_size,
    proven_frames,
    unsaved_commits,
)
from holdfast.store.peek import peeking

_INDEX = struct.Struct("=16xI12x8s")
_READ_LOCKS = range(123, 128)  # bytes of the index that readers lock
_NEAR = 64  # frames behind the end in which one of this log must stand


def lost_commits(path: str, *, shared: bool = True) -> int:
    """How many commits stand behind the end that SQLite sees; 0 unless they prove that it is damaged.

    If the index is not `shared`, because it cannot be written, SQLite has one of its own, as the log is.
    """
    try:
        with open(f"{path}-wal", "rb") as log:
            return _lost(log.fileno(), path, shared=shared)
    except FileNotFoundError:
        return 0


def orphaned_commits(path: str) -> int:
    """How many commits the log of a database has that is not there or empty.

    SQLite removes such a log without a word. A database has its first page before its log has a commit.
    """
    if _size(path):
        return 0
    try:
        with open(f"{path}-wal", "rb") as log:
            found = unsaved_commits(log.fileno(), path)
    except OSError:  # nobody can open it then, and remove it
        return 0
    return 0 if _size(path) else found  # else somebody made it meanwhile


def counted(commits: int) -> str:
    """So many commits, in words."""
    return "1 commit" if commits == 1 else f"{commits} commits"


def kept_copy(path: str) -> str:
    """Where a copy of the log lies, durably; what was kept before stays."""
    log, kept = f"{path}-wal", f"{path}-wal.damaged"
    for number in itertools.count(2):
        if not os.path.lexists(kept):
            break
        if filecmp.cmp(log, kept, shallow=False):
            return kept
        kept = f"{log}.damaged-{number}"
    with open(log, "rb") as source, open(kept, "xb") as copy:
        shutil.copyfileobj(source, copy)
        copy.flush()
        os.fsync(copy.fileno())
    sync_directory(os.path.dirname(log))
    return kept


def _lost(log: int, path: str, *, shared: bool) -> int:
    head, seen = os.pread(log, HEAD, 0), _seen(path)
    if len(head) < HEAD:
        return 0
    size = page_size(path, head)
    index = seen if shared else (proven_frames(log, size) if holds(head) else 0, head[16:24])
    found = _behind(log, size, head, index) if holds(head) else _unseen(log, path, index)
    is_still = (os.pread(log, HEAD, 0), _seen(path)) == (head, seen)
    return found if is_still else 0  # else somebody writes it now


def _behind(log: int, size: int, head: bytes, seen: tuple[int, bytes]) -> int:
    """Commits behind the end, in a log whose first bytes are whole."""
    before, salt = seen
    # A log that is begun anew has its new salt only in the index until the first frame is written.
    if salt != head[16:24]:
        return 0
    frame = FRAME_HEAD + size
    count = (os.fstat(log).st_size - HEAD) // frame
    heads = (os.pread(log, FRAME_HEAD, HEAD + frame * n) for n in range(before, count))
    found = _commits(heads, salt)
    return found if found > 1 else 0


def _commits(heads: Iterable[bytes], salt: bytes) -> int:
    """How many frames with this salt end a commit."""
    found, matching = 0, 0
    for number, head in enumerate(heads):
        if not matching and number >= _NEAR:
            break
        if head[8:16] == salt:
            matching += 1
            found += head[4:8] != bytes(4)
    return found


def _unseen(log: int, path: str, seen: tuple[int, bytes]) -> int:
    """Commits of a log whose first bytes are damaged; whoever has it open still sees them all."""
    count, salt = seen
    return 0 if count and salt == first_salt(log) else unsaved_commits(log, path)


def _seen(path: str) -> tuple[int, bytes]:
    """How many frames SQLite reads, and the salt they have; zeros if it took the log for none."""
    try:
        with peeking(path, "-shm") as index:
            found = os.pread(index, _INDEX.size, 0)
    except FileNotFoundError:
        return 0, b""
    return _INDEX.unpack(found) if len(found) == _INDEX.size else (0, b"")


def log_size(path: str) -> int:
    """How many bytes the log of a database has."""
    return _size(f"{path}-wal")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
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
