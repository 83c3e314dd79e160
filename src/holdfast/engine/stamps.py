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
_MOST_LINKS = 40  # that lead to one file, as in the kernel
LONGEST = 4096  # bytes of a path that the kernel takes; words of commands may be longer


def stamps_of(root: str, paths: Iterable[str], before: int | None = None) -> Digest | None:
    """Digest of the stamps at these paths, and of the ways there; None if any is not older than `before`."""
    walk = _Walk(root)
    for path in paths:
        walk.look_at(path)
    if before is not None and walk.youngest >= before:
        return None
    return digest_bytes("\n".join(walk.marks).encode())


class _Walk:
    """Goes to each path link by link, as the kernel does, and marks what it comes by.

    What was put anywhere on the way counts, however old that is which lies beyond; and if nothing is
    there, the directory that would hold it. What else is in a directory may change: its times are not
    marked, they only say that nothing was put there lately.
    """

    def __init__(self, root: str) -> None:
        self.marks: list[str] = []
        self.youngest = 0  # when the last thing happened to any of it, in ns
        self._ways: dict[str, str | None] = {"": root}  # the directories that paths lead to
        self._lacking: set[str] = set()  # directories in which something was not found

    def look_at(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        place = self._way(above) if len(path) < LONGEST else None
        end = None if place is None else self._follow(place, name)
        if end is None:
            self.marks.append("-")

    def _way(self, path: str) -> str | None:
        """The directory that a path leads to; None if there is none, and nothing is kept of it."""
        if path in self._ways:
            return self._ways[path]
        place, end = self._ways[""], -1
        while place is not None and end < len(path):
            start, end = end + 1, path.find("/", end + 1)
            end = len(path) if end < 0 else end
            here = path[:end]
            if here not in self._ways:
                self._ways[here] = self._follow(place, path[start:end], is_way=True)
            place = self._ways[here]
        return place

    def _follow(self, place: str, name: str, *, is_way: bool = False) -> str | None:
        """Where a name leads; None if nothing is there."""
        rest, links = [name], 0
        while rest:
            full = f"{place}/{rest.pop()}"
            found = self._found(place, full)
            if found is None:
                return None
            if S_ISLNK(found.st_mode):
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), full)
                target = os.readlink(full)
                self.marks.append(f"{mark_of(found)} {target!a}")
                rest += reversed([part for part in target.split("/") if part])
                place = "" if target.startswith("/") else place
                continue
            place = full
            if rest or is_way:
                self.marks.append(f"{S_IFMT(found.st_mode)} {found.st_ino} {found.st_dev}")
            else:
                self.marks.append(mark_of(found))
        return place

    def _found(self, place: str, full: str) -> os.stat_result | None:
        try:
            found = os.lstat(full)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
            if error.errno != errno.ENAMETOOLONG and place not in self._lacking:
                self._lacking.add(place)
                self._see(os.stat(place or "/"))
            return None
        self._see(found)
        return found

    def _see(self, found: os.stat_result) -> None:
        self.youngest = max(self.youngest, found.st_mtime_ns, found.st_ctime_ns)


def is_older(found: os.stat_result, before: int) -> bool:
    """Whether nothing happened to a file since."""
    return max(found.st_mtime_ns, found.st_ctime_ns) < before


def mark_of(found: os.stat_result) -> str:
    """What another file there, or another state of it, would have otherwise."""
    return (
        f"{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
        f" {found.st_ino} {found.st_dev}"
    )
