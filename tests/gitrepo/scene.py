"""A repository with a client of it, and everything that a client can be asked, by name."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast import gitrepo
from holdfast.errors import UsageError
from holdfast.gitrepo import Allowed, Client, Identity, Wish, Worktree
from holdfast.gitrepo.git import SUBMODULE, contents, files, find, head
from holdfast.gitrepo.greens import describe
from tests.gitrepo.repository import git, repository

ANN = Identity("ann", "ann@example.org")
FILES = {
    "a.txt": "a\n" * 20,
    "src/b.txt": "b\n",
    "x.trap": "stored\n",
    ".gitattributes": "*.trap filter=trap diff=trap merge=trap\n",
    ".gitignore": "ignored/\n",
}
LOCAL = Allowed(frozenset({"file"}))


@dataclass
class Scene:
    folder: Path
    root: Path
    bare: Path

    def client(self) -> Client:
        return gitrepo.open_client(str(self.root), str(self.folder / "home"))


def scene(folder: Path) -> Scene:
    """A repository with two branches that changed the same files, and a remote on this disk."""
    root = repository(folder / "repo", FILES)
    git(root, "checkout", "-q", "-b", "side")
    (root / "x.trap").write_text("of the side\n")
    (root / "side.txt").write_text("side\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "side")
    git(root, "checkout", "-q", "main")
    (root / "x.trap").write_text("of main\n")
    (root / "a.txt").write_text("main\n" + FILES["a.txt"])
    git(root, "commit", "-q", "-a", "-m", "main")
    git(root, "tag", "one", "main~1")
    git(root, "tag", "two", "main")
    bare = folder / "bare.git"
    git(root, "init", "-q", "--bare", str(bare))
    return Scene(folder, root, bare)


def dirty(top: Path) -> None:
    (top / "x.trap").write_text("changed, and not committed\n")
    (top / "new.trap").write_text("new\n")
    (top / "a.txt").write_text("changed\n")
    (top / "ignored").mkdir(exist_ok=True)
    (top / "ignored/x").write_text("x\n")


def _tidy(top: Path, clean: Callable[[], object]) -> None:
    clean()
    assert (top / "x.trap").exists()


def everything(at: Scene) -> Iterator[str]:
    """Ask the client everything, one thing after the other; names what was done."""
    client = at.client()
    yield "open"
    yield from _looks(client, at)
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix", "side")
    yield "add_worktree"
    yield from _works(client, tree)
    yield from _refs(client, tree, at)
    gitrepo.collect(client, keep=1, age=0)
    yield "collect"
    gitrepo.remove_worktree(client, "fix", changed="save", ignored="drop", branch="delete")
    yield "remove_worktree"


def _looks(client: Client, at: Scene) -> Iterator[str]:
    clean = gitrepo.take_snapshot(client, why="clean")
    yield "take_snapshot, clean"
    dirty(at.root)
    for tree in (client,):
        gitrepo.status(tree, ignored=True)
        yield "status"
        assert any(row.path == "x.trap" for row in gitrepo.diff_files(tree))
        gitrepo.diff_files_text(tree)
        yield "diff_files"
    gitrepo.diff_trees(client, "main", "side", renames=True)
    gitrepo.diff_trees_text(client, "main", "side")
    yield "diff_trees"
    gitrepo.log(client, "main", "x.trap")
    gitrepo.show(client, "side")
    gitrepo.list_files(client, "side")
    assert gitrepo.show_file(client, "side", "x.trap") == b"of the side\n"
    gitrepo.branches(client)
    gitrepo.own_branches(client)
    yield "log, show, branches"
    gitrepo.mark_green(client)
    (at.root / "new.trap").unlink()
    describe(gitrepo.rollback(client, dirty="save"))
    assert (at.root / "new.trap").read_text() == "new\n"
    yield "mark_green, rollback"
    gitrepo.restore_snapshot(client, clean.oid, dirty="save")
    assert gitrepo.status(client).is_clean
    yield "restore_snapshot"
    found = find(str(at.root))
    list(contents(found, [row.name for row in files(found, head(found)) if row.mode != SUBMODULE]))
    yield "files of a commit"


def _works(client: Client, tree: Worktree) -> Iterator[str]:
    top = Path(tree.folder)
    dirty(top)
    gitrepo.status(tree)
    gitrepo.diff_files_text(tree)
    yield "status of a worktree"
    with suppress(UsageError):
        gitrepo.add(tree, "x.trap")
        raise AssertionError("a filter would have to run")
    gitrepo.restore(tree, "x.trap", source="main")
    gitrepo.reset(tree, "side", keep="nothing")
    (top / "new.trap").unlink()
    yield "restore, reset"
    (top / "own.txt").write_text("own\n")
    gitrepo.add(tree, "own.txt")
    gitrepo.commit(tree, "own", identity=ANN, trailers={"Holdfast-Run": "r-1"})
    yield "add, commit"
    patch = gitrepo.diff_trees_text(client, "one", "two", "a.txt")
    gitrepo.apply_patch(tree, patch)
    gitrepo.commit(tree, "applied", identity=ANN)
    yield "apply_patch"
    assert gitrepo.rebase(tree, "main", identity=ANN).conflicts == ("x.trap",)
    yield "rebase, in conflict"
    gitrepo.rebase(tree, "one", identity=ANN)
    yield "rebase"
    gitrepo.mark_green(tree)
    (top / "own.txt").unlink()
    gitrepo.rollback(tree)
    assert (top / "own.txt").exists()
    gitrepo.rollback(tree, "side")
    yield "rollback of a worktree"


def _refs(client: Client, tree: Worktree, at: Scene) -> Iterator[str]:
    made = gitrepo.commit_files(client, {"a.txt": b"by us\n"}, "by us", onto="main", identity=ANN)
    yield "commit_files"
    gitrepo.create_branch(client, "fresh", "side")
    gitrepo.move_branch(client, "fresh", new=made.oid, old=gitrepo.resolve(client, "side"))
    gitrepo.delete_branch(client, "fresh", old=made.oid)
    yield "create_branch, move_branch, delete_branch"
    old = gitrepo.resolve(client, "main")
    gitrepo.move_branch(client, "main", new=made.oid, old=old, follow=True)
    assert (at.root / "a.txt").read_text() == "by us\n"
    yield "move_branch, followed"
    gitrepo.create_tag(client, "v1", message="one", identity=ANN)
    yield "create_tag"
    gitrepo.push(client, str(at.bare), [Wish("main", "main")], allowed=LOCAL)
    yield "push"
    with suppress(UsageError):
        gitrepo.push(client, gitrepo.remote_address(client).url, [Wish("main", "m")], allowed=LOCAL)
    yield "push to what the repository names"


def copied(at: Scene, to: Path) -> Scene:
    """The same scene elsewhere, to begin anew."""
    shutil.copytree(at.folder, to, symlinks=True)
    assert os.path.isdir(to / "repo/.git")
    return Scene(to, to / "repo", to / "bare.git")
