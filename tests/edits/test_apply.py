"""A set of files is changed whole or not at all, and a person's bytes are never lost."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from holdfast.edits.apply import Claims, Conflict, Recovered, apply, forget, recover
from holdfast.edits.change import ANY, FileChange
from holdfast.errors import EditError, IntegrityError, StoreError


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


CONTENT = {digest(body): body for body in (b"one", b"two", b"three", b"person")}
ONE, TWO, THREE = digest(b"one"), digest(b"two"), digest(b"three")


def tree(root: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every entry below the root: permission bits, and content where it is a file."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode & 0o7777,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(root.rglob("*"))
    }


def never(key: str) -> bool:
    return False


def always(key: str) -> bool:
    return True


class Site:
    def __init__(self, base: Path) -> None:
        self.root = base / "project"
        self.journals = base / "journals"
        self.root.mkdir()
        self.put("a.txt", b"one")

    def put(self, path: str, content: bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o644)
        return target

    def apply(
        self,
        *changes: FileChange,
        key: str = "k",
        content: Callable[[str], bytes | Iterable[bytes]] = CONTENT.__getitem__,
    ) -> None:
        apply(str(self.root), changes, content, journal_dir=str(self.journals), key=key)

    def recover(self, committed: Callable[[str], bool]) -> list[Recovered]:
        return recover(str(self.root), str(self.journals), committed=committed)

    def open_journals(self) -> list[str]:
        return sorted(os.listdir(self.journals)) if self.journals.exists() else []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.req("I7")
def test_modifies_creates_deletes_and_sets_modes(site: Site) -> None:
    site.put("gone.txt", b"two")
    site.apply(
        FileChange("gone.txt", TWO, None),
        FileChange("a.txt", ONE, THREE, 0o755),
        FileChange("new/deep/b.txt", None, TWO, 0o600),
    )
    assert {path: entry for path, entry in tree(site.root).items() if entry[1] is not None} == {
        "a.txt": (0o755, b"three"),
        "new/deep/b.txt": (0o600, b"two"),
    }
    assert site.open_journals() == ["k"]
    forget(str(site.journals), "k")
    assert site.open_journals() == []


def test_content_may_come_in_pieces_and_any_skips_the_check(site: Site) -> None:
    site.apply(FileChange("a.txt", ANY, TWO), content=lambda _: iter([b"t", b"", b"wo"]))
    assert (site.root / "a.txt").read_bytes() == b"two"


def test_mode_alone_can_change_and_be_rolled_back(site: Site) -> None:
    before = tree(site.root)
    site.apply(FileChange("a.txt", ONE, ONE, 0o755))
    assert tree(site.root) == {"a.txt": (0o755, b"one")}
    assert site.recover(never) == [Recovered("k", False, ())]
    assert tree(site.root) == before


def test_a_file_keeps_its_owner_also_when_it_is_brought_back(site: Site) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    file = site.root / "a.txt"
    os.chown(file, 12345, 54321)
    site.apply(FileChange("a.txt", ONE, TWO))
    assert file.read_bytes() == b"two"
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 54321)
    site.recover(never)
    assert file.read_bytes() == b"one"
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 54321)


def test_a_file_keeps_its_group_where_it_is_one_of_ours(site: Site) -> None:
    file = site.root / "a.txt"
    groups = [group for group in os.getgroups() if group != file.stat().st_gid]
    if not groups:
        pytest.skip("this process has one group")
    os.chown(file, -1, groups[0])
    site.apply(FileChange("a.txt", ONE, TWO))
    assert file.stat().st_gid == groups[0]


def test_deleting_what_is_absent_is_no_change(site: Site) -> None:
    before = tree(site.root)
    site.apply(FileChange("no/such", ANY, None))
    assert tree(site.root) == before


@pytest.mark.req("I7")
def test_conflict_names_every_path_and_writes_nothing(site: Site) -> None:
    site.put("b.txt", b"person")
    before = tree(site.root)
    with pytest.raises(EditError, match=r'"a.txt", "b.txt", "c.txt"'):
        site.apply(
            FileChange("ok.txt", None, ONE),
            FileChange("a.txt", TWO, THREE),
            FileChange("b.txt", None, THREE),
            FileChange("c.txt", ONE, None),
        )
    assert tree(site.root) == before
    assert site.open_journals() == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FileChange("x", None, ONE), FileChange("x", None, TWO)),
        (FileChange("x", None, ONE), FileChange("x/y", None, TWO)),
        (FileChange("x", None, None), FileChange("x/y", None, None)),
        (FileChange("x", None, ONE), FileChange("X/y", None, TWO)),
        (FileChange("x", None, ONE), FileChange("X", None, TWO)),
        (FileChange("\u00e9", None, ONE), FileChange("e\u0301", None, TWO)),
        (FileChange("ﬁ", None, ONE), FileChange("fi", None, TWO)),
    ],
)
@pytest.mark.req("D22")
def test_two_changes_of_one_path_or_its_parent_are_refused(
    site: Site, first: FileChange, second: FileChange
) -> None:
    before = tree(site.root)
    for pair in ((first, second), (second, first)):
        with pytest.raises(EditError):
            site.apply(*pair)
    assert tree(site.root) == before


def test_a_rename_by_case_is_allowed_where_names_differ(site: Site) -> None:
    if (site.root / "A.TXT").exists():
        pytest.skip("this file system folds case")
    site.apply(FileChange("a.txt", ONE, None), FileChange("A.txt", None, ONE))
    assert tree(site.root) == {"A.txt": (0o644, b"one")}


NEST = (FileChange("n", None, TWO), FileChange("n/in/egg", ONE, None))


@pytest.mark.req("I7")
@pytest.mark.parametrize("turn", [1, -1])
def test_a_file_takes_the_place_of_a_directory_and_back(site: Site, turn: int) -> None:
    (site.root / "n/in").mkdir(parents=True)
    (site.root / "n/in/egg").write_bytes(b"one")
    before = tree(site.root)
    site.apply(*NEST[::turn])
    assert tree(site.root)["n"] == (0o644, b"two")
    site.recover(never)
    assert tree(site.root) == before
    deeper = (FileChange("a.txt", ONE, None), FileChange("a.txt/y", None, TWO))
    site.apply(*deeper[::turn])
    assert tree(site.root)["a.txt/y"] == (0o644, b"two")
    site.recover(never)
    assert tree(site.root) == before


@pytest.mark.req("I7")
def test_a_directory_with_something_else_in_it_stays(site: Site) -> None:
    (site.root / "n/in").mkdir(parents=True)
    (site.root / "n/in/egg").write_bytes(b"one")
    (site.root / "n/mine").write_bytes(b"mine")
    before = tree(site.root)
    with pytest.raises(EditError, match="not as expected"):
        site.apply(*NEST)
    assert tree(site.root) == before


def test_names_that_differ_by_case_are_two_where_both_are_there(site: Site) -> None:
    if (site.root / "A.TXT").exists():
        pytest.skip("this file system folds case")
    (site.root / "A.TXT").mkdir()
    (site.root / "A.TXT/q").write_bytes(b"one")
    site.apply(FileChange("a.txt", ONE, TWO), FileChange("A.TXT/q", ONE, TWO))
    assert (site.root / "A.TXT/q").read_bytes() == (site.root / "a.txt").read_bytes() == b"two"


@pytest.mark.parametrize("bad", ["", "sha", ONE.upper(), ONE + "0", ANY])
def test_a_change_holds_real_digests_and_plain_modes(bad: str) -> None:
    with pytest.raises(EditError):
        FileChange("a", None, bad)
    with pytest.raises(EditError):
        FileChange("a", None, ONE, 0o4755)


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", ".hidden", "a\0b", "k" * 300])
def test_a_key_is_one_plain_name(site: Site, key: str) -> None:
    with pytest.raises(EditError):
        site.apply(FileChange("a.txt", ONE, TWO), key=key)


def test_content_with_another_digest_is_never_placed(site: Site) -> None:
    before = tree(site.root)
    with pytest.raises(IntegrityError):
        site.apply(FileChange("a.txt", ONE, TWO), content=lambda _: b"other")
    assert (tree(site.root), site.open_journals()) == (before, [])


def test_an_unfinished_edit_keeps_others_from_its_paths(site: Site) -> None:
    site.apply(FileChange("a.txt", ONE, TWO), key="first")
    with pytest.raises(EditError, match="first"):
        site.apply(FileChange("a.txt", TWO, THREE), key="second")
    with pytest.raises(EditError, match="first"):
        site.apply(FileChange("b.txt", None, THREE), key="first")
    site.apply(FileChange("b.txt", None, THREE), key="second")
    assert site.open_journals() == ["first", "second"]


def test_who_edits_alone_need_not_read_what_it_claimed(site: Site) -> None:
    site.apply(FileChange("old.txt", None, ONE), key="before")
    claims = Claims(str(site.journals))

    def edit(path: str, before: str | None, after: str, key: str) -> None:
        place, change = str(site.journals), FileChange(path, before, after)
        apply(
            str(site.root), [change], CONTENT.__getitem__, journal_dir=place, key=key, claims=claims
        )

    with pytest.raises(EditError, match="before"):
        edit("old.txt", ONE, TWO, "again")
    edit("a.txt", ONE, TWO, "first")
    written = (site.journals / "first" / "journal.json").read_bytes()
    (site.journals / "first" / "journal.json").write_bytes(b"not to be read")
    edit("b.txt", None, TWO, "second")
    with pytest.raises(EditError, match="first"):
        edit("a.txt", TWO, THREE, "third")
    (site.journals / "first" / "journal.json").write_bytes(written)
    with pytest.raises(EditError, match="second"):  # after a failure all is read again
        edit("b.txt", TWO, THREE, "third")
    forget(str(site.journals), "first")
    claims.forgotten("first")
    edit("a.txt", TWO, THREE, "third")
    assert site.open_journals() == ["before", "second", "third"]


def test_someone_writing_during_the_edit_keeps_their_bytes(site: Site) -> None:
    """The content of the last file is asked for after every check of the first."""
    site.put("b.txt", b"two")

    def content(wanted: str) -> bytes:
        if wanted == THREE:
            site.put("a.txt", b"person")
        return CONTENT[wanted]

    with pytest.raises(EditError, match=r'"a.txt"'):
        site.apply(
            FileChange("b.txt", TWO, ONE),
            FileChange("a.txt", ONE, TWO),
            FileChange("c/d", None, THREE),
            content=content,
        )
    assert tree(site.root) == {"a.txt": (0o644, b"person"), "b.txt": (0o644, b"two")}
    assert site.open_journals() == []


@pytest.mark.parametrize(
    ("committed", "a", "made"), [(never, b"one", None), (always, b"two", b"three")]
)
@pytest.mark.req("I7")
def test_recovery_goes_forward_if_committed_and_back_if_not(
    site: Site, committed: Callable[[str], bool], a: bytes, made: bytes | None
) -> None:
    site.apply(FileChange("a.txt", ONE, TWO), FileChange("n/m.txt", None, THREE))
    assert site.recover(committed) == [Recovered("k", committed is always, ())]
    found = tree(site.root)
    assert found["a.txt"][1] == a
    assert ("n" in found, found.get("n/m.txt", (0, None))[1]) == (made is not None, made)
    assert site.open_journals() == []
    assert site.recover(committed) == []


def test_a_persons_change_after_the_edit_stays_and_the_old_image_is_kept(site: Site) -> None:
    site.apply(
        FileChange("a.txt", ONE, TWO),
        FileChange("n/b.txt", None, TWO),
        FileChange("n/c.txt", None, TWO),
    )
    site.put("a.txt", b"person")
    site.put("n/mine.txt", b"person")
    copy = str(site.journals / "k" / "0.old")
    conflict = Conflict("a.txt", '"a.txt" was changed by someone else', copy)
    assert site.recover(never) == [Recovered("k", False, (conflict,))]
    assert {path: entry[1] for path, entry in tree(site.root).items()} == {
        "a.txt": b"person",
        "n": None,
        "n/mine.txt": b"person",
    }
    assert Path(copy).read_bytes() == b"one"
    assert site.recover(never) == []
    assert Path(copy).read_bytes() == b"one"
    forget(str(site.journals), "k")
    assert site.open_journals() == []


def test_a_change_made_while_the_new_file_was_written_stays(site: Site) -> None:
    """A damaged copy makes recovery ask for content: a moment after its look at the target."""
    site.apply(FileChange("a.txt", ONE, TWO))
    (site.journals / "k" / "0.old").write_bytes(b"rot")

    def content(wanted: str) -> bytes:
        site.put("a.txt", b"person")
        return CONTENT[wanted]

    root, journals = str(site.root), str(site.journals)
    (recovered,) = recover(root, journals, committed=never, content=content)
    assert [conflict.path for conflict in recovered.conflicts] == ["a.txt"]
    assert tree(site.root) == {"a.txt": (0o644, b"person")}


def test_a_link_put_in_place_of_a_directory_is_a_conflict(site: Site, tmp_path: Path) -> None:
    site.put("d/f", b"one")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"two")
    site.apply(FileChange("d/f", ONE, TWO), FileChange("a.txt", ONE, TWO))
    (site.root / "d").rename(site.root / "moved")
    (site.root / "d").symlink_to(outside)
    (recovered,) = site.recover(never)
    assert [conflict.path for conflict in recovered.conflicts] == ["d/f"]
    assert (outside / "f").read_bytes() == b"two"
    assert (site.root / "a.txt").read_bytes() == b"one"


def test_a_hard_link_made_after_the_edit_does_not_stop_recovery(site: Site) -> None:
    site.apply(FileChange("a.txt", ONE, TWO))
    (site.root / "backup").hardlink_to(site.root / "a.txt")
    assert site.recover(never) == [Recovered("k", False, ())]
    assert {path: entry[1] for path, entry in tree(site.root).items()} == {
        "a.txt": b"one",
        "backup": b"two",
    }


def test_a_deleted_file_returns_into_a_directory_that_is_gone(site: Site) -> None:
    site.put("d/e/f", b"two")
    site.apply(FileChange("d/e/f", TWO, None))
    (site.root / "d/e").rmdir()
    assert site.recover(never) == [Recovered("k", False, ())]
    assert (site.root / "d/e/f").read_bytes() == b"two"


def test_a_journal_directory_without_a_journal_is_litter(site: Site) -> None:
    before = tree(site.root)
    litter = site.journals / "half"
    litter.mkdir(parents=True)
    (litter / "0.old").write_bytes(b"on")
    (litter / "journal.json.tmp").write_bytes(b"{")
    assert site.recover(always) == []
    assert (site.open_journals(), tree(site.root)) == ([], before)


@pytest.mark.req("D06")
def test_a_damaged_journal_or_copy_stops_recovery_and_is_kept(site: Site) -> None:
    site.apply(FileChange("a.txt", ONE, TWO))
    copy = site.journals / "k" / "0.old"
    copy.write_bytes(b"rot")
    with pytest.raises(IntegrityError, match="damaged"):
        site.recover(never)
    assert tree(site.root) == {"a.txt": (0o644, b"two")}
    done = recover(str(site.root), str(site.journals), committed=never, content=CONTENT.__getitem__)
    assert done == [Recovered("k", False, ())]
    assert tree(site.root) == {"a.txt": (0o644, b"one")}
    site.apply(FileChange("a.txt", ONE, TWO))
    journal = site.journals / "k" / "journal.json"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-9])
    with pytest.raises(IntegrityError):
        site.recover(never)
    journal.write_text(json.dumps(json.loads(whole) | {"version": 99}))
    with pytest.raises(StoreError, match="version"):
        site.recover(never)
    assert tree(site.root) == {"a.txt": (0o644, b"two")}


def test_a_missing_root_or_home_of_journals_is_the_outside_worlds_fault(tmp_path: Path) -> None:
    change = FileChange("a", None, ONE)
    content = CONTENT.__getitem__
    with pytest.raises(StoreError):
        apply(str(tmp_path / "no"), [change], content, journal_dir=str(tmp_path / "j"), key="k")
    with pytest.raises(StoreError):
        apply(str(tmp_path), [change], content, journal_dir=str(tmp_path / "n/o/j"), key="k")
    assert recover(str(tmp_path), str(tmp_path / "none"), committed=never) == []
