"""Calls of git from a clean room: nothing inherited, nothing that a repository configures is run.

Git starts programs that its configuration names: hooks, monitors, filters, drivers of diffs and merges,
signers, pagers, editors, helpers for keys and connections. So each call is told

- which git directory to use (`GIT_DIR`), so that none is looked for and no work tree decides;
- an environment of a few plain variables, none from whoever calls us, and no configuration of the
  system or the person (`GIT_CONFIG_NOSYSTEM`, `GIT_CONFIG_GLOBAL`, and a HOME with nothing in it for a
  git older than 2.32, which does not know the second);
- on the command line, where it wins over every file, that each of those programs is off;
- that no protocol is allowed, but one that a person allowed for a push;
- that paths are literal, and where options end.

Drivers have names that the repository chooses, so no list of settings could switch them off. They are not
defined in the configuration of a git directory of our own, which is what all calls that look at content
use; a person's git directory is asked about refs alone.

Flags are those of git 2.30 or later; settings that an older git does not know (`safe.bareRepository` 2.38,
`core.fsync` 2.36) it ignores, and nothing depends on them alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from holdfast.errors import GitError, ProcessError, outside_fault
from holdfast.gitrepo.git import read_batch

SECONDS = 600.0
_EMPTY_HOME = "/nonexistent"

_OFF = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.sparseCheckout", "false"),
    ("index.sparse", "false"),
    ("core.attributesFile", os.devnull),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("sequence.editor", "false"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", "true"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("rebase.autoStash", "false"),
    ("rebase.updateRefs", "false"),
    ("rerere.enabled", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.bare", "false"),
    ("core.quotePath", "false"),
    ("core.safecrlf", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
)
_DURABLE = (("core.fsync", "all"), ("core.fsyncMethod", "fsync"))

Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Room:
    """What one call is told: which git directory, work tree and index, and what else is set.

    `lock` is a descriptor that git inherits: whoever waits for it waits for the end of git too, also if
    this process was killed meanwhile. `before` are words put before git, such as those of a sandbox.
    """

    git_dir: str
    work_tree: str
    index: str = ""
    settings: Settings = ()
    before: tuple[str, ...] = ()
    lock: int | None = None

    def set(self, *more: tuple[str, str]) -> Room:
        """The same with further settings."""
        return replace(self, settings=(*self.settings, *more))


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call of git ended: its exit code (negative: the signal) and all that it said."""

    code: int
    out: bytes
    err: bytes

    @property
    def said(self) -> str:
        """Its words for people, whole."""
        return self.err.decode("utf-8", "replace").strip()


def ask(
    room: Room,
    *words: str,
    stdin: bytes = b"",
    env: Mapping[str, str | None] | None = None,
    fine: Sequence[int] = (0,),
) -> bytes:
    """What git answers; GitError with its exit code and its words if it ended otherwise."""
    done = answer(room, *words, stdin=stdin, env=env)
    if done.code not in fine:
        raise failed(words[0], done)
    return done.out


def failed(word: str, done: Answer) -> GitError:
    """The error that a call of git came to."""
    lines = [line.strip() for line in done.said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]  # the rest is advice
    how = f"exit code {done.code}" if done.code >= 0 else f"signal {-done.code}"
    why = (fatal or lines)[0] if lines else "it said nothing"
    return GitError(f"'git {word}' failed ({how}): {why}", ended=done.code, said=done.said)


def answer(
    room: Room, *words: str, stdin: bytes = b"", env: Mapping[str, str | None] | None = None
) -> Answer:
    """Call git and wait for it, whatever it says."""
    command = [*room.before, *_command(room), *words]
    try:
        process = subprocess.Popen(
            command,
            cwd=room.work_tree,
            env=_environment(room, env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # what git starts ends with it
            pass_fds=() if room.lock is None else (room.lock,),
        )
    except (OSError, ValueError) as error:
        raise outside_fault(error) or ProcessError(f"git cannot be started: {error}") from error
    try:
        out, err = process.communicate(stdin, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        _end(process)
        raise ProcessError(f"'git {words[0]}' took more than {SECONDS:.0f} s") from error
    except BaseException:
        _end(process)
        raise
    return Answer(process.returncode, out, err)


def read_blobs(room: Room, oids: Sequence[str]) -> Iterator[bytes]:
    """The contents with these names, in their order, one at a time."""
    argv = [*room.before, *_command(room), "cat-file", "--batch"]
    return read_batch(argv, room.work_tree, _environment(room, {}), oids)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _command(room: Room) -> list[str]:
    program = shutil.which("git")
    if program is None:
        raise ProcessError("git was not found on PATH", hint="install it")
    settings = (*_OFF, *_DURABLE, *room.settings)
    return [
        program,
        "--no-pager",
        "--no-replace-objects",
        *(part for key, value in settings for part in ("-c", f"{key}={value}")),
    ]


def _environment(room: Room, more: Mapping[str, str | None]) -> dict[str, str]:
    told: dict[str, str | None] = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": _EMPTY_HOME,
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_DIR": room.git_dir,
        "GIT_WORK_TREE": room.work_tree,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_EDITOR": "false",
        "GIT_SEQUENCE_EDITOR": "false",
    }
    told |= {"GIT_INDEX_FILE": room.index or None} | dict(more)
    return {name: value for name, value in told.items() if value is not None}
