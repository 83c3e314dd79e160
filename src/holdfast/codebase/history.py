"""What commits tell about files: which were changed with which words, how often, how lately.

The newest commits count, merges and sweeping changes do not. What is known is always what a look from
nothing would find: commits that are no longer among the newest, or of this history, are forgotten.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.codebase.database import Database
from holdfast.codebase.words import apart
from holdfast.errors import ProcessError
from holdfast.gitrepo.git import git

MOST = 3_000  # commits
SWEEPING = 30  # files: a commit that changes more says little about each
_ARGUMENTS = 500  # commits asked for by name in one command


class Told(NamedTuple):
    """A commit: when, in which words, what it changed."""

    name: str
    at: int
    message: str
    paths: tuple[bytes, ...]


def learn(database: Database, folder: str, commit: str = "HEAD") -> int:
    """Bring what is known of the history up to a commit; how many commits were read."""
    try:
        newest = _newest(folder, commit)
    except ProcessError:  # no commit yet, or no repository
        newest = []
    known = {str(name): number for number, name in database.rows("SELECT id, name FROM commit_")}
    wanted = set(newest)
    gone = [number for name, number in known.items() if name not in wanted]
    missing = [name for name in newest if name not in known]
    if not gone and not missing:
        return 0
    told = list(_told(folder, missing, commit)) if missing else []
    with database.writing() as cursor:
        for number in gone:
            cursor.execute("DELETE FROM commit_ WHERE id = ?", (number,))
            cursor.execute("DELETE FROM change WHERE commit_ = ?", (number,))
            cursor.execute("DELETE FROM said WHERE rowid = ?", (number,))
        for one in told:
            cursor.execute("INSERT INTO commit_ (name, at) VALUES (?, ?)", (one.name, one.at))
            number = cursor.connection.last_insert_rowid()
            if len(one.paths) <= SWEEPING:
                cursor.execute(
                    "INSERT INTO said (rowid, message) VALUES (?, ?)", (number, one.message)
                )
                cursor.executemany(
                    "INSERT INTO change VALUES (?, ?)", [(number, path) for path in one.paths]
                )
    return len(told)


def _newest(folder: str, commit: str) -> list[str]:
    said = git(folder, "rev-list", "--no-merges", f"--max-count={MOST}", commit, *_part(folder))
    return said.decode().split()


def _part(folder: str) -> list[str]:
    """What keeps git to this directory; at the top of a repository nothing, because it takes its time."""
    is_top = os.path.lexists(os.path.join(folder, ".git"))
    is_bare = all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects"))
    return [] if is_top or is_bare else ["--", "."]


def _told(folder: str, names: Sequence[str], commit: str) -> Iterator[Told]:
    """These commits; many are found by walking again, few are asked for by name."""
    mark = secrets.token_hex(16)  # no message has it
    words = ["log", "--no-show-signature", "--no-merges", "--no-renames", "--name-only", "-z"]
    words += ["--relative", "--encoding=UTF-8", f"--format=tformat:{mark}%H%x00%ct%x00%B{mark}"]
    many = len(names) > _ARGUMENTS
    words += [f"--max-count={MOST}", commit] if many else ["--no-walk", *names]
    wanted = set(names)
    parts = git(folder, *words, *_part(folder)).split(mark.encode())[1:]
    for head, rest in zip(parts[::2], parts[1::2], strict=True):
        name, at, message = head.split(b"\0", 2)
        paths = tuple(path for path in rest.strip(b"\n\0").split(b"\0") if path)
        if name.decode() in wanted:
            yield Told(name.decode(), int(at), apart(message), paths)
