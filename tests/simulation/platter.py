"""A disk that fails under SQLite itself: a write is refused, the disk is full, a sync fails once.

It stands between SQLite and the file system, so what a database does after an error of its disk is the real
thing. It fails once, at the first call of the kind that it was told to fail at.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

NAME = "simulated"


class Platter:
    """Which call fails next."""

    def __init__(self) -> None:
        self.fails = ""  # "write", "full" or "sync"; "" is none
        self.failed = False

    def comes(self, call: str) -> None:
        """A call of the file system is made; apsw.Error if it is to fail."""
        if not self.fails or (call == "sync") != (self.fails == "sync"):
            return
        kind, self.fails, self.failed = self.fails, "", True
        raise apsw.FullError("full") if kind == "full" else apsw.IOError(f"{kind} failed")


PLATTER = Platter()  # one thread runs at a time, so one will do


class RoughFile(apsw.VFSFile):
    """A file of the database."""

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        PLATTER.comes("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        PLATTER.comes("sync")
        super().xSync(flags)


class RoughFiles(apsw.VFS):
    """The file system as SQLite sees it."""

    def __init__(self) -> None:
        super().__init__(NAME, "unix")

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        return RoughFile("unix", name, flags)


_FILES: list[RoughFiles] = []


@contextmanager
def rough_files() -> Iterator[None]:
    """Databases that are opened meanwhile are on this disk."""
    if not _FILES:
        _FILES.append(RoughFiles())
    before = apsw.vfs_names()[0]
    apsw.set_default_vfs(NAME)
    try:
        yield
    finally:
        apsw.set_default_vfs(before)


@contextmanager
def failing(kind: str) -> Iterator[Platter]:
    """The next call of this kind fails; says whether it came."""
    PLATTER.fails, PLATTER.failed = kind, False
    try:
        yield PLATTER
    finally:
        PLATTER.fails = ""
