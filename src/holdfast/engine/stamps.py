"""Stamps of files: what tells, without reading them, that they are as they were.

They are only trusted if they are old: a file that was touched a moment ago could change once more
without its stamps telling.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from stat import S_IFMT, S_ISLNK

from holdfast.model.digest import Digest, digest_bytes

_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


def stamps_of(root: str, paths: Iterable[str], before: int | None = None) -> Digest | None:
    """Digest of the stamps at these paths, and of the ways there; None if any is not older than `before`."""
    marks: list[str] = []
    settled: set[str] = set()  # directories that are old enough to say that something is not there
    ways = {""}  # directories and links on the way that are marked
    for path in paths:
        full = f"{root}/{path}"
        try:
            if not _mark_way(root, os.path.dirname(path), before, ways, marks):
                return None
            found = os.lstat(full)
            marks.append(mark_of(found))
            if before is not None and not is_older(found, before):
                return None
            if S_ISLNK(found.st_mode):
                found = os.stat(full)
                marks.append(f"{mark_of(found)} {os.path.realpath(full)!a}")
                if before is not None and not is_older(found, before):
                    return None
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
            marks.append("-")
            can_be = error.errno != errno.ENAMETOOLONG
            if can_be and before is not None and not _was_absent(full, before, settled):
                return None
    return digest_bytes("\n".join(marks).encode())


def _mark_way(root: str, place: str, before: int | None, known: set[str], marks: list[str]) -> bool:
    """Mark what is on the way to a path; False if something was put there lately: what is beyond may be old.

    What else is in a directory may change, so its times do not count.
    """
    while place not in known:
        full = f"{root}/{place}"
        here, beyond = os.lstat(full), os.stat(full)
        if before is not None and not (is_older(here, before) and is_older(beyond, before)):
            return False
        marks.append(f"{S_IFMT(here.st_mode)} {here.st_ino} {here.st_dev}")
        if S_ISLNK(here.st_mode):
            marks.append(f"{beyond.st_ino} {beyond.st_dev} {os.path.realpath(full)!a}")
        known.add(place)
        place = os.path.dirname(place)
    return True


def is_older(found: os.stat_result, before: int) -> bool:
    """Whether nothing happened to a file since."""
    return max(found.st_mtime_ns, found.st_ctime_ns) < before


def mark_of(found: os.stat_result) -> str:
    """What another file there, or another state of it, would have otherwise."""
    return (
        f"{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
        f" {found.st_ino} {found.st_dev}"
    )


def _was_absent(path: str, before: int, settled: set[str]) -> bool:
    """Whether nothing was there for a while: the directory that would hold it has not changed."""
    place = os.path.dirname(path)
    while place not in settled:
        try:
            found = os.stat(place)
        except (FileNotFoundError, NotADirectoryError):
            place = os.path.dirname(place)
            continue
        if not is_older(found, before):
            return False
        settled.add(place)
    return True
