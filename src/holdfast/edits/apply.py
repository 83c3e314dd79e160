"""Change a set of files beneath a root, all or nothing, through a journal.

What is true if the process, or the power, ends:

    before `journal.json` has its name   no target was touched; the journal directory is litter
    after that, before `forget`          every target is its old or its new image, whole; both
                                         images and the names of temporary files are in the journal,
                                         on disk, so `recover` can finish either way
    in `forget`                          `journal.json` goes first: finished, the rest is litter

`recover` asks the caller whether the edit counts (`committed`) and brings every path to its new or
its old image. Bringing one path to one image is the single act here: `apply` does it forward,
`recover` forward or back; it looks before it writes, so doing it twice is doing it once. Every
directory is synchronised even where nothing had to be done: the earlier process may have died
before its own fsync.

A file may take the place of a directory whose files the edit removes, and a directory that of a
file. Only then is anything removed before the rest is written, here and on the way back.

Content that is neither image was put there by someone else. It stays. The journal directory then
stays too, closed (`settled.json`), with the copies that found no place, until `forget`.

A failed fsync is never tried again: the error leaves the journal for the next process. Any other
failure after the journal is undone at once, so a full disk leaves the tree as it was.

One writer per root and journal directory at a time: the caller holds the lock.

A file that takes the place of another keeps its user and its group, as far as this process may give it
away. Not kept: the owner of a file that was gone, extended attributes, times. Between the last look at a
target and its rename lie microseconds in which another program's write would be lost; POSIX has no rename
that compares.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from holdfast.edits.change import ANY, FileChange, check_disjoint, cleared_by, in_the_way
from holdfast.edits.journal import (
    Content,
    Image,
    Journal,
    Row,
    changed,
    is_open,
    keys_in,
    make_home,
    marker_of,
    pieces,
    place_of,
    read_journal,
    remove,
    settle,
    stage,
)
from holdfast.edits.tree import (
    TEMP_PREFIX,
    TEMP_SUFFIX,
    Found,
    chunks,
    is_directory,
    look,
    open_directory,
    open_file,
    open_root,
    opened,
    outside_world,
    quoted,
    split_path,
    stamp,
    sync,
    write_file,
)
from holdfast.errors import EditError, IntegrityError
from holdfast.model.fixed import frozen
from holdfast.model.glob import parents


@frozen
class Conflict:
    """A path that someone else changed; `copy` is the file with what would have been put there."""

    path: str
    reason: str
    copy: str | None


@frozen
class Recovered:
    """One journal brought to its end. With conflicts, `forget` it when its copies are safe."""

    key: str
    forward: bool
    conflicts: tuple[Conflict, ...]


@frozen
class Site:
    """Where work happens: the open root, the journal directory, and who has content to spare."""

    root: int
    place: str
    content: Content | None = None


class Claims:
    """The paths of unfinished edits in one journal directory.

    Read when first asked; from then on whoever has this is the only one who edits there.
    """

    def __init__(self, journal_dir: str) -> None:
        self._journal_dir = journal_dir
        self._edits: dict[str, tuple[str, ...]] | None = None  # paths by key
        self._keys: dict[str, str] = {}

    def check(self, paths: Iterable[str]) -> None:
        """EditError if one of the paths is part of an edit that was not forgotten."""
        if self._edits is None:
            self._edits = dict(_unfinished(self._journal_dir))
            self._keys = {path: key for key, some in self._edits.items() for path in some}
        for path in paths:
            if path in self._keys:
                raise EditError(
                    f"{quoted(path)} is part of the unfinished edit {quoted(self._keys[path])}",
                    hint="forget or recover that edit first",
                )

    def made(self, key: str, paths: Iterable[str]) -> None:
        """An edit of these paths waits to be forgotten."""
        if self._edits is not None:
            self._edits[key] = tuple(paths)
            self._keys.update(dict.fromkeys(self._edits[key], key))

    def forgotten(self, key: str) -> None:
        for path in self._edits.pop(key, ()) if self._edits is not None else ():
            self._keys.pop(path, None)

    def unsure(self) -> None:
        """An edit failed: what it left is read again."""
        self._edits = None


def apply(
    root: str,
    changes: Sequence[FileChange],
    content: Content,
    *,
    journal_dir: str,
    key: str,
    claims: Claims | None = None,
) -> None:
    """Make all changes or none; the journal stays until `forget(journal_dir, key)`.

    `claims` are those of the journal directory, if the caller edits there more than once.

    EditError: refused or in conflict, nothing changed. StoreError: the disk failed; nothing
    changed, or the journal is still there and `recover` comes next, in a new process.
    """
    check_disjoint(root, changes)
    place = place_of(journal_dir, key)
    claims = claims or Claims(journal_dir)
    paths = [change.path for change in changes]
    try:
        with outside_world(f"apply the edit {quoted(key)}"), opened(open_root(root)) as root_fd:
            make_home(journal_dir)
            claims.check(paths)
            journal = _plan(root_fd, changes, key)
            stage(root_fd, place, journal, content)
            _carry_out(Site(root_fd, place), journal)
    except BaseException:
        claims.unsure()
        raise
    claims.made(key, paths)


def _carry_out(site: Site, journal: Journal) -> None:
    try:
        conflicts = bring_forward(site, journal)
    except OSError:
        _close(site.place, bring_back(site, journal))
        raise
    if conflicts:
        untouched = {conflict.path for conflict in conflicts}
        undone = bring_back(site, journal)
        _close(site.place, tuple(lost for lost in undone if lost.path not in untouched))
        raise changed(untouched)


def forget(journal_dir: str, key: str) -> None:
    """Remove the journal of an edit that the caller has recorded; nothing to remove is fine."""
    place = place_of(journal_dir, key)
    with outside_world(f"remove the journal of the edit {quoted(key)}"):
        remove(place)


def recover(
    root: str,
    journal_dir: str,
    *,
    committed: Callable[[str], bool],
    content: Content | None = None,
) -> list[Recovered]:
    """Bring every journal left by a crash to its end: forward if `committed(key)`, else back.

    Call it before anything else touches the root. It may die and be called again at any point.
    `content` is asked only for an image whose copy in the journal is damaged.
    """
    found: list[Recovered] = []
    with outside_world(f"recover edits in {quoted(root)}"), opened(open_root(root)) as root_fd:
        for key in keys_in(journal_dir):
            place = place_of(journal_dir, key)
            if is_open(place):
                journal = read_journal(place)
                forward = committed(key)
                bring = bring_forward if forward else bring_back
                conflicts = bring(Site(root_fd, place, content), journal)
                _close(place, conflicts)
                found.append(Recovered(key, forward, conflicts))
            elif marker_of(place) is None:
                remove(place)
    return found


# Checks, before anything is written.


def _unfinished(journal_dir: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The edits that were not forgotten, with their paths."""
    for key in keys_in(journal_dir):
        place = place_of(journal_dir, key)
        if is_open(place):
            yield key, tuple(row.path for row in read_journal(place).rows)


