"""A worktree for each branch that is worked on: many at once, none of them the person's.

A worktree is a folder under our own home and an entry of `work.git/worktrees`, laid out as git documents
it. It is made in an order that can be repeated: the pin, the branch, the entry (built aside, then
renamed), the folder, the files, and last the word `ready`. Killed anywhere, `add_worktree` goes on where
it was; removing takes `ready` away first, and the entry as a whole. Nothing of it depends on `git
worktree prune`, and `git gc` sees its branch, HEAD and index.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import Literal

from holdfast.errors import EditError, StoreError, UsageError
from holdfast.gitrepo.calls import ask
from holdfast.gitrepo.client import Client, resolve
from holdfast.gitrepo.durable import sync_folder, sync_tree
from holdfast.gitrepo.holding import working, write_file
from holdfast.gitrepo.listing import repositories_inside
from holdfast.gitrepo.names import Oid, check_branch, check_name, few, shown
from holdfast.gitrepo.pins import pin, unpin
from holdfast.gitrepo.refs import swap_own
from holdfast.gitrepo.snapshots import Snapshot, forget_marks, take_snapshot
from holdfast.gitrepo.state import Status, status
from holdfast.gitrepo.trees import Worktree, looking, own_branch
from holdfast.process.removal import discard_folder

BRANCH, _READY = "holdfast-branch", "holdfast-ready"
_SAVE = 'commit them, or let them be saved as a snapshot with changed="save"'
_MOVE = "move away what is needed"
_DROP = 'let it go with ignored="drop"'


def add_worktree(client: Client, name: str, branch: str, base: str = "HEAD") -> Worktree:
    """A worktree on a branch of our own, begun at `base` unless the branch is there already.

    Files come as git stores them: line endings by its attributes, but no filter is run. One that is there by
    that name, on that branch, is returned as it is; what a killed process left is completed.
    """
    tree = Worktree(client, check_name(name), check_branch(branch))
    start = resolve(client, base)
    with working(client, "worktree") as held:
        known = {row.name: row for row in _entries(held)}
        if name in known and known[name].branch != branch:
            raise UsageError(f"worktree {shown(name)} is on branch {shown(known[name].branch)}")
        twin = next((row for row in known.values() if row.branch == branch), tree)
        if twin.name != name:
            raise UsageError(f"branch {shown(branch)} is in worktree {shown(twin.name)}")
        if os.path.exists(os.path.join(tree.git_dir, _READY)) and os.path.isdir(tree.folder):
            return tree
        try:
            _complete(Worktree(held, name, branch), start)
        except OSError as error:
            raise StoreError(f"worktree {shown(name)} cannot be made: {error}") from error
    return tree


def _complete(tree: Worktree, start: Oid) -> None:
    client = tree.client
    at = own_branch(client, tree.branch)
    pin(client, at or start)
    if at is None:
        swap_own(client, tree.branch, start, None)
    if not os.path.isdir(tree.git_dir):
        fresh = _aside(client, tree.name)
        shutil.rmtree(fresh, ignore_errors=True)
        os.mkdir(fresh, 0o700)
        link = os.path.join(tree.folder, ".git")
        for file, text in (
            (BRANCH, tree.branch),
            ("HEAD", f"ref: refs/heads/{tree.branch}\n"),
            ("commondir", "../..\n"),
            ("gitdir", f"{link}\n"),
            ("locked", "holdfast\n"),
        ):
            write_file(os.path.join(fresh, file), os.fsencode(text))
        os.rename(fresh, tree.git_dir)
        sync_folder(os.path.dirname(tree.git_dir))
    os.makedirs(tree.folder, 0o700, exist_ok=True)
    write_file(os.path.join(tree.folder, ".git"), os.fsencode(f"gitdir: {tree.git_dir}\n"))
    room = client.room(tree.git_dir, tree.folder)
    ask(room, "read-tree", "--reset", "-u", at or start)
    ask(
        room, "checkout-index", "--all", "--force", "--quiet"
    )  # what was cut short is not in the index
    sync_tree(tree.folder)
    sync_folder(tree.git_dir)  # the name of its index
    sync_folder(os.path.dirname(tree.folder))
    write_file(os.path.join(tree.git_dir, _READY), b"")


def _aside(client: Client, name: str) -> str:
    """Where an entry lies while it is built, and while it is taken apart."""
    return os.path.join(client.home, f"{name}.entry")


def list_worktrees(client: Client) -> tuple[Worktree, ...]:
    """Our worktrees that are complete, by name."""
    return tuple(
        row for row in _entries(client) if os.path.exists(os.path.join(row.git_dir, _READY))
    )


def find_worktree(client: Client, name: str) -> Worktree:
    """A worktree by its name; UsageError if there is none."""
    for row in list_worktrees(client):
        if row.name == name:
            return row
    raise UsageError(f"there is no worktree {shown(name)}")


def _entries(client: Client) -> list[Worktree]:
    folder = os.path.join(client.work, "worktrees")
    found: list[Worktree] = []
    for name in sorted(os.listdir(folder)):
        with suppress(OSError), open(os.path.join(folder, name, BRANCH), "rb") as file:
            found.append(Worktree(client, name, os.fsdecode(file.read())))
    return found


def remove_worktree(
    client: Client,
    name: str,
    *,
    changed: Literal["refuse", "save"] = "refuse",
    ignored: Literal["refuse", "drop"] = "refuse",
    branch: Literal["keep", "delete"] = "keep",
) -> Snapshot | None:
    """Remove a worktree. With `changed="save"` what is not committed there is stored as a snapshot first.

    No snapshot holds what git ignores, so that is refused too, unless it may be dropped; nor what lies in
    repositories inside, which is always refused. `branch="delete"` removes its branch too. One that is not
    there is fine: removing can be repeated.
    """
    check_name(name)
    tree = next((row for row in _entries(client) if row.name == name), None)
    saved: Snapshot | None = None
    with working(client, "worktree") as held:
        if tree is not None and os.path.exists(os.path.join(tree.git_dir, _READY)):
            mine = Worktree(held, tree.name, tree.branch)
            if os.path.isdir(tree.folder):
                found = _check_lost(mine, ignored)
                if not found.is_clean:
                    if changed != "save":
                        raise _in_the_way(mine, "changes that are not committed", _SAVE)
                    saved = take_snapshot(mine, why=f"before worktree {name} was removed")
            os.unlink(os.path.join(tree.git_dir, _READY))
        discard_folder(os.path.join(client.home, "worktrees", name))
        if tree is not None:
            at = own_branch(held, tree.branch)
            if branch == "delete" and at is not None:
                swap_own(held, tree.branch, None, at)
            forget_marks(Worktree(held, tree.name, tree.branch))
            shutil.rmtree(_aside(held, name), ignore_errors=True)
            os.rename(tree.git_dir, _aside(held, name))  # whole, or gone
        shutil.rmtree(_aside(held, name), ignore_errors=True)
        unpin(held)
    return saved


def _check_lost(tree: Worktree, ignored: str) -> Status:
    """How a worktree differs; EditError if something is in it that no snapshot would hold."""
    with looking(tree) as room:
        inside = [path for path in repositories_inside(room) if _has_something(tree, path)]
    if inside:
        raise _in_the_way(tree, f"repositories of their own inside: {few(inside)}", _MOVE)
    found = status(tree, ignored=True)
    dropped = [entry.path for entry in found.entries if entry.kind == "ignored"]
    if dropped and ignored != "drop":
        raise _in_the_way(tree, f"files that git ignores: {few(dropped)}", f"{_MOVE}, or {_DROP}")
    return found


def _has_something(tree: Worktree, path: str) -> bool:
    """Whether a submodule, or another repository, was ever filled."""
    folder = os.path.join(tree.folder, path)
    return os.path.isdir(folder) and bool(os.listdir(folder))


def _in_the_way(tree: Worktree, what: str, hint: str) -> EditError:
    return EditError(f"worktree {shown(tree.name)} is not removed, it has {what}", hint=hint)
