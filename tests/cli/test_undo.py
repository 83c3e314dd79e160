"""undo: files as they were before, artifacts withdrawn, nothing lost, also when it is killed."""

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import COMMAND, Project, kill


def sound(project: Project) -> None:
    assert project.ok("rebuild", "--json").json["changed"] is False
    project.ok("verify")


def kept_bytes(project: Project, manifest: str, path: str) -> bytes:
    """A file of a manifest, found the way a person would."""
    for line in project.shown(manifest).decode().splitlines():
        _, digest, _, name = line.split()
        if name == path:
            return project.shown(digest)
    raise AssertionError(f"'{path}' is not in {manifest}")


def step(project: Project, text: str, **more: Any) -> dict[str, Any]:
    return {"shell": project.sh(f"echo {text} > out.txt"), "produces": "out.txt", **more}


@pytest.mark.parametrize("workspace", ["shared", "scratch"])
def test_a_step_is_undone_and_runs_again(project: Project, workspace: str) -> None:
    project.write("out.txt", "before\n")
    project.plan(
        {
            "a": step(project, "made", workspace=workspace),
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
        }
    )
    first = project.run()
    project.ran()
    dry = project.ok("undo", "a", "--dry-run", "--json").json
    assert project.read("out.txt") == "made\n"
    assert dry["dry_run"] is True
    done = project.ok("undo", "a", "--because", "wrong branch", "--json").json
    (item,) = done["undone"]
    assert (item["step"], item["run"], item["attempt"]) == ("a", first.id, 1)
    assert item["restored"] == dry["undone"][0]["restored"] == ["out.txt"]
    assert project.read("out.txt") == "before\n"
    assert kept_bytes(project, item["kept"], "out.txt") == b"made\n"
    why = project.why("a")
    assert (why["decision"], why["reason"]["code"]) == ("run", "undone")
    assert "wrong branch" in why["notes"]["decided"]
    assert project.why("b")["decision"] == "maybe", "the same bytes may come out"
    sound(project)
    run = project.run()
    assert run.codes == {"a": "undone", "b": "unchanged"}
    assert project.ran() == ["a"]
    assert project.run().data["totals"]["reused"] == 2
    sound(project)


def test_undoing_again_goes_one_version_further_back(project: Project) -> None:
    project.plan({"a": step(project, "one")})
    first = project.run()
    project.plan({"a": step(project, "two")})
    project.run()
    assert "'a': it was done again in r-" in project.refused(2, "undo", first.id)
    project.ok("undo", "a")
    assert project.read("out.txt") == "one\n"
    assert project.shown("a") == b"one\n", "the version before it counts again"
    project.plan({"a": step(project, "one")})
    assert project.run().codes == {"a": "unchanged"}
    project.ok("undo", "a")
    assert not project.has("out.txt"), "it was not there before the first run"
    assert project.why("a")["reason"]["code"] == "undone"
    assert "nothing to undo" in project.refused(2, "undo", "a")
    sound(project)


def test_a_run_is_undone_in_reverse_and_says_what_it_cannot_undo(project: Project) -> None:
    project.write("out.txt", "before\n")
    project.plan(
        {
            "a": step(project, "first"),
            "b": {
                "shell": project.sh(
                    "cat out.txt out.txt > both; mv both out.txt; mkdir d; echo d > d/x"
                ),
                "produces": ["out.txt", "d"],
                "needs": ["a"],
            },
            "say": {"shell": project.sh("echo words"), "needs": ["b"]},
            "send": {"shell": project.sh("echo sent"), "needs": ["b"], "effects": "external"},
            "fmt": {
                "shell": project.sh("echo side > side.txt; echo f > f.txt"),
                "produces": "f.txt",
                "needs": ["send"],
                "effects": "workspace",
            },
        }
    )
    first = project.run("--yes")
    assert project.read("out.txt") == "first\nfirst\n"
    project.ran()
    project.write("d/x", "mine\n")
    done = project.ok("undo", first.id, "--json").json
    order = [item["step"] for item in done["undone"]]
    assert order.index("fmt") < order.index("b") < order.index("a")
    by = {item["step"]: item for item in done["undone"]}
    assert project.read("out.txt") == "before\n"
    assert not project.has("f.txt")
    assert project.read("d/x") == "mine\n", "a person's file is left"
    assert by["b"]["left"] == ["d/x"]
    assert "writes no files" in by["say"]["notes"][0]
    assert project.has("side.txt")
    assert "beside its outputs" in by["fmt"]["notes"][0]
    assert [item["step"] for item in done["not_undone"]] == ["send"]
    assert "outside world" in done["not_undone"][0]["why"]
    sound(project)
    run = project.run("--yes")
    assert run.codes["a"] == run.codes["b"] == run.codes["say"] == run.codes["fmt"] == "undone"
    assert run.states["send"] == "reused", "the receipt stays: it is not sent twice"
    shown = re.findall(r"your 'd/x' is kept .*: holdfast show ([0-9a-f]+)", run.err)
    assert {project.shown(digest) for digest in shown} == {b"mine\n"}, run.err
    assert "outside world" in project.refused(2, "undo", first.id), "all else is undone already"


