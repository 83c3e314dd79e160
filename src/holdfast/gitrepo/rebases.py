"""A branch of ours carried over to another commit; and the end of what was cut short on the way.

While git rebases, the branch stays where it was and moves last. If git is killed in between, its index
and files are of no commit at all. So whatever changes a worktree first brings such a one back to its
branch.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast.errors import EditError
from holdfast.gitrepo.calls import answer, ask, failed
from holdfast.gitrepo.client import Client, resolve
from holdfast.gitrepo.history import signed
from holdfast.gitrepo.holding import working, write_file
from holdfast.gitrepo.listing import check_free, null_split, tracked, untracked
from holdfast.gitrepo.names import Identity, Oid, shown
from holdfast.gitrepo.pins import hold, pin
from holdfast.gitrepo.snapshots import take_snapshot
from holdfast.gitrepo.state import status
from holdfast.gitrepo.trees import Worktree, own_branch

_STATE = "rebase-merge"
_ONTO = "holdfast-onto"


@dataclass(frozen=True, slots=True)
class Rebased:
    """Where the branch was and is; with `conflicts` it did not move, and nothing was changed."""

    before: Oid
    after: Oid
    conflicts: tuple[str, ...] = ()


@contextmanager
def changing(tree: Worktree, doing: str) -> Iterator[Client]:
    """Be the only one who changes something here, in a worktree that nothing was cut short in."""
    with working(tree.client, doing) as client:
        _end(replace(tree, client=client))
        yield client


def rebase(tree: Worktree, onto: str, *, identity: Identity) -> Rebased:
    """Carry the branch's own commits over to another commit, one by one, or leave everything as it was.

    The worktree must be clean. Paths that both sides changed are a value, `conflicts`, not an error.
    """
    target = resolve(tree.client, onto)
    with changing(tree, "rebase") as client:
        mine, room = replace(tree, client=client), client.room(tree.git_dir, tree.folder)
        before = own_branch(client, tree.branch)
        if before is None or not status(mine).is_clean:
            raise EditError(f"worktree {shown(tree.name)} is not clean: nothing was done")
        known = set(tracked(room))
        added = [path for path in _between(client, target, before) if path not in known]
        check_free(tree.folder, added, known)
        pin(client, target)
        hold(client, before)
        write_file(os.path.join(tree.git_dir, _ONTO), target.encode())
        words = ("rebase", "--merge", "--no-autostash", "--no-verify", "--no-fork-point")
        env = signed(identity, int(client.clock()), role=("COMMITTER",))
        done = answer(room, *words, "--empty=drop", "--end-of-options", target, env=env)
        if done.code == 0:
            os.unlink(os.path.join(tree.git_dir, _ONTO))
            return Rebased(before, own_branch(client, tree.branch) or before)
        rows = null_split(ask(room, "ls-files", "--unmerged", "-z")) if done.code > 0 else []
        _end(mine)
        if not rows:
            raise failed("rebase", done)
        paths = dict.fromkeys(row.partition("\t")[2] for row in rows)
        return Rebased(before, before, tuple(paths))


def _end(tree: Worktree) -> None:
    """Bring back what a rebase that was cut short left; without one, nothing is done.

    What it wrote and no index knows is removed, stored first like all the rest.
    """
    onto = os.path.join(tree.git_dir, _ONTO)
    if not os.path.exists(onto):
        return
    client, room = tree.client, tree.client.room(tree.git_dir, tree.folder)
    with open(onto, encoding="ascii") as file:
        target = file.read()
    take_snapshot(tree, why="a rebase was cut short")
    write_file(os.path.join(tree.git_dir, "HEAD"), os.fsencode(f"ref: refs/heads/{tree.branch}\n"))
    at = own_branch(client, tree.branch) or Oid(target)
    ask(room, "read-tree", "--reset", "-u", at)
    written = set(_between(client, target, at))
    for path in untracked(room):
        if path in written:
            os.unlink(os.path.join(tree.folder, path))
    shutil.rmtree(os.path.join(tree.git_dir, _STATE), ignore_errors=True)
    os.unlink(onto)


def _between(client: Client, one: str, other: str) -> list[str]:
    """The paths that commits of either side touched since the two parted."""
    words = ("log", "--format=", "--name-only", "-z", "--no-renames", "--no-ext-diff")
    return null_split(ask(client.base, *words, f"{one}...{other}", "--"))
