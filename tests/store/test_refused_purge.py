"""A purge that was refused is nobody's: a later process removes nothing for it."""

from pathlib import Path

import pytest

from holdfast.errors import ConflictError
from holdfast.model.line import ContentPurged
from holdfast.ports import Append, Batch
from holdfast.store.blobs import SMALL
from holdfast.store.sqlite import SqliteStore


@pytest.mark.req("I5", "R187")
def test_content_that_was_stored_again_outlives_a_refused_purge(tmp_path: Path) -> None:
    """The refused one names the event of an earlier purge of the same content."""
    with SqliteStore.open(str(tmp_path), create=True) as store:
        digest = store.put(b"x" * (SMALL + 1))
        said = Append("line:main", 0, [(1, ContentPurged((digest,), "ann", None))])
        store.purge([digest], [], Batch([said]))
        store.put(b"x" * (SMALL + 1))
        with pytest.raises(ConflictError):
            store.purge([digest], [], Batch([said]))
    with SqliteStore.open(str(tmp_path), create=False) as store:
        store.put(b"something else, so that it writes")
        assert store.has(digest)
