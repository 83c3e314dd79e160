"""What differs in a work tree: `git status`, read without loss."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from holdfast.errors import GitError
from holdfast.gitrepo.calls import ask
from holdfast.gitrepo.client import Client, their_branch
from holdfast.gitrepo.names import Oid, check_path, is_oid
from holdfast.gitrepo.trees import WorkTree, looking

Kind = Literal["changed", "renamed", "unmerged", "untracked", "ignored"]

_FIELDS = {b"1": 8, b"2": 9, b"u": 10}  # blanks before the path, by the first letter of a row


@dataclass(frozen=True, slots=True)
class Entry:
    """A path that differs. `staged` and `unstaged` are git's letters, `.` for no difference.

    `was` is where a renamed file came from. `is_submodule` says that the path is a repository of its own.
    """

    path: str
    kind: Kind
    staged: str = "."
    unstaged: str = "."
    was: str | None = None
    is_submodule: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """What a work tree stands on, and every path that differs from it."""

    head: Oid | None
    branch: str | None
    entries: tuple[Entry, ...]

    @property
    def is_clean(self) -> bool:
        """Nothing differs; what git ignores does not count."""
        return all(entry.kind == "ignored" for entry in self.entries)


def status(tree: WorkTree, *paths: str, ignored: bool = False) -> Status:
    """What differs between the last commit, the index and the files. Nothing is written.

    Repositories inside are not looked into: only the commit that they are at counts.
    """
    words = ["status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames"]
    words += ["--ignore-submodules=dirty", "--ignored=matching" if ignored else "--ignored=no"]
    with looking(tree) as room:
        said = ask(room, *words, "--", *map(check_path, paths))
    if isinstance(tree, Client):
        branch = (their_branch(tree) or "").removeprefix("refs/heads/") or None
    else:
        branch = tree.branch
    head = [row[13:].decode() for row in said.split(b"\0") if row.startswith(b"# branch.oid ")]
    oid = Oid(head[0]) if head and is_oid(head[0]) else None
    return Status(oid, branch, tuple(_entries(said)))


def _entries(said: bytes) -> Iterator[Entry]:
    rows = iter(said.split(b"\0"))
    for row in rows:
        letter = row[:1]
        if letter in {b"", b"#"}:
            continue
        if letter in {b"?", b"!"}:
            yield Entry(os.fsdecode(row[2:]), "untracked" if letter == b"?" else "ignored")
            continue
        if letter not in _FIELDS:
            raise GitError(f"'git status' said something unknown: {row!r}")
        *words, path = row.split(b" ", _FIELDS[letter])
        change, module = words[1].decode(), words[2].startswith(b"S")
        kind: Kind = {b"1": "changed", b"2": "renamed", b"u": "unmerged"}[letter]  # type: ignore[assignment] # the three
        was = os.fsdecode(next(rows)) if letter == b"2" else None
        yield Entry(os.fsdecode(path), kind, change[0], change[1], was, module)
