"""Content that the system refuses to open for now is no damaged content."""

from pathlib import Path

import pytest

from holdfast.errors import IntegrityError, StoreError, outside_fault
from holdfast.store.sqlite import SqliteStore
from tests.scarce import no_larger_files, no_more_descriptors
from tests.store.test_open import ONE

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


@pytest.mark.req("D03")
def test_whatever_of_a_store_has_no_descriptor_left_it_is_said_how_to_get_more(
    tmp_path: Path,
) -> None:
    said = set()
    for free in range(20):
        with no_more_descriptors(but=free):
            try:
                with SqliteStore.open(str(tmp_path / str(free)), create=True) as store:
                    store.commit(ONE)
                break
            except StoreError as error:
                fault: StoreError | None = error
            except OSError as error:
                fault = outside_fault(error)
        assert fault is not None
        assert "ulimit -n" in (fault.hint or ""), (free, fault)
        said.add(fault.message.rpartition("' ")[2])
    assert len(said) > 2, said


@pytest.mark.req("D03")
def test_files_that_may_not_grow_are_told_from_those_that_may_not_be_made(tmp_path: Path) -> None:
    with no_larger_files(0), pytest.raises(StoreError, match="file too large") as made:
        SqliteStore.open(str(tmp_path / "new"), create=True)
    assert made.value.hint == "let files be larger (ulimit -f)"
    with SqliteStore.open(str(tmp_path / "store"), create=True) as store:
        with no_larger_files(0), pytest.raises(StoreError, match="I/O error") as written:
            store.commit(ONE)
        assert "ulimit -f" in (written.value.hint or "")
