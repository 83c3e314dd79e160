"""Refs move by comparison: from what the caller saw to what it made, or not at all.

A ref of the person's repository moves last, after the objects it needs are there. If it is the branch
that their work tree is on, moving it alone would make their files look like a change back; so that is
refused, unless the caller lets the files `follow`. Then the tree must be clean, down to untracked files:
a snapshot is taken, files and index are brought to the new commit, and the branch moves last. If it
cannot move any more, or the process died before it did, files and index are brought back. A branch that
another of the person's worktrees is on is never moved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.errors import EditError, GitError, StaleError, UsageError
from holdfast.gitrepo.calls import Answer, Room, answer, ask, failed
from holdfast.gitrepo.client import Client, resolve, their_branch
from holdfast.gitrepo.durable import settle, sync_folder, sync_ref
from holdfast.gitrepo.history import files_in
from holdfast.gitrepo.holding import working, write_file
from holdfast.gitrepo.listing import check_free, check_unfiltered, null_split
from holdfast.gitrepo.names import Identity, Oid, check_branch, check_message, check_oid, shown
from holdfast.gitrepo.snapshots import entries_of, restore_snapshot, take_snapshot
from holdfast.gitrepo.state import status
from holdfast.gitrepo.trees import looking

# Where git notes which branch it will move when what the person began is done.
_UNFINISHED = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
_LONGEST = 4096
_TAG = ("hash-object", "-w", "-t", "tag", "--stdin")  # `mktag` does not read how to sync


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and the commit it is at."""

    name: str
    oid: Oid


class Checked(NamedTuple):
    """A branch that a work tree of the person's repository is on."""

    ref: str
    folder: str


def branches(client: Client) -> tuple[Branch, ...]:
    """The person's branches."""
    return _listed(client.theirs)


def own_branches(client: Client) -> tuple[Branch, ...]:
    """Our own branches: those of worktrees, not yet in the person's repository."""
    return _listed(client.base)


def _listed(room: Room) -> tuple[Branch, ...]:
    form = "--format=%(objectname) %(refname)"
    rows = os.fsdecode(ask(room, "for-each-ref", form, "refs/heads/")).splitlines()
    split = (row.partition(" ") for row in rows)
    return tuple(Branch(ref.removeprefix("refs/heads/"), Oid(oid)) for oid, _, ref in split)


def create_branch(client: Client, name: str, revision: str = "HEAD") -> Branch:
    """A new branch in the person's repository; StaleError if there is one by that name."""
    return move_branch(client, name, new=resolve(client, revision), old=None)


def move_branch(
    client: Client, name: str, *, new: str, old: str | None, follow: bool = False
) -> Branch:
    """Move a branch of the person's repository from `old` to `new`; None: it must not be there yet.

    StaleError if it is elsewhere: somebody else moved it, and nothing is done.
    EditError if their work tree is on it and does not `follow`, or is not clean.
    """
    commit = resolve(client, check_oid(new))
    ref = f"refs/heads/{check_branch(name)}"
    before = check_oid(old) if old is not None else None
    told = {"ref": ref, "follow": "yes" if follow else ""}
    with working(client, "move", **told) as held:
        finish_following(held)
        _check_plain(held, ref)
        _compare(held, ref, before)
        at = next((row.folder for row in _checked_out(held) if row.ref == ref), None)
        if at is None:
            _give(held, commit)
            _swap(held.theirs, ref, commit, before, held.place.common)
        elif not follow:
            raise EditError(
                f"the work tree {shown(at)} is on branch {shown(name)}: its files would look changed",
                hint="let the work tree follow, or move another branch and merge it yourself",
            )
        else:
            _follow(held, ref, commit, before, at)
    return Branch(name, commit)


def delete_branch(client: Client, name: str, *, old: str) -> None:
    """Remove a branch of the person's repository that is at `old`; refused if a work tree is on it."""
    ref = f"refs/heads/{check_branch(name)}"
    with working(client, "move", ref=ref) as held:
        _check_plain(held, ref)
        if any(row.ref == ref for row in _checked_out(held)):
            raise EditError(f"a work tree is on branch {shown(name)}")
        _swap(held.theirs, ref, None, check_oid(old), held.place.common)


