"""A step stands for the steps of another plan file, and gathers what the last of them made."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.formats.planfile import load_plan
from holdfast.formats.planout import plan_yaml
from tests.cli.project import Project

pytestmark = pytest.mark.req("R182")


def inner(project: Project, **more: Any) -> None:
    project.plan(
        {
            "draft": {
                "shell": project.sh("cat $HOLDFAST_WITH/word; ls $HOLDFAST_INPUTS"),
                "with": {"word": "${{ params.word }}"},
            },
            "each": {
                "for_each": ["x", "y"],
                "with": {"v": "${{ item }}: ${{ steps.draft.output }}"},
                "shell": project.sh("cat $HOLDFAST_WITH/v"),
            },
            "report": {"needs": ["each"], "shell": project.sh("echo '[1]'")},
            "late": {
                "when": {"steps.draft.output": {"exists": True}},
                "needs": ["draft"],
                "shell": project.sh(),
            },
        },
        file="parts/inner.yaml",
        params={"word": {"type": "string"}, "n": {"type": "int", "default": 1}},
        **more,
    )


def outer(project: Project, **values: Any) -> None:
    project.plan(
        {
            "first": {"shell": project.sh()},
            "sub": {
                "uses": "plan",
                "run": "parts/inner.yaml",
                "with": values,
                "needs": ["first"],
            },
            "last": {
                "with": {
                    "all": "${{ steps.sub.output }}",
                    "one": "${{ steps.sub.output.report.0 }}",
                },
                "shell": project.sh("cat $HOLDFAST_WITH/all $HOLDFAST_WITH/one"),
            },
        }
    )


STEPS = ["sub.draft", "sub.each[x]", "sub.each[y]", "sub.each", "sub.report", "sub.late", "sub"]


def test_the_steps_of_another_plan_are_taken_over(project: Project) -> None:
    inner(project)
    outer(project, word="hello")
    found = project.run()
    assert found.code == 0
    assert found.states.keys() == {"first", "last", *STEPS}
    assert project.shown("sub.each[x]").decode() == "x: hellofirst\n"
    assert project.shown("last").decode() == '{"late": "sub.late\\n", "report": [1]}1'
    project.ran()
    assert set(project.run().states.values()) == {"reused"}
    outer(project, word="other")
    project.run()
    assert project.ran() == ["last", "sub.draft", *STEPS[1:3], "sub.late", "sub.report"]
    assert project.ok("why", "sub.each[x]").out.startswith("sub.each[x] is reused")
    assert project.ok("verify").code == 0


def test_a_param_that_is_not_given_or_not_known_is_told_with_its_place(project: Project) -> None:
    inner(project)
    outer(project)
    assert "parts/inner.yaml:" in project.refused(2, "check")
    assert "the param 'word' has no default and was not given" in project.refused(2, "check")
    assert "'with' of the step that uses this plan" in project.refused(2, "check")
    for wrong, shown in ((5, "'5'"), (None, "'null'")):
        outer(project, word=wrong)
        told = project.refused(2, "check")
        assert f"the param 'word' is text, and {shown} is not" in told
        assert "--param" not in told
    outer(project, word="x", wrd="y")
    assert "the plan has no param 'wrd'" in project.refused(2, "check")


def test_files_that_use_each_other_are_refused_with_their_path(project: Project) -> None:
    for one, other in (("a", "b"), ("b", "c"), ("c", "a")):
        project.plan({"s": {"uses": "plan", "run": f"{other}.yaml"}}, file=f"{one}.yaml")
    told = project.refused(2, "check", "a.yaml")
    assert "plan files use each other: a.yaml → b.yaml → c.yaml → a.yaml" in told


def test_a_link_out_of_the_project_is_no_plan_of_it(project: Project, tmp_path: Path) -> None:
    (tmp_path / "theirs.yaml").write_text("steps: {a: {shell: echo a}}\n")
    (project.root / "link.yaml").symlink_to(tmp_path / "theirs.yaml")
    project.plan({"s": {"uses": "plan", "run": "link.yaml"}})
    assert "a link that leads out of the project" in project.refused(2, "check")


def test_limits_and_agents_of_the_outer_plan_hold(project: Project) -> None:
    inner(project, limits={"attempts": 1})
    outer(project, word="hello")
    assert "its limits say nothing" in project.ok("check").err
    assert project.run().code == 0
    inner(project, agents={"me": {"input_schema": {"actions": {"do": {}}}}})
    assert "say 'agents' in the outer plan" in project.refused(2, "check")


def test_a_condition_of_a_sub_plan_holds_for_all_of_it(project: Project) -> None:
    inner(project)
    outer(project, word="hello")
    steps = json.loads(project.read("plan.yaml"))["steps"]
    steps["sub"]["when"] = {"steps.first.output": {"equals": "no"}}
    project.plan(steps)
    found = project.run()
    assert found.code == 0
    assert {found.states[step] for step in STEPS} == {"skipped"}
    assert found.codes["sub.draft"] == "condition_unmet"


def test_a_condition_of_a_sub_plan_holds_for_what_goes_on_without_others(project: Project) -> None:
    without = [{"step": "a", "optional": True}]
    project.plan(
        {
            "a": {"shell": project.sh("echo '[1]'"), "optional": True},
            "b": {"shell": project.sh(), "needs": without},
            "known": {"shell": project.sh(), "for_each": [1, 2], "optional": True},
            "made": {
                "shell": project.sh("cat $HOLDFAST_WITH/v"),
                "with": {"v": "${{ item }}"},
                "for_each": "${{ steps.a.output }}",
                "needs": without,
            },
            "last": {"shell": project.sh(), "needs": ["b"], "optional": True},
            "end": {"shell": project.sh(), "needs": ["made", "known"], "optional": True},
        },
        file="inner.yaml",
        name="inner",
    )
    project.plan({"t": {"uses": "plan", "run": "inner.yaml"}}, file="middle.yaml", name="middle")
    steps: dict[str, dict[str, Any]] = {
        "check": {"shell": project.sh("cat word"), "inputs": ["word"]},
        "s": {
            "uses": "plan",
            "run": "middle.yaml",
            "when": {"steps.check.output": {"equals": "yes"}},
        },
    }
    project.write("word", "no\n")
    project.plan(steps)
    states = project.run().states
    assert {step for step, state in states.items() if state != "skipped"} == {"check"}
    assert project.ran() == ["check"]
    project.write("word", "yes\n")
    states = project.run().states
    assert set(states.values()) == {"done"}
    assert "s.t.made[1]" in states
    assert set(project.run().states.values()) == {"reused"}
    plan = load_plan(str(project.root / "plan.yaml")).plan
    project.write("again.yaml", plan_yaml(plan))
    assert load_plan(str(project.root / "again.yaml")).plan == plan


def test_a_file_is_the_same_alone_and_in_another_plan(project: Project) -> None:
    project.write("made.py", "def twice(draft: str) -> str:\n    return draft * 2\n")
    steps: dict[str, dict[str, Any]] = {
        "draft": {"shell": "printf ab"},
        "count": {"needs": ["draft"], "shell": "wc -c < $HOLDFAST_INPUTS/draft"},
        "twice": {"uses": "python", "run": "made:twice", "needs": ["draft"]},
        "each": {"for_each": ["x"], "needs": ["draft"], "shell": "cat $HOLDFAST_INPUTS/draft"},
    }
    project.plan(steps, file="inner.yaml", name="inner")
    assert project.run("inner.yaml").code == 0
    project.plan({"sub": {"uses": "plan", "run": "inner.yaml"}}, file="middle.yaml", name="middle")
    project.plan({"top": {"uses": "plan", "run": "middle.yaml"}})
    found = project.run()
    assert found.code == 0, found.err
    for step in ("count", "twice", "each[x]"):
        inner = project.call("show", "-f", "inner.yaml", step)
        assert project.shown(f"top.sub.{step}").decode() == inner.out
    plan = load_plan(str(project.root / "plan.yaml")).plan
    project.write("again.yaml", plan_yaml(plan))
    assert load_plan(str(project.root / "again.yaml")).plan == plan


def test_a_step_gathers_what_several_made(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "printf 1"},
            "b": {"shell": "printf two"},
            "both": {"uses": "gather", "needs": ["b", "a"]},
            "last": {"with": {"v": "${{ steps.both.output }}"}, "shell": "cat $HOLDFAST_WITH/v"},
        }
    )
    assert project.run().code == 0
    assert json.loads(project.shown("last")) == {"a": 1, "b": "two"}


def test_what_is_written_is_the_same_plan(project: Project, tmp_path: Path) -> None:
    inner(project)
    outer(project, word="hello")
    plan = load_plan(str(project.root / "plan.yaml")).plan
    file = tmp_path / "again.yaml"
    file.write_text(plan_yaml(plan))
    assert load_plan(str(file)).plan == plan


@pytest.mark.parametrize(
    ("one", "other"), [("b", "a.b"), ("b.c", "a.b"), ("B", "a.b"), ("b", "A.b")]
)
def test_steps_of_two_plans_cannot_have_the_same_id(project: Project, one: str, other: str) -> None:
    project.plan({one: {"shell": "echo one"}}, file="one.yaml")
    project.plan({"c": {"shell": "echo two"}}, file="two.yaml")
    plans = {"a": {"uses": "plan", "run": "one.yaml"}, other: {"uses": "plan", "run": "two.yaml"}}
    for steps in (plans, dict(reversed(plans.items()))):
        project.plan(steps)
        refused = project.refused(2, "check")
        assert "P050" in refused
        assert "and so has the plan that it takes over" in refused
