"""Calls of git that run nothing of what a repository configures: no hooks, no filters, no monitors.

A repository is data from strangers as long as nobody vouched for it. So files are read as they are
stored, never checked out (a filter would run), hooks and monitors are switched off, nothing is fetched,
and the variables of whoever called us, which may name another repository, are left behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

from holdfast.errors import GitError, ProcessError, outside_fault
from holdfast.process.gitplaces import common_of
from holdfast.process.removal import remove_folder

_QUIET = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.sparseCheckout", "false"),
    ("index.sparse", "false"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME")
SECONDS = 600.0
LINK, SUBMODULE, PROGRAM = "120000", "160000", "100755"


class Repository(NamedTuple):
    """Where a project lies in a repository: `prefix` leads from the top to it, with a `/` at its end."""

    root: str
    prefix: str


class Stored(NamedTuple):
    """A file of a commit: its mode as git writes it, and the name of its content."""

    path: bytes
    mode: str
    name: str


def find(root: str) -> Repository:
    """The repository that a directory lies in; ProcessError if it lies in none, or has no work tree."""
    said = git(root, "rev-parse", "--is-inside-work-tree", "--show-prefix")
    inside, _, prefix = said.decode("utf-8", "surrogateescape").partition("\n")
    if inside != "true":
        raise ProcessError(f"'{root}' lies in no work tree of git")
    return Repository(root, prefix.rstrip("\n"))


def head(repository: Repository) -> str:
    """The commit that HEAD names; ProcessError if there is none yet."""
    return (
        git(repository.root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
    )


def resolved(repository: Repository, name: str) -> str:
    """The commit that a name stands for; ProcessError if there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return git(repository.root, *words).decode().strip()


def files(repository: Repository, commit: str) -> Iterator[Stored]:
    """All files, links and submodules of a commit."""
    listed = git(repository.root, "ls-tree", "-r", "-z", "--full-tree", commit)
    for row in listed.split(b"\0"):
        if row:
            about, _, path = row.partition(b"\t")
            mode, _, name = about.decode().split(" ")
            yield Stored(path, mode, name)


def contents(repository: Repository, names: Sequence[str]) -> Iterator[bytes]:
    """The contents with these names, in their order, as they are stored."""
    return read_batch(command("cat-file", "--batch"), repository.root, environment(), names)


def read_batch(
    argv: Sequence[str], folder: str, env: Mapping[str, str], names: Sequence[str]
) -> Iterator[bytes]:
    """What a `cat-file --batch` gives for these names, one at a time; GitError if it lacks one."""
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{name}\n" for name in names).encode())
        asked.seek(0)
        with subprocess.Popen(
            argv,
            cwd=folder,
            env=env,
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None  # a pipe was asked for
            try:
                for name in names:
                    yield _next(process.stdout, name)
            finally:
                process.stdout.close()


def _next(answers: IO[bytes], name: str) -> bytes:
    words = answers.readline().decode("utf-8", "replace").split()
    if words[1:2] != ["blob"]:
        raise GitError(f"git has no file content '{name}'", hint="git fsck")
    size = int(words[2])
    content = answers.read(size + 1)
    if len(content) != size + 1:
        raise GitError(f"git ended before it gave the file content '{name}'")
    return content[:-1]


def add_worktree(repository: Repository, place: str, commit: str, lock: int) -> None:
    """Register a worktree at a place, with an index of the commit and no files.

    `lock` is a descriptor that the command inherits: whoever waits for it waits for the end of the
    command too, also if this process was killed meanwhile.
    """
    words = ("worktree", "add", "--detach", "--no-checkout", "--quiet", place, commit)
    git(repository.root, *words, lock=lock)
    git(place, "read-tree", commit, lock=lock)


def remove_worktree(root: str, place: str) -> None:
    """Let git forget a worktree; none at that place is fine. ProcessError if that cannot be done.

    Git is not asked: it opens what lies in its entry, and a command may have left a pipe there.
    """
    try:
        entries = os.path.join(common_of(root), "worktrees")
        remove_folder(os.path.join(entries, os.path.basename(place)))
    except OSError as error:
        fault = outside_fault(error)
        raise fault or ProcessError(
            f"git does not forget the worktree '{place}': {error}"
        ) from error
    with suppress(OSError):  # others are in it
        os.rmdir(entries)


def git(folder: str, *words: str, lock: int | None = None, seconds: float = SECONDS) -> bytes:
    """What git answers; ProcessError, with its last words, if it does not want to."""
    try:
        done = subprocess.run(
            command(*words),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            pass_fds=() if lock is None else (lock,),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise outside_fault(error) or ProcessError(f"git cannot be asked: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        fatal = [line for line in said if line.startswith("fatal:")]  # what follows is advice
        why = (fatal or said)[-1] if said else f"it ended with {done.returncode}"
        raise ProcessError(f"'git {words[0]}' failed in '{folder}': {why}")
    return done.stdout


def command(*words: str) -> list[str]:
    """The program and its words, with all that a repository may configure switched off."""
    program = shutil.which("git")
    if program is None:
        raise ProcessError("git was not found on PATH", hint="install it")
    quiet = [part for key, value in _QUIET for part in ("-c", f"{key}={value}")]
    return [program, "--no-pager", *quiet, *words]


def environment() -> dict[str, str]:
    """What git is told: nothing that it does not need, so no keys; and to ask nobody."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }
