"""Which paths of an index of git are repositories of their own: submodules, whoever added them.

The layout is that of `gitformat-index`: a header, then one entry for each path, sorted. Git is not asked,
because it would do what the repository says.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator

from holdfast.process.inside import open_regular

_SUBMODULE = b"\0\0\xe0\0"  # its mode, among those of files and links
_MODE, _DIGEST = 24, 40  # where they stand in an entry
_EXTENDED = 0x40
_LARGEST = 1 << 28
_SHA256 = re.compile(rb"(?im)^\s*objectformat\s*=\s*sha256\b")


def submodules_in(git_dir: str, common: str) -> Iterator[str]:
    """The submodules of the index in a git directory, also of one that it shares its entries with."""
    try:
        names = [name for name in os.listdir(git_dir) if name.startswith("sharedindex.")]
        with open_regular(os.path.join(common, "config")) as file:
            width = 32 if _SHA256.search(file.read(1 << 20)) else 20
    except OSError:
        return
    for name in ("index", *names):
        path = os.path.join(git_dir, name)
        try:
            found = os.lstat(path)
            yield from _read(path, width, (found.st_mtime_ns, found.st_ctime_ns, found.st_ino))
        except (OSError, ValueError, IndexError):
            continue  # git cannot read it either


@functools.lru_cache(maxsize=64)
def _read(path: str, width: int, stamp: tuple[int, ...]) -> tuple[str, ...]:
    del stamp  # one that changed is read again
    with open_regular(path) as file:
        data = file.read(_LARGEST)
    return tuple(_entries(data, width)) if _SUBMODULE in data and data[:4] == b"DIRC" else ()


def _entries(data: bytes, width: int) -> Iterator[str]:
    is_packed = int.from_bytes(data[4:8]) > 3  # noqa: PLR2004 - the version
    at, name = 12, b""
    for _ in range(int.from_bytes(data[8:12])):
        flags = at + _DIGEST + width
        begin = flags + (4 if data[flags] & _EXTENDED else 2)
        kept = 0
        if is_packed:  # the end of the name before is cut off, and this put there
            cut, begin = _number(data, begin)
            kept = len(name) - cut
        end = data.index(b"\0", begin)
        name = name[:kept] + data[begin:end]
        if data[at + _MODE : at + _MODE + 4] == _SUBMODULE:
            yield os.fsdecode(name)
        at = end + 1 if is_packed else at + (end - at + 8) // 8 * 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it needs, and where it ends."""
    found = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        found = (found + 1 << 7) | (data[at] & 0x7F)
    return found, at + 1
