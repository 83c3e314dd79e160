"""What a client does in its own worktrees, and what it never does to the person's tree."""

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import gitrepo
from holdfast.errors import (
    EditError,
    GitError,
    HoldfastError,
    StaleError,
    StoreError,
    UsageError,
)
from tests.gitrepo.repository import git, inside
from tests.gitrepo.scene import ANN, Scene, copied, scene
from tests.scarce import no_more_descriptors


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("prepared") / "scene")


@pytest.fixture
def at(prepared: Scene, tmp_path: Path) -> Scene:
    return copied(prepared, tmp_path / "scene")


@pytest.mark.req("D03")
def test_a_machine_without_descriptors_is_not_gits_fault(at: Scene) -> None:
    client = at.client()
    assert gitrepo.resolve(client, "main")
    with no_more_descriptors(), pytest.raises(StoreError, match="too many open files"):
        gitrepo.resolve(client, "main")


@pytest.mark.req("R143")
def test_commits_are_made_beside_the_person_with_their_trailers(at: Scene) -> None:
    client = at.client()
    (at.root / "mine").write_text("mine\n")
    git(at.root, "add", "mine")
    before = {path: body for path, body in inside(at.root).items() if "objects" not in path}
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    top = Path(tree.folder)
    (top / "a.txt").write_text("fixed\n")
    (top / "run.sh").write_text("echo\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("a.txt")
    (top / "src/b.txt").unlink()
    told = gitrepo.trailers_for(run="r-1", step="fix", config_ref="c0ffee")
    made = gitrepo.commit(tree, "fix the table\n\nIt was wrong.", identity=ANN, trailers=told)
    found = gitrepo.show(client, made.oid)
    assert found.trailers == tuple(told.items())
    assert (found.parents, found.trailer("holdfast-step")) == (
        (gitrepo.resolve(client, "main"),),
        "fix",
    )
    modes = {file.path: file.mode for file in gitrepo.list_files(client, made.oid)}
    assert (modes["run.sh"], modes["link"]) == ("100755", "120000")
    assert [(row.kind, row.path) for row in gitrepo.diff_trees(client, "main", made.oid)] == [
        ("M", "a.txt"), ("A", "link"), ("A", "run.sh"), ("D", "src/b.txt"),
    ]  # fmt: skip
    with pytest.raises(EditError, match="nothing to commit"):
        gitrepo.commit(tree, "again", identity=ANN)
    after = {path: body for path, body in inside(at.root).items() if "objects" not in path}
    kept = {path for path in after if path not in before}
    assert kept == {f".git/refs/holdfast/keep/{made.parent}"}
    assert {path: after[path] for path in before} == before, "index, branches, HEAD, reflogs"
    gitrepo.move_branch(client, "holdfast/fix", new=made.oid, old=None)
    assert git(at.root, "show", "holdfast/fix:a.txt") == "fixed\n"
    git(at.root, "fsck", "--strict")


@pytest.mark.req("R143")
def test_status_sees_what_git_sees(at: Scene) -> None:
    client = at.client()
    (at.root / "staged").write_text("s\n")
    git(at.root, "add", "staged")
    (at.root / "staged").write_text("changed since\n")
    (at.root / "src/b.txt").unlink()
    (at.root / "ignored").mkdir()
    (at.root / "ignored/x").write_text("x\n")
    found = gitrepo.status(client, ignored=True)
    assert (found.branch, found.head) == ("main", gitrepo.resolve(client, "main"))
    assert {(row.path, row.kind, row.staged, row.unstaged) for row in found.entries} == {
        ("staged", "changed", "A", "M"),
        ("src/b.txt", "changed", ".", "D"),
        ("ignored/", "ignored", ".", "."),
    }
    patch = gitrepo.diff_files_text(client)
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    assert set(gitrepo.apply_patch(tree, patch)) == {"staged", "src/b.txt"}
    assert gitrepo.diff_files_text(tree) == patch, "what was told applies, and tells the same"


def test_an_index_that_is_split_is_read(at: Scene) -> None:
    git(at.root, "update-index", "--split-index")
    (at.root / "mine").write_text("mine\n")
    git(at.root, "add", "mine")
    assert [row.path for row in gitrepo.status(at.client()).entries] == ["mine"]
    assert gitrepo.take_snapshot(at.client()).left == ()


@pytest.mark.req("R143")
def test_a_patch_applies_whole_or_not_at_all(at: Scene) -> None:
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix", "side")
    patch = gitrepo.diff_trees_text(client, "one", "two")
    for merge in (False, True):
        with pytest.raises(GitError) as caught:
            gitrepo.apply_patch(tree, patch, merge=merge)
        assert caught.value.ended == 1
        assert "x.trap" in caught.value.said
        assert gitrepo.status(tree).is_clean
    outside = b"--- a/../out\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(HoldfastError):
        gitrepo.apply_patch(tree, outside)
    assert not (Path(tree.folder).parent / "out").exists()


@pytest.mark.req("R143")
def test_the_persons_tree_follows_only_if_it_is_clean(at: Scene) -> None:
    client = at.client()
    old = gitrepo.resolve(client, "main")
    made = gitrepo.commit_files(
        client,
        {"a.txt": b"us\n", "new/x": b"x\n", "src/b.txt": None},
        "us",
        onto="main",
        identity=ANN,
    )
    with pytest.raises(EditError, match='is on branch "main": its files would look changed'):
        gitrepo.move_branch(client, "main", new=made.oid, old=old)
    (at.root / "mine").write_text("mine\n")
    before = inside(at.root)
    with pytest.raises(EditError, match="is not clean: nothing was done"):
        gitrepo.move_branch(client, "main", new=made.oid, old=old, follow=True)
    assert inside(at.root) == before
    (at.root / "mine").unlink()
    gitrepo.move_branch(client, "main", new=made.oid, old=old, follow=True)
    assert git(at.root, "status", "--porcelain") == ""
    assert git(at.root, "rev-parse", "main").strip() == made.oid
    assert (at.root / "new/x").read_text() == "x\n"
    assert not (at.root / "src/b.txt").exists()


@pytest.mark.req("R143", "C27")
def test_of_two_who_move_a_branch_one_wins_and_the_other_is_told(at: Scene) -> None:
    client = at.client()
    old = gitrepo.create_branch(client, "target", "main").oid
    won: list[str] = []
    told: list[str] = []
    others = [gitrepo.open_client(str(at.root), str(at.folder / f"home-{n}")) for n in (1, 2)]
    start = threading.Barrier(2)

    def move(mover: gitrepo.Client, new: str) -> None:
        start.wait()
        try:
            won.append(gitrepo.move_branch(mover, "target", new=new, old=old).oid)
        except StaleError as error:
            told.append(error.message)

    texts = (b"one\n", b"two\n")
    made = [
        gitrepo.commit_files(other, {"a.txt": text}, "x", onto="main", identity=ANN).oid
        for other, text in zip(others, texts, strict=True)
    ]
    threads = [threading.Thread(target=move, args=pair) for pair in zip(others, made, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(told) == 1
    assert git(at.root, "rev-parse", "target").strip() == won[0]
    assert "somebody else moved it" in told[0]


@pytest.mark.req("C27")
def test_branches_are_worked_on_at_once_and_apart(at: Scene) -> None:
    client = at.client()
    trees = [gitrepo.add_worktree(client, f"w{n}", f"holdfast/w{n}") for n in range(3)]
    assert gitrepo.list_worktrees(client) == tuple(trees)
    with pytest.raises(UsageError, match='branch "holdfast/w1" is in worktree "w1"'):
        gitrepo.add_worktree(client, "other", "holdfast/w1")
    errors: list[BaseException] = []

    def work(tree: gitrepo.Worktree) -> None:
        try:
            for number in range(3):
                (Path(tree.folder) / f"{tree.name}.txt").write_text(f"{number}\n")
                gitrepo.commit(tree, f"{tree.name} {number}", identity=ANN)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(tree,)) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for tree in trees:
        own = gitrepo.log(client, str(gitrepo.head_of(tree)), since="main")
        assert [commit.subject for commit in own] == [f"{tree.name} {n}" for n in (2, 1, 0)]
    (Path(trees[0].folder) / "left").write_text("left\n")
    with pytest.raises(EditError, match="not committed"):
        gitrepo.remove_worktree(client, "w0")
    saved = gitrepo.remove_worktree(client, "w0", changed="save", branch="delete")
    assert saved is not None
    assert not os.path.exists(trees[0].folder)
    gitrepo.remove_worktree(client, "w0")
    assert [tree.name for tree in gitrepo.list_worktrees(client)] == ["w1", "w2"]


@pytest.mark.parametrize("changed", ["refuse", "save"])
def test_no_worktree_is_removed_with_what_no_snapshot_holds(at: Scene, changed: Any) -> None:
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix", "main")
    inside, ignored = Path(tree.folder) / "deep/inside", Path(tree.folder) / "ignored"
    inside.mkdir(parents=True)
    git(inside, "init", "-q", ".")
    (inside / "work").write_text("weeks of work\n")
    with pytest.raises(EditError, match='repositories of their own inside: "deep/inside"'):
        gitrepo.remove_worktree(client, "fix", changed=changed, ignored="drop")
    inside.rename(at.folder / "moved")
    ignored.mkdir()
    for number in range(7):
        (ignored / f"{number}").write_text("made\n")
    with pytest.raises(EditError, match='files that git ignores: "ignored/"'):
        gitrepo.remove_worktree(client, "fix", changed=changed)
    assert sorted(path.name for path in ignored.iterdir()) == [str(n) for n in range(7)]
    gitrepo.remove_worktree(client, "fix", changed=changed, ignored="drop")
    assert not os.path.exists(tree.folder)
    assert (at.folder / "moved/work").read_text() == "weeks of work\n"


def test_a_submodule_that_was_never_filled_keeps_no_worktree(at: Scene) -> None:
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix", "main")
    words = f"160000,{gitrepo.resolve(client, 'main')},module"
    git(Path(tree.folder), "update-index", "--add", "--cacheinfo", words)
    (Path(tree.folder) / "module").mkdir()
    gitrepo.remove_worktree(client, "fix", changed="save")
    assert not os.path.exists(tree.folder)


@pytest.mark.req("R143")
def test_what_the_person_prunes_does_not_break_our_branches(at: Scene) -> None:
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix", "side")
    base = gitrepo.resolve(client, "side")
    (Path(tree.folder) / "new").write_text("new\n")
    gitrepo.commit(tree, "new", identity=ANN)
    git(at.root, "branch", "-D", "side")
    git(at.root, "reflog", "expire", "--expire=now", "--all")
    git(at.root, "gc", "-q", "--prune=now")
    git(at.root, "worktree", "prune")
    assert gitrepo.status(tree).is_clean
    git(at.folder, "--git-dir", client.work, "gc", "-q", "--prune=now")
    git(at.folder, "--git-dir", client.work, "worktree", "prune")
    git(at.folder, "--git-dir", client.work, "fsck", "--strict")
    assert [
        commit.subject for commit in gitrepo.log(client, str(gitrepo.head_of(tree)), most=2)
    ] == ["new", "side"]
    gitrepo.remove_worktree(client, "fix", branch="delete")
    assert base not in git(at.root, "for-each-ref"), "and is let go when nothing needs it"


def test_a_lock_of_somebody_else_is_left_and_one_of_the_dead_is_cleared(at: Scene) -> None:
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    lock = Path(tree.git_dir) / "index.lock"
    lock.write_text("")
    (Path(tree.folder) / "new").write_text("new\n")
    with pytest.raises(GitError, match=r"index\.lock"):
        gitrepo.commit(tree, "new", identity=ANN)
    assert lock.exists()
    (Path(client.home) / "busy").write_text('{"doing": "commit"}')
    gitrepo.commit(tree, "new", identity=ANN)
    assert not lock.exists()


def test_a_lock_in_the_persons_repository_is_cleared_only_if_it_is_ours(at: Scene) -> None:
    client = at.client()
    theirs = at.root / ".git/packed-refs.lock"
    theirs.write_text("")
    os.utime(theirs, ns=(0, 0))  # older than what we did
    busy = Path(client.home) / "busy"
    busy.write_text('{"doing": "worktree"}')
    ours = at.root / ".git/refs/holdfast/keep" / f"{gitrepo.resolve(client, 'main')}.lock"
    ours.parent.mkdir(parents=True)
    with ours.open("w") as held:
        with pytest.raises(GitError, match=r"\.lock"):
            gitrepo.add_worktree(client, "fix", "holdfast/fix")
        assert not held.closed, "somebody has it open"
    busy.write_text('{"doing": "worktree"}')
    os.utime(ours)
    gitrepo.add_worktree(client, "fix", "holdfast/fix")
    assert theirs.exists()
    assert not ours.exists()


def test_git_runs_in_a_sandbox_too(
    at: Scene, require_part: Callable[[str], str], tmp_path: Path
) -> None:
    """Words before git: here it can write to our home only, and reach no network."""
    bwrap = require_part("bubblewrap")
    home = tmp_path / "home"
    home.mkdir()
    words: tuple[str, ...] = (
        bwrap,
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--ro-bind",  # it may lie in /dev/shm
        str(tmp_path),
        str(tmp_path),
        "--bind",
        str(home),
        str(home),
    )
    words += ("--unshare-net", "--die-with-parent", "--")
    client = gitrepo.open_client(str(at.root), str(home), before=words)
    tree = gitrepo.add_worktree(
        client,
        "fix",
        "holdfast/fix",
        gitrepo.commit_files(client, {"a.txt": b"us\n"}, "us", onto="main", identity=ANN).oid,
    )
    (Path(tree.folder) / "new").write_text("new\n")
    made = gitrepo.commit(tree, "new", identity=ANN)
    assert gitrepo.show_file(client, made.oid, "new") == b"new\n"
    with pytest.raises(GitError, match="Read-only file system"):
        gitrepo.move_branch(client, "x", new=made.oid, old=None)


def test_shallow_clones_and_other_object_formats_work(at: Scene, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{at.root}", "shallow")
    client = gitrepo.open_client(str(tmp_path / "shallow"), str(tmp_path / "home-1"))
    assert len(gitrepo.log(client, "HEAD")) == 1
    big = tmp_path / "big"
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", "big")
    (big / "a").write_text("a\n")
    git(big, "add", "-A")
    git(big, "commit", "-q", "-m", "first")
    other = gitrepo.open_client(str(big), str(tmp_path / "home-2"))
    tree = gitrepo.add_worktree(other, "fix", "holdfast/fix")
    (Path(tree.folder) / "a").write_text("b\n")
    made = gitrepo.commit(tree, "b", identity=ANN)
    assert len(made.oid) == 64
    gitrepo.move_branch(other, "holdfast/fix", new=made.oid, old=None)
    gitrepo.rollback(tree, "main")
    assert (Path(tree.folder) / "a").read_text() == "a\n"


def test_before_the_first_commit_there_is_a_status_and_a_snapshot(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "repo")
    root = tmp_path / "repo"
    client = gitrepo.open_client(str(root), str(tmp_path / "home"))
    (root / "a").write_text("a\n")
    found = gitrepo.status(client)
    assert (found.head, found.branch, [row.path for row in found.entries]) == (None, "main", ["a"])
    assert [row.path for row in gitrepo.diff_files(client)] == ["a"]
    snapshot = gitrepo.take_snapshot(client)
    (root / "a").write_text("b\n")
    gitrepo.restore_snapshot(client, snapshot.oid, dirty="save")
    assert (root / "a").read_text() == "a\n"
    with pytest.raises(UsageError, match="names no commit"):
        gitrepo.add_worktree(client, "fix", "holdfast/fix")


@pytest.mark.req("R143")
@pytest.mark.parametrize("path", ["ignored/x", "ignored", "ignored/x/y"])
def test_what_git_ignores_is_never_overwritten(at: Scene, path: str) -> None:
    client = at.client()
    old = gitrepo.resolve(client, "main")
    tree = gitrepo.add_worktree(client, "ours", "ours", "main")
    made = gitrepo.commit_files(client, {path: b"us\n"}, "us", onto="main", identity=ANN)
    (Path(tree.folder) / "z").write_text("z\n")
    gitrepo.commit(tree, "z", identity=ANN)
    for top in (at.root, Path(tree.folder)):
        (top / "ignored").mkdir()
        (top / "ignored/x").write_text("the only copy\n")
    with pytest.raises(EditError, match='"ignored/x" is there, git ignores it'):
        gitrepo.move_branch(client, "main", new=made.oid, old=old, follow=True)
    with pytest.raises(EditError, match='"ignored/x" is there, git ignores it'):
        gitrepo.rebase(tree, made.oid, identity=ANN)
    for top in (at.root, Path(tree.folder)):
        assert (top / "ignored/x").read_text() == "the only copy\n"
    assert gitrepo.resolve(client, "main") == old


@pytest.mark.req("R143")
def test_a_file_may_become_a_folder_and_a_folder_a_file(at: Scene) -> None:
    client = at.client()
    old = gitrepo.resolve(client, "main")
    files = {"a.txt": None, "a.txt/in": b"us\n", "src/b.txt": None, "src": b"us\n"}
    made = gitrepo.commit_files(client, files, "us", onto="main", identity=ANN)
    gitrepo.move_branch(client, "main", new=made.oid, old=old, follow=True)
    assert git(at.root, "status", "--porcelain") == ""
    assert (at.root / "a.txt/in").read_text() == (at.root / "src").read_text() == "us\n"


@pytest.mark.req("R143")
def test_a_branch_that_is_another_name_of_one_is_not_moved(at: Scene) -> None:
    client = at.client()
    old = gitrepo.resolve(client, "main")
    git(at.root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    made = gitrepo.commit_files(client, {"a.txt": b"us\n"}, "us", onto="main", identity=ANN)
    with pytest.raises(UsageError, match='"refs/heads/alias" is another name of "refs/heads/main"'):
        gitrepo.move_branch(client, "alias", new=made.oid, old=old)
    with pytest.raises(UsageError, match="is another name of"):
        gitrepo.delete_branch(client, "alias", old=old)
    assert git(at.root, "rev-parse", "main").strip() == old


@pytest.mark.req("R143")
def test_a_branch_that_the_person_is_rebasing_is_not_moved(at: Scene) -> None:
    client = at.client()
    git(at.root, "checkout", "-q", "-b", "topic")
    (at.root / "a.txt").write_text("topic\n")
    git(at.root, "commit", "-qam", "topic")
    topic = gitrepo.resolve(client, "topic")
    git(at.root, "checkout", "-q", "main")
    (at.root / "a.txt").write_text("main\n")
    git(at.root, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(at.root, "rebase", "main", "topic")
    with pytest.raises(EditError, match='is on branch "topic"'):
        gitrepo.move_branch(client, "topic", new=gitrepo.resolve(client, "main"), old=topic)
    assert git(at.root, "rev-parse", "topic").strip() == topic
