"""Files of a work tree laid as a snapshot has them, without following a link and never half.

Each file is written beside its place, synchronised, and renamed. What stands there must be what was
stored just before: it is looked at once more right before it goes, and stays if it is anything else. Two
names of one file are told from a change: when one of them goes, the other shows a new time of its own. A
process that dies leaves each file whole, old or new; laying the same again comes to the same end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import StoreError
from holdfast.gitrepo.names import shown

LINK, PROGRAM, PLAIN, MODULE = "120000", "100755", "100644", "160000"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMP = ".holdfast-laying.tmp"

Stamp = tuple[int, ...]
_SAME = 5  # parts of a stamp that stay when another name of the file goes


class Wanted(NamedTuple):
    """What a path shall hold: a file with its permissions, or a link (`is_link`) to what `content` says."""

    path: str
    content: bytes
    mode: int
    is_link: bool


@dataclass(frozen=True, slots=True)
class Laid:
    """What was done, and which paths somebody changed meanwhile: those were left alone."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def stamp_of(found: os.stat_result) -> Stamp:
    """What tells that a file is still the one that was looked at."""
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def lay(top: str, seen: Mapping[str, Stamp], gone: Sequence[str], wanted: Iterator[Wanted]) -> Laid:
    """Remove files and write others. `seen` is how each looked when it was stored; others were absent."""
    removed: list[str] = []
    written: list[str] = []
    kept: list[str] = []
    parted: set[Stamp] = set()  # files that a name was taken from
    try:
        for path in gone:
            (removed if _remove(top, path, seen.get(path), parted) else kept).append(path)
        for one in wanted:
            (written if _put(top, one, seen.get(one.path), parted) else kept).append(one.path)
    except OSError as error:
        raise StoreError(f"files in {shown(top)} cannot be laid: {error}") from error
    return Laid(tuple(written), tuple(removed), tuple(kept))


def part(top: str, path: str) -> None:
    """Let a file have no name but this: what is written under another is not written here any more."""
    try:
        with _parent(top, path, make=False) as (folder, name):
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            with open(opened, "rb") as file:
                content, mode = file.read(), os.fstat(opened).st_mode
            with suppress(FileNotFoundError):
                os.unlink(_TEMP, dir_fd=folder)
            _write(folder, Wanted(path, content, stat.S_IMODE(mode), is_link=False))
            os.rename(_TEMP, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
    except OSError as error:
        raise StoreError(f"{shown(path)} in {shown(top)} cannot be laid: {error}") from error


@contextmanager
def _parent(top: str, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The folder of a path, opened from the top one name at a time."""
    *above, name = path.split("/")
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in above:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o777, dir_fd=here)
                    os.fsync(here)
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)


def _look(folder: int, name: str) -> Stamp | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stamp_of(found)


def _is_as_seen(now: Stamp | None, seen: Stamp | None, parted: set[Stamp]) -> bool:
    if now is None or seen is None or now[:2] not in parted:
        return now == seen
    return now[:_SAME] == seen[:_SAME]


def _remove(top: str, path: str, seen: Stamp | None, parted: set[Stamp]) -> bool:
    try:
        with _parent(top, path, make=False) as (folder, name):
            now = _look(folder, name)
            if now is not None and (not _is_as_seen(now, seen, parted) or stat.S_ISDIR(now[2])):
                return False
            if now is not None:
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
                parted.add(now[:2])
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            raise
    _remove_empty(top, os.path.dirname(path))
    return True


def _remove_empty(top: str, folder: str) -> None:
    """Remove folders that hold nothing any more, as git does; never the top."""
    while folder:
        try:
            with _parent(top, folder, make=False) as (above, name):
                os.rmdir(name, dir_fd=above)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _clear(folder: int, name: str) -> None:
    """Remove a folder that holds no file, however deep: nothing was stored of it, and nothing is lost."""
    try:
        inside = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        return
    try:
        for below in os.listdir(inside):
            _clear(inside, below)
    finally:
        os.close(inside)
    with suppress(OSError):
        os.rmdir(name, dir_fd=folder)


def _put(top: str, one: Wanted, seen: Stamp | None, parted: set[Stamp]) -> bool:
    try:
        with _parent(top, one.path, make=True) as (folder, name):
            with suppress(FileNotFoundError):
                os.unlink(_TEMP, dir_fd=folder)
            if one.is_link:
                os.symlink(one.content, _TEMP, dir_fd=folder)
            else:
                _write(folder, one)
            if seen is None:
                _clear(folder, name)
            if not _is_as_seen(_look(folder, name), seen, parted):
                os.unlink(_TEMP, dir_fd=folder)
                return False
            os.rename(_TEMP, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
            parted.update({seen[:2]} if seen is not None else ())
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP, errno.EISDIR}:
            return False  # somebody put something else in the way
        raise
    return True


def _write(folder: int, one: Wanted) -> None:
    descriptor = os.open(_TEMP, _FRESH, 0o600, dir_fd=folder)
    try:
        view = memoryview(one.content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, one.mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
