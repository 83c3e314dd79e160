"""Nothing that a repository configures is run, whatever the client is asked."""

import os
import pty
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import gitrepo
from holdfast.engine.worktrees import drop_worktree, make_worktree
from tests.crash.report import Report
from tests.gitrepo.repository import git
from tests.gitrepo.scene import Scene, copied, everything, scene
from tests.gitrepo.vectors import COMMITTING, NOT_TOGETHER, VECTORS, Trap, fire

ALONE = ("hooks-path", "gpg-verify")  # hidden by, or hiding, others; all of them: the soak


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("prepared") / "scene")


def ask_all(at: Scene, trap: Trap) -> int:
    """Ask everything; how many things were asked. Fails at the first mark."""
    count = 0
    for name in everything(at):
        assert trap.marks() == [], name
        count += 1
    copy = make_worktree(str(at.root), str(at.folder / "engine"), "r-1")
    drop_worktree(str(at.root), str(at.folder / "engine"), copy.top)
    assert trap.marks() == [], "worktrees of attempts"
    return count


def armed(at: Scene, trap: Trap, *names: str) -> None:
    for name in sorted(names, key=lambda name: name not in COMMITTING):
        plant, _ = VECTORS[name]
        plant(at.root, trap.program(name))
    for mark in trap.folder.glob("*.mark"):
        mark.unlink()


@pytest.mark.req("D24")
@pytest.mark.parametrize("name", sorted(set(VECTORS) - {"pager"}))  # it needs a terminal: see below
def test_each_vector_is_one_for_plain_git(name: str, prepared: Scene, tmp_path: Path) -> None:
    at, trap = copied(prepared, tmp_path / "scene"), Trap(tmp_path / "trap")
    armed(at, trap, name)
    fire(at.root, VECTORS[name][1])
    assert trap.marks() == [name]


@pytest.mark.req("D24")
def test_the_pager_is_one_on_a_terminal(prepared: Scene, tmp_path: Path) -> None:
    at, trap = copied(prepared, tmp_path / "scene"), Trap(tmp_path / "trap")
    armed(at, trap, "pager")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(at.root)
        os.execvp("git", ["git", "log"])
    try:
        while os.read(terminal, 1024):
            pass
    except OSError:
        pass  # the terminal is closed with its last user
    os.waitpid(pid, 0)
    os.close(terminal)
    assert trap.marks() == ["pager"]


@pytest.mark.req("D24")
def test_all_at_once_start_nothing(prepared: Scene, tmp_path: Path) -> None:
    at, trap = copied(prepared, tmp_path / "scene"), Trap(tmp_path / "trap")
    armed(at, trap, *(name for name in VECTORS if name not in NOT_TOGETHER))
    assert ask_all(at, trap) >= 20


@pytest.mark.req("D24")
@pytest.mark.parametrize("name", ALONE)
def test_one_alone_starts_nothing(name: str, prepared: Scene, tmp_path: Path) -> None:
    at, trap = copied(prepared, tmp_path / "scene"), Trap(tmp_path / "trap")
    armed(at, trap, name)
    assert ask_all(at, trap) >= 20


@pytest.mark.soak("hostile")
@pytest.mark.req("D24")
def test_each_alone_starts_nothing(
    prepared: Scene, tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    asked = 0
    for name in VECTORS:
        at, trap = copied(prepared, tmp_path / name / "scene"), Trap(tmp_path / name / "trap")
        armed(at, trap, name)
        asked += ask_all(at, trap)
    sweep(
        Report(
            "D24 hostile repositories",
            tried=asked,
            fired=asked,
            work=asked,
            outcomes=Counter(asked=asked),
        )
    )


@pytest.mark.req("D24")
def test_a_work_tree_elsewhere_and_variables_of_a_caller_lead_nowhere(
    prepared: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = copied(prepared, tmp_path / "scene")
    other = tmp_path / "other"
    other.mkdir()
    (other / "bait").write_text("bait\n")
    git(at.root, "config", "core.worktree", str(other))
    monkeypatch.setenv("GIT_DIR", str(at.bare))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='false'")
    client = at.client()
    assert client.place.top == str(at.root)
    assert gitrepo.status(client).is_clean
    (at.root / "here").write_text("here\n")
    assert [row.path for row in gitrepo.status(client).entries] == ["here"]
    assert (other / "bait").exists()


@pytest.mark.req("D24")
def test_what_is_planted_in_a_worktree_of_ours_starts_nothing(
    prepared: Scene, tmp_path: Path
) -> None:
    at, trap = copied(prepared, tmp_path / "scene"), Trap(tmp_path / "trap")
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    top = Path(tree.folder)
    (top / ".git").unlink()
    evil = tmp_path / "evil"
    evil.mkdir()
    git(evil, "init", "-q")
    git(evil, "config", "core.fsmonitor", trap.program("evil"))
    (top / ".git").write_text(f"gitdir: {evil}/.git\n")
    nested = top / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "n").write_text("n\n")
    git(nested, "config", "core.fsmonitor", trap.program("nested"))
    (top / "new.txt").write_text("new\n")
    assert not gitrepo.status(tree).is_clean
    made = gitrepo.commit(tree, "new", identity=gitrepo.Identity("ann", "a@example.org"))
    assert {row.path for row in gitrepo.diff_trees(client, "main", made.oid)} == {"new.txt"}
    assert gitrepo.take_snapshot(tree).left == ("nested",)
    gitrepo.rollback(tree, "main")
    assert trap.marks() == []
    assert (nested / "n").exists(), "repositories inside are left alone"


@pytest.mark.req("D24")
def test_a_file_that_needs_a_filter_is_not_stored_without_it(
    prepared: Scene, tmp_path: Path
) -> None:
    at = copied(prepared, tmp_path / "scene")
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    (Path(tree.folder) / "x.trap").write_text("would be stored as it is\n")
    with pytest.raises(Exception, match='through the filter "trap", which is not run here'):
        gitrepo.commit(tree, "x", identity=gitrepo.Identity("ann", "ann@example.org"))
    assert gitrepo.head_of(tree) == gitrepo.resolve(client, "main")
