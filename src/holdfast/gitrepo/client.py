"""A client of a person's repository, with git directories of its own outside the work tree.

    HOME/work.git        our branches and worktrees; borrows the person's objects (`objects/info/alternates`)
    HOME/snapshots.git   whole work trees, by themselves: nothing the person prunes can break one
    HOME/worktrees/      the folders of our worktrees
    HOME/indexes/        what snapshots remember of each work tree, so that the next is quick
    HOME/views/          git directories for one look at the person's tree, with a copy of their index
    HOME/lock, HOME/busy whoever changes something holds the lock and leaves word of what it does

Git runs with one of these as its GIT_DIR, so objects, refs and configuration are ours; the person's own
is asked about refs, and is written to in three ways: objects are added, a ref moves by comparison
(`holdfast.gitrepo.refs`), and `refs/holdfast/keep/` names what our branches stand on, so that `git gc`
leaves it there.

If a process dies while it holds the lock, `busy` is still there for whoever comes next. What git left
locked in our directories is then litter and is removed. Without `busy`, a lock is somebody's, and stays.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.errors import GitError, UsageError
from holdfast.gitrepo.calls import Room, Settings, answer, ask, failed
from holdfast.gitrepo.names import Oid, check_revision, shown
from holdfast.gitrepo.place import Place


@dataclass(frozen=True, slots=True)
class Client:
    """A person's repository, and our own place for everything about it. Made by `open_client`."""

    place: Place
    home: str
    settings: Settings = ()
    before: tuple[str, ...] = ()
    clock: Callable[[], float] = time.time
    lock: int | None = None

    @property
    def work(self) -> str:
        """The git directory of our branches."""
        return os.path.join(self.home, "work.git")

    @property
    def store(self) -> str:
        """The git directory of snapshots."""
        return os.path.join(self.home, "snapshots.git")

    def room(self, git_dir: str, work_tree: str, index: str = "") -> Room:
        """A call about content, in a git directory of our own."""
        ignore = ("core.excludesFile", os.path.join(self.home, "ignore"))
        settings = (*self.settings, ignore)
        return Room(git_dir, work_tree, index, settings, self.before, self.lock)

    @property
    def base(self) -> Room:
        """A call about our own branches and objects, in no work tree."""
        return self.room(self.work, self.home)

    @property
    def theirs(self) -> Room:
        """A call about refs of the person's repository."""
        place = self.place
        return Room(place.git_dir, place.top, before=self.before, lock=self.lock)


def resolve(client: Client, revision: str) -> Oid:
    """The commit that a revision of the person's repository, or else of our own, names now."""
    check_revision(revision)
    for room in (client.theirs, client.base):
        said = ask(room, "cat-file", "--batch-check", stdin=f"{revision}^{{commit}}\n".encode())
        words = said.decode("utf-8", "replace").split()
        if len(words) == 3 and words[1] == "commit":  # noqa: PLR2004 - name, type, size
            return Oid(words[0])
        if words and words[-1] == "ambiguous":
            raise UsageError(f"{shown(revision)} names more than one object", hint="say more of it")
    raise UsageError(f"{shown(revision)} names no commit")


def tree_of(client: Client, commit: Oid) -> Oid:
    """The tree of a commit."""
    said = ask(client.base, "cat-file", "--batch-check", stdin=f"{commit}^{{tree}}\n".encode())
    words = said.decode().split()
    if len(words) != 3 or words[1] != "tree":  # noqa: PLR2004 - name, type, size
        raise GitError(f"the tree of the commit {commit} is not there", hint="git fsck")
    return Oid(words[0])


def their_branch(client: Client) -> str | None:
    """The branch that the person's work tree is on, `refs/heads/…`; None if it is on none."""
    done = answer(client.theirs, "symbolic-ref", "--quiet", "HEAD")
    if done.code not in {0, 1}:
        raise failed("symbolic-ref", done)
    return os.fsdecode(done.out).strip() or None


def their_head(client: Client) -> Oid | None:
    """The commit that the person's work tree stands on; None before the first."""
    said = ask(client.theirs, "cat-file", "--batch-check", stdin=b"HEAD^{commit}\n").decode()
    words = said.split()
    return Oid(words[0]) if words[1:2] == ["commit"] else None
