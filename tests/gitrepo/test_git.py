import os
from pathlib import Path

import pytest

from holdfast.engine.worktrees import drop_worktree, drop_worktrees, make_worktree
from holdfast.errors import AttemptError, ProcessError, StoreError
from holdfast.gitrepo.git import contents, files, find, head
from tests.gitrepo.repository import git, inside, repository
from tests.scarce import no_more_descriptors

FILES = {"a.txt": "a\n", "src/b.txt": "b\n"}


def worktrees(root: Path) -> list[str]:
    return git(root, "worktree", "list", "--porcelain").count("worktree ") * ["one"]


@pytest.mark.req("D03")
def test_a_machine_without_descriptors_is_not_the_repositorys_fault(tmp_path: Path) -> None:
    found = find(str(repository(tmp_path / "repo", FILES)))
    assert found is not None
    with no_more_descriptors(), pytest.raises(StoreError, match="too many open files"):
        head(found)


@pytest.mark.req("D03")
@pytest.mark.parametrize("but", [0, 1], ids=["for the lock", "for what git keeps"])
def test_a_machine_without_descriptors_leaves_a_worktree_to_be_found_again(
    tmp_path: Path, but: int
) -> None:
    root, home = repository(tmp_path / "repo", FILES), str(tmp_path / "home")
    before = inside(root)
    copy = make_worktree(str(root), home, "r-1")
    with no_more_descriptors(but):
        drop_worktree(str(root), home, copy.top)  # after an attempt, whose result must not be lost
    assert inside(root) != before
    drop_worktrees(str(root), home, "r-1")
    assert inside(root) == before
    assert not (tmp_path / "home/worktrees/r-1").exists()


def test_a_worktree_has_the_files_of_the_commit_and_leaves_no_trace(tmp_path: Path) -> None:
    root, home = repository(tmp_path / "repo", FILES), str(tmp_path / "home")
    (root / "run.sh").write_text("echo\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "second")
    (root / "a.txt").write_text("not committed\n")
    before = inside(root)
    copy = make_worktree(str(root), home, "r-1")
    top = Path(copy.top)
    assert (top / "a.txt").read_text() == "a\n"
    assert (top / "src/b.txt").read_text() == "b\n"
    assert os.access(top / "run.sh", os.X_OK)
    assert os.readlink(top / "link") == "a.txt"
    assert git(top, "status", "--porcelain") == ""
    assert git(top, "rev-parse", "--abbrev-ref", "HEAD").strip() == "HEAD"
    assert len(worktrees(root)) == 2
    drop_worktree(str(root), home, copy.top)
    assert inside(root) == before, "index, branches and HEAD are as they were"
    assert (root / "a.txt").read_text() == "not committed\n"
    assert not (tmp_path / "home/worktrees/r-1").exists()


def test_what_a_killed_engine_left_is_removed_and_other_worktrees_stay(tmp_path: Path) -> None:
    root, home = repository(tmp_path / "repo", FILES), str(tmp_path / "home")
    git(root, "worktree", "add", "-q", str(tmp_path / "mine"))
    git(root, "worktree", "add", "-q", str(tmp_path / "gone"))
    (tmp_path / "gone").rename(tmp_path / "elsewhere")  # on a disk that is not there now
    before = inside(root)
    one = make_worktree(str(root), home, "r-1")
    make_worktree(str(root), home, "r-1")
    git(root, "worktree", "lock", one.top)
    drop_worktrees(str(root), home, "r-1")
    assert inside(root) == before
    assert (tmp_path / "mine/a.txt").exists()


def test_no_repository_and_no_commit_are_told(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(ProcessError, match="not a git repository"):
        find(str(tmp_path / "plain"))
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(ProcessError):
        head(find(str(tmp_path / "empty")))
    with pytest.raises(AttemptError, match="no worktree"):
        make_worktree(str(tmp_path / "empty"), str(tmp_path / "home"), "r-1")


def test_variables_of_a_hook_do_not_lead_to_another_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo", FILES)
    other = repository(tmp_path / "other", {"other.txt": "other\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    found = find(str(root))
    assert {file.path for file in files(found, head(found))} == {b"a.txt", b"src/b.txt"}


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    root, home = repository(tmp_path / "repo", FILES), str(tmp_path / "home")
    marker = tmp_path / "ran"
    trap = f"touch {marker}; cat"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    (root / ".gitattributes").write_text("* filter=trap diff=trap text eol=crlf\n")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        (root / ".git/hooks" / hook).write_text(script.read_text())
        (root / ".git/hooks" / hook).chmod(0o755)
    (root / "hooks").mkdir()
    git(root, "add", "-A")
    git(root, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "trap")
    for key, value in {
        "core.hooksPath": str(root / ".git/hooks"),
        "core.fsmonitor": str(script),
        "core.pager": str(script),
        "core.sshCommand": str(script),
        "core.editor": str(script),
        "credential.helper": f"!{script}",
        "diff.external": str(script),
        "diff.trap.textconv": str(script),
        "filter.trap.smudge": trap,
        "filter.trap.clean": trap,
        "filter.trap.process": str(script),
        "filter.trap.required": "true",
        "gpg.program": str(script),
        "commit.gpgsign": "true",
        "alias.worktree": f"!{script}",
        "alias.ls-tree": f"!{script}",
        "uploadpack.packObjectsHook": str(script),
    }.items():
        git(root, "config", key, value)
    marker.unlink(missing_ok=True)
    copy = make_worktree(str(root), home, "r-1")
    assert (Path(copy.top) / "a.txt").read_bytes() == b"a\n", "as it is stored, through no filter"
    drop_worktree(str(root), home, copy.top)
    assert not marker.exists()


def test_a_tree_that_leads_outside_is_refused(tmp_path: Path) -> None:
    root, home = repository(tmp_path / "repo", FILES), str(tmp_path / "home")
    blob = git(root, "rev-parse", "HEAD:a.txt").strip()
    entry = f"100644 blob {blob}\t"
    for name in ("..", ".git"):
        listed = tmp_path / "listed"
        tree = _tree(root, listed, f"{entry}{name}\n")
        commit = git(root, "commit-tree", tree, "-m", "bad").strip()
        git(root, "update-ref", "HEAD", commit)
        try:
            copy = make_worktree(str(root), home, "r-1")
        except AttemptError:
            continue
        assert not (Path(copy.top).parent / "a").exists()
        assert (Path(copy.top) / ".git").read_text().startswith("gitdir:")
        drop_worktrees(str(root), home, "r-1")
    assert not (tmp_path / "home/worktrees/r-1").exists()


def _tree(root: Path, place: Path, listed: str) -> str:
    import subprocess

    place.write_text(listed)
    done = subprocess.run(
        ["git", "mktree"], cwd=root, input=listed, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_content_that_is_missing_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    found = find(str(root))
    with pytest.raises(ProcessError, match="no file content"):
        list(contents(found, ["0" * 40]))
