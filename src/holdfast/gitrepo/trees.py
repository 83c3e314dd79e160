"""Work trees, the person's own and ours, and how git is let look at them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from holdfast.gitrepo.calls import Room, ask
from holdfast.gitrepo.client import Client, their_head
from holdfast.gitrepo.names import Oid


@dataclass(frozen=True, slots=True)
class Worktree:
    """A work tree of our own, on a branch of our own."""

    client: Client
    name: str
    branch: str

    @property
    def folder(self) -> str:
        return os.path.join(self.client.home, "worktrees", self.name)

    @property
    def git_dir(self) -> str:
        return os.path.join(self.client.work, "worktrees", self.name)


WorkTree = Client | Worktree  # the person's own, or one of ours


def client_of(tree: WorkTree) -> Client:
    return tree if isinstance(tree, Client) else tree.client


def folder_of(tree: WorkTree) -> str:
    return tree.place.top if isinstance(tree, Client) else tree.folder


def head_of(tree: WorkTree) -> Oid | None:
    """The commit that a work tree stands on."""
    if isinstance(tree, Client):
        return their_head(tree)
    return own_branch(tree.client, tree.branch)


def own_branch(client: Client, branch: str) -> Oid | None:
    """The commit that a branch of our own is at; None if there is no such branch."""
    asked = f"refs/heads/{branch}\n".encode()
    words = ask(client.base, "cat-file", "--batch-check", stdin=asked).decode().split()
    return Oid(words[0]) if words[1:2] == ["commit"] else None


@contextmanager
def looking(tree: WorkTree) -> Iterator[Room]:
    """A room to look at a work tree in, with a copy of its index: git itself opens no other.

    The copy has the time of the original: git compares it with the times of files.
    """
    client = client_of(tree)
    views = os.path.join(client.home, "views")
    folder = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=views)
    try:
        copied = os.path.join(folder, "index")
        if isinstance(tree, Worktree):
            _copy_index(tree.git_dir, copied)
            yield client.room(tree.git_dir, tree.folder, copied)
            return
        head = their_head(tree)
        with open(os.path.join(folder, "HEAD"), "wb") as file:
            file.write(f"{head}\n".encode() if head else b"ref: refs/heads/none-yet\n")
        with open(os.path.join(folder, "commondir"), "wb") as file:
            file.write(os.fsencode(tree.work) + b"\n")
        _copy_index(tree.place.git_dir, copied)
        for name in os.listdir(tree.place.git_dir):
            if name.startswith("sharedindex."):  # the other half of an index that is split
                shutil.copy2(os.path.join(tree.place.git_dir, name), folder)
        yield tree.room(folder, tree.place.top, copied)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_index(git_dir: str, to: str) -> None:
    with suppress(FileNotFoundError), open(os.path.join(git_dir, "index"), "rb") as file:
        times = os.fstat(file.fileno())
        with open(to, "wb") as copy:
            shutil.copyfileobj(file, copy)
        os.utime(to, ns=(times.st_atime_ns, times.st_mtime_ns))
