"""States: snapshots of a worktree that are named by what its files hold, so the same files have one name.

A state is kept under `refs/holdfast/states/WORKTREE/` of the snapshots as long as its worktree is there. Its
name is that of a git tree: byte for byte the files that git tracks or does not ignore.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from holdfast.errors import UsageError
from holdfast.gitrepo.calls import ask
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.durable import point
from holdfast.gitrepo.holding import working
from holdfast.gitrepo.names import Oid, check_oid, shown
from holdfast.gitrepo.snapshots import (
    STATES,
    bring,
    entries_of,
    find_snapshot,
    modes_of,
    restore_snapshot,
    take_snapshot,
)
from holdfast.gitrepo.trees import Worktree


@dataclass(frozen=True, slots=True)
class Touched:
    """One path that differs between two states; lines are None for content that is no text."""

    path: str
    added: int | None
    removed: int | None


def keep_state(tree: Worktree, *, why: str = "") -> Oid:
    """Store a worktree as it is now, and name it."""
    with working(tree.client, "state") as client:
        snapshot = take_snapshot(replace(tree, client=client), why=why)
        room = client.room(client.store, client.home)
        point(room, _ref(tree, snapshot.files), snapshot.oid)
    return snapshot.files


def has_state(tree: Worktree, state: str) -> bool:
    """Whether a state of this worktree is kept."""
    return bool(_found(tree, state))


def restore_state(tree: Worktree, state: str) -> bool:
    """Bring a worktree back to a state; whether anything differed. Its branch and index stay.

    What is there is stored first.
    """
    found = _found(tree, state)
    if not found:
        raise UsageError(f"worktree {shown(tree.name)} has no state {shown(state)}")
    done = restore_snapshot(tree, found)
    return bool(done.written or done.removed)


def put_back(tree: Worktree, now: str, before: str, paths: Collection[str]) -> None:
    """Bring some paths of a worktree that is in state `now` back to what they were in another."""
    client = tree.client
    here, there = _found(tree, now), _found(tree, before)
    old = entries_of(client, there)
    target = {path: file for path, file in entries_of(client, here).items() if path not in paths}
    target |= {path: old[path] for path in paths if path in old}
    modes = modes_of(client, here) | {
        path: mode for path, mode in modes_of(client, there).items() if path in paths
    }
    room = client.room(client.store, client.home)
    bring(tree, target, modes, room, dirty="refuse", why=f"before paths of {before} were put back")


def left_out(tree: Worktree, state: str) -> tuple[str, ...]:
    """What lay in the worktree and is in no state: repositories inside, and what is neither file nor link."""
    return find_snapshot(tree.client, _found(tree, state)).left


def touched(client: Client, before: str, after: str) -> tuple[Touched, ...]:
    """The paths that differ between two states, with the lines that do."""
    how = ("-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
    # Where snapshots are kept no content counts as text, so that is asked elsewhere.
    env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.join(client.store, "objects")}
    words = ("diff-tree", *how, check_oid(before), check_oid(after), "--")
    return tuple(_rows(ask(client.base, *words, env=env)))


def grown(client: Client, before: str, after: str) -> int:
    """How many bytes of content are new in a state: what texts grew by, and all of what is no text."""
    binary = {item.path for item in touched(client, before, after) if item.added is None}
    room = client.room(client.store, client.home)
    how = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    said = ask(room, "diff-tree", *how, check_oid(before), check_oid(after), "--").split(b"\0")
    rows = [
        (os.fsdecode(path), row.split()) for row, path in zip(said[::2], said[1::2], strict=False)
    ]
    oids = [oid for _, row in rows for oid in row[2:4]]
    found = ask(room, "cat-file", "--batch-check=%(objectsize)", stdin=b"\n".join([*oids, b""]))
    sizes = [
        int(line) if line.isdigit() else 0 for line in found.splitlines()
    ]  # none where none is
    pairs = zip(rows, sizes[::2], sizes[1::2], strict=True)
    return sum(new if path in binary else max(0, new - old) for (path, _), old, new in pairs)


def _rows(said: bytes) -> Iterator[Touched]:
    for row in filter(None, said.split(b"\0")):
        added, removed, path = row.split(b"\t", 2)
        counts = [None if part == b"-" else int(part) for part in (added, removed)]
        yield Touched(os.fsdecode(path), counts[0], counts[1])


def _ref(tree: Worktree, state: str) -> str:
    return f"{STATES}w-{tree.name}/{check_oid(state)}"


def _found(tree: Worktree, state: str) -> str:
    client = tree.client
    asked = f"{_ref(tree, state)}\n".encode()
    said = ask(client.room(client.store, client.home), "cat-file", "--batch-check", stdin=asked)
    words = said.decode().split()
    return words[0] if words[1:2] == ["commit"] else ""
