"""Files beneath a root directory: reached without following a link, written durably.

A path is data from strangers. It is first judged as text (`split_path`), then walked one component
at a time from a descriptor of the root, each opened with O_NOFOLLOW: whatever is swapped meanwhile,
no step of the walk can leave the tree. A descriptor, once open, keeps meaning the same directory.

The text rule is stricter than the kernel's: a name that another system, archive or URL would read
as "up", as a separator, or as an engine's own directory is refused everywhere, not only there.

A file from `write_file` is whole on disk when the call returns; its name is durable only after
`sync` of its directory. A failed fsync is a StoreError and is never tried again: the kernel may
have dropped the pages, and a second call would report success about nothing.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from holdfast.errors import EditError, StoreError
from holdfast.model.fixed import frozen
from holdfast.model.glob import parents
from holdfast.model.pattern import Pattern
from holdfast.process.removal import remove_folder

CHUNK = 1 << 20
MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255
MAX_DEPTH = 256
PROTECTED = frozenset({".git", ".holdfast"})
TEMP_PREFIX, TEMP_SUFFIX = ".holdfast-", ".tmp"

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ESCAPE = Pattern(r"%([0-7][0-9A-Fa-f])")
# What no reader shows, and some file systems do not store: the code points that may be ignored by default.
_IGNORED = Pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SHORT = Pattern(r"[^.~]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")
_SHORT_OF_OURS = Pattern(r"(?:git|holdfa|gi[0-9a-f]{4}|ho[0-9a-f]{4})~[0-9]+")
_NOT_FOLLOWED = frozenset({errno.ELOOP, errno.ENOTDIR})


@frozen
class Entry:
    """One regular file; of the permissions only "executable" is kept: 0o644 or 0o755."""

    path: str
    digest: str
    size: int
    mode: int


class Content(NamedTuple):
    """One regular file with what is in it."""

    path: str
    content: bytes
    executable: bool


@frozen
class Found:
    """What stands at a path now: a regular file, with its full permission bits, its user and its group."""

    digest: str
    size: int
    mode: int
    links: int
    owner: tuple[int, int]
    stamp: tuple[int, ...]


def quoted(path: str) -> str:
    """The path in double quotes, shortened, with nothing in it that could move a cursor."""
    shown = path if len(path) <= MAX_NAME_BYTES else path[:MAX_NAME_BYTES] + "..."
    return json.dumps(shown, ensure_ascii=not shown.isprintable())


def fold(name: str) -> str:
    """The form under which two names may be one file on some file system."""
    visible = _IGNORED.sub("", unicodedata.normalize("NFKC", name))
    plain = (c for c in visible.upper().casefold() if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", "".join(plain)).rstrip(" .")


def has_unseen(name: str) -> bool:
    """Whether a name has letters that nobody sees, or that change how the others are read."""
    return bool(_IGNORED.search(name)) or any(
        unicodedata.category(letter) in {"Cf", "Zl", "Zp"} for letter in name
    )


def disguises(name: str) -> set[str]:
    """What a name may be on some file system, folded: itself, or the file whose stream it names."""
    return {fold(name), fold(name.partition(":")[0])}


def is_short(name: str) -> bool:
    """Whether a name has the form that some file systems give to any long name, as in `GIT~1`."""
    return any(_SHORT.fullmatch(one) for one in disguises(name))


@functools.lru_cache(maxsize=4096)  # an output is looked at many times in an attempt
def split_path(path: str) -> tuple[str, ...]:
    """The components of a relative path, `/`-separated; EditError if it may not be used."""
    try:
        too_long = len(path.encode()) > MAX_PATH_BYTES
    except UnicodeEncodeError as error:
        raise EditError(f"path {quoted(path)} is not valid text") from error
    parts = tuple(path.split("/"))
    if too_long or len(parts) > MAX_DEPTH:
        raise EditError(
            f"path {quoted(path)} is too long",
            hint=f"at most {MAX_PATH_BYTES} bytes and {MAX_DEPTH} components",
        )
    if not path or path.startswith("/"):
        raise EditError(f"path {quoted(path)} is not relative")
    for part in parts:
        fault = _fault(part)
        if fault:
            raise EditError(f"path {quoted(path)} {fault}")
    return parts


def _fault(part: str) -> str | None:
    if part in {"", ".", ".."}:
        return "has an empty, `.` or `..` component"
    if "\\" in part or any(unicodedata.category(c) == "Cc" for c in part):
        return "has a backslash or a control character"
    if part != part.rstrip():
        return "has a component that ends in a blank"
    if len(part.encode()) > MAX_NAME_BYTES:
        return f"has a component longer than {MAX_NAME_BYTES} bytes"
    decoded = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), part)
    hidden = decoded.replace("\\", "/").split("/")
    if any(unicodedata.normalize("NFKC", piece) in {".", ".."} for piece in hidden):
        return "hides a `.` or `..` component"
    folded = {one for piece in hidden for one in disguises(piece)}
    if folded & PROTECTED or any(_SHORT_OF_OURS.fullmatch(one) for one in folded):
        return "touches a protected directory (.git, .holdfast)"
    if any(f.startswith(TEMP_PREFIX) and f.endswith(TEMP_SUFFIX) for f in folded):
        return "has a name reserved for temporary files"
    return None


@contextmanager
def outside_world(doing: str) -> Iterator[None]:
    """Turn what the operating system refuses into a StoreError that says what was being done."""
    try:
        yield
    except OSError as error:
        place = f" ({quoted(os.fsdecode(error.filename))})" if error.filename else ""
        raise StoreError(f"cannot {doing}: {error.strerror or error}{place}") from error


class opened:  # noqa: N801 - used like the function it once was, at a third of the cost
    """Closes a descriptor at the end of a `with`."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def open_root(root: str) -> int:
    """Open the root itself; the one place where a link is followed, because the caller named it."""
    return os.open(root, _DIRECTORY)


