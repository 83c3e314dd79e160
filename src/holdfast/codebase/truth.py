"""Whether files really have the lines that a program says they have, if no link is followed."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import BinaryIO

from holdfast.codebase.sources import Handles

_COARSE = 2.0  # seconds by which clocks of file systems may lag
_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")


Record = tuple[bytes, bytes, bytes]  # a line that a program told: its number, its sign, its text


def untrue(root: str, told: Mapping[str, Sequence[Record]], since: float) -> list[str]:
    """The paths of which something was told that is not there; they changed, or links led to others.

    What was told was read after `since` (seconds since 1970). A file is read again only if it, or a directory
    on the way to it, may have changed by then: the kernel notes that, and nobody can set the time it notes.
    """
    lost = []
    with Handles(root) as handles:
        still = _Still(handles, since)
        for path in sorted(told):
            try:
                is_true = still.has(path) or _is_told(handles, path, told[path])
            except (OSError, UnicodeError):
                is_true = False
            if not is_true:
                lost.append(path)
    return lost


class _Still:
    """What stood still since some time: whoever went there by its path came to what is there now."""

    def __init__(self, handles: Handles, since: float) -> None:
        self._handles = handles
        self._limit = int((since - _COARSE) * 1e9)
        self._known: dict[str, bool] = {}

    def has(self, path: str) -> bool:
        """Whether a path leads to a file by way of no link, and did all the time."""
        place, _, name = path.rpartition("/")
        if not self._folder(place):
            return False
        found = os.stat(name, dir_fd=self._handles.folder(place), follow_symlinks=False)
        return stat.S_ISREG(found.st_mode) and found.st_ctime_ns < self._limit

    def _folder(self, place: str) -> bool:
        if place not in self._known:
            above = not place or self._folder(place.rpartition("/")[0])
            changed = os.fstat(self._handles.folder(place)).st_ctime_ns
            self._known[place] = above and changed < self._limit
        return self._known[place]


def _is_told(handles: Handles, path: str, records: Sequence[Record]) -> bool:
    with handles.file(path) as file:
        return _has(file, records)


def _has(file: BinaryIO, records: Sequence[Record]) -> bool:
    wanted = sorted({int(number): _bare(text) for number, _, text in records}.items())
    lines = _lines(file)
    before = 0
    for number, text in wanted:
        line = next(islice(lines, number - before - 1, None), None)
        if line is None or _bare(line) != text:
            return False
        before = number
    return True


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines as ripgrep reads them: UTF-16 that says so is text, too."""
    head = file.read(2)
    file.seek(0)
    return _narrow(file) if head in _WIDE else iter(file)


def _narrow(file: BinaryIO) -> Iterator[bytes]:
    with io.TextIOWrapper(file, "utf-16", errors="replace", newline="\n") as text:
        for line in text:
            yield line.encode("utf-8", "replace")


def _bare(line: bytes) -> bytes:
    return line.removeprefix(_MARK).rstrip(b"\r\n")
