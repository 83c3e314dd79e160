"""Fresh repositories: a commit with what led to it and its files, and nothing that came after."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from holdfast.gitrepo.calls import Room, ask
from holdfast.process.room import put_tree

BRANCH = "refs/heads/main"
_WHO = {"NAME": "Bench", "EMAIL": "bench@example.invalid", "DATE": "1900000000 +0000"}


def lay(git_dir: str, commit: str, folder: str) -> None:
    """A repository in a folder that stands on a commit of another one; left alone if it is there."""
    if os.path.isdir(folder):
        return
    fresh = _fresh(folder)
    borrowed = _borrowed(fresh, git_dir)
    pack = os.path.join(fresh, ".git", "objects", "pack", "pack")
    room = Room(os.path.join(fresh, ".git"), fresh)
    ask(room, "pack-objects", "--revs", "-q", pack, stdin=f"{commit}\n".encode())
    os.unlink(borrowed)
    _stand(fresh, commit, folder)


def borrow(git_dir: str, commit: str, folder: str) -> None:
    """The same for a look, quicker: it has everything that the other repository has, what came after too."""
    shutil.rmtree(folder, ignore_errors=True)
    fresh = _fresh(folder)
    _borrowed(fresh, git_dir)
    _stand(fresh, commit, folder)


def _borrowed(fresh: str, git_dir: str) -> str:
    """Let a repository use the objects of another one; the file that says so."""
    place = os.path.join(fresh, ".git", "objects", "info", "alternates")
    with open(place, "w", encoding="utf-8") as file:
        file.write(os.path.join(git_dir, "objects") + "\n")
    return place


def _stand(fresh: str, commit: str, folder: str) -> None:
    room = Room(os.path.join(fresh, ".git"), fresh)
    ask(room, "update-ref", BRANCH, commit)
    ask(room, "reset", "--hard", "--quiet", commit)
    os.rename(fresh, folder)


def lay_files(files: Mapping[str, bytes], folder: str) -> str:
    """A repository in a folder whose one commit has these files; the commit. Left alone if it is there."""
    if os.path.isdir(folder):
        return head_of(os.path.join(folder, ".git"))
    fresh = _fresh(folder)
    put_tree(fresh, ((path, content, False) for path, content in files.items()))
    room = Room(os.path.join(fresh, ".git"), fresh)
    who = {
        f"GIT_{role}_{part}": text
        for role in ("AUTHOR", "COMMITTER")
        for part, text in _WHO.items()
    }
    ask(room, "add", "--all", "--force")
    ask(room, "commit", "--quiet", "--message", "Begin", env=who)
    os.rename(fresh, folder)
    return head_of(os.path.join(folder, ".git"))


def head_of(git_dir: str, ref: str = BRANCH) -> str:
    """The commit that a ref names; empty if there is none."""
    room = Room(git_dir, os.path.dirname(git_dir))
    return ask(room, "for-each-ref", "--format=%(objectname)", ref).decode().strip()


def _fresh(folder: str) -> str:
    fresh = f"{folder}.new"
    shutil.rmtree(fresh, ignore_errors=True)  # of an earlier time, cut short
    os.makedirs(fresh, 0o700)
    room = Room(os.path.join(fresh, ".git"), fresh)
    ask(room, "init", "--quiet", "--template=")
    ask(room, "symbolic-ref", "HEAD", BRANCH)
    return fresh
