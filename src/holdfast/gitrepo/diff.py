"""Differences between two trees, or a tree and the files: as rows, and as text that applies again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.gitrepo.calls import Room, answer, ask
from holdfast.gitrepo.client import Client, resolve
from holdfast.gitrepo.listing import mark_wanted, untracked
from holdfast.gitrepo.names import Oid, check_path
from holdfast.gitrepo.trees import WorkTree, client_of, head_of, looking

# Never a program of the repository's choice, whatever its attributes say.
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
_ABSENT = "000000"


@dataclass(frozen=True, slots=True)
class Changed:
    """One path of a difference. A mode is "" where the file is not there.

    `kind` is git's letter: A added, M modified, D deleted, T another type, R renamed, U unmerged.
    """

    path: str
    kind: str
    before: str
    after: str
    was: str | None = None


def diff_trees(
    client: Client, before: str, after: str, *paths: str, renames: bool = False
) -> tuple[Changed, ...]:
    """What changed from one revision to another."""
    ends = (resolve(client, before), resolve(client, after))
    how = ("-r", "-z", "--raw", *_PLAIN, "-M" if renames else "--no-renames")
    return tuple(_rows(ask(client.base, "diff-tree", *how, *ends, "--", *map(check_path, paths))))


def diff_trees_text(
    client: Client, before: str, after: str, *paths: str, renames: bool = False
) -> bytes:
    """The same as a patch, with binary content: `apply` takes it."""
    ends = (resolve(client, before), resolve(client, after))
    how = ("-r", "-p", "--binary", *_PLAIN, "-M" if renames else "--no-renames")
    words = ("diff-tree", *how, "--submodule=short", *ends, "--", *map(check_path, paths))
    return ask(client.base, *words)


def diff_files(tree: WorkTree, *paths: str, since: str | None = None) -> tuple[Changed, ...]:
    """What the files of a work tree changed since a commit, the last one unless named.

    Files that git does not know yet are part of it, unless it ignores them.
    """
    how = ("-z", "--raw", "--no-renames")
    with _compared(tree, paths, since) as (room, base):
        said = ask(room, "diff-index", *_PLAIN, *how, *_OUTSIDE, base, "--", *paths)
    return tuple(_rows(said))


def diff_files_text(tree: WorkTree, *paths: str, since: str | None = None) -> bytes:
    """The same as a patch, with binary content."""
    how = ("-p", "--binary", "--no-renames")
    with _compared(tree, paths, since) as (room, base):
        return ask(room, "diff-index", *_PLAIN, *how, *_OUTSIDE, base, "--", *paths)


_OUTSIDE = ("--ignore-submodules=dirty",)


@contextmanager
def _compared(
    tree: WorkTree, paths: Sequence[str], since: str | None
) -> Iterator[tuple[Room, Oid]]:
    """A room whose index knows the untracked files too, and what to compare with."""
    for path in paths:
        check_path(path)
    client = client_of(tree)
    with looking(tree) as room:
        base = resolve(client, since) if since is not None else head_of(tree)
        base = base or Oid(ask(room, "hash-object", "-t", "tree", "--stdin").decode().strip())
        mark_wanted(room, untracked(room, paths))
        answer(room, "update-index", "-q", "--refresh")  # a touched file is no changed one
        yield room, base


def _rows(said: bytes) -> Iterator[Changed]:
    parts = iter(said.split(b"\0"))
    for about in parts:
        if not about.startswith(b":"):
            continue
        before, after, _, _, kind = about[1:].decode().split(" ")
        path = os.fsdecode(next(parts))
        was, path = (path, os.fsdecode(next(parts))) if kind[0] in "RC" else (None, path)
        modes = [mode if mode != _ABSENT else "" for mode in (before, after)]
        yield Changed(path, kind[0], modes[0], modes[1], was)
