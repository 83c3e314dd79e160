"""A journal whose files a person changed meanwhile: his version stays, ours is stored, nothing is blocked."""

from pathlib import Path

import pytest

from holdfast.edits.apply import apply, recover
from holdfast.edits.change import FileChange
from holdfast.engine.outputs import Outputs
from holdfast.engine.removed import Left, prune
from holdfast.errors import EditError
from holdfast.model.artifact import Entry
from holdfast.model.digest import digest_bytes
from holdfast.model.plan import StepId
from holdfast.store.sqlite import SqliteStore

OLD, NEW, THEIRS = b"old\n", b"new\n", b"theirs\n"
KEY = "r-1.a.1.back"


@pytest.mark.req("I7", "R74")
@pytest.mark.parametrize("committed", [True, False])
def test_a_conflict_does_not_block_the_next_edit(committed: bool, tmp_path: Path) -> None:
    root, home = tmp_path / "project", tmp_path / ".holdfast"
    root.mkdir()
    place = root / "out.txt"
    place.write_bytes(OLD)
    with SqliteStore.open(str(home), create=True) as store:
        journal = str(home / "apply" / "r-1")
        new = store.put(NEW)
        first = Outputs(str(root), journal, store)
        first.write(first.changes(["out.txt"], [Entry("out.txt", new)]), KEY)
        place.write_bytes(THEIRS)
        outputs = Outputs(str(root), journal, store)
        assert outputs.recover(lambda _: committed) == ["out.txt"]
        assert place.read_bytes() == THEIRS
        assert {store.get(digest_bytes(OLD)), store.get(digest_bytes(NEW))} == {OLD, NEW}
        outputs.write(outputs.changes(["out.txt"], [Entry("out.txt", new)]), KEY)
        outputs.placed(KEY)
        assert place.read_bytes() == NEW
    assert list((home / "apply").glob("*/*")) == []


@pytest.mark.req("I7")
def test_a_file_written_again_while_it_is_removed_does_not_block_the_next_removal(
    tmp_path: Path,
) -> None:
    root, home = tmp_path / "project", tmp_path / ".holdfast"
    for folder in (root, home, home / "apply"):
        folder.mkdir()
    digest = digest_bytes(OLD)
    for name in ("a.txt", "b.txt"):
        (root / name).write_bytes(OLD)
    journal = str(home / "apply" / "removed")
    changes = [FileChange("a.txt", digest, None)]
    apply(str(root), changes, lambda _: OLD, journal_dir=journal, key="prune")
    (root / "a.txt").write_bytes(THEIRS)
    assert recover(str(root), journal, committed=lambda _: True)[0].conflicts
    more = [FileChange("b.txt", digest, None)]
    with pytest.raises(EditError, match="journal already"):
        apply(str(root), more, lambda _: OLD, journal_dir=journal, key="prune")
    prune(str(root), str(home), [Left(StepId("b"), "b.txt", digest)])
    assert {path.name for path in root.iterdir()} == {"a.txt"}
    assert (root / "a.txt").read_bytes() == THEIRS