def _plan(root_fd: int, changes: Sequence[FileChange], key: str) -> Journal:
    rows: list[Row] = []
    conflicts: list[str] = []
    made: dict[str, None] = {}
    files: dict[tuple[int, ...], str] = {}
    way = in_the_way([(change.path, change.after is not None) for change in changes])
    cleared = cleared_by(way, {change.path for change in changes if change.after is not None})
    for index, change in enumerate(changes):
        found, missing = _find(root_fd, change.path, way, cleared)
        if found is not None:
            _check_single(change.path, found, files)
        if change.before not in {ANY, found.digest if found else None}:
            conflicts.append(change.path)
        if change.after is not None:
            made.update(dict.fromkeys(missing))
        rows.append(_row(index, change, found, key))
    if conflicts:
        raise changed(conflicts)
    modes = tuple(_mode_of(root_fd, path) for path in cleared)
    return Journal(tuple(rows), tuple(made), cleared, modes)


def _mode_of(root_fd: int, path: str) -> int:
    """The permissions of a directory; 0 if there is none."""
    with (
        suppress(FileNotFoundError, EditError),
        opened(open_directory(root_fd, split_path(path))) as it,
    ):
        return stat.S_IMODE(os.fstat(it).st_mode)
    return 0


def _find(
    root_fd: int, path: str, way: Collection[str], cleared: Collection[str]
) -> tuple[Found | None, list[str]]:
    """What stands at the path, and which of its parents are missing, outermost first.

    Nothing does below a file in the `way`, nor where a directory will be `cleared`.
    """
    *above, name = split_path(path)
    for depth in range(len(above) + 1):
        try:
            parent = open_directory(root_fd, above[:depth])
        except (FileNotFoundError, EditError) as error:
            if isinstance(error, EditError) and "/".join(above[:depth]) not in way:
                raise
            return None, ["/".join(above[:end]) for end in range(depth, len(above) + 1)]
        with opened(parent):
            if depth == len(above):
                is_cleared = path in cleared and is_directory(parent, name)
                return None if is_cleared else look(parent, name, path), []
    return None, []


