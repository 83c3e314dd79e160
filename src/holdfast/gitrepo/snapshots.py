"""Snapshots: a whole work tree with its untracked files, stored by itself, and brought back exactly.

What is in one: every file and link that git tracks or does not know yet, byte by byte (no line ending is
converted, no filter runs), with all permission bits. What is not: what git ignores, what lies in
repositories inside (submodules, others), empty folders, and what is neither file nor link; `left` names
those that were met.

A snapshot is a commit under `refs/holdfast/snapshots/` of a git directory that borrows no objects, so it
lasts whatever becomes of the person's repository. Its tree has `files`, and `about`: which commit the
tree stood on, permission bits that git has no room for, and why it was taken.

Bringing one back stores what is there first: nothing is ever lost by it. It writes only what differs,
each file whole; if it is cut short, doing it again comes to the same end.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from holdfast.errors import EditError, StoreError, UsageError
from holdfast.gitrepo.calls import Room, ask, read_blobs
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.durable import point, settle
from holdfast.gitrepo.history import File, files_in, signed
from holdfast.gitrepo.holding import working
from holdfast.gitrepo.laying import (
    LINK,
    MODULE,
    PLAIN,
    PROGRAM,
    Laid,
    Stamp,
    Wanted,
    lay,
    part,
    stamp_of,
)
from holdfast.gitrepo.listing import (
    null_joined,
    null_split,
    repositories_inside,
    tracked,
    untracked,
)
from holdfast.gitrepo.names import Identity, Oid, check_oid, check_path, few, shown
from holdfast.gitrepo.state import status
from holdfast.gitrepo.trees import WorkTree, Worktree, client_of, folder_of, head_of, looking

SNAPSHOTS = "refs/holdfast/snapshots/"
GREEN = "refs/holdfast/green/"
STATES = "refs/holdfast/states/"
_WHO = Identity("Holdfast", "holdfast@localhost")
_USUAL = {PLAIN: 0o644, PROGRAM: 0o755}
_MANY = 64  # files that are new
_VERSION = re.compile(r"(\d+)\.(\d+)")
_PACKS = (2, 37)  # from there on `update-index` stores what is large in one pack


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored work tree. `head` is the commit it stood on; `left` names what is not in it."""

    oid: Oid
    files: Oid
    head: Oid | None
    at: int
    why: str
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """What bringing a snapshot back did. `saved` is what was there before; `kept` was changed meanwhile."""

    saved: Snapshot
    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    left: tuple[str, ...]


class _Seen(NamedTuple):
    """The files of a work tree as they were looked at, and what was left out."""

    stamps: dict[str, Stamp]
    left: tuple[str, ...]
    tree: Oid


def take_snapshot(tree: WorkTree, *, why: str = "") -> Snapshot:
    """Store the whole work tree as it is now."""
    with working(client_of(tree), "snapshot") as client:
        return _keep(_held(tree, client), _store(_held(tree, client)), why)


def _held(tree: WorkTree, client: Client) -> WorkTree:
    return client if isinstance(tree, Client) else replace(tree, client=client)


def _index(tree: WorkTree) -> str:
    name = hashlib.sha256(os.fsencode(folder_of(tree))).hexdigest()[:24]
    return os.path.join(client_of(tree).home, "indexes", name)


def _room(tree: WorkTree) -> Room:
    """The work tree as it lies there, byte by byte."""
    client = client_of(tree)
    room = client.room(client.store, folder_of(tree), _index(tree))
    facts = (
        "core.autocrlf",
        "core.filemode",
        "core.symlinks",
        "core.ignorecase",
        "core.protectNTFS",
    )
    exact = tuple(zip(facts, ("false", "true", "true", "false", "false"), strict=True))
    return room.set(*exact, ("core.looseCompression", "1"))


def _packing(room: Room) -> Room:
    """Many files become one pack, which is synced once; each alone would be synced by itself.

    `core.fsyncMethod=batch` is no way: on Linux it does not say that the files are safe when they get their
    names, and git never writes again what has its name. An older git would make a pack of each file.
    """
    said = _VERSION.search(ask(room, "version").decode())
    is_able = said is not None and (int(said[1]), int(said[2])) >= _PACKS
    return room.set(("core.bigFileThreshold", "1")) if is_able else room


def _store(tree: WorkTree, also: Iterable[str] = ()) -> _Seen:
    """Put the content of all files into the store, and name their tree; `also` those, if they are there."""
    with looking(tree) as room:
        names = dict.fromkeys([*tracked(room), *untracked(room), *also])
        left = repositories_inside(room)
    stamps, others = _look(folder_of(tree), names, ours=isinstance(tree, Worktree))
    store = _room(tree)
    known = set(null_split(ask(store, "ls-files", "-z")))
    gone = [path for path in known if path not in stamps]
    if gone:
        ask(store, "update-index", "--force-remove", "-z", "--stdin", stdin=null_joined(gone))
    is_much = len(stamps.keys() - known) > _MANY
    ask(
        _packing(store) if is_much else store,
        *("update-index", "--add", "--remove", "--replace", "-z", "--stdin"),
        stdin=null_joined(stamps),
    )
    files = Oid(ask(store, "write-tree").decode().strip())
    return _Seen(stamps, tuple(sorted({*left, *others})), files)


