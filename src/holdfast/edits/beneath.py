"""Read or write a file beneath a directory in one step: the kernel refuses every link on the way.

`openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, where the kernel has it and lets us; elsewhere the
walk of `tree`, one component at a time, which comes to the same.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from holdfast.edits.tree import (
    TEMP_PREFIX,
    TEMP_SUFFIX,
    chunks,
    open_directory,
    open_file,
    open_root,
    opened,
    outside_world,
    quoted,
    split_path,
    write_file,
)
from holdfast.errors import EditError
from holdfast.model.digest import digest_bytes

_OPENAT2 = 437  # the same on every architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
MOST_BYTES = 64 << 20  # of one file that is edited as text
_UNABLE = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG, errno.EAGAIN})


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """A regular file as it was read: what is in it, and how many names it has."""

    content: bytes
    digest: str
    mode: int
    links: int


def read_beneath(root: str, path: str) -> Seen | None:
    """The regular file at a path, None if nothing is there; EditError for a link or anything else."""
    with outside_world(f"read {quoted(path)}"), opened(open_root(root)) as root_fd:
        return read_at(root_fd, path)


def read_at(root_fd: int, path: str) -> Seen | None:
    """The same beneath an open directory."""
    *above, name = split_path(path)
    try:
        parent = open_parent(root_fd, above)
    except FileNotFoundError:
        return None
    with opened(parent):
        descriptor = open_file(parent, name, path)
        if descriptor is None:
            return None
        with opened(descriptor):
            status = os.fstat(descriptor)
            if status.st_size > MOST_BYTES:
                raise EditError(f"{quoted(path)} has more than {MOST_BYTES} bytes")
            content = b"".join(chunks(descriptor))
            mode, links = stat.S_IMODE(status.st_mode), status.st_nlink
            return Seen(content, digest_bytes(content), mode, links)


def write_beneath(root: str, path: str, content: bytes) -> None:
    """Put a file at a path, whole or not at all; missing folders are made. EditError for links."""
    *above, name = split_path(path)
    with outside_world(f"write {quoted(path)}"), opened(open_root(root)) as root_fd:
        for depth in range(1, len(above) + 1):
            with (
                opened(open_parent(root_fd, above[: depth - 1])) as parent,
                suppress(FileExistsError),
            ):
                os.mkdir(above[depth - 1], 0o755, dir_fd=parent)
        before = read_at(root_fd, path)
        with opened(open_parent(root_fd, above)) as parent:
            fresh = f"{TEMP_PREFIX}{os.getpid()}{TEMP_SUFFIX}"
            with suppress(FileNotFoundError):  # of one that was killed
                os.unlink(fresh, dir_fd=parent)
            write_file(parent, fresh, (content,), 0o644 if before is None else before.mode)
            os.replace(fresh, name, src_dir_fd=parent, dst_dir_fd=parent)


def remove_beneath(root: str, path: str) -> None:
    """Remove the file or the link at a path, if one is there; EditError for a link on the way."""
    *above, name = split_path(path)
    with (
        outside_world(f"remove {quoted(path)}"),
        opened(open_root(root)) as root_fd,
        suppress(FileNotFoundError),
        opened(open_parent(root_fd, above)) as parent,
    ):
        os.unlink(name, dir_fd=parent)


def open_parent(root_fd: int, parts: Sequence[str]) -> int:
    """Open the directory at `parts`; FileNotFoundError if missing, EditError if a link is on the way."""
    if parts:
        try:
            return _openat2(root_fd, "/".join(parts), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno not in {*_UNABLE, errno.ELOOP, errno.ENOTDIR, errno.EXDEV}:
                raise
    return open_directory(root_fd, parts)  # which also says where the link is


def _openat2(root_fd: int, path: str, flags: int) -> int:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    how = _How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(
        ctypes.c_long(_OPENAT2),
        ctypes.c_int(root_fd),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(found)
