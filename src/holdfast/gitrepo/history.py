"""Commits, read: the log, and what one of them holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import UsageError
from holdfast.gitrepo.calls import ask
from holdfast.gitrepo.client import Client, resolve
from holdfast.gitrepo.names import Identity, Oid, check_path, shown

_FIELDS = ("%H", "%T", "%P", "%an", "%ae", "%at", "%cn", "%ce", "%ct", "%B")


class Signature(NamedTuple):
    """Who did something, as the commit says, and when, in seconds since 1970."""

    name: str
    email: str
    at: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its whole message; `trailers` are the `Key: value` lines at its end, in order."""

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    author: Signature
    committer: Signature
    message: str
    trailers: tuple[tuple[str, str], ...]

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]

    def trailer(self, key: str) -> str | None:
        """The last value under a key."""
        found = [value for name, value in self.trailers if name.lower() == key.lower()]
        return found[-1] if found else None


def log(
    client: Client,
    revision: str = "HEAD",
    *paths: str,
    since: str | None = None,
    most: int | None = None,
) -> tuple[Commit, ...]:
    """Commits that lead to a revision, newest first: those after `since`, those that changed the paths."""
    words = ["log", "-z", "--no-color", "--no-show-signature", "--no-ext-diff", "--no-notes"]
    words += [f"--format=tformat:{'%x00'.join(_FIELDS)}"]
    words += [f"--max-count={int(most)}"] if most is not None else []
    ends: list[str] = [resolve(client, revision)]
    ends += [f"^{resolve(client, since)}"] if since is not None else []
    said = ask(client.base, *words, *ends, "--", *map(check_path, paths))
    fields = said.decode("utf-8", "replace").split("\0")  # no field of a commit can hold NUL
    size = len(_FIELDS)
    return tuple(_commit(fields[start : start + size]) for start in range(0, len(fields) - 1, size))


def _commit(fields: Sequence[str]) -> Commit:
    oid, tree, parents, an, ae, at, cn, ce, ct, body = fields
    return Commit(
        Oid(oid.strip()),
        Oid(tree),
        tuple(map(Oid, parents.split())),
        Signature(an, ae, int(at or 0)),
        Signature(cn, ce, int(ct or 0)),
        body,
        trailers_of(body),
    )


def trailers_of(message: str) -> tuple[tuple[str, str], ...]:
    """The `Key: value` lines of the last paragraph, if it has no others and is not the first."""
    paragraphs = message.rstrip("\n").split("\n\n")
    if len(paragraphs) < 2:  # noqa: PLR2004 - the subject is never a trailer
        return ()
    rows = [line.partition(": ") for line in paragraphs[-1].split("\n")]
    if not all(colon and key and " " not in key for key, colon, _ in rows):
        return ()
    return tuple((key, value.strip()) for key, _, value in rows)


class File(NamedTuple):
    """A file of a commit: its mode as git writes it, and the name of its content."""

    path: str
    mode: str
    oid: Oid


def list_files(client: Client, revision: str, *paths: str) -> tuple[File, ...]:
    """All files, links (120000) and submodules (160000) of a commit."""
    words = ("ls-tree", "-r", "-z", "--full-tree", resolve(client, revision))
    return tuple(files_in(ask(client.base, *words, "--", *map(check_path, paths))))


def files_in(said: bytes) -> Iterator[File]:
    """Rows of `ls-tree -z`."""
    for row in said.split(b"\0"):
        if row:
            about, _, path = row.partition(b"\t")
            mode, _, oid = about.decode().split(" ")
            yield File(os.fsdecode(path), mode, Oid(oid))


def show(client: Client, revision: str) -> Commit:
    """One commit."""
    return log(client, revision, most=1)[0]


def show_file(client: Client, revision: str, path: str) -> bytes:
    """The content of a file of a commit, as it is stored."""
    found = [file for file in list_files(client, revision, path) if file.path == path]
    if not found or found[0].mode == "160000":
        raise UsageError(f"{shown(path)} is no file of the commit {shown(revision)}")
    return ask(client.base, "cat-file", "blob", found[0].oid)


def signed(
    identity: Identity, at: int, *, role: Sequence[str] = ("AUTHOR", "COMMITTER")
) -> dict[str, str]:
    """The variables by which git is told who commits."""
    said = {"NAME": identity.name, "EMAIL": identity.email, "DATE": f"@{at} +0000"}
    return {f"GIT_{who}_{part}": value for who in role for part, value in said.items()}
