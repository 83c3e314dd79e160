"""Changes of our worktrees, and commits made of them: from an explicit tree, the branch last.

These functions take a `Worktree`, never the person's own tree: nothing they do can reach its files, index
or branches. Those that take something away store it as a snapshot first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.errors import EditError, UsageError
from holdfast.gitrepo.calls import Room, answer, ask, failed
from holdfast.gitrepo.client import Client, resolve, tree_of
from holdfast.gitrepo.history import signed
from holdfast.gitrepo.holding import working
from holdfast.gitrepo.listing import (
    changed,
    check_unfiltered,
    null_joined,
    null_split,
    tracked,
    untracked,
)
from holdfast.gitrepo.names import (
    Identity,
    Oid,
    check_message,
    check_oid,
    check_path,
    check_trailer,
    shown,
)
from holdfast.gitrepo.pins import hold, pin
from holdfast.gitrepo.place import read_global, read_settings
from holdfast.gitrepo.rebases import changing
from holdfast.gitrepo.refs import swap_own
from holdfast.gitrepo.snapshots import Snapshot, take_snapshot
from holdfast.gitrepo.trees import Worktree, looking, own_branch

RUN, STEP, CONFIG_REF = "Holdfast-Run", "Holdfast-Step", "Holdfast-Config-Ref"


@dataclass(frozen=True, slots=True)
class Made:
    """A commit that was made, from which tree, on what."""

    oid: Oid
    tree: Oid
    parent: Oid | None


def person(client: Client | None = None) -> Identity:
    """Who the person says they are, as git would know them; UsageError if they say nothing.

    The environment says it first, then the repository of `client`, then their own configuration. Of the
    repository's only these two values are read, as data.
    """
    theirs = read_settings(client.place) if client is not None else {}
    name, email = (
        os.environ.get(f"GIT_AUTHOR_{key.upper()}")
        or os.environ.get(f"GIT_COMMITTER_{key.upper()}")
        or theirs.get(f"user.{key}")
        or read_global(f"user.{key}")
        for key in ("name", "email")
    )
    if not name or not email:
        raise UsageError(
            "nobody said who commits",
            hint="git config user.name … and user.email …, or set GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL",
        )
    return Identity(name, email)


def trailers_for(*, run: str, step: str, config_ref: str) -> dict[str, str]:
    """The lines that lead from a commit to the run and the step that made it."""
    return {RUN: run, STEP: step, CONFIG_REF: config_ref}


def add(tree: Worktree, *paths: str) -> tuple[str, ...]:
    """Put files, or all that changed, into the index; returns the paths that were new to it.

    A path is a file or a folder, literally. UsageError if one matches nothing, or a filter would have to run.
    """
    with changing(tree, "add") as client:
        return _add(client.room(tree.git_dir, tree.folder), paths)


def _add(room: Room, paths: Sequence[str]) -> tuple[str, ...]:
    for path in paths:
        if not tracked(room, [path]) and not untracked(room, [path]):
            raise UsageError(f"{shown(path)} is no file here that git could take")
    answer(room, "update-index", "-q", "--refresh")
    found = [*changed(room, paths), *untracked(room, paths)]
    check_unfiltered(room, found)
    if found:
        words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        ask(room, *words, stdin=null_joined(found))
    return tuple(found)


def commit(
    tree: Worktree,
    message: str,
    *paths: str,
    identity: Identity,
    trailers: Mapping[str, str] | None = None,
    staged: bool = False,
) -> Made:
    """Commit what changed in a worktree, all of it or the paths; or, with `staged`, what `add` took.

    The branch moves last, by comparison. EditError if there is nothing to commit.
    """
    text = told(message, trailers or {})
    with changing(tree, "commit") as client:
        room = client.room(tree.git_dir, tree.folder)
        parent = own_branch(client, tree.branch)
        if not staged:
            _add(room, paths)
        content = Oid(ask(room, "write-tree").decode().strip())
        if parent is not None and tree_of(client, parent) == content:
            raise EditError(f"there is nothing to commit in worktree {shown(tree.name)}")
        parents = [parent] if parent else []
        made = commit_tree(client, content, parents, text, identity=identity)
        swap_own(client, tree.branch, made, parent)
    return Made(made, content, parent)


def told(message: str, trailers: Mapping[str, str]) -> str:
    """A message with its trailers as the last paragraph."""
    lines = [check_trailer(key, value) for key, value in trailers.items()]
    text = check_message(message).rstrip("\n")
    return "\n\n".join([text, *(["\n".join(lines)] if lines else [])]) + "\n"


def commit_tree(
    client: Client, tree: str, parents: Sequence[str], message: str, *, identity: Identity
) -> Oid:
    """A commit of exactly this tree on exactly these parents. It is nowhere until a ref is moved to it."""
    words = [part for parent in parents for part in ("-p", check_oid(parent))]
    env = signed(identity, int(client.clock()))
    text = check_message(message).encode()
    said = ask(client.base, "commit-tree", *words, check_oid(tree), stdin=text, env=env)
    return Oid(said.decode().strip())


def commit_files(
    client: Client,
    files: Mapping[str, bytes | None],
    message: str,
    *,
    onto: str,
    identity: Identity,
    trailers: Mapping[str, str] | None = None,
) -> Made:
    """A commit that changes some files of another, with no work tree at all; None removes a file.

    It keeps a file's mode; a new one is plain. It is nowhere until a ref is moved to it.
    """
    text = told(message, trailers or {})
    parent = resolve(client, onto)
    with working(client, "commit") as held, looking(held) as room:
        ask(room, "read-tree", parent)
        listed = ask(room, "ls-files", "-z", "--stage", "--", *map(check_path, files))
        known = {row.partition("\t")[2]: row.split(" ", 1)[0] for row in null_split(listed)}
        rows = b""
        for path, content in files.items():
            mode, oid = known.get(check_path(path), "100644"), "0" * len(parent)
            if content is None:
                mode = "0"
            else:
                oid = ask(held.base, "hash-object", "-w", "--stdin", stdin=content).decode().strip()
            rows += f"{mode} {oid}\t".encode() + os.fsencode(path) + b"\0"
        ask(room, "update-index", "--add", "--replace", "-z", "--index-info", stdin=rows)
        content_tree = Oid(ask(room, "write-tree").decode().strip())
        made = commit_tree(held, content_tree, [parent], text, identity=identity)
    return Made(made, content_tree, parent)


def restore(tree: Worktree, *paths: str, source: str | None = None) -> Snapshot:
    """Bring paths back to a commit, the last one unless named, in files and index.

    Everything that is there is stored first; the snapshot is returned.
    """
    if not paths:
        raise UsageError("say which paths are to be restored")
    commit_named = resolve(tree.client, source) if source is not None else None
    with changing(tree, "restore") as client:
        mine = replace(tree, client=client)
        base = commit_named or own_branch(client, tree.branch) or ""
        saved = take_snapshot(mine, why="before paths were restored")
        words = ("checkout", "--quiet", "--no-overlay", "--no-recurse-submodules", base, "--")
        ask(client.room(tree.git_dir, tree.folder), *words, *map(check_path, paths))
    return saved


def reset(
    tree: Worktree, revision: str, *, keep: Literal["files", "index", "nothing"] = "files"
) -> Snapshot:
    """Move a worktree's branch to a commit. `keep`: "index" and files as they are (git's soft), "files" only
    (mixed), or "nothing" (hard: tracked files are brought to the commit too; untracked ones stay).

    Everything that is there is stored first; the snapshot is returned, and names the commit it stood on.
    """  # noqa: D205 - one sentence, in which the three words stand beside git's
    target = resolve(tree.client, revision)
    with changing(tree, "reset") as client:
        mine = replace(tree, client=client)
        saved = take_snapshot(mine, why=f"before branch {tree.branch} was reset")
        at = own_branch(client, tree.branch)
        pin(client, target)
        hold(client, at)
        room = client.room(tree.git_dir, tree.folder)
        if keep != "index":
            flags = ("--reset", "-u") if keep == "nothing" else ("--reset",)
            ask(room, "read-tree", *flags, target)
            answer(room, "update-index", "-q", "--refresh")
        swap_own(client, tree.branch, target, at)
    return saved


def apply_patch(tree: Worktree, patch: bytes, *, merge: bool = False) -> tuple[str, ...]:
    """Apply a patch to files and index, whole or not at all; returns the paths it changed.

    `merge` lets git fall back on the versions the patch was made from, if it knows them. GitError, with what
    git said, if it does not apply; nothing is changed then. Paths that leave the tree are refused by git.
    """
    with changing(tree, "apply") as client:
        room = client.room(tree.git_dir, tree.folder)
        told_by = ask(room, "apply", "--numstat", "-z", stdin=patch)
        paths = _patched(told_by)
        for path in paths:
            check_path(path)
        before = Oid(ask(room, "write-tree").decode().strip())
        answer(room, "update-index", "-q", "--refresh")
        flags = ("--3way",) if merge else ("--index",)
        done = answer(room, "apply", "--whitespace=nowarn", *flags, stdin=patch)
        if done.code != 0:
            if merge:  # conflicts were written: take them back
                ask(room, "read-tree", "--reset", "-u", before)
            raise failed("apply", done)
    return paths


def _patched(said: bytes) -> tuple[str, ...]:
    rows = iter(said.split(b"\0"))
    found: list[bytes] = []
    for row in rows:
        if not row:
            continue
        path = row.split(b"\t", 2)[2]
        found += [path] if path else [next(rows), next(rows)]  # a rename: from, to
    return tuple(dict.fromkeys(os.fsdecode(path) for path in found))
