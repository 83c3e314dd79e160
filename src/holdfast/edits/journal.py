"""The journal of one edit: a directory with both images of every file, and the list of them.

    <journal_dir>/<key>/0.old, 0.new, 1.new, ...   the images, written and synchronised first
    <journal_dir>/<key>/journal.json               the list, which has its name last: an open edit
    <journal_dir>/<key>/settled.json               the same after a recovery with conflicts: closed
    <journal_dir>/<key>/kept.json                  the same once it counts: can be taken back
    <journal_dir>/<key>/undoing.json               the same while it is taken back: goes on back
    <journal_dir>/<key>/undone.json                the same when it was taken back

The list changes its name within its directory, which is one act on every disk.
A directory with none of these names is litter: either no target was touched yet, or the edit is finished.
The images lie beside the list, not in a store, so that recovery needs nothing but this directory.
The journal directory is ours. It may have come with a workspace all the same, so the names in a list are
held to the form that we give them: none can mean a file elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Literal, get_args

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
    sync,
    sync_directory,
    write_file,
)
from holdfast.errors import EditError, IntegrityError, StoreError
from holdfast.model.fixed import frozen
from holdfast.model.pattern import Pattern

Content = Callable[[str], bytes | Iterable[bytes]]

Marker = Literal["journal.json", "settled.json", "kept.json", "undoing.json", "undone.json"]
MARKERS: tuple[Marker, ...] = get_args(Marker)

_JOURNAL: Marker = "journal.json"
_SETTLED: Marker = "settled.json"
_UNFINISHED = "journal.json.tmp"
_VERSION = 1
_STAGED = Pattern(r"[0-9]+\.(?:old|new)")
_TEMP = Pattern(rf"{re.escape(TEMP_PREFIX)}[0-9a-f]+{re.escape(TEMP_SUFFIX)}")
_KEY = Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.:@=+-]{0,199}")


@frozen
class Image:
    digest: str
    mode: int
    staged: str


@frozen
class Row:
    path: str
    before: Image | None
    after: Image | None
    temp: str


@frozen
class Journal:
    rows: tuple[Row, ...]
    made: tuple[str, ...]
    cleared: tuple[str, ...] = ()  # directories that a file takes the place of, outermost first
    modes: tuple[int, ...] = ()  # theirs, in the same order
    version: int = _VERSION


def place_of(journal_dir: str, key: str) -> str:
    if not _KEY.fullmatch(key):
        raise EditError(f"{quoted(key)} cannot be the key of an edit")
    return os.path.join(journal_dir, key)


def make_home(journal_dir: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(journal_dir, 0o700)
        sync_directory(os.path.dirname(os.path.abspath(journal_dir)))


def keep_home(journal_dir: str) -> None:
    """Make a directory for journals in one that may be missing too, so that both outlast a power cut.

    Both are synchronised although they are there: whoever made them may have died before he did it.
    """
    home = os.path.dirname(os.path.abspath(journal_dir))
    with outside_world(f"make a place for journals in {quoted(home)}"):
        for place in (home, journal_dir):
            with suppress(FileExistsError):
                os.mkdir(place, 0o700)
            sync_directory(os.path.dirname(os.path.abspath(place)))


def keys_in(journal_dir: str) -> list[str]:
    try:
        with os.scandir(journal_dir) as entries:
            return sorted(
                entry.name
                for entry in entries
                if _KEY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []


def stage(root_fd: int, place: str, journal: Journal, content: Content) -> None:
    """Copy every image into the journal directory, then let the journal have its name.

    What lies at the targets now is synchronised first: a journal whose old images a power cut takes
    from their places would find content there that it does not know.
    """
    try:
        os.mkdir(place, 0o700)
    except FileExistsError as error:
        raise EditError(
            f"the edit {quoted(os.path.basename(place))} has a journal already",
            hint="forget or recover that edit first",
        ) from error
    try:
        with opened(open_root(place)) as directory:
            _sync_parents(root_fd, journal.rows)
            for row in journal.rows:
                if row.before is not None:
                    _stage_old(root_fd, directory, row.path, row.before)
                if row.after is not None:
                    _stage_new(directory, row.after, content)
            write_file(directory, _UNFINISHED, [json.dumps(asdict(journal)).encode()], 0o600)
            sync(directory)
            os.rename(_UNFINISHED, _JOURNAL, src_dir_fd=directory, dst_dir_fd=directory)
            sync(directory)
        sync_directory(os.path.dirname(place))
    except BaseException:
        remove(place)
        raise


def _stage_old(root_fd: int, directory: int, path: str, image: Image) -> None:
    *above, name = split_path(path)
    with opened(open_directory(root_fd, above)) as parent:
        source = open_file(parent, name, path)
    if source is None:
        raise changed([path])
    with opened(source):
        sync(source)
        if write_file(directory, image.staged, chunks(source), 0o600) != image.digest:
            raise changed([path])


def _sync_parents(root_fd: int, rows: Iterable[Row]) -> None:
    for above in sorted({tuple(split_path(row.path)[:-1]) for row in rows if row.before}):
        with opened(open_directory(root_fd, above)) as parent:
            sync(parent)


def _stage_new(directory: int, image: Image, content: Content) -> None:
    if write_file(directory, image.staged, pieces(content(image.digest)), 0o600) != image.digest:
        raise IntegrityError(f"the content given for {quoted(image.digest)} has another digest")


def read_journal(place: str, marker: Marker = _JOURNAL) -> Journal:
    with open(os.path.join(place, marker), "rb") as file:
        text = file.read()
    try:
        body = json.loads(text)
        if body["version"] != _VERSION:
            raise StoreError(
                f"the journal in {quoted(place)} has version {body['version']}",
                hint="recover with the version of holdfast that wrote it",
            )
        rows = tuple(
            Row(row["path"], _image(row["before"]), _image(row["after"]), _own(_TEMP, row["temp"]))
            for row in body["rows"]
        )
        modes = tuple(int(mode) for mode in body.get("modes", ()))
        journal = Journal(rows, tuple(body["made"]), tuple(body.get("cleared", ())), modes)
        for path in (*(row.path for row in rows), *journal.made, *journal.cleared):
            split_path(path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, EditError) as error:
        raise IntegrityError(f"the journal in {quoted(place)} cannot be read") from error
    return journal


def _image(body: dict[str, str | int] | None) -> Image | None:
    if body is None:
        return None
    return Image(str(body["digest"]), int(body["mode"]), _own(_STAGED, str(body["staged"])))


def _own(form: Pattern, name: str) -> str:
    """A name that we gave; ValueError for any other."""
    if not form.fullmatch(name):
        raise ValueError(name)
    return name


def is_open(place: str) -> bool:
    return os.path.lexists(os.path.join(place, _JOURNAL))


def is_settled(place: str) -> bool:
    return os.path.lexists(os.path.join(place, _SETTLED))


def marker_of(place: str) -> Marker | None:
    """How far an edit is; None for litter."""
    with suppress(FileNotFoundError):
        names = set(os.listdir(place))
        return next((marker for marker in MARKERS if marker in names), None)
    return None


def mark(place: str, old: Marker, new: Marker) -> None:
    """Let the list of an edit have its next name, for good."""
    os.rename(os.path.join(place, old), os.path.join(place, new))
    sync_directory(place)


def images_in(journal_dir: str, key: str) -> Iterator[Iterable[bytes]]:
    """The contents that lie in a journal, each in pieces."""
    place = place_of(journal_dir, key)
    for name in sorted(set(os.listdir(place)) - {*MARKERS, _UNFINISHED}):
        with open(os.path.join(place, name), "rb") as file:
            yield chunks(file.fileno())


def settle(place: str) -> None:
    """Close the journal and keep its images: some found no place."""
    mark(place, _JOURNAL, _SETTLED)


def remove(place: str) -> None:
    """Remove a journal directory; without its marker, what a crash leaves of it is litter."""
    try:
        names = set(os.listdir(place))
    except FileNotFoundError:
        return
    for marker in names & {*MARKERS}:
        os.unlink(os.path.join(place, marker))
    sync_directory(place)
    for name in names - {*MARKERS}:
        os.unlink(os.path.join(place, name))
    os.rmdir(place)
    sync_directory(os.path.dirname(place))


def pieces(given: bytes | Iterable[bytes]) -> Iterable[bytes]:
    return (given,) if isinstance(given, bytes) else given


def changed(paths: Iterable[str]) -> EditError:
    named = ", ".join(quoted(path) for path in sorted(paths))
    return EditError(
        f"not as expected: {named}", hint="someone changed it meanwhile; nothing written"
    )
