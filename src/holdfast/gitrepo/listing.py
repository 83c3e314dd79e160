"""Which files a work tree has, by git's rules of what to ignore; names are told to git by standard input."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from holdfast.errors import EditError, UsageError
from holdfast.gitrepo.calls import Room, ask
from holdfast.gitrepo.names import check_path, shown


def null_joined(paths: Iterable[str]) -> bytes:
    """Names as git reads them from standard input, each ended by NUL: none can be an option."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def null_split(said: bytes) -> list[str]:
    return [os.fsdecode(row) for row in said.split(b"\0") if row]


def tracked(room: Room, paths: Sequence[str] = ()) -> list[str]:
    """The paths in the index; a submodule is one path."""
    said = ask(room, "ls-files", "-z", "--cached", "--", *map(check_path, paths))
    return list(dict.fromkeys(null_split(said)))


def untracked(room: Room, paths: Sequence[str] = ()) -> list[str]:
    """Files that git does not know and does not ignore. A repository inside is left out."""
    return [path for path in _others(room, paths) if not path.endswith("/")]


def repositories_inside(room: Room) -> list[str]:
    """Folders of the work tree that are repositories of their own: submodules and others."""
    staged = null_split(ask(room, "ls-files", "-z", "--stage"))
    modules = [row.partition("\t")[2] for row in staged if row.startswith("160000 ")]
    return sorted({*modules, *(path[:-1] for path in _others(room, ()) if path.endswith("/"))})


def _others(room: Room, paths: Sequence[str]) -> list[str]:
    words = ("ls-files", "-z", "--others", "--exclude-standard", "--", *map(check_path, paths))
    return null_split(ask(room, *words))


def changed(room: Room, paths: Sequence[str] = ()) -> list[str]:
    """Tracked files whose content, mode or presence differs from the index; submodules do not count."""
    words = ("diff-files", "-z", "--name-only", "--no-ext-diff", "--ignore-submodules=all")
    return null_split(ask(room, *words, "--", *map(check_path, paths)))


def mark_wanted(room: Room, paths: Sequence[str]) -> None:
    """Let the index know that these files are there, without content."""
    if paths:
        words = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
        ask(room, *words, stdin=null_joined(paths))


def check_unfiltered(room: Room, paths: Sequence[str]) -> None:
    """UsageError if a file would have to pass a filter of the repository to be stored: none is run here."""
    if not paths:
        return
    said = ask(room, "check-attr", "-z", "--stdin", "filter", stdin=null_joined(paths))
    rows = said.split(b"\0")
    for path, _, value in zip(rows[0::3], rows[1::3], rows[2::3], strict=False):
        if value not in {b"unspecified", b"unset"}:
            name = shown(os.fsdecode(path))
            raise UsageError(
                f"{name} is stored through the filter {shown(os.fsdecode(value))}, which is not run here",
                hint="commit this file yourself",
            )


def check_free(folder: str, paths: Iterable[str], gone: Collection[str]) -> None:
    """EditError if something lies where these files shall be; `gone` are files that leave before.

    In a clean work tree that is something git ignores: it overwrites such files without a word, and no
    snapshot has them.
    """
    for path in paths:
        found = _in_the_way(folder, path, gone)
        if found:
            raise EditError(
                f"{shown(found)} is there, git ignores it, and {shown(path)} would take its place:"
                " nothing was done",
                hint="move it away",
            )


def _in_the_way(folder: str, path: str, gone: Collection[str]) -> str:
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        here = "/".join(parts[:depth])
        place = os.path.join(folder, here)
        if not os.path.lexists(place):
            return ""
        if not os.path.isdir(place) or os.path.islink(place):
            return "" if here in gone else here
    left = (
        os.path.relpath(os.path.join(top, name), folder)
        for top, _, names in os.walk(os.path.join(folder, path))
        for name in names
    )
    return next((name for name in left if name not in gone), "")
