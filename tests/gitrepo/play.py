"""One story of everything that changes something, to be killed anywhere and played again."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from holdfast import gitrepo
from holdfast.errors import EditError, StaleError, UsageError
from holdfast.gitrepo import Identity

ANN = Identity("ann", "ann@example.org")


def play(folder: Path, before: tuple[str, ...] = ()) -> None:
    opened = gitrepo.open_client(str(folder / "repo"), str(folder / "home"), before=before)
    client = replace(opened, clock=lambda: 1_800_000_000.0)  # the same commits in every play
    two = gitrepo.resolve(client, "two")
    wanted = {"a.txt": b"ours\n", "fresh/x": b"x\n", "src/b.txt": None}
    made = gitrepo.commit_files(client, wanted, "ours", onto="two", identity=ANN)
    if gitrepo.resolve(client, "main") != made.oid:
        gitrepo.move_branch(client, "main", new=made.oid, old=two, follow=True)
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix", "one")
    top = Path(tree.folder)
    if gitrepo.last_green(tree):
        gitrepo.rollback(tree)
    (top / "new").write_text("new\n")
    with suppress(EditError):  # nothing to commit: an earlier play did
        gitrepo.commit(tree, "new", identity=ANN)
    gitrepo.rebase(tree, "two", identity=ANN)
    gitrepo.mark_green(tree)
    (top / "junk").write_text("junk\n")
    (top / "a.txt").unlink(missing_ok=True)
    gitrepo.rollback(tree)
    with suppress(StaleError, UsageError):
        gitrepo.move_branch(client, "done", new=str(gitrepo.head_of(tree)), old=None)
    gitrepo.collect(client, keep=1, age=0)
    gitrepo.remove_worktree(client, "fix", changed="save")


if __name__ == "__main__":
    play(Path(sys.argv[1]), tuple(sys.argv[2:]))
