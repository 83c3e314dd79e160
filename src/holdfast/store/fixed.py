"""A database where nothing can be written: a read-only disk, or a directory of somebody else.

SQLite shares its index of the log through a file beside it and opens no database without. If there is no
log, nothing has to be shared: the file is read as it is, and looked at again after each read, because it
may be fixed for us alone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from urllib.parse import quote_from_bytes

from holdfast.store.log import log_size

Mark = tuple[int, int, int, int]


def why_fixed(path: str) -> str:
    """Why nothing can be written beside a file; '' if it can, or if nobody knows."""
    folder = os.path.dirname(path)
    if os.access(folder, os.W_OK | os.X_OK):
        return ""
    with suppress(OSError):
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            return "is on a read-only file system"
        return "is in a directory that you cannot write to"
    return ""


def fixed_name(path: str) -> str:
    """How SQLite is told to open a file that does not change; '' if it has a log, or can change."""
    if log_size(path) or not why_fixed(path):
        return ""
    return f"file:{quote_from_bytes(os.fsencode(os.path.abspath(path)))}?immutable=1"


def mark_of(path: str) -> Mark:
    """What is another after a change; a log that appears is one to come."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, log_size(path)
