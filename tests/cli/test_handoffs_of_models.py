"""A model that must hand over answers once: its result and its handoff together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.testing.server import Say
from tests.cli.models import served, step
from tests.cli.project import Project

HANDOFF: dict[str, Any] = {
    "attempted": "count the rivers",
    "observed": [{"finding": "three rivers", "source": "map", "confidence": 0.8}],
    "changed": [],
    "not_done": [],
    "highest_impact_uncertainty": "",
    "next_agent_should_first": "name them",
}


def both(output: object, handoff: object = HANDOFF) -> Say:
    return Say(json.dumps({"output": output, "handoff": handoff}))


@pytest.mark.req("R116")
def test_the_artifact_is_the_output_alone_and_the_handoff_is_told(project: Project) -> None:
    project.plan({"a": step(handoff=True), "b": step("name them", needs=["a"])})
    with served(project, [both("there are three"), Say("Elbe")]) as server:
        run = project.run("--yes")
        assert run.states == {"a": "done", "b": "done"}, run
        first, second = server.requests
    assert project.shown("a") == b"there are three"
    assert project.shown("b") == b"Elbe"
    asked = json.dumps(first.body)
    assert "next_agent_should_first" in asked
    assert "three rivers (map, 0.80) e-" in second.last
    assert "handoff" not in json.dumps(second.body.get("response_format"))
    (found,) = project.ok("ledger", "--json").json["evidence"]
    assert (found["from_step"], found["finding"]) == ("a", "three rivers")
    assert project.run("--yes").states == {"a": "reused", "b": "reused"}


def test_the_result_has_the_schema_of_the_step(project: Project) -> None:
    shape = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/count"}},
        "required": ["n"],
        "$defs": {"count": {"type": "integer"}},
    }
    project.plan({"a": step(handoff=True, schema=shape, retries=1)})
    with served(project, [both({"m": 1}), both({"n": 3})]) as server:
        run = project.run("--yes")
        assert "#/properties/output/$defs/count" in json.dumps(server.requests[0].body)
    assert run.states == {"a": "done"}, run
    assert json.loads(project.shown("a")) == {"n": 3}


@pytest.mark.req("R116", "R125")
@pytest.mark.parametrize(
    ("first", "words"),
    [
        (Say("just text"), "it must be JSON with 'output' and 'handoff'"),
        (Say('{"output": "x"}'), "it must be JSON with 'output' and 'handoff'"),
        (both("x", {"attempted": "look"}), "'observed' is missing"),
        (
            Say('{"output": "x", "output": "y", "handoff": {}}'),
            "'output' stands in one object twice",
        ),
        (Say('```json\n{"output": "x", "handoff": {"attempted": NaN}}\n```'), "NaN"),
    ],
)
def test_what_is_no_handoff_is_told_the_model_and_it_answers_again(
    project: Project, first: Say, words: str
) -> None:
    project.plan({"a": step(handoff=True, retries=1)})
    with served(project, [first, both("three")]) as server:
        assert project.run("--yes").states == {"a": "done"}
        assert words in server.requests[1].last
    assert project.shown("a") == b"three"


def test_a_fence_around_an_answer_is_passed_over(project: Project) -> None:
    project.plan({"a": step(handoff=True, retries=0)})
    whole = json.dumps({"output": "three", "handoff": HANDOFF})
    with served(project, [Say(f"```json\n{whole}\n```")]):
        assert project.run("--yes").states == {"a": "done"}
    assert project.shown("a") == b"three"


def test_an_agent_hands_over_with_its_last_answer(project: Project) -> None:
    project.write("work.py", "def add(a: int, b: int) -> int:\n    return a + b\n")
    project.plan({"a": step(uses="agent", tools=["work:add"], handoff=True)})
    with served(project, [Say("", tools=[("add", {"a": 1, "b": 2})]), both("three")]):
        assert project.run("--yes").states == {"a": "done"}
    assert project.shown("a") == b"three"
    assert project.ok("ledger", "--json").json["handoffs"][0]["from_step"] == "a"


def test_a_step_that_must_hand_over_from_now_on_runs_again(project: Project) -> None:
    project.plan({"a": step()})
    with served(project, [Say("three"), both("three")]):
        project.run("--yes")
        project.plan({"a": step(handoff=True)})
        run = project.run("--yes")
    assert (run.states["a"], run.codes["a"]) == ("done", "contract_changed")
