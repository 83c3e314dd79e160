"""The terms on which commands run: what the person allows, and the sandbox that follows for one of them."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.errors import ProcessError
from holdfast.process.confine import Sandbox, homes, is_within
from holdfast.process.limits import Limits
from holdfast.process.room import private_folder
from holdfast.process.sandbox import probe_whole
from holdfast.process.tools import tool_places

# What starts programs outside of any sandbox once it is changed: git runs what its directory names.
_OF_GIT = (".git",)
_POINTERS = (
    "commondir",
    "gitdir",
    "config.worktree",
)  # of a worktree: where the rest of it is read from
_WORKTREE = re.compile(r"(?m)^\s*worktree\s*=\s*(.+?)\s*$")
# What a command that nobody wrote by hand never changes, there or not.
_OF_OTHERS = (
    ".git",
    ".gitattributes",
    ".gitmodules",
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
    ".ci",
    ".env",
    ".envrc",
    ".mcp.json",
    ".vscode",
    ".idea",
    "holdfast.toml",
    "Jenkinsfile",
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the person allows. None of it can come from a plan.

    `hidden` are the places of Holdfast itself: its store and its configuration. `written_here` is False if a
    model, a ticket or another program chose the commands: these change nothing that would run or decide
    elsewhere, and do not run at all without a sandbox unless the person says so.
    """

    hidden: tuple[str, ...] = ()
    network: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    sandbox: bool = True
    written_here: bool = True

    def sandbox_for(self, root: str, folder: str, room: str, path: str) -> Sandbox | None:
        """The sandbox of a command in `folder` of the project `root`, with a private directory.

        None if the person wants none. Where there is none, who is not trusted is refused.
        """
        if not self.sandbox:
            return None
        found = probe_whole()
        if found.sandbox or self.written_here:
            return _sandbox(self, root, folder, room, path)
        raise ProcessError(
            f"commands that nobody here wrote need a sandbox, and there is none: {found.reason}",
            hint="install bubblewrap, or let them do as they like with --no-sandbox",
        )


@functools.lru_cache(maxsize=64)
def _sandbox(terms: Terms, root: str, folder: str, room: str, path: str) -> Sandbox:
    writable = [room] if is_within(folder, room) else [room, folder]
    tops = list(_worktree_of(folder))
    owned = [place for top in tops for place in _own_of(top)]
    readable = [root, *_repository_of(root), *tool_places(path, root), *terms.readable]
    readable += [_whole(place) for place in owned]
    names = _OF_GIT if terms.written_here else _OF_OTHERS
    protected = [os.path.join(folder, name) for name in names]
    if folder != root and not is_within(folder, room):
        # A copy: what is outside of the project is refused later, and git may keep track of what is staged.
        writable += [*tops, *owned]
        protected += [os.path.join(top, name) for top in tops for name in names]
        protected += [os.path.join(place, name) for place in owned for name in _POINTERS]
    elif folder == root:
        for module in _modules_of(folder):
            writable += _ways_to(folder, module)
            protected.append(os.path.join(folder, module, ".git"))
    if terms.written_here:
        protected = [place for place in protected if os.path.lexists(place)]
    given = [place for place in terms.writable if os.path.exists(place)]
    granted = [os.path.realpath(place) for place in given]
    return Sandbox(
        writable=tuple(dict.fromkeys([*writable, *given])),
        readable=tuple(dict.fromkeys(readable)),
        masked=terms.hidden,
        protected=tuple(
            place
            for place in protected
            if not any(is_within(os.path.realpath(place), granted_one) for granted_one in granted)
        ),
        network=terms.network,
        limits=terms.limits,
    )


def _worktree_of(folder: str) -> Iterator[str]:
    """The top of the worktree that a folder lies in: the project may be a part of a repository."""
    while not os.path.isfile(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder) or os.path.isdir(os.path.join(folder, ".git")):
            return
        folder = os.path.dirname(folder)
    yield folder


def _repository_of(root: str) -> Iterator[str]:
    """The repository that a project is a part of, unless a whole home is one."""
    folder = root
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)
    if not any(is_within(home, os.path.realpath(folder)) for home in homes()):
        yield folder


def _own_of(folder: str) -> Iterator[str]:
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


def _whole(place: str) -> str:
    """The repository that keeps this of a worktree."""
    return os.path.dirname(os.path.dirname(place))


def own_objects(folder: str, room: str) -> dict[str, str]:
    """Where git puts new objects of a worktree: a private directory, beside those of the repository."""
    for top in _worktree_of(folder):
        for place in _own_of(top):
            theirs = os.path.join(_whole(place), "objects")
            quoted = theirs.replace("\\", "\\\\").replace('"', '\\"')
            return {
                "GIT_OBJECT_DIRECTORY": private_folder(room, "objects"),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"',
            }
    return {}


def _modules_of(folder: str) -> Iterator[str]:
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


def _ways_to(folder: str, path: str) -> Iterator[str]:
    """Each folder on the way: none of them can be moved away once it is mounted."""
    for part in path.split("/"):
        folder = os.path.join(folder, part)
        yield folder
