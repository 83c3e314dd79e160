"""What git keeps where: of a worktree, of the repository behind it, of its submodules. Git is not asked."""

from __future__ import annotations

import os
from collections.abc import Iterator

from holdfast.process.confine import homes, is_within
from holdfast.process.gitindex import submodules_in
from holdfast.process.inside import open_regular
from holdfast.process.room import private_folder

_LONGEST = 8192  # of a path that a file of git holds


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
        place = _git_dir(folder)
        back = _line(os.path.join(place, "gitdir"))
    except OSError:
        return
    is_known = os.path.basename(os.path.dirname(place)) == "worktrees"
    if is_known and os.path.realpath(os.path.join(place, back)) == os.path.realpath(pointer):
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


def obeyed_in(folder: str) -> list[str]:
    """Where git reads what it runs, as far as that lies in a folder: of a repository, and of its submodules.

    Those are submodules that an index names; `.gitmodules` is for anybody to change. None of the places
    lies in another one.
    """
    folder = os.path.realpath(folder)
    found: set[str] = set()
    pending = [top_of(folder) or folder]
    while pending:
        top = pending.pop()
        try:
            place = _git_dir(top)
            common = common_of(top)
        except OSError:  # nothing is checked out there
            found |= {f"{top}/.git"} if os.path.isdir(top) and is_within(top, folder) else set()
            continue
        found |= {one for one in (f"{top}/.git", place, common) if is_within(one, folder)}
        inner = (os.path.join(top, path) for path in submodules_in(place, common))
        pending += [one for one in inner if is_within(one, folder) or is_within(folder, one)]
    return sorted(one for one in found if not any(is_within(one, two) for two in found - {one}))


def common_of(folder: str) -> str:
    """What all worktrees of the repository share that a folder lies in; OSError if it lies in none."""
    place = _git_dir(top_of(folder) or folder)
    try:
        return os.path.realpath(os.path.join(place, _line(os.path.join(place, "commondir"))))
    except FileNotFoundError:
        return place


def _git_dir(top: str) -> str:
    pointer = os.path.join(top, ".git")
    if os.path.isdir(pointer):
        return os.path.realpath(pointer)
    return os.path.realpath(os.path.join(top, _line(pointer).removeprefix("gitdir:").strip()))


def _line(path: str) -> str:
    with open_regular(path) as file:
        return os.fsdecode(file.read(_LONGEST)).partition("\0")[0].strip()


def ways_to(folder: str, path: str) -> Iterator[str]:
    """Each folder on the way: none of them can be moved away once it is mounted."""
    for part in os.path.relpath(path, folder).split("/")[:-1]:
        folder = os.path.join(folder, part)
        yield folder
