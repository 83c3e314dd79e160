"""A store in a directory: one SQLite database, and a file for each large content.

    state.db         journals, artifact index, small contents, claims, holders (see `migrate`)
    state.end        the last event that was stored (see `ends`)
    blobs/           contents above 16 KB (see `blobs`)
    locks/           files that live engines keep locked (see `host`)
    .gitignore       `*`: a store inside a working tree is never committed

The tables and what is done with them: see `relational`. A batch costs one fsync of the WAL.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import Self

import apsw

from holdfast.errors import HoldfastError, StoreError, UsageError, outside_fault
from holdfast.model.digest import Digest
from holdfast.store.blobs import BlobFiles, Write, make_tree, sync_directory, write_once
from holdfast.store.database import (
    BUSY_MS,
    Database,
    check_header,
    check_log_has_database,
    emptied,
)
from holdfast.store.gate import check_file_system, check_sqlite, file_system
from holdfast.store.host import only_one
from holdfast.store.peek import check_files, check_place, was_used
from holdfast.store.relational import RelationalStore

_FILE = "state.db"


class SqliteStore(RelationalStore):
    """Fills the port `Store` with a directory on a local disk."""

    _database: Database

    def __init__(self, directory: str, database: Database, files: BlobFiles) -> None:
        super().__init__(database, files)
        self.directory = directory

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        create: bool,
        readonly: bool = False,
        whole: bool = False,
        busy_ms: int = BUSY_MS,
        kind_of_disk: Callable[[str], str] = file_system,
        write: Write = os.write,
        say: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Open the store in a directory. It is made if `create`; otherwise nothing ever is.

        If it has lost events that were stored, whoever reads has what is left; IntegrityError if it must be
        `whole`, as for whoever writes. `say` is told of that, if it had an older format and was changed, and
        what keeps it waiting or growing.
        """
        check_sqlite(apsw.sqlite_lib_version())
        directory = os.path.abspath(directory)
        check_place(directory)
        check_file_system(kind_of_disk(directory), directory)
        try:
            database = _opened(directory, readonly=readonly, whole=whole, busy_ms=busy_ms, say=say)
        except UsageError:
            if readonly or not create:
                raise
            database = _made(directory, busy_ms=busy_ms, say=say)
        files = BlobFiles(os.path.join(directory, "blobs"), database.poison, write)
        store = cls(directory, database, files)
        if not readonly:
            store._contents.drop_marked()
        return store

    def apart(self, digests: Iterable[Digest]) -> set[Digest]:
        return self._contents.without_row(digests)  # a row leaves a trace


def _opened(
    directory: str, *, readonly: bool, whole: bool, busy_ms: int, say: Callable[[str], None]
) -> Database:
    """Open a store that is there; UsageError if there is none, and then nothing is made.

    IntegrityError if there was one: a new one would know nothing of what its runs did.
    """
    path = os.path.join(directory, _FILE)
    check_files(path)
    check_log_has_database(path)
    if not os.path.isfile(path):
        raise _absent(path)
    check_header(path)
    try:
        return Database(
            path, create=False, readonly=readonly, whole=whole, busy_ms=busy_ms, say=say
        )
    except UsageError as error:
        raise _absent(path) from error


def _absent(path: str) -> HoldfastError:
    directory = os.path.dirname(path)
    if was_used(directory):
        return emptied(path)
    return UsageError(f"no store at '{directory}'", hint="holdfast run")


def _made(directory: str, *, busy_ms: int, say: Callable[[str], None]) -> Database:
    """Make what is missing of a store, one process at a time; the database comes last."""
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        with only_one(os.path.join(directory, "locks", "store.lock")):
            make_tree(os.path.join(directory, "blobs"))
            write_once(os.path.join(directory, ".gitignore"), b"*\n")
            path = os.path.join(directory, _FILE)
            database = Database(path, create=True, readonly=False, busy_ms=busy_ms, say=say)
            sync_directory(directory)
            sync_directory(os.path.dirname(directory))
            return database
    except OSError as error:
        raise _unmade(directory, error) from error


def _unmade(directory: str, error: OSError) -> HoldfastError:
    """Nothing was begun yet, so that there is nothing to resume; else another place may do."""
    fault = outside_fault(error)
    if error.errno == errno.EFBIG:
        hint = "let files be larger (ulimit -f)"
    elif fault is not None:
        hint = (fault.hint or "").partition(", then ")[0]
    else:
        hint = "name a place where you can write: --store DIR or HOLDFAST_STORE"
    said = (error.strerror or str(error)).lower()
    return StoreError(f"no store can be made at '{directory}': {said}", hint=hint or None)
