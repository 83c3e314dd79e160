"""Read files that a stranger may have laid there: regular ones, without waiting, never out of the project.

A command can leave a link to a place that it must not read itself, or a pipe that nobody writes to, and wait
for somebody outside of its sandbox to open it. A link is followed if what it leads to lies in the project
too, and not in what git or Holdfast keep there.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from typing import NamedTuple

from holdfast.errors import EditError, outside_fault
from holdfast.process.confine import is_within

_PRIVATE = frozenset({".git", ".holdfast"})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Lying(NamedTuple):
    """What is in a file, and whether its owner may execute it."""

    content: bytes
    executable: bool


class SpecialFileError(OSError):
    """A link, a pipe, a socket or a device, where a regular file is wanted."""


def open_regular(path: str, dir_fd: int | None = None) -> BufferedReader:
    """A regular file, opened to be read; OSError for anything else, a link too: nothing else is opened."""
    _check(path, os.stat(path, dir_fd=dir_fd, follow_symlinks=False))
    file = open(os.open(path, _FILE, dir_fd=dir_fd), "rb")  # noqa: SIM115 - the caller closes it
    try:
        _check(path, os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def _check(path: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(path)
    if not stat.S_ISREG(found.st_mode):
        raise SpecialFileError(path)


def open_inside(root: str, path: str) -> BufferedReader:
    """A file of the project, opened to be read. A link is followed, unless it leads out of the project.

    FileNotFoundError, NotADirectoryError and IsADirectoryError if there is no file, EditError for all else
    that keeps it from being read. What a path leads to is found out first; then no link is on the way.
    """
    *above, name = place_inside(root, path).split("/")
    try:
        parent = os.open(os.path.realpath(root), _FOLDER)
        try:
            for part in above:
                inner = os.open(part, _FOLDER, dir_fd=parent)
                os.close(parent)
                parent = inner
            return open_regular(name, parent)
        finally:
            os.close(parent)
    except SpecialFileError as error:
        raise EditError(f"'{path}' is not a regular file") from error
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise
    except OSError as error:
        fault = outside_fault(error)
        raise fault or EditError(f"cannot read '{path}': {error.strerror}") from error


def read_inside(root: str, path: str, most: int) -> Lying:
    """A file of the project, as `open_inside` finds it; EditError if it has more than `most` bytes."""
    with open_inside(root, path) as file:
        found = os.fstat(file.fileno())
        content = file.read(most + 1) if found.st_size <= most else b""
    if max(found.st_size, len(content)) > most:
        raise EditError(f"'{path}' has more than {most} bytes")
    return Lying(content, bool(found.st_mode & 0o100))


def place_inside(root: str, path: str) -> str:
    """Where a path of the project really leads, from its top; EditError if that is no part of the project."""
    top = os.path.realpath(root)
    place = os.path.realpath(os.path.join(top, path))
    found = os.path.relpath(place, top)
    is_private = found != os.path.normpath(path) and not _PRIVATE.isdisjoint(found.split("/"))
    if is_private or not is_within(place, top):
        raise EditError(
            f"'{path}' leads out of the project",
            hint="nothing is read through such a link; put a copy there",
        )
    return found