def _check_single(path: str, found: Found, files: dict[tuple[int, ...], str]) -> None:
    if found.links != 1:
        raise EditError(f"{quoted(path)} has {found.links} hard links, and must have one")
    twin = files.setdefault(found.stamp[:2], path)
    if twin != path:
        raise EditError(f"paths {quoted(twin)} and {quoted(path)} name one file")


def _row(index: int, change: FileChange, found: Found | None, key: str) -> Row:
    token = hashlib.sha256(f"{key}\0{index}".encode()).hexdigest()[:24]
    return Row(
        change.path,
        Image(found.digest, found.mode, f"{index}.old") if found else None,
        Image(change.after, change.mode, f"{index}.new") if change.after is not None else None,
        f"{TEMP_PREFIX}{token}{TEMP_SUFFIX}",
    )


# Bringing paths to an image.


def _close(place: str, conflicts: tuple[Conflict, ...]) -> None:
    if conflicts:
        settle(place)
    else:
        remove(place)


def bring_forward(site: Site, journal: Journal) -> tuple[Conflict, ...]:
    wanted = [(row, row.after) for row in journal.rows]
    conflicts = _make_way(site, wanted, journal.cleared)
    for path in journal.made:
        with suppress(FileNotFoundError, EditError):  # its files meet the same fault and report it
            _make_directory(site.root, split_path(path))
    return conflicts + _bring_all(site, wanted)


def bring_back(site: Site, journal: Journal) -> tuple[Conflict, ...]:
    wanted = [(row, row.before) for row in journal.rows]
    files = {row.path for row in journal.rows if row.before is not None}
    made = [path for path in journal.made if not files.isdisjoint({path, *parents(path)})]
    conflicts = _make_way(site, wanted, made)
    conflicts += _bring_all(site, wanted)
    for path in reversed(journal.made):
        with suppress(FileNotFoundError, EditError):
            _remove_directory(site.root, split_path(path))
    for path, mode in zip(journal.cleared, journal.modes, strict=False):
        with suppress(FileNotFoundError, EditError):
            _restore_mode(site.root, split_path(path), mode)
    return conflicts


_Wanted = list[tuple[Row, Image | None]]


def _make_way(site: Site, wanted: _Wanted, directories: Sequence[str]) -> tuple[Conflict, ...]:
    """Remove the files, then the directories, in whose place others come; they are brought no more."""
    way = in_the_way([(row.path, image is not None) for row, image in wanted])
    first = [(row, image) for row, image in wanted if row.path in way]
    wanted[:] = [(row, image) for row, image in wanted if row.path not in way]
    conflicts = _bring_all(site, first, gives_way=True)
    for path in reversed(directories):
        with suppress(FileNotFoundError, EditError):
            _remove_directory(site.root, split_path(path))
    return conflicts


