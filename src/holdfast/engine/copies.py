"""Copies of the project in which steps change files: how they are filled, and what was changed in them.

A copy is private to one attempt. What lies in it when the step begins is its base; afterwards every file
that is other than its base, new, or gone is a change. New files that `.gitignore` leaves out are not
taken, nor is anything in `.git` or `.holdfast`. A link, a file of a submodule or a path outside the
project cannot be part of a change: what cannot be taken over whole is refused, not left behind.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.edits.tree import fold, open_root, opened, quoted, read_contents, write_all
from holdfast.engine.walk import NEVER, Ignores, is_ignored, walk
from holdfast.errors import EditError
from holdfast.model.changeset import Change
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.glob import parents
from holdfast.model.walls import WALLS, Walls, moved_by
from holdfast.ports import File
from holdfast.process.inside import open_regular
from holdfast.process.removal import remove_folder

# A file younger than this could have changed once more without its stamp telling.
_SETTLED_NS = 100_000_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Mark(NamedTuple):
    """A file as it lay in a copy when the step began."""

    digest: Digest
    executable: bool
    stamp: tuple[int, ...] = ()


class Changed(NamedTuple):
    """What a step changed, and the contents of what it wrote."""

    changes: tuple[Change, ...]
    files: tuple[File, ...]


@dataclass(slots=True)
class Copy:
    """A directory that holds files of a project, and what it held when the step began.

    `prefix` leads from its top to the project, if that does not begin there. `closed` are directories that
    belong to somebody else: submodules.
    """

    top: str
    prefix: str = ""
    files: dict[str, Mark] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    since: int = 0

    @property
    def folder(self) -> str:
        """Where the project lies in it."""
        return os.path.join(self.top, self.prefix.rstrip("/")) if self.prefix else self.top

    # --- filling --------------------------------------------------------------------------------

    def put(self, path: str, content: bytes, *, executable: bool) -> None:
        """Let a file lie at a path from the top, whatever is in its way."""
        *above, name = _parts(path)
        with opened(self._into(above)) as parent:
            if _clear(parent, name):
                self._forget_beneath(path)
            descriptor = os.open(name, _CREATE, 0o755 if executable else 0o644, dir_fd=parent)
            with opened(descriptor):
                write_all(descriptor, content)
                os.fchmod(descriptor, 0o755 if executable else 0o644)
        self._forget(path)
        self.files[path] = Mark(digest_bytes(content), executable)

    def link(self, path: str, target: str) -> None:
        """Let a symbolic link lie at a path from the top. Nothing that is put later goes through it."""
        *above, name = _parts(path)
        with opened(self._into(above)) as parent:
            if _clear(parent, name):
                self._forget_beneath(path)
            os.symlink(target, name, dir_fd=parent)
        self._forget(path)
        self.links[path] = target

    def close(self, path: str) -> None:
        """Make an empty directory whose files are somebody else's."""
        with opened(self._into(_parts(path))):
            self.closed.add(path)

    def take_away(self, path: str) -> None:
        """Let no file lie at a path from the top; a directory there, or a file above it, stays."""
        *above, name = _parts(path)
        with suppress(FileNotFoundError), opened(self._into(above, make=False)) as parent:
            if not _is_directory(parent, name):
                _clear(parent, name)
        self.files.pop(path, None)
        self.links.pop(path, None)

    def _forget(self, path: str) -> None:
        """Whatever was noted at a path, or at one above it, is not there any more."""
        for place in (path, *parents(path)):
            self.files.pop(place, None)
            self.links.pop(place, None)

    def _forget_beneath(self, path: str) -> None:
        for noted in (self.files, self.links):
            for inner in [one for one in noted if one.startswith(f"{path}/")]:
                del noted[inner]

    def _into(self, parts: Sequence[str], *, make: bool = True) -> int:
        """The directory at these parts, made of what it needs; links are replaced, never followed."""
        descriptor = open_root(self.top)
        for part in parts:
            with opened(descriptor):
                try:
                    descriptor = os.open(part, _DIRECTORY, dir_fd=descriptor)
                except OSError as error:
                    if error.errno not in _IN_THE_WAY:
                        raise
                    if not make:
                        raise FileNotFoundError(part) from error
                    _clear(descriptor, part)
                    os.mkdir(part, dir_fd=descriptor)
                    descriptor = os.open(part, _DIRECTORY, dir_fd=descriptor)
        return descriptor

    def settle(self) -> None:
        """All that the step is given lies there: from now on every difference is its own."""
        for path, mark in self.files.items():
            self.files[path] = mark._replace(stamp=_stamp(os.lstat(os.path.join(self.top, path))))
        self.since = time.time_ns()

    def survey(self) -> None:
        """Note all files that others have put there."""
        for path, found in _all_files(self.top):
            full = os.path.join(self.top, path)
            if stat.S_ISLNK(found.st_mode):
                self.links[path] = os.readlink(full)
            else:
                self.files[path] = Mark(_hash(full), bool(found.st_mode & 0o100))
        self.settle()

    # --- afterwards -----------------------------------------------------------------------------

    def changed(
        self, root: str, produces: Sequence[str], ignores: Ignores, walls: Walls = WALLS
    ) -> Changed:
        """What the step changed beside what it produces; EditError if that cannot be taken over."""
        self._check_links()
        gone, other = self._compared()
        fresh = [path for path in self._fresh(root, ignores) if path not in self.files]
        inside = self._inside
        mine = [path for path in (*other, *fresh) if not _is_at(inside(path), produces)]
        removed = [path for path in gone if not _is_at(inside(path), produces)]
        for path in (*mine, *removed):
            self._check_place(path, root)
        paths = [inside(path) for path in mine]
        hint = moved_by("artifact", walls.artifact)
        read = read_contents(self.folder, paths, walls.artifact, hint)
        files = tuple(File(*item) for item in read)
        if len(files) != len(mine):
            raise EditError("the files of the step changed while they were being read")
        changes = [self._change(file) for file in files]
        changes += [self._removal(path) for path in removed]
        return Changed(tuple(sorted(changes, key=lambda change: change.path)), files)

    def _inside(self, path: str) -> str:
        """A path from the top as one from the project."""
        if not path.startswith(self.prefix):
            raise EditError(f"it changed {quoted(path)}, which lies outside the project")
        return path[len(self.prefix) :]

    def _check_links(self) -> None:
        for path, target in self.links.items():
            full = os.path.join(self.top, path)
            if not os.path.islink(full) or os.readlink(full) != target:
                raise EditError(
                    f"it changed {quoted(path)}, which is a symbolic link",
                    hint="links cannot be taken over; leave them as they are",
                )

    def _compared(self) -> tuple[list[str], list[str]]:
        """The files of the base that are gone, and those that are other than they were."""
        gone, other = [], []
        for path, mark in self.files.items():
            full = os.path.join(self.top, path)
            try:
                found = os.lstat(full)
            except (FileNotFoundError, NotADirectoryError):
                gone.append(path)
                continue
            if stat.S_ISDIR(found.st_mode):
                gone.append(path)
            elif self._is_other(full, mark, found):
                other.append(path)
        return gone, other

    def _is_other(self, full: str, mark: Mark, found: os.stat_result) -> bool:
        if not stat.S_ISREG(found.st_mode):
            return True  # whoever reads it is told what it is
        if bool(found.st_mode & 0o100) != mark.executable:
            return True
        settled = max(found.st_mtime_ns, found.st_ctime_ns) < self.since - _SETTLED_NS
        if settled and _stamp(found) == mark.stamp:
            return False
        return _hash(full) != mark.digest

    def _fresh(self, root: str, ignores: Ignores) -> Iterator[str]:
        """The files that were not there before, as `.gitignore` allows; links too, to be refused."""
        for path in walk(self.top, "", ignores):
            if path in self.files or path in self.links:
                continue
            if path.startswith(self.prefix) and is_ignored(root, path[len(self.prefix) :], ignores):
                continue
            yield path

    def _check_place(self, path: str, root: str) -> None:
        for outer in parents(path):
            inside = outer[len(self.prefix) :]
            foreign = outer in self.closed
            if not foreign and outer.startswith(self.prefix) and inside:
                foreign = os.path.lexists(os.path.join(root, inside, ".git"))
            if foreign:
                raise EditError(
                    f"it changed {quoted(path)} in {quoted(outer)}, which is another repository"
                )

    def _change(self, file: File) -> Change:
        was = self.files.get(self.prefix + file.path)
        return Change(
            file.path,
            digest_bytes(file.content),
            file.executable,
            len(file.content),
            was.digest if was else None,
            bool(was and was.executable),
        )

    def _removal(self, path: str) -> Change:
        was = self.files[path]
        return Change(self._inside(path), None, base=was.digest, base_executable=was.executable)


