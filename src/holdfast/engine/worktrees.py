"""Git worktrees of the project, one for each attempt that asks for one.

They lie under Holdfast's own directory, each in a folder of its own that is made before git is told of the
worktree and removed after git has forgotten it, whatever became of the worktree: where such a folder is,
something may be left, and whoever comes next clears it. Git is told under a lock that its process inherits,
so a command that outlives its engine is waited for.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.engine.copies import Copy, is_private
from holdfast.engine.world import World
from holdfast.errors import AttemptError, EditError, ProcessError, StoreError, UsageError
from holdfast.gitrepo.git import (
    LINK,
    PROGRAM,
    SUBMODULE,
    Repository,
    Stored,
    add_worktree,
    contents,
    files,
    find,
    head,
    remove_worktree,
)
from holdfast.model.plan import Plan
from holdfast.process.removal import discard_folder

_FOLDER = "worktrees"


@contextmanager
def _alone(home: str) -> Iterator[int]:
    """Whoever has this is the only one who adds or removes worktrees of this store."""
    place = os.path.join(home, _FOLDER)
    os.makedirs(place, 0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(os.path.join(place, "lock"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


async def given_worktree(world: World, run: str) -> Copy:
    """A worktree for an attempt; made beside the loop, and to its end whatever happens."""
    root, home = world.root, world.home
    making = asyncio.ensure_future(asyncio.to_thread(make_worktree, root, home, run))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        with suppress(AttemptError):
            drop_worktree(root, home, (await making).top)
        raise


def make_worktree(root: str, home: str, run: str) -> Copy:
    """A worktree at HEAD with all files of that commit, as git stores them; AttemptError if there is none."""
    name = secrets.token_hex(6)
    top = os.path.join(home, _FOLDER, run, name, name)
    try:
        repository = find(root)
        commit = head(repository)
        os.makedirs(os.path.dirname(top), 0o700, exist_ok=True)
        with _alone(home) as lock:
            add_worktree(repository, top, commit, lock)
        copy = Copy(top, repository.prefix)
        _fill(copy, repository, commit)
        os.makedirs(copy.folder, exist_ok=True)
    except (ProcessError, EditError) as error:
        drop_worktree(root, home, top)
        message = f"there is no worktree for the step: {error.message}"
        raise AttemptError(message, reason="command_failed") from error
    return copy


def _fill(copy: Copy, repository: Repository, commit: str) -> None:
    blobs: list[tuple[str, Stored]] = []
    for file in files(repository, commit):
        path = os.fsdecode(file.path)
        if is_private(path):
            continue
        if file.mode == SUBMODULE:
            copy.close(path)
        else:
            blobs.append((path, file))
    given = contents(repository, [file.name for _, file in blobs])
    for (path, file), content in zip(blobs, given, strict=True):
        if file.mode == LINK:
            copy.link(path, os.fsdecode(content))
        else:
            copy.put(path, content, executable=file.mode == PROGRAM)


def drop_worktree(root: str, home: str, top: str) -> None:
    """Remove a worktree, whatever is left of it, and let git forget it, as far as that is possible.

    No git, no repository any more, or a machine that refuses: what is left is found again by its folder.
    """
    discard_folder(top)
    folder = os.path.dirname(top)
    with suppress(ProcessError, StoreError, OSError), _alone(home):
        remove_worktree(root, top)
        discard_folder(folder)
        _remove_empty(os.path.dirname(folder))


def drop_worktrees(root: str, home: str, run: str) -> None:
    """Remove all worktrees of a run that nobody drives any more."""
    place = os.path.join(home, _FOLDER, run)
    if not os.path.isdir(place):
        return
    for name in os.listdir(place):
        drop_worktree(root, home, os.path.join(place, name, name))
    _remove_empty(place)


def _remove_empty(place: str) -> None:
    try:
        os.rmdir(place)
    except OSError:
        return


def check_worktrees(plan: Plan, root: str) -> None:
    """UsageError if a step wants a worktree and there can be none."""
    step = next((one for one in plan.steps.values() if one.workspace == "worktree"), None)
    if step is None:
        return
    what = f"'{step.id}' works in a git worktree, and there can be none"
    try:
        repository = find(root)
    except ProcessError as error:
        hint = "say git init and commit something, or say workspace: scratch"
        raise UsageError(f"{what}: {error.message}", hint=hint) from error
    try:
        head(repository)
    except ProcessError as error:
        hint = "commit something, or say workspace: scratch"
        raise UsageError(f"{what}: nothing is committed yet", hint=hint) from error