def create_tag(
    client: Client,
    name: str,
    revision: str = "HEAD",
    *,
    message: str | None = None,
    identity: Identity | None = None,
) -> Oid:
    """A new tag in the person's repository; with a message it is an object of its own.

    StaleError if there is one by that name: a tag does not move.
    """
    commit = resolve(client, revision)
    ref = f"refs/tags/{check_branch(name)}"
    with working(client, "move", ref=ref) as held:
        named = commit
        if message is not None:
            if identity is None:
                raise UsageError("a tag with a message needs an identity")
            who = f"{identity.name} <{identity.email}> {int(client.clock())} +0000"
            text = f"object {commit}\ntype commit\ntag {name}\ntagger {who}\n\n{check_message(message)}\n"
            named = Oid(ask(held.base, *_TAG, stdin=text.encode()).decode().strip())
        _give(held, named)
        _swap(held.theirs, ref, named, None, held.place.common)
    return named


def _check_plain(client: Client, ref: str) -> None:
    """UsageError for a branch that is only another name of a ref: moving it would move that one."""
    done = answer(client.theirs, "symbolic-ref", "--quiet", ref)
    if done.code == 0:
        other = os.fsdecode(done.out).strip()
        raise UsageError(f"{shown(ref)} is another name of {shown(other)}", hint="name that one")


def _compare(client: Client, ref: str, old: Oid | None) -> None:
    said = ask(client.theirs, "cat-file", "--batch-check", stdin=os.fsencode(f"{ref}\n"))
    words = said.decode("utf-8", "replace").split()
    now = words[0] if words[1:2] == ["commit"] else None
    if now != old:
        raise _stale(ref, now, old)


def _stale(ref: str, now: str | None, old: str | None) -> StaleError:
    return StaleError(
        f"{shown(ref)} is {'at ' + now if now else 'not there'},"
        f" and not {'at ' + old if old else 'new'}: somebody else moved it; nothing was done",
        hint="look at what is there now, and decide again",
    )


def _swap(room: Room, ref: str, new: Oid | None, old: Oid | None, common: str = "") -> None:
    """One comparison and one move, by git; StaleError if the ref is elsewhere. `common`: where refs lie."""
    zeros = "0" * len(new or old or "")
    line = os.fsencode(f"update {ref}\0{new or zeros}\0{old or zeros}\0")
    done = answer(room, "update-ref", "--no-deref", "--create-reflog", "-z", "--stdin", stdin=line)
    if done.code == 0:
        sync_ref(common or room.git_dir, ref)
        return
    if _is_race(done):
        said = ask(room, "cat-file", "--batch-check", stdin=os.fsencode(f"{ref}\n"))
        words = said.decode("utf-8", "replace").split()
        raise _stale(ref, words[0] if words[1:2] == ["commit"] else None, old)
    raise failed("update-ref", done)


def _is_race(done: Answer) -> bool:
    signs = ("but expected", "reference already exists", "unable to resolve reference")
    return done.code > 0 and any(sign in done.said for sign in signs)


def swap_own(client: Client, branch: str, new: Oid | None, old: Oid | None) -> None:
    """Move a branch of our own by comparison."""
    settle(client.work)
    _swap(client.base, f"refs/heads/{branch}", new, old)


def _give(client: Client, oid: Oid) -> None:
    """Copy what the person's repository lacks of a commit or tag; it stays if they prune meanwhile."""
    have = b"".join(f"^{row.oid}\n".encode() for row in branches(client))
    words = ("pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset")
    pack = ask(client.base, *words, stdin=f"{oid}\n".encode() + have)
    if pack[8:12] != bytes(4):  # the number of objects
        ask(client.theirs, "index-pack", "--stdin", "--fix-thin", stdin=pack)
        sync_folder(os.path.join(client.place.common, "objects", "pack"))


def _checked_out(client: Client) -> Iterator[Checked]:
    """The branches that work trees are on, and those that the person is rebasing or bisecting."""
    folder = ""
    for row in os.fsdecode(ask(client.theirs, "worktree", "list", "--porcelain")).splitlines():
        word, _, rest = row.partition(" ")
        if word == "worktree":
            folder = rest
        elif word == "branch":
            yield Checked(rest, folder)
    yield from _unfinished(client)


