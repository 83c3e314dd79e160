"""A step reads what others made by an expression: in commands, in functions, in prompts."""

import json
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import UsageError
from tests.cli.project import Project

pytestmark = pytest.mark.req("R180")

FACTS = {"facts": ["x", "y"], "by": {"name": "z"}, "n": 2}
MAKE = {"run": ["printf", "%s", json.dumps(FACTS)]}


def test_an_expression_needs_its_step_and_gives_what_it_made(project: Project) -> None:
    project.write("work.py", "def add(facts, n, make: str):\n    return [facts, n + 1, make[0]]\n")
    project.plan(
        {
            "read": {
                "shell": project.sh('cat "$HOLDFAST_WITH"/*; cat "$HOLDFAST_PROMPT"'),
                "with": {
                    "a": "${{ steps.make.output.facts }}",
                    "b": "$${{ ${{ steps.make.output }}",
                },
                "prompt": {"task": "by ${{ steps.make.output.by.name }}"},
            },
            "add": {
                "uses": "python",
                "run": "work:add",
                "with": {
                    "facts": "${{ steps.make.output.facts.1 }}",
                    "n": "${{ steps.make.output.n }}",
                },
            },
            "make": MAKE,
        }
    )
    assert project.ok("plan", "--json").json["waves"] == [["make"], ["add", "read"]]
    assert project.run().code == 0
    text = json.dumps(FACTS)
    assert project.shown("read").decode() == f'["x", "y"]${{{{ {text}# TASK\nby z\n'
    assert json.loads(project.shown("add")) == ["y", 3, "{"]
    project.ran()
    changed = json.dumps({**FACTS, "n": 5})
    steps = json.loads(project.read("plan.yaml"))["steps"]
    project.plan({**steps, "make": {"run": ["printf", "%s", changed]}})
    again = project.run()
    assert again.codes["add"] == "upstream_changed"
    assert json.loads(project.shown("add")) == ["y", 6, "{"]


def test_what_an_artifact_does_not_have_fails_the_attempt_and_is_told(project: Project) -> None:
    project.plan(
        {
            "make": MAKE,
            "text": {"run": ["echo", "plain"]},
            "a": {"shell": project.sh(), "with": {"v": "${{ steps.make.output.fact }}"}},
            "b": {"shell": project.sh(), "with": {"v": "${{ steps.text.output.x }}"}, "retries": 1},
            "c": {"shell": project.sh(), "needs": ["a"]},
            "d": {"shell": project.sh(), "with": {"v": "${{ steps.text.output }}"}},
        }
    )
    answer = project.call("run")
    assert answer.code == 1
    assert "'${{ steps.make.output.fact }}' cannot be filled in" in answer.out
    assert "the artifact of 'make' has no 'fact'; it has: facts, by, n" in answer.out
    assert "the artifact of 'text' is not JSON and has no 'x'" in answer.out
    status = project.status()
    assert status.states["c"] == "skipped"
    assert (status.codes["a"], status.codes["b"]) == ("command_failed", "command_failed")
    assert status.field("attempts")["b"] == 2
    assert project.ran() == ["d"]
    assert "it has: facts, by, n" in project.ok("logs", "a").out
    assert project.ok("verify").code == 0


def test_a_run_that_failed_over_a_field_is_resumed_and_mended(project: Project) -> None:
    project.plan({"make": MAKE, "a": {"run": "true", "with": {"v": "${{ steps.make.output.q }}"}}})
    assert project.run().code == 1
    assert project.resume().code == 1
    project.plan({"make": MAKE, "a": {"run": "true", "with": {"v": "${{ steps.make.output.n }}"}}})
    mended = project.run()
    assert mended.states == {"make": "reused", "a": "done"}


def test_several_files_cannot_be_filled_in(project: Project) -> None:
    project.plan(
        {
            "make": {"shell": "mkdir -p o; touch o/a o/b", "produces": "o"},
            "a": {"run": "true", "with": {"v": "${{ steps.make.output }}"}},
        }
    )
    answer = project.call("run")
    assert answer.code == 1
    assert "is several files" in answer.out


def test_a_prompt_file_is_filled_in_and_its_lines_are_named(project: Project) -> None:
    project.write("prompts/brief.md", "About ${{ params.topic }}:\n${{ steps.make.output.n }}\n")
    show = {"shell": 'cat "$HOLDFAST_PROMPT"', "prompt": "prompts/brief.md"}
    params = {"topic": {"type": "string", "default": "pumps"}}
    project.plan({"make": MAKE, "a": show}, params=params)
    assert project.run().code == 0
    assert project.shown("a") == b"About pumps:\n2\n"
    project.write("prompts/brief.md", "About ${{ params.topic }}:\n more ${{ params.topci }}\n")
    err = project.refused(2, "check")
    assert "prompts/brief.md:2:7: 'prompt' of 'a' reads the param 'topci'" in err
    assert "did you mean 'topic'?" in err


def test_functions_of_this_process_read_expressions_too(tmp_path: Path) -> None:
    def double(n: int) -> int:
        return 2 * n

    plan = holdfast.Plan("inline", str(tmp_path))
    plan.step("make", lambda: FACTS, inline=True)
    plan.step("double", double, values={"n": "${{ steps.make.output.n }}"}, inline=True)
    plan.step("wrong", double, values={"n": "${{ steps.make.output.m }}"}, inline=True)
    result = holdfast.run(plan)
    assert result["double"].value == 4
    steps = result.json()["steps"]
    assert isinstance(steps, dict)
    assert steps["wrong"]["state"] == "failed"
    with pytest.raises(UsageError, match="cannot be read here"):
        plan.step("more", double, values={"n": "${{ params.n }}"}, inline=True)


def test_a_plan_is_loaded_with_params_from_a_program(project: Project) -> None:
    project.plan({"a": MAKE}, params={"n": {"type": "int"}})
    file = str(project.root / "plan.yaml")
    assert holdfast.load(file, params={"n": 4}).params == {"n": 4}
    with pytest.raises(UsageError, match="whole number"):
        holdfast.load(file, params={"n": True})
