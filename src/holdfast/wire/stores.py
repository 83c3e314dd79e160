"""Where the state of a project lives, opening it, and how it stands."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.errors import LET_IN, StoreError, UsageError
from holdfast.model.fixed import frozen
from holdfast.wire.shared import SCHEMES, SharedHome, is_shared, open_shared, shared_home

if TYPE_CHECKING:
    from holdfast.ports import Store

STORE_NAME = ".holdfast"
_VERSION_AT = 60  # where a SQLite file holds the version of its tables


def store_location(root: str, given: str | None) -> str:
    """Where the state of a project lives: as told, else beside the plan."""
    named = given or os.environ.get("HOLDFAST_STORE") or os.path.join(root, STORE_NAME)
    kind, is_address, _ = named.partition("://")
    if not is_address:
        return os.path.abspath(named)
    if kind not in SCHEMES:
        raise UsageError(
            f"there are no stores at '{kind}://…'",
            hint="name a directory or postgresql://…: --store or HOLDFAST_STORE",
        )
    return shared_home(os.path.join(os.path.abspath(root), STORE_NAME), named)


def open_store(
    location: str,
    *,
    create: bool = False,
    readonly: bool = False,
    whole: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Store:
    """Open a store by its location; `say` is told if its format was brought up to date.

    If some of it cannot be read any more, whoever reads has the rest, unless it must be `whole`.
    """
    if isinstance(location, SharedHome):
        return open_shared(location, create=create, readonly=readonly, say=say)
    from holdfast.store.sqlite import SqliteStore

    return SqliteStore.open(location, create=create, readonly=readonly, whole=whole, say=say)


def has_store(location: str) -> bool:
    """Whether a store was made here. Most tell it by the first page of their file, without opening it.

    IntegrityError if nothing is left of it but what tells that there was one, or if its file is none;
    UsageError if none can be there.
    """
    if is_shared(location):  # if there is none, whoever opens it says so
        return True
    from holdfast.store.peek import check_files, check_place, peeking, was_used

    check_place(location)
    path, head = os.path.join(location, "state.db"), b""
    check_files(path)
    try:
        with peeking(path) as file:
            head = os.pread(file, _VERSION_AT + 4, 0)
    except FileNotFoundError:
        if not os.path.exists(f"{path}-wal") and not was_used(location):
            return False
    except OSError as error:
        elsewhere = "name another place with --store DIR or HOLDFAST_STORE"
        hint = LET_IN if isinstance(error, PermissionError) else elsewhere
        raise StoreError(f"'{location}' cannot be read: {error.strerror}", hint=hint) from error
    if any(head[_VERSION_AT:]):
        return True
    try:  # all of it may still be in the write-ahead log
        open_store(location, readonly=True).close()
    except UsageError:
        return False
    return True


def empty_store() -> Store:
    """A store with nothing in it, for a project that has none yet."""
    from holdfast.store.memory import MemoryStore

    return MemoryStore()


@frozen
class Standing:
    """How a store is: where, how much is in it, who works with it."""

    shown: str
    facts: dict[str, int | str]
    holders: tuple[str, ...]


def standing(location: str, say: Callable[[str], None]) -> Standing:
    """How the store of a location is; `say` is told what cannot be read of it."""
    store = open_store(location, readonly=True, say=say)
    try:
        sizes = [one.size for one in store.stored()]
        facts: dict[str, int | str] = {
            "lines": len({(row.project, row.line) for row in store.runs(imported=True)}),
            "runs": len(store.runs(imported=True)),
            "contents": len(sizes),
            "bytes": sum(sizes),
            "claims": len(store.claims()),
        }
        facts.update(getattr(store, "facts", dict)())
        held = tuple(
            f"{holder.owner.host}:{holder.owner.pid} on line '{line}' of '{project}'"
            + (f", run {holder.run}" if holder.run else "")
            for project, line, holder in store.held()
        )
        return Standing(getattr(store, "shown", location), facts, held)
    finally:
        store.close()
