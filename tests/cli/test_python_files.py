"""check, plan and run take a Python file, and a plan in it by name."""

import json
import os
import py_compile
import subprocess
import sys

import pytest

from tests.api.flows import FLOW
from tests.cli.project import Project

pytestmark = pytest.mark.req("R181")


def test_a_python_file_is_checked_previewed_and_run(project: Project) -> None:
    project.write("flow.py", FLOW)
    before = sorted(project.root.rglob("*"))
    assert project.ok("check", "flow.py").out.startswith(
        "flow.py: 4 steps in 4 waves, nothing wrong"
    )
    assert "Runs 4 of 4" in project.ok("plan", "flow.py").out
    assert sorted(project.root.rglob("*")) == before
    first = project.run("flow.py")
    assert set(first.states.values()) == {"done"}
    assert project.read("report.md") == "# 3 words of tide\n3 words, first tide\n"
    again = project.run("flow.py:shore", "--param", "topic=dulse")
    assert set(again.states.values()) == {"done"}
    assert project.run("flow.py").states["fetch"] == "reused"
    assert project.ok("status", "-f", "flow.py").code == 0
    assert "is reused" in project.ok("why", "count", "-f", "flow.py").out
    assert "holdfast run flow.py" in project.ok("plan", "flow.py", "--force").out
    assert not (project.root / "__pycache__").exists()


def test_the_plan_of_a_python_file_is_that_of_the_written_one(project: Project) -> None:
    project.write("flow.py", FLOW)
    script = "import flow; open('plan.yaml', 'w').write(flow.shore.build().to_yaml())"
    project.write("write.py", script)
    project.run("flow.py")
    subprocess.run([sys.executable, "-B", "write.py"], cwd=project.root, check=True)
    assert set(project.run("plan.yaml").states.values()) == {"reused"}
    one, two = (
        project.ok("plan", file, "--json").json["plan"]["digest"]
        for file in ("flow.py", "plan.yaml")
    )
    assert one == two


def test_the_plan_is_what_the_file_says_now_whatever_bytecode_lies_beside_it(
    project: Project,
) -> None:
    file, second = project.root / "flow.py", 1_700_000_000
    project.write("flow.py", FLOW)
    os.utime(file, (second, second))
    py_compile.compile(str(file))
    project.write("flow.py", FLOW.replace("Know the shore", "Know the beach"))
    os.utime(file, (second, second))
    told = project.ok("export", "-f", "flow.py", "--format", "sunwell", "-").out
    assert "Know the beach" in told


def test_what_a_file_prints_is_no_result(project: Project) -> None:
    project.write("flow.py", "print('hello')\n" + FLOW)
    answer = project.ok("check", "flow.py", "--json")
    assert answer.json["ok"] is True
    assert "hello" in answer.err


TWO = FLOW + "\n\n@plan\ndef other() -> None:\n    fetch('sand')\n"


def test_of_several_plans_one_is_named(project: Project) -> None:
    project.write("flow.py", TWO)
    told = project.refused(2, "check", "flow.py")
    assert "'flow.py' has 2 plans" in told
    assert "name one of them: flow.py:shore, flow.py:other" in told
    assert "1 step in 1 wave" in project.ok("check", "flow.py:other").out
    assert project.run("flow.py:other").states == {"fetch": "done"}
    assert "has no plan 'third'" in project.refused(2, "check", "flow.py:third")
    assert "there is no plan file 'gone.py'" in project.refused(2, "check", "gone.py")
    project.write("empty.py", "x = 1\n")
    assert "'empty.py' has no plan" in project.refused(2, "run", "empty.py")
    project.write("json.py", TWO)
    assert "cannot be imported under its name" in project.refused(2, "check", "json.py")