def _unfinished(client: Client) -> Iterator[Checked]:
    others = os.path.join(client.place.common, "worktrees")
    names = os.listdir(others) if os.path.isdir(others) else []
    for place in (client.place.common, *(os.path.join(others, name) for name in names)):
        for mark in _UNFINISHED:
            with suppress(OSError), open(os.path.join(place, mark), "rb") as file:
                name = os.fsdecode(file.read(_LONGEST).strip())
                yield Checked(f"refs/heads/{name.removeprefix('refs/heads/')}", place)


# The person's work tree follows its branch.


def _follow(client: Client, ref: str, new: Oid, old: Oid | None, at: str) -> None:
    if old is None or os.path.realpath(at) != client.place.top or their_branch(client) != ref:
        raise EditError(f"{shown(at)} is on {shown(ref)}, and is not the work tree of this client")
    if not status(client).is_clean:
        raise EditError(
            f"{shown(client.place.top)} is not clean: nothing was done",
            hint="commit, or move away, what is changed or new there",
        )
    with looking(client) as room:
        differs = ask(room, "diff-tree", "-r", "-z", "--name-status", "--no-renames", old, new)
        rows = null_split(differs)
        kinds = dict(zip(rows[1::2], rows[0::2], strict=True))
        check_unfiltered(room, list(kinds))
    gone = {path for path, kind in kinds.items() if kind == "D"}
    check_free(client.place.top, (path for path, kind in kinds.items() if kind == "A"), gone)
    snapshot = take_snapshot(client, why=f"before {ref} moved to {new}")
    _give(client, new)
    record = {"ref": ref, "new": new, "old": old, "snapshot": snapshot.oid}
    write_file(_record(client), json.dumps(record).encode())
    try:
        _bring(client, old, new)
    except GitError as error:
        if error.ended >= 0:  # refused before it began
            _forget(client)
        raise
    try:
        _swap(client.theirs, ref, new, old, client.place.common)
    except (StaleError, GitError):
        _bring(client, new, old)
        raise
    finally:
        _forget(client)


def _record(client: Client) -> str:
    return os.path.join(client.home, "following.json")


def _forget(client: Client) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_record(client))


def _bring(client: Client, before: Oid, after: Oid) -> None:
    """Bring files and index from one commit to another: all of it, or git refuses before it begins."""
    with looking(client) as room:
        own = replace(room, index=os.path.join(client.place.git_dir, "index"))
        answer(own, "update-index", "-q", "--refresh")  # a touched file is no changed one
        ask(own, "read-tree", "-m", "-u", before, after)


def finish_following(client: Client) -> None:
    """Bring to its end what a process that died left between two commits: back, unless the branch moved.

    EditError if somebody worked on the files since: they stay as they are, and the snapshot is named.
    """
    try:
        with open(_record(client), encoding="utf-8") as file:
            found = {str(key): str(value) for key, value in json.load(file).items()}
    except (FileNotFoundError, ValueError):
        return
    old, new = check_oid(found["old"]), check_oid(found["new"])
    said = ask(client.theirs, "cat-file", "--batch-check", stdin=os.fsencode(f"{found['ref']}\n"))
    if not said.startswith(new.encode()):
        saved = take_snapshot(client, why="found after a process died")
        if not _is_between(client, saved.oid, found["snapshot"], new):
            _forget(client)
            raise EditError(
                f"{shown(client.place.top)} was changed after a process died there: it stays as it is",
                hint=f"what was there before is the snapshot {found['snapshot'][:12]}",
            )
        restore_snapshot(client, found["snapshot"], dirty="save")
        with looking(client) as room:
            index = os.path.join(client.place.git_dir, "index")
            ask(replace(room, index=index), "read-tree", "--reset", old)
            answer(replace(room, index=index), "update-index", "-q", "--refresh")
    _forget(client)


def _is_between(client: Client, now: str, before: str, new: Oid) -> bool:
    """Whether each file is as it was before, or as the new commit has it."""
    rows = entries_of(client, now)
    known = {**entries_of(client, before)}
    words = ("ls-tree", "-r", "-z", "--full-tree", new)
    made = {file.path: file for file in files_in(ask(client.base, *words))}
    either = (known.get(path) == row or made.get(path) == row for path, row in rows.items())
    return all(either) and all(path in rows or path not in made for path in known)
