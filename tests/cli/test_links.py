"""What leads out of the project is read by nobody; what never ends is not opened."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project
from tests.gitrepo.repository import git, repository

AFTER = {"type": "sequence"}


def key_of(project: Project) -> Path:
    place = project.home / "key"
    place.write_text("PRIVATE key of the person")
    return place


def is_told(project: Project) -> bool:
    """Whether the key came into the store, or into the project."""
    files = (path for path in project.root.rglob("*") if path.is_file() and not path.is_symlink())
    return any(b"PRIVATE" in path.read_bytes() for path in files)


def failed_for(project: Project, reason: str, *steps: str) -> None:
    run = project.run()
    assert {step: run.states[step] for step in steps} == dict.fromkeys(steps, "failed")
    for step in steps:
        said = "".join(run.because(step)) + project.call("logs", step).out
        assert reason in said
    assert not is_told(project)


@pytest.mark.req("R3")
def test_an_input_that_leads_out_of_the_project_reaches_no_step(project: Project) -> None:
    key = key_of(project)
    repository(project.root, {"notes/a": "a", "other/a": "a", ".gitignore": ".holdfast\n"})
    (project.root / "own").symlink_to(".holdfast")
    plant = f"ln -s {key} notes/b; ln -s {key.parent} dir; ln -s ../.holdfast/state.db other/b"
    ways: dict[str, Any] = {
        "scratch": {"shell": "cat notes/*", "inputs": ["notes/*"], "workspace": "scratch"},
        "worktree": {"shell": "cat notes/*", "inputs": ["notes/*"], "workspace": "worktree"},
        "shared": {"shell": "cat notes/a", "inputs": ["notes"]},
        "folder": {"shell": "cat dir/key", "inputs": ["dir/**"], "workspace": "worktree"},
        "store": {"shell": "wc -c other/b", "inputs": ["other/*"], "workspace": "scratch"},
        "private": {"shell": "ls own", "inputs": ["own/*.db"], "workspace": "scratch"},
    }
    needs = [{"step": "plant", **AFTER}]
    steps = {name: {**step, "needs": needs} for name, step in ways.items()}
    project.plan({"plant": {"shell": plant}, **steps})
    failed_for(project, "leads out of the project", *ways)


def test_a_link_that_stays_in_the_project_is_followed(project: Project) -> None:
    project.write("deep/text", "told\n")
    (project.root / "near").symlink_to("deep/text")
    (project.root / "far").symlink_to(project.root / "deep")
    inputs = ["near", "far/*"]
    project.plan({"s": {"shell": "cat near far/text", "inputs": inputs, "workspace": "scratch"}})
    assert project.run().states == {"s": "done"}
    assert project.shown("s") == b"told\ntold\n"


@pytest.mark.req("R54")
@pytest.mark.parametrize("command", [{"run": ["cat", "{}"]}, {"shell": "cat {}"}])
@pytest.mark.parametrize("word", ["lnk/../f.txt", "./lnk/.././f.txt", "{root}/lnk/../f.txt"])
def test_a_file_that_is_named_out_of_a_link_is_the_one_that_is_read(
    project: Project, word: str, command: dict[str, Any]
) -> None:
    project.write("x/y/deep", "")
    project.write("x/f.txt", "one\n")
    project.write("f.txt", "not read\n")
    (project.root / "lnk").symlink_to("x/y")
    name = word.format(root=project.root)
    line = [name if part == "{}" else part for part in command.get("run", ())]
    project.plan({"s": {"run": line} if line else {"shell": f"cat {name}"}})
    project.run()
    project.write("f.txt", "still not read\n")
    assert project.run().states == {"s": "reused"}
    project.write("x/f.txt", "two\n")
    assert project.run().codes == {"s": "command_changed"}
    assert project.shown("s") == b"two\n"
    (project.root / "lnk").unlink()
    project.write("z/y/deep", "")
    project.write("z/f.txt", "three\n")
    (project.root / "lnk").symlink_to("z/y")
    assert project.run().states == {"s": "done"}
    assert project.shown("s") == b"three\n"


@pytest.mark.req("R54")
def test_a_worktree_has_the_file_that_is_named_out_of_a_link(project: Project) -> None:
    project.write("x/y/deep", "")
    (project.root / "lnk").symlink_to("x/y")
    repository(project.root, {"x/f.txt": "one\n", "gone.txt": "", ".gitignore": ".holdfast\n"})
    project.plan({"s": {"run": ["cat", "lnk/../f.txt"], "workspace": "worktree"}})
    project.write("x/f.txt", "two\n")
    project.run()
    assert project.shown("s") == b"two\n"
    (project.root / "x/f.txt").unlink()
    project.write("f.txt", "not read\n")
    assert project.run().states == {"s": "failed"}


def test_what_a_step_made_is_not_laid_out_once_it_leads_out_of_the_project(
    project: Project,
) -> None:
    key = key_of(project)
    repository(project.root, {"text": "text\n", ".gitignore": ".holdfast\n"})
    copied = {"workspace": "worktree", "effects": "workspace"}
    later = [{"step": "bend", **AFTER}]
    bend = f"rm text out; ln -s {key} text; ln -s {key} out"
    project.plan(
        {
            "change": {"shell": "echo more >> text; echo done", **copied},
            "make": {"shell": "echo out > out", "produces": "out"},
            "bend": {"needs": ["change", "make"], "effects": "workspace", "shell": bend},
            "scratch": {
                "needs": ["change", *later],
                "shell": "cat text",
                "workspace": "scratch",
            },
            "worktree": {
                "needs": [{"step": "make", **AFTER}, *later],
                "shell": "cat out",
                "workspace": "worktree",
            },
        }
    )
    failed_for(project, "leads out of the project", "scratch", "worktree")


def test_a_quote_is_not_looked_for_outside_of_the_project(project: Project) -> None:
    key = key_of(project)
    project.write("notes/a", "the tide is high")
    link = f"rm notes/a; ln -s {key} notes/a"
    said = """echo '{"quotes": ["PRIVATE key of the"]}'"""
    guard = {"cites": {"in": "notes/*", "field": "quotes"}}
    project.plan({"s": {"shell": f"{link}; {said}", "guards": [guard]}})
    run = project.run()
    assert run.states == {"s": "failed"}
    told = project.ok("logs", "s").out
    assert "'notes/a' leads out of the project" in told
    assert "nearest" not in told


@pytest.mark.req("R180")
@pytest.mark.parametrize("plant", ["mkfifo", "ln -s /dev/zero"])
def test_rules_that_are_no_file_are_no_rules(project: Project, plant: str) -> None:
    project.write("sub/x", "x")
    project.write("rules", "x\n")
    needs = [{"step": "a", **AFTER}]
    bend = f"[ -e sub/.gitignore ] || {plant} sub/.gitignore"
    reads = {"shell": "cat sub/x", "inputs": ["sub/x*"], "needs": needs}
    project.plan({"a": {"shell": bend}, "b": reads})
    assert project.run().states == {"a": "done", "b": "done"}
    assert project.ok("plan").code == 0
    found = project.ok("code", "search", "x", "sub")
    assert found.out == "sub/x:1:x\n"
    assert "ripgrep" in found.err


def test_what_is_neither_file_nor_directory_is_not_searched(project: Project) -> None:
    os.mkfifo(project.root / "pipe")
    assert "neither a file" in project.refused(2, "code", "search", "x", "pipe")


def test_a_worktree_is_removed_whatever_its_entry_holds(project: Project) -> None:
    repository(project.root, {"a": "a\n"})
    body = "cd $(git rev-parse --git-dir); rm HEAD; mkfifo HEAD locked"
    project.plan({"s": {"shell": body, "workspace": "worktree"}})
    assert project.run().states == {"s": "done"}
    assert git(project.root, "worktree", "list").count("\n") == 1
    assert not (project.root / ".git/worktrees").exists()


# --- guards ---------------------------------------------------------------------------------------


@pytest.mark.req("R77")
def test_a_step_that_bends_its_guard_is_not_accepted(project: Project) -> None:
    project.write("check.sh", "exit 1\n")
    project.write("own.sh", "exit 1\n")
    project.write("g.py", "def judge(text: str) -> bool:\n    return False\n")
    bent = "printf 'def judge(text: str) -> bool:\\n    return True\\n' > g.py"
    command = {"command": ["sh", "check.sh"]}
    project.plan(
        {
            "a": {
                "shell": "echo exit 0 > check.sh; echo bad",
                "guards": [{"all": [command]}],
                "retries": 1,
            },
            "b": {"shell": f"{bent}; echo bad", "guards": [{"python": "g:judge"}]},
            "copy": {
                "shell": "echo exit 0 > own.sh; echo bad",
                "guards": [{"command": ["sh", "own.sh"]}],
                "workspace": "scratch",
            },
        }
    )
    run = project.run("-j1")
    codes = {"a": "guard_fatal", "b": "guard_fatal", "copy": "guard_rejected"}
    assert run.codes == codes
    assert "'check.sh' changed during the attempt" in project.ok("logs", "a").out


def test_a_guard_may_name_what_a_step_makes(project: Project) -> None:
    guard = {"command": ["test", "-s", "made"]}
    project.plan({"s": {"shell": "echo x > made; date > log", "guards": [guard]}})
    assert project.run().states == {"s": "done"}
