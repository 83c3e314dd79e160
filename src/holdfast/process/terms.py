"""The terms on which commands run: what the person allows, and the sandbox that follows for one of them."""

from __future__ import annotations

import functools
import os
from dataclasses import field

from holdfast.errors import ProcessError
from holdfast.model.fixed import frozen
from holdfast.process.confine import Sandbox, is_within
from holdfast.process.gitplaces import (
    obeyed_in,
    own_of,
    repository_of,
    ways_to,
    whole_of,
    worktree_of,
)
from holdfast.process.limits import Limits
from holdfast.process.sandbox import probe_whole
from holdfast.process.tools import tool_places

# What starts programs outside of any sandbox once it is changed: git runs what its directory names.
_OF_GIT = (".git",)
_POINTERS = (
    "commondir",
    "gitdir",
    "config.worktree",
)  # of a worktree: where the rest of it is read from
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


@frozen
class Terms:
    """What the person allows. None of it can come from a plan.

    `hidden` are the places of Holdfast itself: its store and its configuration. `written_here` is False if a
    model, a ticket or another program chose the commands: these change nothing that would run or decide
    elsewhere, and do not run at all without a sandbox unless the person says so. `judged` is True if what
    they leave is looked at before anybody gets it: then only what is there needs to be kept from them.
    """

    hidden: tuple[str, ...] = ()
    network: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    sandbox: bool = True
    written_here: bool = True
    judged: bool = False

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
    tops = list(worktree_of(folder))
    owned = [place for top in tops for place in own_of(top)]
    readable = [root, *repository_of(root), *tool_places(path, root), *terms.readable]
    readable += [whole_of(place) for place in owned]
    names = _OF_GIT if terms.written_here else _OF_OTHERS
    protected = [os.path.join(folder, name) for name in names]
    if terms.judged:
        protected = [place for place in protected if os.path.lexists(place)]
    if folder != root and not is_within(folder, room):
        # A copy: what is outside of the project is refused later, and git may keep track of what is staged.
        writable += [*tops, *owned]
        protected += [os.path.join(top, name) for top in tops for name in names]
        protected += [os.path.join(place, name) for place in owned for name in _POINTERS]
    elif folder == root:
        for place in obeyed_in(folder):
            writable += ways_to(os.path.realpath(folder), place)
            protected.append(place)
    if terms.written_here:
        protected = [place for place in protected if os.path.lexists(place)]
    protected = [
        place for place in protected if place not in terms.hidden
    ]  # empty: nothing to keep
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
