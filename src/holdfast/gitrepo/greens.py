"""Back to the last state that was known to be good, and what snapshots are kept.

`mark_green` stores a work tree when its checks have passed; `rollback` brings that back: tracked and
untracked files, and for a worktree of ours its branch and index. What is there is stored first. It says
what it cannot undo: what git ignores, what lies in repositories inside, and, in the person's own tree,
where their branch is.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.errors import UsageError
from holdfast.gitrepo.calls import answer, ask
from holdfast.gitrepo.client import Client, resolve
from holdfast.gitrepo.durable import point
from holdfast.gitrepo.encodings import as_laid_out
from holdfast.gitrepo.history import list_files
from holdfast.gitrepo.holding import working
from holdfast.gitrepo.names import Oid, check_oid, shown
from holdfast.gitrepo.pins import hold, let_go, unpin
from holdfast.gitrepo.rebases import changing
from holdfast.gitrepo.refs import swap_own
from holdfast.gitrepo.snapshots import (
    GREEN,
    SNAPSHOTS,
    STATES,
    Restored,
    Snapshot,
    bring,
    find_snapshot,
    green_mark,
    list_snapshots,
    restore_snapshot,
    take_snapshot,
    taken_at,
)
from holdfast.gitrepo.state import status
from holdfast.gitrepo.trees import WorkTree, Worktree, client_of, head_of, own_branch


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did, and what it could not undo.

    `head` is the commit that was left, if the branch moved. `ignored` are the paths that git ignores.
    """

    restored: Restored
    to: Oid | None
    head: Oid | None
    ignored: tuple[str, ...]
    repositories: tuple[str, ...]


def mark_green(tree: WorkTree, *, why: str = "checks passed") -> Snapshot:
    """Store a work tree as the one to come back to. The mark before this one is a plain snapshot again."""
    with working(client_of(tree), "mark") as client:
        held = client if isinstance(tree, Client) else replace(tree, client=client)
        snapshot = take_snapshot(held, why=why)
        point(client.room(client.store, client.home), green_mark(tree), snapshot.oid)
        if snapshot.head is not None and isinstance(tree, Worktree):
            hold(client, snapshot.head)
    return snapshot


def last_green(tree: WorkTree) -> Snapshot | None:
    """The snapshot that `rollback` would bring back."""
    client = client_of(tree)
    asked = f"{green_mark(tree)}\n".encode()
    room = client.room(client.store, client.home)
    words = ask(room, "cat-file", "--batch-check", stdin=asked).decode().split()
    return find_snapshot(client, words[0]) if words[1:2] == ["commit"] else None


def rollback(
    tree: WorkTree, to: str | None = None, *, dirty: Literal["refuse", "save"] = "refuse"
) -> RolledBack:
    """Bring a work tree back to the last green state, or to a commit as it is stored: no untracked files.

    Line endings are those of the commit, too; what has an encoding of its own is laid out in that.
    For the person's own tree see `restore_snapshot`: it must be clean, or they say `dirty="save"`; their
    branch and index stay where they are.
    """
    client = client_of(tree)
    green = last_green(tree) if to is None else None
    if to is None and green is None:
        raise UsageError("nothing was marked green here", hint="name a commit to go back to")
    target = resolve(client, to) if to is not None else None
    if isinstance(tree, Client):
        restored = _files(tree, green, target, dirty)
        return _told(tree, restored, target or (green.head if green else None), None)
    with changing(tree, "rollback") as held:
        mine = replace(tree, client=held)
        at = own_branch(held, tree.branch)
        restored = _files(mine, green, target, "save")
        goal = target or (green.head if green else None)
        hold(held, at)
        room = held.room(tree.git_dir, tree.folder)
        if goal is not None:
            ask(room, "read-tree", goal)
            answer(room, "update-index", "-q", "--refresh")
            if goal != at:
                swap_own(held, tree.branch, goal, at)
    return _told(tree, restored, goal, at if goal != at else None)


def _files(
    tree: WorkTree, green: Snapshot | None, target: Oid | None, dirty: Literal["refuse", "save"]
) -> Restored:
    if green is not None:
        return restore_snapshot(tree, green.oid, dirty=dirty)
    client = client_of(tree)
    commit = target or head_of(tree)
    if commit is None:
        raise UsageError("there is no commit to go back to")
    files = as_laid_out(client, commit, {file.path: file for file in list_files(client, commit)})
    return bring(tree, files, {}, client.base, dirty=dirty, why=f"before going back to {commit}")


def _told(tree: WorkTree, restored: Restored, to: Oid | None, left: Oid | None) -> RolledBack:
    rows = status(tree, ignored=True).entries
    ignored = tuple(entry.path for entry in rows if entry.kind == "ignored")
    return RolledBack(restored, to, left, ignored, restored.left)


def collect(
    client: Client, *, keep: int, age: float, named: Collection[str] = ()
) -> tuple[Oid, ...]:
    """Let go of snapshots beyond the newest `keep` that are older than `age` seconds; returns those.

    Never those in `named` (what a journal names), nor one that is marked green or is a state of a worktree.
    Nothing else is lost by it: our branches, and what the person's repository holds for them, are only let
    go when nothing needs them.
    """
    if keep < 0 or age < 0:
        raise UsageError("how many snapshots to keep, and for how long, cannot be negative")
    spared = {check_oid(oid) for oid in named}
    with working(client, "collect") as held:
        room = held.room(held.store, held.home)
        words = ("for-each-ref", "--format=%(objectname)", GREEN, STATES)
        spared |= {Oid(oid) for oid in ask(room, *words).decode().split()}
        words = ("for-each-ref", "--format=%(objectname) %(refname)", "--sort=-refname", SNAPSHOTS)
        rows = [row.split(" ") for row in ask(room, *words).decode().splitlines()]
        limit = client.clock() - age
        gone = [
            (oid, ref) for oid, ref in rows[keep:] if oid not in spared and taken_at(ref) < limit
        ]
        told = b"".join(f"delete {ref}\0{oid}\0".encode() for oid, ref in gone)
        if gone:
            ask(room, "update-ref", "-z", "--stdin", stdin=told)
        needed = {snapshot.head for snapshot in list_snapshots(held) if snapshot.head}
        let_go(held, before=limit, needed=needed)
        unpin(held)
        _prune(held)
    return tuple(Oid(oid) for oid, _ in gone)


def _prune(client: Client) -> None:
    """Pack what is kept, remove what is not. Indexes go first: they may speak of content that goes."""
    folder = os.path.join(client.home, "indexes")
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    room = client.room(client.store, client.home)
    ask(room, "repack", "-a", "-d", "-q", "--no-write-bitmap-index")
    ask(room, "prune", "--expire=now")
    ask(client.base, "repack", "-d", "-l", "-q", "--no-write-bitmap-index")


def describe(rolled: RolledBack) -> tuple[str, ...]:
    """What could not be undone, in words."""
    lines = [f"ignored by git, and left as it is: {shown(path)}" for path in rolled.ignored]
    lines += [f"not looked into, and left as it is: {shown(path)}" for path in rolled.repositories]
    lines += [
        f"changed meanwhile, and left as it is: {shown(path)}" for path in rolled.restored.kept
    ]
    return tuple(lines)