def open_directory(root_fd: int, parts: Sequence[str]) -> int:
    """Open the directory at `parts`; FileNotFoundError if missing, EditError if not a directory."""
    descriptor = os.dup(root_fd)
    for depth, part in enumerate(parts, start=1):
        with opened(descriptor):
            try:
                descriptor = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError as error:
                if error.errno in _NOT_FOLLOWED:
                    place = quoted("/".join(parts[:depth]))
                    raise EditError(f"{place} is a link or not a directory") from error
                raise
    return descriptor


def open_file(parent: int, name: str, path: str) -> int | None:
    """Open a regular file for reading; None if absent, EditError for anything else."""
    try:
        return _open_found(parent, name, path, os.stat(name, dir_fd=parent, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _open_found(parent: int, name: str, path: str, found: os.stat_result) -> int:
    """Open what was just found to be a regular file: opening a FIFO or a device may do something."""
    _check_regular(found, path)
    try:
        descriptor = os.open(name, _READ, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise EditError(f"{quoted(path)} is a symbolic link") from error
        raise
    try:
        _check_regular(os.fstat(descriptor), path)
    except EditError:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise EditError(f"{quoted(path)} is a symbolic link")
    if not stat.S_ISREG(found.st_mode):
        raise EditError(f"{quoted(path)} is not a regular file")


def chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, CHUNK):
        yield chunk


def look(parent: int, name: str, path: str) -> Found | None:
    """Hash the regular file `name` in the open directory `parent`; None if absent."""
    descriptor = open_file(parent, name, path)
    if descriptor is None:
        return None
    with opened(descriptor):
        return _measure(descriptor)


def _measure(descriptor: int) -> Found:
    status = os.fstat(descriptor)
    hasher, size = hashlib.sha256(), 0
    for chunk in chunks(descriptor):
        hasher.update(chunk)
        size += len(chunk)
    mode = stat.S_IMODE(status.st_mode)
    owner = status.st_uid, status.st_gid
    return Found(hasher.hexdigest(), size, mode, status.st_nlink, owner, _stamp(status))


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, status.st_size, *times)


def stamp(parent: int, name: str) -> tuple[int, ...] | None:
    """What changes whenever the file at this name does (device and inode first); None if absent."""
    try:
        return _stamp(os.stat(name, dir_fd=parent, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _plain_mode(mode: int) -> int:
    return 0o755 if mode & 0o100 else 0o644


def read_tree(root: str, paths: Iterable[str]) -> tuple[Entry, ...]:
    """Every regular file at or beneath the given paths, sorted by path; missing paths are left out.

    A link, a device, a socket, a FIFO or a name that `split_path` refuses is an EditError: what
    cannot be put back is not part of a result. Directories without files leave no trace. A path below
    another one is read with that: if a file lies there, there is nothing below it.
    """
    entries = {}
    with outside_world(f"read files in {quoted(root)}"):
        for path, descriptor in _files(root, paths):
            found = _measure(descriptor)
            entries[path] = Entry(path, found.digest, found.size, _plain_mode(found.mode))
    return tuple(entries[path] for path in sorted(entries))


def read_contents(
    root: str, paths: Iterable[str], limit: int, hint: str | None = None
) -> tuple[Content, ...]:
    """The same files with their content; EditError if they have more than `limit` bytes together.

    `hint` says what can be done then.
    """
    contents = {}
    left = limit
    with outside_world(f"read files in {quoted(root)}"):
        for path, descriptor in _files(root, paths):
            status = os.fstat(descriptor)
            content = b"" if status.st_size > left else b"".join(chunks(descriptor))
            left -= max(status.st_size, len(content))
            if left < 0:
                raise EditError(f"the files have more than {limit} bytes", hint=hint)
            contents[path] = Content(path, content, bool(status.st_mode & 0o100))
    return tuple(contents[path] for path in sorted(contents))


def _files(root: str, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Each regular file at or beneath the paths once, open for as long as it is looked at."""
    seen: set[str] = set()
    given = set(paths)
    with opened(open_root(root)) as root_fd:
        pending = [path for path in given if given.isdisjoint(parents(path))]
        while pending:
            path = pending.pop()
            *above, name = split_path(path)
            try:
                parent = open_directory(root_fd, above)
            except FileNotFoundError:
                continue
            with opened(parent), suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    pending.extend(_names_in(parent, name, path))
                elif path not in seen:
                    seen.add(path)
                    with opened(_open_found(parent, name, path, found)) as descriptor:
                        yield path, descriptor


def take_special(root: str, paths: Iterable[str], keep: Callable[[str, bytes], None]) -> None:
    """Remove what is neither file nor directory at or beneath these paths; links are not followed.

    `keep` gets the path and the target of each link first (of anything else nothing: it has no content).
    """
    with outside_world(f"clear files in {quoted(root)}"), opened(open_root(root)) as root_fd:
        pending = list(paths)
        while pending:
            path = pending.pop()
            with suppress(EditError, OSError):  # whoever reads it next is told what is wrong there
                *above, name = split_path(path)
                with opened(open_directory(root_fd, above)) as parent:
                    if is_directory(parent, name):
                        pending.extend(_names_in(parent, name, path))
                    else:
                        _take(parent, name, path, keep)


def _take(parent: int, name: str, path: str, keep: Callable[[str, bytes], None]) -> None:
    mode = _mode(parent, name)
    if mode is None or stat.S_ISREG(mode):
        return
    target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(mode) else ""
    keep(path, os.fsencode(target))
    os.unlink(name, dir_fd=parent)


def clear(root: str, paths: Iterable[str]) -> None:
    """Remove whatever lies at these paths, directories with all they hold; links are not followed."""
    with outside_world(f"clear files in {quoted(root)}"), opened(open_root(root)) as root_fd:
        for path in paths:
            *above, name = split_path(path)
            try:
                parent = open_directory(root_fd, above)
            except FileNotFoundError:
                continue
            with opened(parent):
                if is_directory(parent, name):
                    remove_folder(name, parent)
                elif _mode(parent, name) is not None:
                    os.unlink(name, dir_fd=parent)


def _mode(parent: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def is_directory(parent: int, name: str) -> bool:
    mode = _mode(parent, name)
    return mode is not None and stat.S_ISDIR(mode)


def _names_in(parent: int, name: str, path: str) -> list[str]:
    try:
        descriptor = open_directory(parent, (name,))
    except FileNotFoundError:
        return []
    with opened(descriptor):
        return [f"{path}/{entry}" for entry in os.listdir(descriptor)]


def write_all(
    descriptor: int, data: bytes, write: Callable[[int, memoryview], int] = os.write
) -> None:
    """Write every byte; one call of `write` may take any part of what it is given."""
    rest = memoryview(data)
    while rest:
        taken = write(descriptor, rest)
        if taken <= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest = rest[taken:]


def write_file(
    directory: int,
    name: str,
    pieces: Iterable[bytes],
    mode: int,
    owner: tuple[int, int] | None = None,
) -> str:
    """Write a new file durably (its name is not yet); returns the digest of what was written.

    It is given to its owner if this process may: root to anybody, others to a group of theirs.
    """
    hasher = hashlib.sha256()
    with opened(os.open(name, _CREATE, 0o600, dir_fd=directory)) as descriptor:
        for piece in pieces:
            hasher.update(piece)
            write_all(descriptor, piece)
        if owner is not None:
            _give(descriptor, owner)
        os.fchmod(descriptor, mode)
        sync(descriptor)
    return hasher.hexdigest()


def _give(descriptor: int, owner: tuple[int, int]) -> None:
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) == owner:
        return
    for user in (owner[0], -1):
        with suppress(OSError):  # not ours to give, or no such owner in this namespace
            os.fchown(descriptor, user, owner[1])
            return


def sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StoreError(
            f"fsync failed: {error.strerror or error}",
            hint="what was written may be lost; end this process, then resume",
        ) from error


def sync_files(root: str, paths: Iterable[str]) -> None:
    """Let files outlast a power cut, with all names above them; what is no file is left out."""
    above: set[tuple[str, ...]] = {()}
    with outside_world(f"synchronise files in {quoted(root)}"), opened(open_root(root)) as root_fd:
        for path in paths:
            *parts, name = split_path(path)
            absent = suppress(FileNotFoundError, EditError)
            with absent, opened(open_directory(root_fd, parts)) as parent:
                file = open_file(parent, name, path)
                if file is not None:
                    with opened(file):
                        sync(file)
                    above.update(tuple(parts[:depth]) for depth in range(1, len(parts) + 1))
        for folder in sorted(above):
            absent = suppress(FileNotFoundError, EditError)
            with absent, opened(open_directory(root_fd, folder)) as parent:
                sync(parent)


def sync_directory(path: str) -> None:
    with opened(open_root(path)) as descriptor:
        sync(descriptor)
