"""A private directory of this process, for as long as it lives.

    <temporary directory>/holdfast-<user>/<random>/        of one process
    <temporary directory>/holdfast-<user>/<random>.lock    locked by it, by the kernel

A process that is killed leaves its directory behind; the next one here that makes its own finds it unlocked
and removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import tempfile

from holdfast.errors import ProcessError
from holdfast.process.removal import discard_folder

_LOCK = ".lock"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def own_den() -> str:
    """A fresh directory that only this process uses; whatever dead ones left is removed."""
    top = os.path.join(tempfile.gettempdir(), f"holdfast-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(top, 0o700)
    found = os.lstat(top)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ProcessError(f"'{top}' belongs to somebody else", hint="set TMPDIR to another place")
    place = os.path.join(top, secrets.token_hex(8))
    while (
        _take(place) is None
    ):  # somebody looked at it just then; it is given back with the process
        place = os.path.join(top, secrets.token_hex(8))
    os.mkdir(place, 0o700)
    for name in os.listdir(top):
        if name.endswith(_LOCK):
            _clear(os.path.join(top, name.removesuffix(_LOCK)))
    return place


def _take(place: str) -> int | None:
    """The lock of a directory; None if a living process has it."""
    descriptor = os.open(place + _LOCK, _OPEN, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _clear(place: str) -> None:
    lock = _take(place)
    if lock is None:
        return
    discard_folder(place)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place + _LOCK)
    os.close(lock)
