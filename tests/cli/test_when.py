"""A step with a condition runs if it holds; else it is left out, and so is what cannot go on without it."""

import json
from typing import Any

import pytest

from holdfast.model.condition import ABSENT, unmet
from tests.cli.project import Project

pytestmark = pytest.mark.req("R182")

SCORE = "steps.check.output.score"


def plan(project: Project, score: Any, **more: Any) -> None:
    project.write("score.json", json.dumps({"score": score, "kind": "draft"}))
    project.plan(
        {
            "check": {"shell": project.sh("cat score.json"), "inputs": ["score.json"]},
            "publish": {"when": {SCORE: {"at_least": 7}}, "shell": project.sh("echo out")},
            "tell": {"needs": ["publish"], "shell": project.sh()},
            "log": {
                "needs": [{"step": "publish", "optional": True}, "check"],
                "with": {"text": "${{ steps.publish.output }}"},
                "shell": project.sh("cat $HOLDFAST_WITH/text; ls $HOLDFAST_INPUTS"),
            },
            **more,
        }
    )


def test_what_a_condition_leaves_out_is_said_and_the_run_is_complete(project: Project) -> None:
    plan(project, 3)
    before = project.ok("plan", "--json").json["steps"]
    assert before["publish"]["decision"] == "maybe"
    assert before["publish"]["reason"]["code"] == "condition_open"
    found = project.run()
    assert found.code == 0
    assert found.states == {"check": "done", "publish": "skipped", "tell": "skipped", "log": "done"}
    assert found.codes["publish"] == "condition_unmet"
    assert found.because("publish") == ["steps.check.output.score at_least 7: it is 3"]
    assert (found.codes["tell"], found.because("tell")) == ("condition_above", ["publish"])
    assert project.shown("log").decode() == "nullcheck\n"
    assert project.ran() == ["check", "log"]
    told = project.ok("plan").out
    assert "– publish   its condition does not hold: steps.check.output.score at_least 7" in told
    assert "Nothing to do" in told
    assert "its condition does not hold" in project.ok("why", "publish", "--run", "@").out
    assert "– 2 steps were left out by a condition" in project.ok("run").out
    assert project.status().states["log"] == "reused"
    assert project.ran() == []
    assert project.ok("verify").code == 0


def test_when_it_holds_everything_runs_and_nothing_of_it_is_in_the_ref(project: Project) -> None:
    plan(project, 3)
    project.run()
    plan(project, 8)
    project.ran()
    found = project.run()
    assert set(found.states.values()) == {"done"}
    assert project.ran() == ["check", "log", "publish", "tell"]
    assert project.shown("log").decode() == "out\ncheck\npublish\n"
    project.write("score.json", json.dumps({"score": 9}))
    again = project.run()
    assert again.states["publish"] == "reused"
    assert again.refs["publish"] == found.refs["publish"]


def test_a_step_goes_on_without_one_that_failed_if_it_may(project: Project) -> None:
    maybe = f"[ -e {project.gates}/well ] && echo fine"
    project.plan(
        {
            "a": {"shell": project.sh(maybe), "optional": True},
            "b": {"needs": ["a"], "shell": project.sh("ls $HOLDFAST_INPUTS")},
            "c": {"needs": ["b"], "shell": project.sh()},
        }
    )
    found = project.run()
    assert found.code == 1
    assert found.states == {"a": "failed", "b": "done", "c": "done"}
    assert project.shown("b") == b""
    project.ran()
    project.open("well")
    assert project.retry("a").states == {"a": "done", "b": "done", "c": "done"}
    assert project.ran() == ["a"]
    assert project.run().codes["b"] == "upstream_changed"
    assert project.shown("b") == b"a\n"
    assert project.ok("verify").code == 0


def test_items_that_failed_are_left_out_of_what_is_gathered_if_the_plan_says_so(
    project: Project,
) -> None:
    each = {
        "for_each": [1, 2, 3],
        "with": {"n": "${{ item }}"},
        "shell": project.sh("[ $(cat $HOLDFAST_WITH/n) != 2 ] && cat $HOLDFAST_WITH/n"),
        "optional": True,
    }
    last = {"with": {"all": "${{ steps.each.output }}"}, "shell": "cat $HOLDFAST_WITH/all"}
    project.plan({"each": each, "last": last})
    found = project.run()
    assert found.code == 1
    assert found.states["each[2]"] == "failed"
    assert (found.states["each"], found.states["last"]) == ("done", "done")
    assert project.shown("last").decode() == "[1, 3]"
    assert project.ok("verify").code == 0


def test_a_condition_of_items_holds_for_all_of_them(project: Project) -> None:
    each = {
        "for_each": "${{ steps.list.output }}",
        "when": {"steps.list.output.0": {"equals": 1}},
        "shell": project.sh(),
    }
    project.write("list.json", "[2, 3]")
    listing = {"shell": project.sh("cat list.json"), "inputs": ["list.json"]}
    project.plan({"list": listing, "each": each})
    assert project.run().states == {"list": "done", "each": "skipped"}
    project.write("list.json", "[1, 3]")
    assert set(project.run().states.values()) == {"done"}


@pytest.mark.parametrize("when", [{}, {"any": []}, {"steps.a.output": {}}, {"all": [{}]}], ids=str)
def test_an_empty_condition_says_nothing(project: Project, when: dict[str, Any]) -> None:
    project.plan({"a": {"shell": "echo"}, "b": {"shell": "echo", "needs": "a", "when": when}})
    assert "has an empty condition, which says nothing" in project.refused(2, "check")


