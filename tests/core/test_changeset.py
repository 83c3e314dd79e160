import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import IntegrityError
from holdfast.model.artifact import Entry, tree_bytes, tree_entries
from holdfast.model.changeset import Change, changes_in, changeset_bytes
from holdfast.model.digest import Digest

digests = st.text("0123456789abcdef", min_size=64, max_size=64).map(Digest)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    path = draw(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
    digest = draw(st.none() | digests)
    base = draw(digests) if digest is None else draw(st.none() | digests)
    return Change(
        path,
        digest,
        executable=digest is not None and draw(st.booleans()),
        size=draw(st.integers(0, 10)) if digest is not None else 0,
        base=base,
        base_executable=base is not None and draw(st.booleans()),
        over=draw(st.none() | digests),
    )


@given(st.lists(changes(), unique_by=lambda change: change.path))
def test_a_set_of_changes_comes_back_as_it_was(some: list[Change]) -> None:
    manifest = changeset_bytes([], some)
    assert changes_in(manifest) == tuple(sorted(some, key=lambda change: change.path))
    written = [change.entry for change in some if change.entry is not None]
    assert list(tree_entries(manifest)) == sorted(written, key=lambda entry: entry.path)


def test_files_that_are_not_compared_are_files_and_no_changes() -> None:
    made = Entry("out", Digest("a" * 64), size=3)
    manifest = changeset_bytes([made], [Change("gone", None, base=Digest("b" * 64))])
    assert tree_entries(manifest) == (made,)
    assert changes_in(manifest) == (Change("gone", None, base=Digest("b" * 64)),)


def test_a_manifest_of_files_holds_no_changes_and_keeps_its_bytes() -> None:
    manifest = tree_bytes((Entry("out", Digest("a" * 64), executable=True, size=3),))
    assert changes_in(manifest) == ()
    assert json.loads(manifest).keys() == {"schema", "files"}


def test_what_is_no_manifest_is_refused() -> None:
    with pytest.raises(IntegrityError):
        changes_in(b"not json")
    with pytest.raises(IntegrityError):
        changes_in(b'{"files": [{"base": null}]}')
