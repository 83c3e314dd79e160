"""A safe client of git: nothing that a repository configures is run, nothing that a person wrote is lost.

    client = open_client("project", "state/project")
    tree = add_worktree(client, "fix", "holdfast/fix", "main")
    …
    made = commit(tree, "fix the tide table", identity=person())
    move_branch(client, "holdfast/fix", new=made.oid, old=None)

`Client` is the person's repository; `Worktree` one of our own work trees. Each function is explained
where it is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.gitrepo.client import Client, resolve
    from holdfast.gitrepo.commits import (
        Made,
        add,
        apply_patch,
        commit,
        commit_files,
        commit_tree,
        person,
        reset,
        restore,
        trailers_for,
    )
    from holdfast.gitrepo.diff import (
        Changed,
        diff_files,
        diff_files_text,
        diff_trees,
        diff_trees_text,
    )
    from holdfast.gitrepo.greens import (
        RolledBack,
        collect,
        describe,
        last_green,
        mark_green,
        rollback,
    )
    from holdfast.gitrepo.history import Commit, File, list_files, log, show, show_file
    from holdfast.gitrepo.names import Identity, Oid
    from holdfast.gitrepo.opening import open_client
    from holdfast.gitrepo.pushing import Allowed, Pushed, RefPush, Wish, push, remote_address
    from holdfast.gitrepo.rebases import Rebased, rebase
    from holdfast.gitrepo.refs import (
        Branch,
        branches,
        create_branch,
        create_tag,
        delete_branch,
        move_branch,
        own_branches,
    )
    from holdfast.gitrepo.snapshots import (
        Restored,
        Snapshot,
        find_snapshot,
        list_snapshots,
        restore_snapshot,
        take_snapshot,
    )
    from holdfast.gitrepo.state import Entry, Status, status
    from holdfast.gitrepo.states import Touched, has_state, keep_state, restore_state, touched
    from holdfast.gitrepo.trees import WorkTree, Worktree, head_of
    from holdfast.gitrepo.worktrees import (
        add_worktree,
        find_worktree,
        list_worktrees,
        remove_worktree,
    )

__all__ = [
    "Allowed",
    "Branch",
    "Changed",
    "Client",
    "Commit",
    "Entry",
    "File",
    "Identity",
    "Made",
    "Oid",
    "Pushed",
    "Rebased",
    "RefPush",
    "Restored",
    "RolledBack",
    "Snapshot",
    "Status",
    "Touched",
    "Wish",
    "WorkTree",
    "Worktree",
    "add",
    "add_worktree",
    "apply_patch",
    "branches",
    "collect",
    "commit",
    "commit_files",
    "commit_tree",
    "create_branch",
    "create_tag",
    "delete_branch",
    "describe",
    "diff_files",
    "diff_files_text",
    "diff_trees",
    "diff_trees_text",
    "find_snapshot",
    "find_worktree",
    "has_state",
    "head_of",
    "keep_state",
    "last_green",
    "list_files",
    "list_snapshots",
    "list_worktrees",
    "log",
    "mark_green",
    "move_branch",
    "open_client",
    "own_branches",
    "person",
    "push",
    "rebase",
    "remote_address",
    "remove_worktree",
    "reset",
    "resolve",
    "restore",
    "restore_snapshot",
    "restore_state",
    "rollback",
    "show",
    "show_file",
    "status",
    "take_snapshot",
    "touched",
    "trailers_for",
]

_HOMES = {
    "client": "Client resolve",
    "commits": "Made add apply_patch commit commit_files commit_tree person reset restore trailers_for",
    "diff": "Changed diff_files diff_files_text diff_trees diff_trees_text",
    "history": "Commit File list_files log show show_file",
    "names": "Identity Oid",
    "opening": "open_client",
    "pushing": "Allowed Pushed RefPush Wish push remote_address",
    "rebases": "Rebased rebase",
    "refs": "Branch branches create_branch create_tag delete_branch move_branch own_branches",
    "greens": "RolledBack collect describe last_green mark_green rollback",
    "snapshots": "Restored Snapshot find_snapshot list_snapshots restore_snapshot take_snapshot",
    "state": "Entry Status status",
    "states": "Touched has_state keep_state restore_state touched",
    "trees": "WorkTree Worktree head_of",
    "worktrees": "add_worktree find_worktree list_worktrees remove_worktree",
}
_ROOMS = {name: room for room, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Load what is asked for on first use: the engine needs one module of this package, not all."""
    if name in _ROOMS:
        return getattr(importlib.import_module(f"holdfast.gitrepo.{_ROOMS[name]}"), name)
    message = f"module 'holdfast.gitrepo' has no attribute {name!r}"
    raise AttributeError(message)
