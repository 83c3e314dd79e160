"""Looks into the files of a database beside SQLite, without taking its locks away.

SQLite keeps others off by POSIX locks on the database and on the index of its log. When a process closes
any descriptor of a file, it loses all the locks it has there, whoever took them: the next process finds
nobody, empties the index that is mapped here (SIGBUS), or removes a log that is in use. So while this
process has a database open, what was opened here to look into its files stays open too.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.errors import IntegrityError, StoreError, UsageError

_lock = threading.Lock()
# Process-wide, as the locks are: how often each database is open here, and descriptors that stay.
_open: dict[str, int] = {}
_kept: dict[str, list[int]] = {}
_LINE_LOCK = re.compile(r"[0-9a-f]{64}\.lock")  # a digest names the line
_SHARD = re.compile("[0-9a-f]{2}")
_CONTENT = re.compile("[0-9a-f]{64}")
_LEAVE = "put the file back, or leave the store behind: holdfast repair --start-over"
_FOLDERS = ("blobs", "locks", "scratch")
ASIDE = "quarantine"  # where databases of a store are that were moved aside


def opened(path: str) -> None:
    """This process is about to open a database."""
    with _lock:
        _open[path] = _open.get(path, 0) + 1


def closed(path: str) -> None:
    """It has closed it; with the last one the descriptors go too."""
    with _lock:
        _open[path] -= 1
        if _open[path]:
            return
        del _open[path]
        for descriptor in _kept.pop(path, ()):
            os.close(descriptor)


def was_used(directory: str) -> bool:
    """Whether this store ever had tables: what comes after them is there.

    A line was held, an event was stored, or a content; contents may be those of a database that was moved
    aside.
    """
    if os.path.lexists(os.path.join(directory, "state.end")):
        return True
    if any(map(_LINE_LOCK.fullmatch, _names(directory, "locks"))):
        return True
    return not os.path.isdir(os.path.join(directory, ASIDE)) and _has_content(directory)


def _has_content(directory: str) -> bool:
    shards = filter(_SHARD.fullmatch, _names(directory, "blobs"))
    return any(any(map(_CONTENT.fullmatch, _names(directory, "blobs", shard))) for shard in shards)


def _names(*folder: str) -> list[str]:
    """What is in a directory; nothing if it cannot be read."""
    try:
        return os.listdir(os.path.join(*folder))
    except OSError:
        return []


def check_place(directory: str) -> str:
    """The directory, or the nearest one above it that is there; UsageError if something else is."""
    place = os.path.abspath(directory)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise UsageError(
            f"'{place}' is no directory, and a store is one",
            hint="name a directory or postgresql://…: --store or HOLDFAST_STORE",
        )
    return place


def check_files(path: str) -> None:
    """IntegrityError if a file of a database is a directory, a link that leads nowhere, or the like.

    SQLite follows a link to the database, and none to its log. StoreError if a directory beside it is none:
    contents on a disk that is away are not gone.
    """
    for name in _FOLDERS:
        folder = os.path.join(os.path.dirname(path), name)
        if os.path.lexists(folder) and not os.path.isdir(folder):
            away = shlex.join(["mv", folder, f"{folder}.aside"])
            hint = f"put the directory back, or: {away}, then holdfast repair"
            raise StoreError(f"'{folder}' is no directory", hint=hint)
    if os.path.lexists(path) and not os.path.isfile(path):
        raise _no_file(path, _LEAVE)
    log, index = f"{path}-wal", f"{path}-shm"
    if _is_other(log):
        raise _no_file(log, _LEAVE)
    if _is_other(index):
        raise _no_file(index, f"rm -r {shlex.quote(index)}")


def _is_other(path: str) -> bool:
    """Whether something is there that is no file."""
    try:
        return not stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _no_file(path: str, hint: str) -> IntegrityError:
    return IntegrityError(f"'{path}' is no file", hint=hint)


@contextmanager
def peeking(path: str, suffix: str = "") -> Iterator[int]:
    """A descriptor of the database, or with a suffix of a file beside it; FileNotFoundError without one."""
    with _lock:
        descriptor = _known(path, suffix)
        if descriptor is None:
            descriptor = os.open(f"{path}{suffix}", os.O_RDONLY | os.O_CLOEXEC)
            stays = path in _open
            if stays:
                _kept.setdefault(path, []).append(descriptor)
        else:
            stays = True
    try:
        yield descriptor
    finally:
        if not stays:
            os.close(descriptor)


def _known(path: str, suffix: str) -> int | None:
    """A descriptor that stays and is still of this very file."""
    if path not in _kept:
        return None
    with suppress(FileNotFoundError):
        now = os.stat(f"{path}{suffix}")
        for descriptor in _kept[path]:
            then = os.fstat(descriptor)
            if (then.st_dev, then.st_ino) == (now.st_dev, now.st_ino):
                return descriptor
    return None
