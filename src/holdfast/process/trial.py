"""Run commands on a copy of a directory, see what they changed, and only then decide.

The copy lies at the place of the directory for the commands that run in its sandbox, so that absolute
paths lead into it, and the directory itself cannot be reached. Files share their blocks with the originals
where the file system can do that. What changed is told by content and rights. A link or a special file that
a command made, changed or removed cannot be taken over, nor what lies too deep for a path; that is named in
`unfit`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from holdfast.errors import ProcessError, outside_fault
from holdfast.model.changeset import Change
from holdfast.model.digest import Digest
from holdfast.process.confine import Sandbox, is_within
from holdfast.process.inside import open_regular
from holdfast.process.removal import discard_folder

_LOST = Digest("0" * 64)
_CLONE = 0x40049409  # FICLONE of linux/fs.h
_PIECE = 2**20
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Seen(NamedTuple):
    """What lay at a path when it was copied: the stamp of the copy, and that of the original."""

    mode: int
    stamp: tuple[int, ...]
    origin: tuple[int, ...]
    target: str = ""


class Trial:
    """A copy of a directory. `drop` removes it; whatever was not taken over is gone then."""

    def __init__(self, root: str, place: str) -> None:
        """Copy `root` to `place`, which must not be there yet and not lie inside it."""
        self.root = os.path.realpath(root)
        self.copy = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        if is_within(self.copy, self.root):
            raise ProcessError(f'the copy "{place}" would lie inside of "{root}"')
        self._seen: dict[str, _Seen] = {}
        try:
            os.mkdir(self.copy, 0o700)
            self._fill("")
        except OSError as error:
            discard_folder(self.copy)
            raise outside_fault(error) or ProcessError(
                f'"{root}" cannot be copied: {error.strerror}'
            ) from error

    def sandbox(self, wanted: Sandbox) -> Sandbox:
        """The sandbox with the copy at the place of the directory, which it cannot write itself."""
        writable = (path for path in wanted.writable if os.path.realpath(path) != self.root)
        return replace(wanted, writable=tuple(writable), laid=((self.root, self.copy),))

    @property
    def unfit(self) -> tuple[str, ...]:
        """Links and special files that were made, changed or removed: no change can take them over."""
        found = dict(self._walk())
        links = {path for path, status in found.items() if stat.S_ISLNK(status.st_mode)}
        gone = {path for path, seen in self._seen.items() if stat.S_ISLNK(seen.mode)} - links
        unfit = {path for path, status in found.items() if self._is_unfit(path, status)}
        return tuple(sorted(gone | unfit))

    def changes(self) -> tuple[Change, ...]:
        """Every file that was made, changed or removed, by path."""
        found: dict[str, Change] = {}
        left = dict(self._seen)
        for path, status in self._walk():
            before = left.pop(path, None)
            if not stat.S_ISREG(status.st_mode):
                if before is not None and stat.S_ISREG(before.mode):
                    found[path] = self._removed(path, before)
                continue
            if before is None or not stat.S_ISREG(before.mode):
                found[path] = self._made(path, status)
            elif before.stamp != _stamp(status):
                change = self._made(path, status, before)
                if change.digest != change.base or self.mode(path) != before.mode & 0o777:
                    found[path] = change
        for path, before in left.items():
            if stat.S_ISREG(before.mode):
                found[path] = self._removed(path, before)
        return tuple(found[path] for path in sorted(found))

    def content(self, path: str) -> bytes:
        """What lies at a path of the copy."""
        with open_regular(self._inside(path)) as file:
            return file.read()

    def mode(self, path: str) -> int:
        """The rights of a file of the copy; one that was there is not opened to more people than before."""
        before = self._seen.get(path)
        granted = before.mode if before is not None else 0o644
        return stat.S_IMODE(os.lstat(self._inside(path)).st_mode) & (granted | 0o111) & 0o777

    def drop(self) -> None:
        """Remove the copy, whatever rights a command took away."""
        with contextlib.suppress(OSError):
            os.chmod(self.copy, 0o700)
        discard_folder(self.copy)

    def _fill(self, below: str) -> None:
        waiting = [below]
        while waiting:
            folder = waiting.pop()
            with os.scandir(os.path.join(self.root, folder)) as entries:
                for entry in entries:
                    path = os.path.join(folder, entry.name)
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        os.mkdir(self._inside(path), 0o700)
                        waiting.append(path)
                    else:
                        self._put(entry.path, path, status)

    def _put(self, source: str, path: str, status: os.stat_result) -> None:
        place, target = self._inside(path), ""
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(source)
            os.symlink(target, place)
        elif stat.S_ISREG(status.st_mode):
            _copy(source, place, stat.S_IMODE(status.st_mode))
        else:
            return  # a socket or a pipe means nothing in a copy
        self._seen[path] = _Seen(status.st_mode, _stamp(os.lstat(place)), _stamp(status), target)

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """All that is no directory, and directories that nobody can look into: their paths are too long."""
        waiting = [("", os.lstat(self.copy))]
        while waiting:
            folder, status = waiting.pop()
            with contextlib.suppress(OSError):  # a command may have taken rights away
                os.chmod(os.path.join(self.copy, folder), 0o700)
            try:
                with os.scandir(os.path.join(self.copy, folder)) as entries:
                    rows = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
            except OSError:
                yield folder, status
                continue
            for name, status in rows:
                path = os.path.join(folder, name)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append((path, status))
                else:
                    yield path, status

    def _is_unfit(self, path: str, status: os.stat_result) -> bool:
        before = self._seen.get(path)
        if stat.S_ISREG(status.st_mode):
            return status.st_nlink > 1 and (before is None or before.stamp != _stamp(status))
        if stat.S_ISLNK(status.st_mode) and before is not None:
            return os.readlink(self._inside(path)) != before.target
        return True

    def _made(self, path: str, status: os.stat_result, before: _Seen | None = None) -> Change:
        return Change(
            path=path,
            digest=_digest(self._inside(path)),
            executable=bool(status.st_mode & 0o100),
            size=status.st_size,
            base=None if before is None else self._base(path, before),
            base_executable=before is not None and bool(before.mode & 0o100),
        )

    def _removed(self, path: str, before: _Seen) -> Change:
        return Change(
            path=path,
            digest=None,
            base=self._base(path, before),
            base_executable=bool(before.mode & 0o100),
        )

    def _base(self, path: str, before: _Seen) -> Digest:
        """What the original held when it was copied; what no file holds if it changed since."""
        place = os.path.join(self.root, path)
        try:
            if _stamp(os.lstat(place)) == before.origin:
                return _digest(place)
        except OSError:
            pass
        return _LOST

    def _inside(self, path: str) -> str:
        return os.path.join(self.copy, path)


def _copy(source: str, place: str, mode: int) -> None:
    """A file with shared blocks where that is possible; each byte otherwise."""
    with open_regular(source) as given:
        made = os.open(place, _WRITE, 0o600)
        try:
            try:
                fcntl.ioctl(made, _CLONE, given.fileno())
            except OSError:
                while chunk := given.read(_PIECE):
                    view = memoryview(chunk)
                    while view:
                        view = view[os.write(made, view) :]
            os.fchmod(made, mode & 0o777)
        finally:
            os.close(made)


def _digest(path: str) -> Digest:
    with open_regular(path) as file:
        return Digest(hashlib.file_digest(file, "sha256").hexdigest())


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
