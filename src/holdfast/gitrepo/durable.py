"""What git leaves to the file system: that names, and files it lays out, are there after the power went.

Git syncs the content of objects, refs and indexes (`core.fsync`), and no folder. Some disks keep names in any
order, so what names a thing could be there without it: the folders of objects are synced before a ref names
one, and those of a ref before anybody is told.
"""

from __future__ import annotations

import os
from contextlib import suppress

from holdfast.gitrepo.calls import Room, ask

_MANY = 2_000  # files that are synced one by one; for more, everything that the system holds


def sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: str) -> None:
    """A folder that only its owner reads, with those above it; nothing is done if it is there."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    make_folder(above)
    with suppress(FileExistsError):  # somebody else just did
        os.mkdir(path, 0o700)
    sync_folder(above)


def sync_tree(folder: str) -> None:
    """Make a folder safe with all that is beneath it."""
    rows = [(place, names) for place, _, names in os.walk(folder, topdown=False)]
    if sum(len(names) for _, names in rows) > _MANY:
        os.sync()
        return
    for place, names in rows:
        for name in names:
            _sync_file(os.path.join(place, name))
        sync_folder(place)


def _sync_file(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        if os.path.islink(path):  # what it says is in its folder
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle(git_dir: str) -> None:
    """Make the names of objects safe before something names them: git syncs contents alone.

    Folders that did not change since the last time are left out; two changes may have one time, so the
    time is the one from before looking.
    """
    mark = os.path.join(git_dir, "settled")
    fresh = f"{mark}.fresh"
    with open(fresh, "wb") as file:
        now = os.fstat(file.fileno()).st_mtime_ns
    try:
        last = os.stat(mark).st_mtime_ns
    except FileNotFoundError:
        last = 0
    with os.scandir(os.path.join(git_dir, "objects")) as found:
        folders = [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    folders.append(os.path.join(git_dir, "objects"))
    for folder in folders:
        with suppress(FileNotFoundError):  # a temporary one
            if last <= os.stat(folder).st_mtime_ns:
                sync_folder(folder)
    os.utime(fresh, ns=(now, now))
    os.rename(fresh, mark)


def point(room: Room, ref: str, oid: str, common: str = "") -> None:
    """Let a ref be at an object. `common`: where its repository keeps refs, if not in its git directory."""
    ask(room, "update-ref", ref, oid)
    sync_ref(common or room.git_dir, ref)


def sync_ref(git_dir: str, ref: str) -> None:
    """Make it safe that a ref is there, or is not: git syncs what is in it alone."""
    folder = os.path.dirname(os.path.join(git_dir, ref))
    while len(folder) > len(git_dir):
        with suppress(
            FileNotFoundError
        ):  # none of its folder is left, or they are kept in one file
            sync_folder(folder)
        folder = os.path.dirname(folder)
    sync_folder(git_dir)