def _bring_all(site: Site, wanted: _Wanted, *, gives_way: bool = False) -> tuple[Conflict, ...]:
    """Bring every path to its image: what is written first, then what is removed."""
    conflicts: list[Conflict] = []
    for row, image in sorted(wanted, key=lambda one: one[1] is None):
        try:
            _bring(site, row, image, gives_way=gives_way)
        except EditError as error:
            copy = os.path.join(site.place, image.staged) if image else None
            conflicts.append(Conflict(row.path, error.message, copy))
    return tuple(conflicts)


def _bring(site: Site, row: Row, image: Image | None, *, gives_way: bool = False) -> None:
    """Give the path this image if it holds one of its two images, else raise EditError.

    A file that gives way is gone if what takes its place, a file above it or a directory, is there.
    """
    *above, name = split_path(row.path)
    try:
        parent = open_directory(site.root, above)
    except FileNotFoundError:
        _check_known(row, None)
        if image is None:
            return
        for depth in range(1, len(above) + 1):
            _make_directory(site.root, above[:depth])
        parent = open_directory(site.root, above)
    except EditError:
        if gives_way:
            return
        raise
    with opened(parent):
        _remove(parent, row.temp)
        if gives_way and is_directory(parent, name):
            sync(parent)
            return
        found = look(parent, name, row.path)
        _check_known(row, found)
        if image and (found is None or (found.digest, found.mode) != (image.digest, image.mode)):
            _write_temp(site, parent, row, image, found.owner if found else None)
            _check_still(parent, name, row, found)
            os.rename(row.temp, name, src_dir_fd=parent, dst_dir_fd=parent)
        elif image is None:
            _check_still(parent, name, row, found)
            _remove(parent, name)
        sync(parent)


def _check_still(parent: int, name: str, row: Row, found: Found | None) -> None:
    """Hashing and writing may take long: the target must not have moved since the look."""
    if stamp(parent, name) != (found.stamp if found else None):
        _remove(parent, row.temp)
        sync(parent)
        raise EditError(f"{quoted(row.path)} was changed by someone else")


def _check_known(row: Row, found: Found | None) -> None:
    images = {image.digest if image else None for image in (row.before, row.after)}
    if (found.digest if found else None) not in images:
        raise EditError(f"{quoted(row.path)} was changed by someone else")


def _write_temp(
    site: Site, parent: int, row: Row, image: Image, owner: tuple[int, int] | None
) -> None:
    for source in _sources(site, image):
        if write_file(parent, row.temp, source, image.mode, owner) == image.digest:
            return
        os.unlink(row.temp, dir_fd=parent)
    raise IntegrityError(f"the copy of {quoted(row.path)} in {quoted(site.place)} is damaged")


def _sources(site: Site, image: Image) -> Iterator[Iterable[bytes]]:
    with opened(open_root(site.place)) as directory:
        staged = open_file(directory, image.staged, image.staged)
    if staged is not None:
        with opened(staged):
            yield chunks(staged)
    if site.content is not None:
        yield pieces(site.content(image.digest))


def _remove(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


def _make_directory(root_fd: int, parts: Sequence[str]) -> None:
    with opened(open_directory(root_fd, parts[:-1])) as parent:
        with suppress(FileExistsError):
            os.mkdir(parts[-1], dir_fd=parent)
        sync(parent)


def _restore_mode(root_fd: int, parts: Sequence[str], mode: int) -> None:
    """Give a directory that stands again the permissions that it had."""
    with opened(open_directory(root_fd, parts)) as directory:
        if mode and stat.S_IMODE(os.fstat(directory).st_mode) != mode:
            os.fchmod(directory, mode)
        sync(directory)


def _remove_directory(root_fd: int, parts: Sequence[str]) -> None:
    """Remove a directory this edit made, unless someone has put something into it."""
    with opened(open_directory(root_fd, parts[:-1])) as parent:
        try:
            os.rmdir(parts[-1], dir_fd=parent)
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                raise
        sync(parent)
