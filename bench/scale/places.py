"""New stores of both kinds, on this machine alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.store.postgres import make_store
from tests.postgres import server

STORES = ("postgresql", "sqlite")


@contextmanager
def new_store(kind: str) -> Iterator[str]:
    """What opens it, for as long as this lasts: a directory, or an address on a socket."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="hf-scale-") as folder:
            yield f"{folder}/store"
        return
    with server() as running:
        url = running.url("holdfast")
        make_store(url)
        yield url
