"""Content that the system refuses to open for now is no damaged content."""

from pathlib import Path

import pytest

from holdfast.errors import IntegrityError, StoreError
from holdfast.store.sqlite import SqliteStore
from tests.scarce import no_more_descriptors

LARGE = b"word " * 20_000


@pytest.mark.req("D03")
def test_a_content_that_cannot_be_opened_for_now_stays_where_it_is(tmp_path: Path) -> None:
    with SqliteStore.open(str(tmp_path / "store"), create=True) as store:
        digest = store.put(LARGE)
        with no_more_descriptors(), pytest.raises(StoreError, match="cannot be opened") as caught:
            store.get(digest)
        assert not isinstance(caught.value, IntegrityError)
        assert store.get(digest) == LARGE


def test_a_link_in_the_place_of_a_content_is_damage(tmp_path: Path) -> None:
    with SqliteStore.open(str(tmp_path / "store"), create=True) as store:
        digest = store.put(LARGE)
        place = next(tmp_path.rglob(digest))
        place.rename(tmp_path / "elsewhere")
        place.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(IntegrityError, match="not a file"):
            store.get(digest)
