"""What git keeps where: of a worktree, of the repository behind it, of its submodules. Git is not asked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from holdfast.process.confine import homes, is_within
from holdfast.process.room import private_folder

_WORKTREE = re.compile(r"(?m)^\s*worktree\s*=\s*(.+?)\s*$")


def worktree_of(folder: str) -> Iterator[str]:
    """The top of the worktree that a folder lies in: the project may be a part of a repository."""
    while not os.path.isfile(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder) or os.path.isdir(os.path.join(folder, ".git")):
            return
        folder = os.path.dirname(folder)
    yield folder


def top_of(folder: str) -> str | None:
    """The work tree that a folder lies in, told by names; None if it lies in none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)
    return folder


def repository_of(root: str) -> Iterator[str]:
    """The repository that a project is a part of, unless a whole home is one."""
    folder = top_of(root)
    if folder and not any(is_within(home, os.path.realpath(folder)) for home in homes()):
        yield folder


def own_of(folder: str) -> Iterator[str]:
    """What a repository keeps of a worktree alone, if it names that worktree itself.

    A step may write the file that points there. What it points to must therefore point back, from a place
    that only the repository has.
    """
    pointer = os.path.join(folder, ".git")
    try:
        with open(pointer, encoding="utf-8") as file:
            place = os.path.realpath(file.read().partition("gitdir:")[2].strip())
        with open(os.path.join(place, "gitdir"), encoding="utf-8") as file:
            back = file.read().strip()
    except (OSError, UnicodeDecodeError, ValueError):
        return
    is_known = os.path.basename(os.path.dirname(place)) == "worktrees"
    if is_known and os.path.realpath(back) == os.path.realpath(pointer):
        yield place


def whole_of(place: str) -> str:
    """The repository that keeps this of a worktree."""
    return os.path.dirname(os.path.dirname(place))


def own_objects(folder: str, room: str) -> dict[str, str]:
    """Where git puts new objects of a worktree: a private directory, beside those of the repository."""
    for top in worktree_of(folder):
        for place in own_of(top):
            theirs = os.path.join(whole_of(place), "objects")
            quoted = theirs.replace("\\", "\\\\").replace('"', '\\"')
            return {
                "GIT_OBJECT_DIRECTORY": private_folder(room, "objects"),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"',
            }
    return {}


def modules_of(folder: str) -> Iterator[str]:
    """The submodules of a repository, as its own directory has them: a step can change `.gitmodules`."""
    modules = os.path.join(folder, ".git", "modules")
    for top, folders, names in os.walk(modules):
        if "config" not in names or "HEAD" not in names:
            continue
        folders.clear()
        with open(os.path.join(top, "config"), encoding="utf-8", errors="replace") as file:
            found = _WORKTREE.search(file.read())
        if found is None:
            continue
        place = os.path.normpath(os.path.join(top, found[1]))
        if is_within(place, folder) and os.path.isdir(place):
            yield os.path.relpath(place, folder)


def ways_to(folder: str, path: str) -> Iterator[str]:
    """Each folder on the way: none of them can be moved away once it is mounted."""
    for part in path.split("/"):
        folder = os.path.join(folder, part)
        yield folder
