"""Remove a directory that a command filled: however deep it is, and whatever it let nobody into."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(path: str, dir_fd: int | None = None) -> None:
    """Remove a directory with all that it holds; links in it are not followed. OSError if some of it stays.

    `shutil.rmtree` goes down by calling itself and opens every folder on its way: some hundred levels end it.
    What it leaves is taken apart by moving what lies deeper to the top.
    """
    with suppress(OSError, RecursionError):
        shutil.rmtree(path, dir_fd=dir_fd)
        return
    try:
        top = os.open(path, _OPEN, dir_fd=dir_fd)
    except FileNotFoundError:
        return
    try:
        _flatten(top)
    finally:
        os.close(top)
    os.rmdir(path, dir_fd=dir_fd)


def discard_folder(path: str) -> None:
    """Remove a directory as far as that is possible; what stays is found again by whoever looks for it."""
    with suppress(OSError):
        remove_folder(path)


def discard(path: str) -> None:
    """Remove whatever lies at a path, as far as that is possible; a link goes, not what it leads to."""
    if os.path.isdir(path) and not os.path.islink(path):
        discard_folder(path)
        return
    with suppress(OSError):
        os.unlink(path)


def _flatten(top: int) -> None:
    taken = set(os.listdir(top))
    fresh = (name for name in map(str, count()) if name not in taken)
    while names := os.listdir(top):
        for name in names:
            if _is_folder(top, name):
                _empty(top, name, fresh)
                os.rmdir(name, dir_fd=top)
            else:
                os.unlink(name, dir_fd=top)


def _empty(top: int, name: str, fresh: Iterator[str]) -> None:
    os.chmod(name, 0o700, dir_fd=top)
    folder = os.open(name, _OPEN, dir_fd=top)
    try:
        for inside in os.listdir(folder):
            if _is_folder(folder, inside):
                os.chmod(inside, 0o700, dir_fd=folder)  # to be moved, it must be writable
                os.rename(inside, next(fresh), src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(inside, dir_fd=folder)
    finally:
        os.close(folder)


def _is_folder(parent: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