def test_an_amendment_and_an_acceptance_are_undone_first(project: Project) -> None:
    project.plan({"a": step(project, "one")})
    first = project.run()
    project.ok("amend", "a", "-", "--because", "mine", stdin=b"amended\n")
    project.run()
    assert project.read("out.txt") == "amended\n"
    done = project.ok("undo", "a", "--json").json
    assert done["undone"][0]["run"] is None
    assert project.read("out.txt") == "one\n", "what stood before it"
    run = project.run()
    assert run.codes == {"a": "unchanged"}
    project.plan({"a": step(project, "two")})
    project.ok("accept", "a", "--from", first.id, "--because", "same")
    assert "its acceptance" in project.ok("undo", "a").out
    assert project.why("a")["reason"]["code"] == "undone"
    sound(project)


def test_what_a_person_adopted_is_undone_to_what_was_made(project: Project) -> None:
    project.plan({"a": step(project, "made")})
    project.run()
    project.write("out.txt", "mine\n")
    assert project.run().codes == {"a": "amended"}
    (item,) = project.ok("undo", "a", "--json").json["undone"]
    assert project.read("out.txt") == "made\n"
    assert kept_bytes(project, item["kept"], "out.txt") == b"mine\n"
    assert project.run().codes == {"a": "unchanged"}
    sound(project)


def test_a_run_that_was_not_finished_ends_with_the_undoing(project: Project) -> None:
    project.plan(
        {
            "a": step(project, "made"),
            "b": {"shell": project.sh(project.gate("go")), "needs": ["a"]},
        }
    )
    engine = project.begun_by("run", step="b")
    assert "held by process" in project.refused(7, "undo", "a")
    assert project.read("out.txt") == "made\n"
    kill(engine)
    done = project.ok("undo", "a", "--json").json
    assert len(done["superseded"]) == 1
    assert not project.has("out.txt")
    assert "nothing to resume" in project.refused(2, "resume", done["superseded"][0])
    project.open("go")
    project.ran()
    assert project.run().codes["a"] == "undone"
    sound(project)


_KILLER = """
import os, signal, sys
from holdfast.edits import apply, tree
from holdfast.store import sqlite

point, count, limit = sys.argv[1], [0], int((*sys.argv, 0)[2])
if point == "files":
    real = tree.sync

    def die(descriptor):
        real(descriptor)
        count[0] += 1
        if count[0] == limit:
            os.kill(os.getpid(), signal.SIGKILL)

    apply.sync = die
else:
    real = sqlite.SqliteStore.commit

    def die(self, batch):
        if not batch.withdrawn:
            return real(self, batch)
        if point == "after":
            real(self, batch)
        os.kill(os.getpid(), signal.SIGKILL)

    sqlite.SqliteStore.commit = die
sys.argv = ["holdfast", "undo", "@"]
from holdfast.cli.main import main

main()
"""


def kill_undo(project: Project, *point: str) -> None:
    """Undo the last run, and end at that point as a power failure would."""
    killed = subprocess.run(
        [COMMAND[0], "-c", _KILLER, *point],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()


@pytest.mark.parametrize(
    ("point", "undone"),
    [(("files", "1"), False), (("files", "2"), False), (("before",), False), (("after",), True)],
    ids=["one-file", "all-files", "before-the-fact", "after-the-fact"],
)
def test_a_killed_undoing_is_whole_or_did_not_happen(
    project: Project, point: tuple[str, ...], undone: bool
) -> None:
    project.write("one", "before 1\n")
    body = project.sh("echo made > one; echo made > two")
    project.plan({"a": {"shell": body, "produces": ["one", "two"]}})
    project.run()
    kill_undo(project, *point)
    project.ran()
    again = project.run()
    assert again.codes == {"a": "undone" if undone else "unchanged"}
    assert project.ran() == (["a"] if undone else [])
    assert (project.read("one"), project.read("two")) == ("made\n", "made\n")
    if not undone:
        project.ok("undo", "@-1")
        assert project.read("one") == "before 1\n"
        assert not project.has("two")
    assert not leftovers(project)
    sound(project)


def test_gc_leaves_a_killed_undoing_to_whoever_can_settle_it(project: Project) -> None:
    project.write("one", "before 1\n")
    body = project.sh("echo made > one; echo made > two")
    project.plan({"a": {"shell": body, "produces": ["one", "two"]}})
    project.run()
    kill_undo(project, "before")
    assert project.read("one") == "before 1\n", "half undone: the files are, the facts are not"
    answer = project.ok("gc", "--keep", "0s", "--yes")
    assert "killed half way" in answer.err
    assert project.run().codes == {"a": "unchanged"}
    assert (project.read("one"), project.read("two")) == ("made\n", "made\n")
    assert "killed half way" not in project.ok("gc", "--keep", "0s", "--yes").err
    sound(project)


def leftovers(project: Project) -> list[Path]:
    return [p for p in project.root.iterdir() if p.name.startswith(".holdfast-") or "tmp" in p.name]


def test_what_is_not_there_cannot_be_undone(project: Project) -> None:
    project.plan({"a": {"shell": "exit 1"}})
    assert "no store" in project.refused(2, "undo", "a")
    project.run()
    assert "nothing to undo" in project.refused(2, "undo", "a")
    assert "did you mean 'a'" in project.refused(2, "undo", "aa")
    assert "nothing that r-" in project.refused(2, "undo", "@")


def test_a_link_at_an_output_is_not_followed(project: Project) -> None:
    project.plan({"a": step(project, "made")})
    project.run()
    outside = project.folder / "outside"
    outside.write_text("not ours\n")
    (project.root / "out.txt").unlink()
    (project.root / "out.txt").symlink_to(outside)
    assert "symbolic link" in project.refused(1, "undo", "a")
    assert outside.read_text() == "not ours\n"
    assert (project.root / "out.txt").is_symlink()