def _look(top: str, names: Mapping[str, None], *, ours: bool) -> tuple[dict[str, Stamp], list[str]]:
    """Files and links, as they look now; and what is neither. What lies behind a link is not there.

    In a worktree of ours each file has one name: no snapshot knows which belong together, so that they do
    could not be brought back.
    """
    stamps: dict[str, Stamp] = {}
    others: list[str] = []
    real: dict[str, bool] = {"": True}
    for path in names:
        if not _is_real(top, os.path.dirname(path), real):
            continue
        try:
            found = os.lstat(os.path.join(top, path))
        except FileNotFoundError:
            continue
        if ours and found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
            part(top, path)
            found = os.lstat(os.path.join(top, path))
        if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            stamps[path] = stamp_of(found)
        elif not stat.S_ISDIR(found.st_mode):
            others.append(path)
    return stamps, others


def _is_real(top: str, folder: str, known: dict[str, bool]) -> bool:
    if folder not in known:
        try:
            is_folder = stat.S_ISDIR(os.lstat(os.path.join(top, folder)).st_mode)
        except OSError:
            is_folder = False
        known[folder] = _is_real(top, os.path.dirname(folder), known) and is_folder
    return known[folder]


def _keep(tree: WorkTree, seen: _Seen, why: str) -> Snapshot:
    client, head = client_of(tree), head_of(tree)
    usual = {stat.S_IFREG | mode for mode in _USUAL.values()}
    odd = {
        path: stamp[2] & 0o7777
        for path, stamp in seen.stamps.items()
        if stat.S_ISREG(stamp[2]) and stamp[2] not in usual
    }
    now = client.clock()
    at = int(now)
    about = {
        "at": at,
        "head": head,
        "left": seen.left,
        "modes": odd,
        "of": folder_of(tree),
        "why": why,
    }
    room = _room(tree)
    blob = ask(room, "hash-object", "-w", "--stdin", stdin=json.dumps(about).encode())
    rows = (
        b"100644 about\0",
        bytes.fromhex(blob.decode()),
        b"40000 files\0",
        bytes.fromhex(seen.tree),
    )
    words = ("hash-object", "-w", "-t", "tree", "--stdin")  # `mktree` does not read how to sync
    whole = ask(room, *words, stdin=b"".join(rows)).decode().strip()
    made = ask(room, "commit-tree", whole, stdin=b"snapshot\n", env=signed(_WHO, at))
    oid = Oid(made.decode().strip())
    settle(client.store)
    point(room, f"{SNAPSHOTS}{int(now * 1_000_000):018d}-{oid}", oid)
    return Snapshot(oid, seen.tree, head, at, why, seen.left)


def list_snapshots(client: Client) -> tuple[Snapshot, ...]:
    """All snapshots, newest first."""
    form = "--format=%(objectname)"
    words = ("for-each-ref", form, "--sort=-refname", SNAPSHOTS)
    rows = ask(client.room(client.store, client.home), *words).decode().split()
    return tuple(find_snapshot(client, oid) for oid in rows)


def find_snapshot(client: Client, oid: str) -> Snapshot:
    """A snapshot by its name; UsageError if there is none."""
    check_oid(oid)
    asked = f"{oid}:about\n{oid}:files\n".encode()
    said = ask(client.room(client.store, client.home), "cat-file", "--batch", stdin=asked)
    first, _, rest = said.partition(b"\n")
    words = first.split()
    if words[1:2] != [b"blob"]:
        raise UsageError(f"there is no snapshot {shown(oid)}")
    size = int(words[2])
    about, files = json.loads(rest[:size]), rest[size + 1 :].partition(b" ")[0].decode()
    head = Oid(about["head"]) if about["head"] else None
    return Snapshot(Oid(oid), Oid(files), head, about["at"], about["why"], tuple(about["left"]))


def taken_at(ref: str) -> float:
    """When a snapshot was taken, by its ref: to the microsecond, so that they keep their order."""
    return int(ref.removeprefix(SNAPSHOTS).partition("-")[0]) / 1_000_000


def green_mark(tree: WorkTree) -> str:
    """The ref that names the last green state of a work tree."""
    return GREEN + ("yours" if isinstance(tree, Client) else f"w-{tree.name}")


def forget_marks(tree: Worktree) -> None:
    """Let what a worktree is marked with be plain snapshots again."""
    room = tree.client.room(tree.client.store, tree.client.home)
    kept = ask(room, "for-each-ref", "--format=%(refname)", f"{STATES}w-{tree.name}/").decode()
    refs = [green_mark(tree), *kept.split()]
    ask(
        room,
        "update-ref",
        "-z",
        "--stdin",
        stdin=b"".join(f"delete {ref}\0\0".encode() for ref in refs),
    )


