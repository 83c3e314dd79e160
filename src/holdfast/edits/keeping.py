"""Edits that count are kept with both images of every file, and can be taken back exactly.

An edit is kept by giving its journal another name (`journal`). Taking it back is the way that recovery
goes anyway, after a look whether every file still is what the edit left: it is written down that it is
being taken back, all files are brought to their old images, and it is written down that it was. Ended in
between, it is finished by `recover_all`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from holdfast.edits.apply import Recovered, Site, bring_back, bring_forward, recover
from holdfast.edits.change import in_the_way
from holdfast.edits.journal import (
    Journal,
    Marker,
    Row,
    keys_in,
    mark,
    marker_of,
    place_of,
    read_journal,
)
from holdfast.edits.tree import (
    chunks,
    look,
    open_directory,
    open_file,
    open_root,
    opened,
    outside_world,
    quoted,
    split_path,
)
from holdfast.errors import EditError, HoldfastError, IntegrityError
from holdfast.model.digest import digest_bytes

State = Literal["applied", "rolled back", "in conflict", "unfinished", "damaged"]
_KEY = re.compile(r"e-[0-9]{6,}-[0-9a-f]{8}")
_STATES: dict[Marker, State] = {
    "kept.json": "applied",
    "undone.json": "rolled back",
    "settled.json": "in conflict",
    "journal.json": "unfinished",
    "undoing.json": "unfinished",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """One edit that is on record; `when` is in seconds since 1970. One that is damaged has no rows."""

    key: str
    state: State
    when: float
    rows: tuple[Row, ...]


def keep(journal_dir: str, key: str) -> None:
    """The edit counts from here on."""
    with outside_world(f"keep the edit {quoted(key)}"):
        mark(place_of(journal_dir, key), "journal.json", "kept.json")


def kept(journal_dir: str) -> Iterator[Kept]:
    """The edits on record, the latest first; keys that sort by time come from `next_key`."""
    with outside_world(f"read edits in {quoted(journal_dir)}"):
        for key in reversed(keys_in(journal_dir)):
            place = place_of(journal_dir, key)
            marker = marker_of(place)
            if marker is not None:
                when = os.stat(os.path.join(place, marker)).st_mtime
                try:
                    rows = read_journal(place, marker).rows
                except IntegrityError:
                    yield Kept(key, "damaged", when, ())
                else:
                    yield Kept(key, _STATES[marker], when, rows)


def next_key(journal_dir: str, digest: str) -> str:
    """A name for the next edit: its number, and the beginning of its digest."""
    last = max((int(key.split("-")[1]) for key in keys_in(journal_dir)), default=0)
    return f"e-{last + 1:06}-{digest[:8]}"


def check_keys(journal_dir: str) -> None:
    """EditError if there is something in the directory that is no edit: recovery would take it for litter."""
    with suppress(FileNotFoundError):
        for name in os.listdir(journal_dir):
            if not _KEY.fullmatch(name):
                raise EditError(
                    f"{quoted(name)} in {quoted(journal_dir)} is no edit",
                    hint="keep edits in a directory of their own (--state DIR)",
                )


def image_of(journal_dir: str, digest: str) -> bytes | None:
    """A content by its digest, if one of the edits on record has it."""
    for edit in kept(journal_dir):
        for row in edit.rows:
            for image in (row.after, row.before):
                if image is not None and image.digest == digest:
                    found = _staged(journal_dir, edit.key, image.staged)
                    if found is not None and digest_bytes(found) == digest:
                        return found
    return None


def _staged(journal_dir: str, key: str, name: str) -> bytes | None:
    with outside_world(f"read the edit {quoted(key)}"):
        with opened(open_root(place_of(journal_dir, key))) as directory:
            descriptor = open_file(directory, name, name)
        if descriptor is None:
            return None
        with opened(descriptor):
            return b"".join(chunks(descriptor))


def take_back(root: str, journal_dir: str, key: str) -> Journal:
    """Bring every file of a kept edit back to what it was, all or none.

    EditError names the files that somebody changed since; then nothing is changed.
    """
    place = place_of(journal_dir, key)
    with outside_world(f"take back the edit {quoted(key)}"), opened(open_root(root)) as root_fd:
        journal = read_journal(place, "kept.json")
        if others := _others(root_fd, journal):
            raise _changed(key, others)
        _check_images(journal_dir, key, journal)
        mark(place, "kept.json", "undoing.json")
        site = Site(root_fd, place)
        try:
            conflicts = bring_back(site, journal)
        except OSError:
            _stand_again(site, journal)
            raise
        if conflicts:
            _stand_again(site, journal)
            raise _changed(key, [conflict.path for conflict in conflicts])
        mark(place, "undoing.json", "undone.json")
    return journal


def _check_images(journal_dir: str, key: str, journal: Journal) -> None:
    """IntegrityError if an image is not what it was: begun without it, taking back could not be ended."""
    for row in journal.rows:
        for image in filter(None, (row.before, row.after)):
            found = _staged(journal_dir, key, image.staged)
            if found is None or digest_bytes(found) != image.digest:
                raise IntegrityError(
                    f"the edit {quoted(key)} cannot be taken back: its copy of {quoted(row.path)} is damaged",
                    hint=f"nothing was changed; holdfast edit forget {key}",
                )


def _stand_again(site: Site, journal: Journal) -> None:
    """It cannot be taken back: the files that were are brought forward again."""
    bring_forward(site, journal)  # what somebody else put there stays, and is told to the caller
    mark(site.place, "undoing.json", "kept.json")


def _changed(key: str, paths: list[str]) -> EditError:
    named = ", ".join(quoted(path) for path in sorted(paths))
    return EditError(
        f"the edit {quoted(key)} cannot be taken back: changed since: {named}",
        hint="nothing was changed; undo what came later first, or change the files by hand",
    )


def _others(root_fd: int, journal: Journal) -> list[str]:
    """The paths that no longer hold what the edit left there."""
    way = in_the_way([(row.path, row.after is not None) for row in journal.rows])
    rows = (
        row for row in journal.rows if row.path not in way
    )  # their places are taken by others of it
    return [row.path for row in rows if not _is_as_left(root_fd, row)]


def _is_as_left(root_fd: int, row: Row) -> bool:
    *above, name = split_path(row.path)
    try:
        with opened(open_directory(root_fd, above)) as parent:
            found = look(parent, name, row.path)
    except FileNotFoundError:
        found = None
    except EditError:
        return False
    if found is None or row.after is None:
        return found is None and row.after is None
    return (found.digest, found.mode, found.links) == (row.after.digest, row.after.mode, 1)


def recover_all(root: str, journal_dir: str) -> list[Recovered]:
    """Bring what a crash cut short to its end: an edit that did not count yet, back; so one half back."""
    for edit in kept(journal_dir):
        images = [image for row in edit.rows for image in (row.before, row.after) if image]
        if edit.state == "unfinished" and any(image.mode & ~0o777 for image in images):
            raise IntegrityError(f"the edit {quoted(edit.key)} has a mode that no edit has")
    try:
        ended = recover(root, journal_dir, committed=lambda _: False)
        return ended + _taken_back(root, journal_dir)
    except IntegrityError as error:
        hint = "an edit was cut short there; its old files are *.old: look, then remove it"
        raise IntegrityError(error.message, hint=hint) from error


def _taken_back(root: str, journal_dir: str) -> list[Recovered]:
    """Edits that were half taken back, brought back whole."""
    ended = []
    with outside_world(f"recover edits in {quoted(root)}"), opened(open_root(root)) as root_fd:
        for key in keys_in(journal_dir):
            place = place_of(journal_dir, key)
            if marker_of(place) == "undoing.json":
                journal = read_journal(place, "undoing.json")
                conflicts = bring_back(Site(root_fd, place), journal)
                mark(place, "undoing.json", "settled.json" if conflicts else "undone.json")
                ended.append(Recovered(key, forward=False, conflicts=conflicts))
    return ended


def is_unfinished(journal_dir: str) -> bool:
    """Whether a crash left something to bring to its end, or to clear away."""
    return _has(journal_dir, {None, "journal.json", "undoing.json"})


def is_cut_short(journal_dir: str) -> bool:
    """Whether a crash left an edit half done."""
    return _has(journal_dir, {"journal.json", "undoing.json"})


def _has(journal_dir: str, wanted: set[Marker | None]) -> bool:
    try:
        return any(marker_of(place_of(journal_dir, key)) in wanted for key in keys_in(journal_dir))
    except (OSError, HoldfastError):
        return True  # recovery says what is wrong
