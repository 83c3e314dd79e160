"""Where the files of a code base come from: a directory as it is now, or a commit.

In a directory nothing is reached through links: each part of a path is opened by itself, and must be
what it is. A file is known again by its stamp (times, size, inode); only what has another stamp is read.
A stamp that is nearly as young as the look at it says nothing, because the file may change within the
same tick of the clock, so it is left empty.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple, Protocol, Self

from holdfast.codebase.listing import listed
from holdfast.errors import ProcessError
from holdfast.gitrepo.git import LINK, SUBMODULE, Repository, contents, files

LARGEST = 1 << 20  # bytes of a file that is read
_TICK_NS = 100_000_000
_COARSE_TICK_NS = 2_000_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BATCH = 500


class Entry(NamedTuple):
    """A file: what it is known again by, and the name of its content if that is known unread."""

    path: str
    stamp: str
    key: str = ""
    size: int = -1


class Read(NamedTuple):
    """A file with its content; None if it is too large, or cannot be read."""

    entry: Entry
    content: bytes | None
    why: str = ""


class Source(Protocol):
    """Files that can be listed and read."""

    def entries(self) -> tuple[list[Entry], list[tuple[str, str]]]:
        """The files, sorted, and what was left out, with the reason."""
        ...

    def read(self, wanted: Sequence[Entry]) -> Iterator[Read]:
        """The contents of some of them, in their order."""
        ...


class Directory:
    """The files of a directory as they are now."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def entries(self) -> tuple[list[Entry], list[tuple[str, str]]]:
        """See Source."""
        began = time.time_ns()
        names = listed(self.root)
        left_out = names.left_out
        found = []
        with Handles(self.root) as handles:
            for path in names.paths:
                place, _, name = path.rpartition("/")
                try:
                    state = os.stat(name, dir_fd=handles.folder(place), follow_symlinks=False)
                except OSError:
                    continue  # gone meanwhile, or deleted and still known to git
                if stat.S_ISREG(state.st_mode):
                    found.append(Entry(path, _stamp(state, began), size=state.st_size))
                elif not stat.S_ISDIR(state.st_mode):
                    kind = "a link" if stat.S_ISLNK(state.st_mode) else "no regular file"
                    left_out.append((path, kind))
        return found, left_out

    def read(self, wanted: Sequence[Entry]) -> Iterator[Read]:
        """See Source."""
        with Handles(self.root) as handles:
            for entry in wanted:
                try:
                    with handles.file(entry.path) as file:
                        content = file.read(LARGEST + 1)
                except OSError as error:
                    yield Read(entry, None, (error.strerror or "").lower())
                    continue
                if len(content) > LARGEST:
                    yield Read(entry, None, "large")
                else:
                    yield Read(entry, content)


class Commit:
    """The files of a commit, as git has stored them; the repository may be bare."""

    def __init__(self, folder: str, commit: str) -> None:
        self._repository = Repository(folder, "")
        self._commit = commit

    def entries(self) -> tuple[list[Entry], list[tuple[str, str]]]:
        """See Source."""
        found, left_out = [], []
        for path, mode, name in files(self._repository, self._commit):
            if mode in {LINK, SUBMODULE}:
                left_out.append((os.fsdecode(path), "a link" if mode == LINK else "a submodule"))
            else:
                found.append(Entry(os.fsdecode(path), name, name))
        return sorted(found, key=lambda entry: os.fsencode(entry.path)), left_out

    def read(self, wanted: Sequence[Entry]) -> Iterator[Read]:
        """See Source. A content that the repository lacks, as a partial clone may, is not read."""
        at = 0
        while at < len(wanted):
            batch = wanted[at : at + _BATCH]
            given = contents(self._repository, [entry.key for entry in batch])
            try:
                for entry, content in zip(batch, given, strict=True):
                    at += 1
                    large = len(content) > LARGEST
                    yield Read(entry, None, "large") if large else Read(entry, content)
            except ProcessError as error:
                yield Read(wanted[at], None, error.message)
                at += 1


def _stamp(state: os.stat_result, began: int) -> str:
    coarse = not state.st_ctime_ns % 1_000_000_000
    tick = _COARSE_TICK_NS if coarse else _TICK_NS
    if max(state.st_mtime_ns, state.st_ctime_ns) > began - tick:
        return ""
    return f"{state.st_mtime_ns}.{state.st_ctime_ns}.{state.st_size}.{state.st_ino}"


class Handles:
    """Descriptors of the directories on the way to the one that was asked for last."""

    def __init__(self, root: str) -> None:
        self._root = os.open(root, _FOLDER)
        self._way: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._back_to(0)
        os.close(self._root)

    def folder(self, place: str) -> int:
        """A descriptor that is good until the next call; OSError if a link is on the way."""
        parts = place.split("/") if place else []
        same = 0
        for (name, _), part in zip(self._way, parts, strict=False):
            if name != part:
                break
            same += 1
        self._back_to(same)
        for part in parts[same:]:
            handle = self._way[-1][1] if self._way else self._root
            self._way.append((part, os.open(part, _FOLDER, dir_fd=handle)))
        return self._way[-1][1] if self._way else self._root

    def file(self, path: str) -> BinaryIO:
        """A file, opened to be read; OSError if it is a link, or one is on the way."""
        place, _, name = path.rpartition("/")
        return open(os.open(name, _FILE, dir_fd=self.folder(place)), "rb")

    def _back_to(self, depth: int) -> None:
        while len(self._way) > depth:
            os.close(self._way.pop()[1])