def entries_of(client: Client, oid: str) -> dict[str, File]:
    """The files of a snapshot, by path."""
    room = client.room(client.store, client.home)
    words = ("ls-tree", "-r", "-z", "--full-tree", f"{check_oid(oid)}:files")
    return {file.path: file for file in files_in(ask(room, *words))}


def restore_snapshot(
    tree: WorkTree, oid: str, *, dirty: Literal["refuse", "save"] = "refuse"
) -> Restored:
    """Bring a work tree back to a snapshot: content, permissions, links, deletions, untracked files.

    What is there is stored first. The person's own tree is left alone if anything in it is not committed
    (EditError), unless they said `dirty="save"`; a worktree of ours need not be clean.
    """
    client = client_of(tree)
    found = find_snapshot(client, oid)
    modes = modes_of(client, found.oid)
    room = client.room(client.store, client.home)
    target = entries_of(client, found.oid)
    return bring(tree, target, modes, room, dirty=dirty, why=f"before {oid} was brought back")


def modes_of(client: Client, oid: str) -> dict[str, int]:
    """Permissions of files of a snapshot that git does not know."""
    room = client.room(client.store, client.home)
    about = json.loads(ask(room, "cat-file", "blob", f"{oid}:about"))
    return {str(path): int(mode) for path, mode in about["modes"].items()}


def bring(
    tree: WorkTree,
    target: Mapping[str, File],
    modes: Mapping[str, int],
    source: Room,
    *,
    dirty: Literal["refuse", "save"],
    why: str,
) -> Restored:
    """Make a work tree hold these files, read from `source`, and no others but what git ignores."""
    if isinstance(tree, Client) and dirty == "refuse" and not status(tree).is_clean:
        raise EditError(
            f"{shown(tree.place.top)} is not clean: nothing was done",
            hint="commit what is there, or let it be saved as a snapshot",
        )
    with working(client_of(tree), "restore") as client:
        held = _held(tree, client)
        goal = {check_path(path): file for path, file in target.items() if file.mode != MODULE}
        seen = _store(held, goal)
        saved = _keep(held, seen, why)
        now = entries_of(client, saved.oid)
        modules = [path for path, file in target.items() if file.mode == MODULE]
        gone = [path for path in now if path not in goal]
        todo = [
            file
            for path, file in goal.items()
            if now.get(path) != file or _mode(file, modes) != seen.stamps[path][2] & 0o7777
        ]
        _check_room(folder_of(tree), {*gone, *now}, todo)
        laid = lay(folder_of(tree), seen.stamps, gone, _wanted(source, todo, modes))
        beside = _check_laid(held, goal, gone, laid)
        if beside and isinstance(held, Worktree):  # hidden by rules that went just now
            hidden = _store(held, goal).stamps
            lay(folder_of(tree), hidden, beside, iter(()))
        if laid.kept and isinstance(tree, Worktree):  # nobody but us has a say there
            raise StoreError(
                f"worktree {shown(tree.name)} changed while it was brought back: {few(laid.kept)}",
                hint="end what still writes there, and do it again",
            )
    left = tuple(sorted({*saved.left, *modules}))
    return Restored(saved, laid.written, laid.removed, laid.kept, left)


def _mode(file: File, modes: Mapping[str, int]) -> int:
    return 0o777 if file.mode == LINK else modes.get(file.path, _USUAL.get(file.mode, 0o644))


def _check_room(top: str, ours: set[str], todo: Sequence[File]) -> None:
    """EditError if a folder stands where a file shall be, and holds more than what is stored."""
    for file in todo:
        place = os.path.join(top, file.path)
        if os.path.isdir(place) and not os.path.islink(place):
            for folder, _, names in os.walk(place):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), top)
                    if path not in ours:
                        raise EditError(
                            f"{shown(file.path)} is a folder now, with {shown(path)} in it: nothing was done",
                            hint="move that away",
                        )


def _wanted(source: Room, todo: Sequence[File], modes: Mapping[str, int]) -> Iterator[Wanted]:
    contents = read_blobs(source, [file.oid for file in todo])
    for file, content in zip(todo, contents, strict=True):
        yield Wanted(file.path, content, _mode(file, modes), file.mode == LINK)


def _check_laid(
    tree: WorkTree, goal: Mapping[str, File], gone: Sequence[str], laid: Laid
) -> list[str]:
    """Look at the result once more: what was laid is what was meant. What lies there beside it."""
    words = ("ls-tree", "-r", "-z", "--full-tree", _store(tree, goal).tree)
    again = {file.path: file for file in files_in(ask(_room(tree), *words))}
    wrong = {path for path, file in goal.items() if again.get(path) != file}
    wrong |= {path for path in gone if path in again}
    if wrong - set(laid.kept):
        raise StoreError(f"the work tree changed while it was brought back: {few(wrong)}")
    return [path for path in again if path not in goal and path not in laid.kept]