VALUES = {"score": 7, "kind": "draft", "deep": {"flag": True, "none": None}, "list": [1]}


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({"score": {"equals": 7}}, True),
        ({"score": {"equals": 7.0}}, True),
        ({"deep.flag": {"equals": 1}}, False),
        ({"score": {"not": 8}}, True),
        ({"nothing": {"not": 8}}, True),
        ({"nothing": {"equals": None}}, False),
        ({"deep.none": {"equals": None}}, True),
        ({"kind": {"in": ["draft", "final"]}}, True),
        ({"kind": {"in": []}}, False),
        ({"score": {"at_least": 7, "at_most": 7}}, True),
        ({"score": {"at_least": 7.5}}, False),
        ({"kind": {"at_least": 1}}, False),
        ({"list": {"exists": True}, "score": {"exists": True}}, True),
        ({"nothing": {"exists": False}}, True),
        ({"nothing": {"exists": True}}, False),
    ],
)
def test_comparisons(when: dict[str, Any], holds: bool) -> None:
    def find(reference: Any) -> Any:
        value: Any = VALUES
        for field in reference.fields:
            if not isinstance(value, dict) or field not in value:
                return ABSENT
            value = value[field]
        return value

    condition = {f"steps.a.output.{path}": tests for path, tests in when.items()}
    assert (unmet(condition, find) == "") == holds
    assert (unmet({"all": [condition]}, find) == "") == holds
    never = {"steps.a.output.nothing": {"exists": True}}
    assert (unmet({"any": [never, condition]}, find) == "") == holds
    assert unmet({"all": [condition, never]}, find)


def test_a_changed_value_decides_again_in_both_directions(project: Project) -> None:
    for score, states in (
        (8, "done"),
        (3, "skipped"),
        (8, "reused"),
        (3, "skipped"),
        (9, "reused"),
    ):
        plan(project, score)
        found = project.run()
        assert found.code == 0
        assert (found.states["publish"], found.states["tell"]) == (states, states)
        assert project.run().states["publish"] == ("skipped" if states == "skipped" else "reused")
    assert project.begun().count("publish") == 1
    assert project.ok("verify").code == 0


def test_a_condition_compares_what_items_and_sub_plans_made(project: Project) -> None:
    project.plan({"end": {"shell": "printf 7"}}, file="inner.yaml", name="inner")
    project.plan(
        {
            "each": {
                "for_each": [4, 5],
                "with": {"v": "${{ item }}"},
                "shell": "cat $HOLDFAST_WITH/v",
            },
            "sub": {"uses": "plan", "run": "inner.yaml"},
            "yes": {
                "when": {"steps.each.output.1": {"equals": 5}, "steps.sub.output.end": {"in": [7]}},
                "shell": project.sh(),
            },
            "no": {"when": {"steps.each.output.2": {"exists": True}}, "shell": project.sh()},
        }
    )
    found = project.run()
    assert (found.states["yes"], found.states["no"]) == ("done", "skipped")
    assert found.because("no") == ["steps.each.output.2 exists true"]


@pytest.mark.req("R182")
def test_what_grows_old_is_made_again_and_only_what_differs_follows(project: Project) -> None:
    project.write("found", "[1, 2]")
    old = {"fresh_for": "0.001s"}
    project.plan(
        {
            "search": {"shell": project.sh("cat found"), **old},
            "each": {
                "for_each": "${{ steps.search.output }}",
                "with": {"v": "${{ item }}"},
                "shell": project.sh("cat $HOLDFAST_WITH/v"),
                "fresh_for": "7d",
            },
            "late": {"when": {"steps.search.output.2": {"exists": True}}, "shell": project.sh()},
            "soon": {"for_each": ["x"], "shell": project.sh(), **old},
        }
    )
    assert project.run().code == 0
    project.ran()
    found = project.run()
    assert found.codes["search"] == found.codes["soon[x]"] == "expired"
    assert project.ran() == ["search", "soon[x]"], "the same list changes nothing"
    assert found.states["each"] == found.states["each[1]"] == "reused"
    assert found.states["late"] == "skipped"
    project.write("found", "[2, 3, 4]")
    found = project.run()
    assert project.ran() == ["each[3]", "each[4]", "late", "search", "soon[x]"]
    assert found.states["each[2]"] == "reused"
    assert project.ok("verify").code == 0


@pytest.mark.parametrize(
    "made",
    [
        "1e999",
        "-1e999",
        "[" * 900 + "]" * 900,
        '{"$decimal": "3"}',
        '"\\ud800"',
        "9" * 5000,
        '{"a": 1, "a": 3}',
    ],
)
@pytest.mark.parametrize("test", [{"equals": 3}, {"in": [3, "x"]}, {"at_least": 3}])
def test_a_value_that_nobody_can_compare_meets_no_condition(
    project: Project, made: str, test: dict[str, Any]
) -> None:
    project.write("made", made)
    steps: dict[str, dict[str, Any]] = {
        "a": {"shell": project.sh("cat made"), "inputs": ["made"]},
        "b": {"shell": project.sh(), "when": {"steps.a.output": test}},
        "c": {"shell": project.sh(), "when": {"steps.a.output": {"not": 3}}},
    }
    project.plan(steps)
    assert project.run().states == {"a": "done", "b": "skipped", "c": "done"}
    assert project.run().states == {"a": "reused", "b": "skipped", "c": "reused"}


def test_the_reason_names_what_was_found(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "echo 8"},
            "b": {"shell": "true", "when": {"steps.a.output": {"equals": "8"}}},
            "c": {"shell": "true", "when": {"steps.a.output.n": {"at_least": 1}}},
            "d": {"shell": "true", "when": {"steps.a.output": {"equals": 8}}},
        }
    )
    found = project.run()
    assert found.because("b") == ['steps.a.output equals "8": it is 8']
    assert found.because("c") == ["steps.a.output.n at_least 1: nothing is there"]
    assert found.states["d"] == "done"
