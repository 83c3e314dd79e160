"""Stamps of files: what tells, without reading them, that they are as they were.

They are only trusted if they are old: a file that was touched a moment ago could change once more
without its stamps telling.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from stat import S_ISLNK

from holdfast.model.digest import Digest, digest_bytes


def stamps_of(root: str, paths: Iterable[str], before: int | None = None) -> Digest | None:
    """Digest of the stamps at these paths; None if any is not older than `before`."""
    marks = []
    settled: set[str] = set()  # directories that are old enough to say that something is not there
    ways = {""}  # directories and links that are old enough to have led to the same things before
    for path in paths:
        full = f"{root}/{path}"
        try:
            if before is not None and not _is_old_way(root, os.path.dirname(path), before, ways):
                return None
            found = os.lstat(full)
            marks.append(mark_of(found))
            if before is not None and not is_older(found, before):
                return None
            if S_ISLNK(found.st_mode):
                found = os.stat(full)
                marks.append(mark_of(found))
                if before is not None and not is_older(found, before):
                    return None
        except (FileNotFoundError, NotADirectoryError):
            marks.append("-")
            if before is not None and not _was_absent(full, before, settled):
                return None
    return digest_bytes("\n".join(marks).encode())


def _is_old_way(root: str, place: str, before: int, known: set[str]) -> bool:
    """Whether nothing on the way to a path was put there lately: what is beyond it may be old."""
    while place not in known:
        full = f"{root}/{place}"
        if not (is_older(os.lstat(full), before) and is_older(os.stat(full), before)):
            return False
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
