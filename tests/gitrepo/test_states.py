"""States of a worktree: named by what the files hold, brought back exactly, kept as long as the worktree."""

from pathlib import Path

import pytest

from holdfast import gitrepo
from holdfast.errors import UsageError
from holdfast.gitrepo import Client, Worktree, keep_state, restore_state, touched
from holdfast.gitrepo.states import Touched
from tests.gitrepo.repository import repository


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    top = repository(tmp_path / "theirs", {"a.txt": "one\ntwo\n", ".gitignore": "*.log\n"})
    client: Client = gitrepo.open_client(str(top), str(tmp_path / "home"))
    return gitrepo.add_worktree(client, "t", "holdfast/t")


def test_the_same_files_have_one_name_whenever_they_are_kept(tree: Worktree) -> None:
    top = Path(tree.folder)
    first = keep_state(tree)
    (top / "new.txt").write_text("x\n")
    (top / "side.log").write_text("ignored\n")
    second = keep_state(tree)
    assert second != first
    (top / "new.txt").unlink()
    assert keep_state(tree) == first


@pytest.mark.req("R145")
def test_a_state_comes_back_exactly_and_what_was_there_can_too(tree: Worktree) -> None:
    top = Path(tree.folder)
    first = keep_state(tree)
    (top / "a.txt").write_text("other\n")
    (top / "a.txt").chmod(0o755)
    (top / "sub").mkdir()
    (top / "sub/b").write_bytes(b"\0\xff")
    second = keep_state(tree)
    assert restore_state(tree, first)
    assert (top / "a.txt").read_text() == "one\ntwo\n"
    assert not (top / "sub/b").exists()
    assert not restore_state(tree, first), "it is there already"
    assert restore_state(tree, second)
    assert (top / "sub/b").read_bytes() == b"\0\xff"
    assert (top / "a.txt").stat().st_mode & 0o111


def test_a_file_with_two_names_and_one_that_new_rules_hid_come_back_too(tree: Worktree) -> None:
    top = Path(tree.folder)
    first = keep_state(tree)
    (top / "0.txt").hardlink_to(top / "a.txt")
    (top / "0.txt").write_text("other\n")
    (top / ".gitignore").write_text("hidden\n")
    (top / "hidden").write_text("x\n")
    restore_state(tree, first)
    assert (top / "a.txt").read_text() == "one\ntwo\n"
    assert keep_state(tree) == first
    (top / "z.txt").hardlink_to(top / "a.txt")
    keep_state(tree)
    (top / "z.txt").write_text("other\n")
    assert (top / "a.txt").read_text() == "one\ntwo\n", "in a state each name is a file of its own"


def test_what_differs_between_states_is_counted_in_lines(tree: Worktree) -> None:
    top = Path(tree.folder)
    first = keep_state(tree)
    (top / "a.txt").write_text("one\n2\n3\n")
    (top / "bin").write_bytes(b"\0\1")
    second = keep_state(tree)
    found = touched(tree.client, first, second)
    assert found == (Touched("a.txt", 2, 1), Touched("bin", None, None))
    assert touched(tree.client, first, first) == ()


def test_states_outlast_a_collection_and_go_with_their_worktree(tree: Worktree) -> None:
    client = tree.client
    first = keep_state(tree)
    (Path(tree.folder) / "a.txt").write_text("other\n")
    keep_state(tree)
    gitrepo.collect(client, keep=0, age=0)
    assert restore_state(tree, first)
    gitrepo.remove_worktree(client, "t", changed="save", branch="delete")
    assert not gitrepo.has_state(tree, first)
    again = gitrepo.add_worktree(client, "t", "holdfast/t")
    with pytest.raises(UsageError, match="no state"):
        restore_state(again, first)