@pytest.mark.parametrize(
    ("change", "at", "words"),
    [
        (("def fetch(topic", "def fetch(topic, ="), "def fetch", "SyntaxError"),
        (("from pathlib import Path", "import nowhere"), "import nowhere", "named 'nowhere'"),
        (("    found = count", "    undefined()\n    found = count"), "undefined()", "NameError"),
        (("    found = count(", "    found = count(1, 2, "), "found =", "cannot be called so"),
        (
            ("    found = count(fetch(topic))", "    if fetch(topic): pass"),
            "if fetch",
            "known when",
        ),
        (('timeout="1m"', 'timeout="soon"'), "found =", "'timeout' of 'count'"),
        (("loud: bool = False", "loud: float = 0.5"), "@plan", "neither str, int nor bool"),
        (("def shore(", "async def shore("), "@plan", "'shore' is no plain function"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    project: Project, change: tuple[str, str], at: str, words: str
) -> None:
    wrong = FLOW.replace(*change)
    line = next(n for n, text in enumerate(wrong.splitlines(), 1) if at in text)
    project.write("flow.py", wrong)
    answer = project.call("check", "flow.py", "--json")
    assert answer.code == 2
    first = answer.json["problems"][0]
    assert words in first["message"]
    assert (first["file"].endswith("flow.py"), first["line"]) == (True, line)
    shown = project.refused(2, "check", "flow.py")
    column = wrong.splitlines()[line - 1].index(wrong.splitlines()[line - 1].strip()) + 1
    assert f"flow.py:{line}:{column}\n" in shown
    assert "Traceback" not in shown


def test_a_file_that_runs_itself_or_has_inline_steps_is_refused(project: Project) -> None:
    project.write("flow.py", FLOW + "\nshore.build().run()\n")
    assert "runs its plan while it is imported" in project.refused(2, "plan", "flow.py")
    assert not project.store.exists()
    project.write("flow.py", FLOW.replace("@step\ndef fetch", "@step(inline=True)\ndef fetch"))
    assert "the step 'fetch' is inline" in project.refused(2, "run", "flow.py")
    project.write("flow.py", "raise SystemExit(3)\n")
    assert "SystemExit: 3" in project.refused(2, "check", "flow.py")


def test_a_param_without_a_value_is_asked_for(project: Project) -> None:
    project.write("flow.py", FLOW.replace('topic: str = "kelp"', "topic: str"))
    assert "'topic' has no default" in project.refused(2, "check", "flow.py")
    project.ok("check", "flow.py", "--param", "topic=x")
    assert "no param 'tropic'" in project.refused(
        2, "check", "flow.py", "--param", "topic=x", "--param", "tropic=y"
    )
    told = project.refused(2, "check", "flow.py", "--param", "topic=x", "--param", "loud=maybe")
    assert "'loud' is true or false" in told


def test_a_saved_preview_of_a_python_file_is_run_as_shown(project: Project) -> None:
    project.write("flow.py", TWO)
    project.ok("plan", "flow.py:other", "-o", "review.plan.json")
    assert json.loads(project.read("review.plan.json"))["plan"]["line"] == "other"
    assert project.run("review.plan.json").states == {"fetch": "done"}
    project.ok("plan", "flow.py:other", "--force", "-o", "review.plan.json")
    project.write("flow.py", TWO.replace("'sand'", "'mud'"))
    assert project.call("run", "review.plan.json").code == 6


def test_a_python_file_is_compared_with_an_earlier_commit(project: Project) -> None:
    project.write("flow.py", FLOW)
    for words in (["init", "-q"], ["add", "flow.py"], ["commit", "-qm", "one"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=project.root, check=True)
    project.write(
        "flow.py", FLOW.replace("return size(report", "fetch('more')\n    return size(report")
    )
    as_module = {
        "PYTHONHASHSEED": "0"
    }  # `python -m holdfast`, where Python looks in the project first
    for env in ({}, as_module):
        shown = project.call("plan", "flow.py", "--against", "HEAD", "--json", env=env)
        assert shown.json["changes"]["added"] == ["fetch-2"], shown.err
    assert "fetch-2" in project.ok("diff", "HEAD", "-f", "flow.py").out
