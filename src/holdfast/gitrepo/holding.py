"""Whoever changes something holds the lock, and leaves word of what it does until it is done.

Git inherits the lock, so a command that outlives whoever called it is waited for. If a process dies while
it holds the lock, its word is still there for whoever comes next: what git left locked in our directories
is then litter. Without such a word a lock is somebody's, and stays.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from holdfast.errors import GitError, HoldfastError
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.durable import sync_folder

_TICK = 20_000_000  # ns within which two changes may have one time


@contextmanager
def working(client: Client, doing: str, **about: str) -> Iterator[Client]:
    """Be the only one who changes something here; git inherits the lock.

    Word of what is done is left while it is done. What an earlier process left undone is cleared first.
    """
    if client.lock is not None:  # part of something larger
        yield client
        return
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(os.path.join(client.home, "lock"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        held = replace(client, lock=descriptor)
        busy = os.path.join(client.home, "busy")
        if os.path.lexists(busy):
            _clear_locks(held, _word(busy))
        write_file(busy, json.dumps({"doing": doing, **about}).encode())
        try:
            yield held
        except HoldfastError as error:
            if not isinstance(error, GitError) or error.ended >= 0:
                _unsay(held, busy)  # refused, not cut short: git cleared its own locks
            raise
        _unsay(held, busy)
    finally:
        os.close(descriptor)


def _unsay(client: Client, busy: str) -> None:
    """Take back the word; that git removed its locks is safe before, or the power would bring them back."""
    began = os.stat(busy).st_mtime_ns - _TICK
    trees = os.path.join(client.work, "worktrees")
    names = os.listdir(trees) if os.path.isdir(trees) else []
    places = (client.work, client.store, os.path.join(client.home, "indexes"))
    for place in (*places, *(os.path.join(trees, name) for name in names)):
        with suppress(FileNotFoundError, NotADirectoryError):
            if os.stat(place).st_mtime_ns >= began:
                sync_folder(place)
    os.unlink(busy)


def _word(busy: str) -> dict[str, str]:
    try:
        with open(busy, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _clear_locks(client: Client, word: dict[str, str]) -> None:
    """Remove what git left locked when it died in our hands; nobody else works here meanwhile."""
    for top in (client.work, client.store, os.path.join(client.home, "indexes")):
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name != "objects"]
            for name in names:
                if name.endswith(".lock"):
                    os.unlink(os.path.join(folder, name))
    began = os.stat(os.path.join(client.home, "busy")).st_mtime_ns
    if not _git_works_at(client):
        for lock in _their_locks(client, word):
            _clear_their_lock(lock, began)


def _their_locks(client: Client, word: dict[str, str]) -> Iterator[str]:
    """What git may have left locked in the person's git directory, as far as it was our doing."""
    place, moved = client.place, word.get("ref", "")
    yield os.path.join(place.common, "packed-refs.lock")  # taken whenever a ref is removed
    for folder, _, names in os.walk(os.path.join(place.common, "refs", "holdfast")):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".lock"))
    if moved:
        yield os.path.join(place.common, f"{moved}.lock")
        yield os.path.join(place.git_dir, "HEAD.lock")
    if word.get("follow"):
        yield os.path.join(place.git_dir, "index.lock")


def _clear_their_lock(lock: str, began: int) -> None:
    """Remove a lock that came after we began, and that no process has open.

    Where that cannot be seen, the lock stays, and git's own words say what to do.
    """
    try:
        found = os.stat(lock, follow_symlinks=False)
        held = any(
            (seen.st_dev, seen.st_ino) == (found.st_dev, found.st_ino) for seen in _open_files()
        )
    except OSError:
        return
    if not held and found.st_mtime_ns >= began:
        with suppress(FileNotFoundError):
            os.unlink(lock)


def _git_works_at(client: Client) -> bool:
    """Whether a git of the person is at work in this repository: it closes some locks that it still needs."""
    tops = (client.place.top, client.place.common)
    with suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                here = os.path.join(os.readlink(f"/proc/{pid}/cwd"), "")
                inside = any(here.startswith(os.path.join(top, "")) for top in tops)
                if file.read().startswith("git") and inside:
                    return True
    return False


def _open_files() -> Iterator[os.stat_result]:
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        folder = f"/proc/{pid}/fd"
        with suppress(FileNotFoundError, PermissionError, ProcessLookupError):
            for name in os.listdir(folder):
                with suppress(OSError):
                    yield os.stat(f"{folder}/{name}")


def write_file(path: str, content: bytes) -> None:
    """Give a file this content, whole; nothing is done if it has it."""
    try:
        with open(path, "rb") as file:
            if file.read() == content:
                return
    except FileNotFoundError:
        pass
    fresh = f"{path}.fresh"  # one writer at a time: nobody else has it
    with open(fresh, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(fresh, path)
    sync_folder(os.path.dirname(path))
