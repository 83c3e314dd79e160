"""How a client comes to be: its home is made, once, whole or not at all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress

from holdfast.errors import StoreError, UsageError
from holdfast.gitrepo.calls import Room, ask
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.durable import make_folder, sync_folder, sync_tree
from holdfast.gitrepo.holding import working, write_file
from holdfast.gitrepo.names import shown
from holdfast.gitrepo.place import facts, ignored, locate, read_settings

# In snapshots every byte is as it lies there, whatever the attributes of the tree ask for.
_RAW = "* -text !eol -filter -ident !working-tree-encoding -diff -merge\n"


def open_client(
    folder: str,
    home: str,
    *,
    before: tuple[str, ...] = (),
    ignored_too: tuple[str, ...] = (),
    clock: Callable[[], float] = time.time,
) -> Client:
    """A client of the repository that a folder lies in; `home` is made if it is not there.

    `home` is for one repository, and lies outside its work tree: what runs in there must not reach it.
    `ignored_too` are patterns, as in `.gitignore`, of what is never stored unless it is tracked.
    """
    place = locate(folder)
    home = os.path.realpath(home)
    if home == place.top or home.startswith(os.path.join(place.top, "")):
        raise UsageError(
            f"{shown(home)} lies in the work tree {shown(place.top)}",
            hint="choose a place outside of it, that only you can write to",
        )
    settings = read_settings(place)
    client = Client(place, home, facts(settings), before, clock)
    try:
        for folder_name in ("worktrees", "indexes", "views"):
            make_folder(os.path.join(home, folder_name))
        form = settings.get("extensions.objectformat", "sha1").lower()
        with working(client, "open") as held:
            more = "".join(f"{pattern}\n" for pattern in ignored_too).encode()
            write_file(os.path.join(home, "ignore"), more + ignored(place))
            _make(held, held.store, form)
            _make(held, held.work, form)
            write_file(os.path.join(client.store, "info", "attributes"), _RAW.encode())
            _borrow(client)
            _sweep_views(client)
    except OSError as error:
        raise StoreError(f"{shown(home)} cannot be prepared: {error}") from error
    return client


def _make(client: Client, place: str, form: str) -> None:
    """A git directory of our own, whole or not at all."""
    if os.path.isdir(place):
        return
    fresh = place + ".making"
    shutil.rmtree(fresh, ignore_errors=True)
    os.mkdir(fresh, 0o700)
    room = Room(fresh, client.home, before=client.before, lock=client.lock)
    words = ("init", "--bare", "--quiet", "--template=", f"--object-format={form}")
    ask(room, *words, env={"GIT_WORK_TREE": None})
    for folder in ("info", os.path.join("objects", "info"), "worktrees"):
        os.makedirs(os.path.join(fresh, folder), exist_ok=True)
    sync_tree(
        fresh
    )  # git does not: after the power went, its name would be there and its head empty
    os.rename(fresh, place)
    sync_folder(client.home)


def _borrow(client: Client) -> None:
    """Let our commits stand on the person's objects, as far as their history goes."""
    objects = os.path.join(client.place.common, "objects")
    quoted = objects.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    line = os.fsencode(
        f'"{quoted}"\n' if objects != quoted or objects[0] in '"#' else f"{objects}\n"
    )
    write_file(os.path.join(client.work, "objects", "info", "alternates"), line)
    shallow = os.path.join(client.place.common, "shallow")
    ours = os.path.join(client.work, "shallow")
    try:
        with open(shallow, "rb") as file:
            write_file(ours, file.read())
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            os.unlink(ours)


def _sweep_views(client: Client) -> None:
    """Remove what looks left behind whose process is gone."""
    folder = os.path.join(client.home, "views")
    for name in os.listdir(folder):
        pid = name.partition("-")[0]
        if pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
