"""What an edit of the plan or of the world makes run again, and under which reason."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.project import Project

Edit = Callable[[Project, dict[str, Any]], None]


def base(project: Project) -> dict[str, Any]:
    """The step that is edited, with something of everything."""
    project.write("script.sh", "cat in/one.txt\n", executable=True)
    project.write("in/one.txt", "1\n")
    project.write("check.sh", "exit 0\n")
    project.write("version.txt", "tool 1\n")
    return {
        "shell": project.sh("sh ./script.sh"),
        "prompt": "do it",
        "with": {"size": 1},
        "inputs": ["in/*.txt"],
        "guards": [{"command": ["sh", "check.sh"]}],
        "env": ["COLOUR"],
        "tool_versions": {"tool": ["cat", str(project.folder / "version")]},
        "retries": 1,
    }


def put(project: Project, mid: dict[str, Any], *needs: str) -> None:
    project.plan(
        {
            "top": {"shell": project.sh("echo top")},
            "mid": {**mid, "needs": ["top", *needs]},
            "low": {"shell": project.sh("cat $HOLDFAST_INPUTS/mid"), "needs": ["mid"]},
            "other": {"shell": project.sh("echo other")},
        }
    )


def key(name: str, value: Any) -> Edit:
    def edit(_: Project, mid: dict[str, Any]) -> None:
        mid[name] = value

    return edit


def file(path: str, text: str) -> Edit:
    def edit(project: Project, _: dict[str, Any]) -> None:
        project.write(path, text)

    return edit


def command(project: Project, mid: dict[str, Any]) -> None:
    mid["shell"] += "; true"


def tool(project: Project, _: dict[str, Any]) -> None:
    (project.folder / "version").write_text("tool 2\n")


def executable(project: Project, _: dict[str, Any]) -> None:
    (project.root / "in/one.txt").chmod(0o755)


CHANGES: dict[str, tuple[Edit, str, list[str]]] = {
    "prompt": (key("prompt", "do it well"), "prompt_changed", ["prompt"]),
    "command": (command, "command_changed", ["shell"]),
    "script": (file("script.sh", "cat in/*\n"), "command_changed", ["script.sh"]),
    "input": (file("in/one.txt", "2\n"), "input_changed", ["in/one.txt"]),
    "new input": (file("in/two.txt", "2\n"), "input_changed", ["in/two.txt"]),
    "glob": (key("inputs", ["in/*.t*", "check.sh"]), "input_changed", ["check.sh"]),
    "executable bit": (executable, "input_changed", ["in/one.txt"]),
    "with": (key("with", {"size": 2}), "parameters_changed", ["size"]),
    "tool version": (tool, "tools_changed", ["tool"]),
    "outputs": (key("contract", "a number"), "contract_changed", ["contract"]),
    "specification": (key("specification", "s"), "specification_changed", ["specification"]),
    "scratch": (key("workspace", "shared"), "environment_changed", ["workspace"]),
}


def first_run(project: Project) -> dict[str, Any]:
    (project.folder / "version").write_text("tool 1\n")
    mid = base(project)
    put(project, mid)
    first = project.run(env={"COLOUR": "red"})
    assert first.code == 0, first.err
    assert project.ran() == ["low", "mid", "other", "top"]
    return mid


@pytest.mark.req("R4", "R14", "R45", "R56", "R159", "R170", "E2")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_decides_a_step_runs_it_and_its_cone(project: Project, name: str) -> None:
    edit, code, names = CHANGES[name]
    mid = first_run(project)
    edit(project, mid)
    put(project, mid)
    preview = project.call("plan", "--json", env={"COLOUR": "red"}).json["steps"]
    again = project.run(env={"COLOUR": "red"})
    expected = {"run": "done", "reuse": "reused"}
    assert {s: expected[o["decision"]] for s, o in preview.items()} == again.states
    assert {s: o["reason"] for s, o in preview.items()} == again.field("reason")
    assert again.codes == {
        "top": "unchanged",
        "mid": code,
        "low": "upstream_changed",
        "other": "unchanged",
    }
    assert again.because("mid") == names
    assert project.ran() == ["low", "mid"]


@pytest.mark.req("R14", "R170")
def test_environment_and_needs_are_part_of_the_key(project: Project) -> None:
    mid = first_run(project)
    other = project.run(env={"COLOUR": "blue"})
    assert other.codes["mid"] == "environment_changed"
    assert other.because("mid") == ["COLOUR"]
    assert project.ran() == ["low", "mid"]
    assert project.run(env={"COLOUR": "blue", "SHAPE": "round"}).data["totals"]["reused"] == 4

    put(project, mid, "other")
    project.ran()
    needy = project.run(env={"COLOUR": "blue"})
    assert needy.codes["mid"] == "dependencies_changed"
    assert needy.because("mid") == ["other"]
    assert project.ran() == ["low", "mid"]


@pytest.mark.req("R40", "R159")
def test_what_does_not_decide_a_result_runs_nothing(project: Project) -> None:
    mid = first_run(project)
    mid |= {"description": "words", "retries": 5, "timeout": "5m", "priority": "high"}
    put(project, mid)
    for path in ("script.sh", "in/one.txt", "check.sh"):
        os.utime(project.root / path, (1, 1))
    preview = project.call("plan", "--json", "--detailed-exitcode", env={"COLOUR": "red"})
    assert (preview.code, preview.json["totals"]["reuse"]) == (0, 4)
    later = project.run(env={"COLOUR": "red"})
    assert set(later.states.values()) == {"reused"}
    assert project.ran() == []


@pytest.mark.req("R159")
def test_the_target_of_a_link_is_part_of_the_key(project: Project) -> None:
    project.write("a.txt", "same\n")
    project.write("b.txt", "same\n")
    link = project.root / "in.txt"
    link.symlink_to("a.txt")
    project.plan({"s": {"shell": project.sh("cat in.txt"), "inputs": ["in.txt"]}})
    project.run()
    link.unlink()
    link.symlink_to("b.txt")
    project.ran()
    moved = project.run()
    assert moved.codes == {"s": "input_changed"}
    assert project.ran() == ["s"]


@pytest.mark.req("R160")
def test_an_input_that_changes_under_way_makes_the_result_unusable_for_reuse(
    project: Project,
) -> None:
    project.write("in.txt", "0\n")
    body = project.sh("cat in.*; [ $(wc -l < in.txt) -gt 1 ] || echo more >> in.txt")
    project.plan(
        {
            "moving": {"shell": body, "inputs": ["in.txt"]},
            "below": {"shell": project.sh("cat $HOLDFAST_INPUTS/moving"), "needs": ["moving"]},
        }
    )
    first = project.run()
    assert first.code == 0, "this run has its result"
    assert "not reusable" in first.err
    assert project.ok("show", "moving", "--json").json["reusable"] is False
    second = project.run()
    assert second.codes["moving"] == "input_changed"
    assert "not reusable" not in second.err
    project.ran()
    assert set(project.run().states.values()) == {"reused"}
    assert project.ran() == []


@pytest.mark.req("R161", "R170")
def test_what_cannot_be_resolved_disables_reuse_and_says_so(project: Project) -> None:
    project.write(
        "work.py",
        "import importlib\n\n\ndef make():\n    name = 'js' + 'on'\n"
        "    return importlib.import_module(name).dumps(1)\n",
    )
    project.plan({"s": {"uses": "python", "run": "work:make"}})
    assert project.run().code == 0
    again = project.run()
    assert again.states == {"s": "done"}
    assert again.codes == {"s": "command_changed"}
    assert "not reusable: a part of its key cannot be computed" in again.err
    assert "cannot be resolved" in " ".join(again.because("s"))
    assert "cannot be resolved" in project.ok("why", "s").out

    project.plan({"s": {"run": ["true"], "tool_versions": {"x": ["no-such-tool-here"]}}})
    project.run()
    assert project.run().states == {"s": "done"}
    assert "version of 'x'" in project.ok("why", "s").out


@pytest.mark.req("R14", "R159")
def test_a_function_runs_again_when_a_module_it_imports_changes(project: Project) -> None:
    project.write(
        "work.py",
        "from helpers import deep\n\n\ndef make(size, top):\n"
        "    return {'size': size, 'top': top, 'word': deep.word()}\n",
    )
    project.write("helpers/__init__.py", "")
    project.write(
        "helpers/deep.py", "from helpers.deeper import WORD\n\n\ndef word():\n    return WORD\n"
    )
    project.write("helpers/deeper.py", "WORD = 'one'\n")
    project.write("helpers/unused.py", "WORD = 'one'\n")
    project.plan(
        {
            "top": {"shell": project.sh("echo top")},
            "s": {"uses": "python", "run": "work:make", "with": {"size": 2}, "needs": ["top"]},
        }
    )
    first = project.run()
    assert first.code == 0, first.err
    assert project.shown("s") == b'{"size": 2, "top": "top\\n", "word": "one"}'
    project.write("helpers/unused.py", "WORD = 'two'\n")
    assert project.run().states == {"top": "reused", "s": "reused"}
    project.write("helpers/deeper.py", "WORD = 'two'\n")
    second = project.run()
    assert second.codes == {"top": "unchanged", "s": "command_changed"}
    assert second.because("s") == ["helpers/deeper.py"]
    assert b'"two"' in project.shown("s")