def is_private(path: str) -> bool:
    """Whether a path lies in a directory of git or of Holdfast, by any spelling."""
    return any(fold(part) in NEVER for part in path.split("/"))


def _parts(path: str) -> list[str]:
    """The components of a path that came from a repository or a plan."""
    parts = path.split("/")
    if is_private(path) or any(part in {"", ".", ".."} for part in parts):
        raise EditError(f"{quoted(path)} cannot be laid out in a copy of the project")
    return parts


def _clear(parent: int, name: str) -> bool:
    """Remove what lies there; true if it was a directory."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(found.st_mode):
        remove_folder(name, parent)
        return True
    os.unlink(name, dir_fd=parent)
    return False


def _is_directory(parent: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _is_at(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (found.st_ino, found.st_size, found.st_mode, *times)


def _hash(path: str) -> Digest:
    with open_regular(path) as file:
        return Digest(hashlib.file_digest(file, "sha256").hexdigest())


def _all_files(top: str) -> Iterator[tuple[str, os.stat_result]]:
    pending = [""]
    while pending:
        place = pending.pop()
        with os.scandir(os.path.join(top, place)) as entries:
            for entry in entries:
                path = f"{place}/{entry.name}" if place else entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                else:
                    yield path, entry.stat(follow_symlinks=False)
