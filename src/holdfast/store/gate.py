"""Where a SQLite store may live: a sound SQLite, on a disk of this machine.

SQLite before 3.51.3 can damage a WAL database when two connections write and checkpoint at once
(sqlite.org/wal.html#walresetbug); the fix was carried back to 3.50.7 and 3.44.6. WAL needs memory
shared by all its users, so a file system that other machines may have mounted, or that a program
serves, is refused.
"""

from __future__ import annotations

import os

from holdfast.errors import StoreError

_FIXED = ((3, 44, 6), (3, 50, 7))  # fixed within their own line
_SOUND = (3, 51, 3)
_REMOTE = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs"}
    | {"nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs"}
)
MOUNTS = "/proc/self/mountinfo"


def check_sqlite(version: str) -> None:
    """StoreError if this version of SQLite can damage a store."""
    number = tuple(int(part) for part in version.split(".")[:3])
    if number >= _SOUND or any(fix <= number and fix[:2] == number[:2] for fix in _FIXED):
        return
    raise StoreError(
        f"SQLite {version} can damage a database that two processes write at once",
        hint="install apsw 3.53 or newer, which brings its own SQLite",
    )


def check_file_system(kind: str, directory: str) -> None:
    """StoreError if this kind of file system cannot carry a store; '' is one nobody knows."""
    if kind in _REMOTE or kind.startswith("fuse"):
        raise StoreError(
            f"'{directory}' is on a file system of type '{kind}',"
            " where processes cannot share an SQLite database",
            hint="use a local disk or PostgreSQL",
        )


def file_system(directory: str) -> str:
    """The type of the file system that holds a directory, '' if the system does not tell."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            return file_system_in(mounts.read(), os.path.realpath(directory))
    except OSError:
        return ""


def file_system_in(mounts: str, path: str) -> str:
    """Read the kernel's mounts: the longest mount point above the path, the last one of it."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if not right:
            continue
        point = _unescape(left.split(" ")[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), right.split(" ")[0]
    return kind


def _unescape(text: str) -> str:
    for code, mark in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, mark)
    return text
