"""What shall become of files, and whether it can be: names that are one, files in the way of others."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from holdfast.edits.tree import fold, quoted, split_path
from holdfast.errors import EditError
from holdfast.model.fixed import frozen
from holdfast.model.glob import parents

ANY = "*"

_DIGEST = re.compile(r"[0-9a-f]{64}")


@frozen
class FileChange:
    """One file: what must be there now, and what shall be there; digests are SHA-256 in hex.

    `before=None`: must be absent; `before=ANY`: not checked. `after=None`: delete.
    """

    path: str
    before: str | None
    after: str | None
    mode: int = 0o644

    def __post_init__(self) -> None:
        split_path(self.path)
        expected = None if self.before == ANY else self.before
        if not all(
            _DIGEST.fullmatch(digest) for digest in (expected, self.after) if digest is not None
        ):
            raise EditError(f"a change of {quoted(self.path)} has a malformed digest")
        if self.mode & ~0o777:
            raise EditError(f"a change of {quoted(self.path)} has the mode {self.mode:o}")


def check_disjoint(root: str, changes: Sequence[FileChange]) -> None:
    seen: dict[tuple[str, ...], list[FileChange]] = {}
    for change in changes:
        seen.setdefault(_folded(change), []).append(change)
    for change in changes:
        folded = _folded(change)
        for twin in seen[folded]:
            if twin is not change and _are_one(root, twin, change):
                raise EditError(
                    f"paths {quoted(change.path)} and {quoted(twin.path)} name one file"
                )
        for depth in range(1, len(folded)):
            for outer in seen.get(folded[:depth], ()):
                _check_nested(root, outer, change, "/".join(change.path.split("/")[:depth]))


def _are_one(root: str, one: FileChange, other: FileChange) -> bool:
    """Whether two changes may be of one file; a rename from one spelling to another is not."""
    if one.path == other.path:
        return True
    is_rename = (one.after is None) != (other.after is None)
    return not is_rename and not _lie_apart(root, one.path, other.path)


def _check_nested(root: str, outer: FileChange, inner: FileChange, place: str) -> None:
    """A file may take the place of a directory, and a directory that of a file; both cannot stand."""
    if outer.path == place and (outer.after is None) != (inner.after is None):
        return
    if outer.path == place or not _lie_apart(root, outer.path, place):
        raise EditError(f"{quoted(outer.path)} is both a file and a parent of {quoted(inner.path)}")


def _lie_apart(root: str, one: str, other: str) -> bool:
    """Whether names that are one to some file systems are two here: both are there, and differ."""
    try:
        found = [os.lstat(os.path.join(root, path)) for path in (one, other)]
    except OSError:
        return False
    return not os.path.samestat(*found)


def _folded(change: FileChange) -> tuple[str, ...]:
    return tuple(fold(part) for part in change.path.split("/"))


def in_the_way(wanted: Sequence[tuple[str, bool]]) -> set[str]:
    """Files to be removed so that others can stand: above them, or in the place of a parent."""
    written = {path for path, stays in wanted if stays}
    above = {outer for path in written for outer in parents(path)}
    return {
        path
        for path, stays in wanted
        if not stays and (path in above or not written.isdisjoint(parents(path)))
    }


def cleared_by(way: set[str], written: set[str]) -> tuple[str, ...]:
    """The directories that files take the place of, with those in them, outermost first."""
    found = set()
    for path in way:
        above = sorted(parents(path), key=len)
        first = next((place for place, outer in enumerate(above) if outer in written), len(above))
        found.update(above[first:])
    return tuple(sorted(found))
