"""A store that is elsewhere, and the directory of this machine that goes with it.

What engines need on the spot (private directories of attempts, files on their way into the project,
snapshots) is in a directory of the project; journals, artifacts and contents are in the shared store.
"""

from __future__ import annotations

import hashlib
import os
import platform
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports import Store
    from holdfast.store.postgres import PostgresStore

SCHEMES = ("postgresql", "postgres")


class SharedHome(str):
    """The directory of this machine for a store that is elsewhere; knows the address of that store."""

    __slots__ = ("url",)
    url: str


def shared_home(folder: str, url: str) -> SharedHome:
    """The directory beneath a project's own for one shared store, whoever asks with whichever password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UsageError("the address of the store is not right") from None
    place = "@".join((parts.username or "", parts.netloc.rpartition("@")[2]))
    named = f"{place}{parts.path}?{parts.query}"
    home = SharedHome(
        os.path.join(folder, "shared", hashlib.sha256(named.encode()).hexdigest()[:12])
    )
    home.url = url
    return home


def refuse_password(url: str) -> None:
    """UsageError if an address on a command line has a password, which every user of the machine can read."""
    userinfo = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
    if ":" in userinfo or "password=" in url.partition("?")[2]:
        raise UsageError(
            "a password is never given on the command line",
            hint="PGPASSWORD, ~/.pgpass, or the whole address in HOLDFAST_STORE",
        )


def is_shared(location: str) -> bool:
    """Whether the store of a location is elsewhere, for many."""
    return isinstance(location, SharedHome)


def address_of(location: str) -> str:
    """What opens the same store in another process: a directory, or the address of a shared store."""
    return location.url if isinstance(location, SharedHome) else location


def name_of(location: str, store: Store) -> str:
    """What a store is called elsewhere: its address without a password, or its directory on this machine."""
    return str(getattr(store, "shown", f"{platform.node()}:{location}"))


def open_shared(
    home: SharedHome, *, create: bool, readonly: bool, say: Callable[[str], None]
) -> PostgresStore:
    """Open the store of such a directory; with `create` the directory is made, never the store."""
    require_psycopg()
    from holdfast.store.blobs import write_once
    from holdfast.store.host import this_boot
    from holdfast.store.postgres import PostgresStore

    store = PostgresStore.open(
        home.url, machine=this_boot(), cache=_cache(), readonly=readonly, say=say
    )
    if create:
        os.makedirs(home, 0o700, exist_ok=True)
        write_once(os.path.join(os.path.dirname(os.path.dirname(home)), ".gitignore"), b"*\n")
    return store


def _cache() -> str:
    """Where copies of contents are that are in object storage."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "holdfast", "contents")


def require_psycopg() -> None:
    """UsageError if the library for PostgreSQL is not installed."""
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise UsageError(
            "a store in PostgreSQL needs psycopg, which is not installed",
            hint="pip install 'holdfast[postgres]'",
        )


def make_shared(url: str, *, blobs: str = "", role: str = "") -> tuple[str, bool]:
    """Make a store at an address, or bring it up to date; gives its address and whether it changed."""
    require_psycopg()
    from holdfast.store.postgres import make_store

    return make_store(url, blobs=blobs, role=role)
