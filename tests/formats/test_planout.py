"""A plan written as a plan file is the same plan when it is read again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.formats.planfile import Asked, load_text
from holdfast.formats.planout import duration, plan_yaml
from holdfast.model.plan import Plan, Step, StepId, plan_digest
from holdfast.model.provider import Known
from tests.formats.test_good_plans import EVERYTHING

pytestmark = pytest.mark.req("R20")

GRAPHS = Path(__file__).parent / "graphs"
TEXTS = [
    "plain",
    "no",
    "1e3",
    "0x1F",
    "null",
    "~",
    " a ",
    "a: b",
    "# x",
    "two\nlines",
    "two\nlines\n",
    " indented\nlines",
    "trailing \nblank",
    "tab\there",
    'quote " and \\ slash',
    "ümlaut — ✓ 😀",
    "-",
    "",
    "@at",
    "'single'",
    "x" * 500,
]


def again(plan: Plan) -> Plan:
    return load_text(plan_yaml(plan).encode(), "plan.yaml", "/nowhere").plan


def test_every_key_of_a_plan_comes_back() -> None:
    plan = load_text(EVERYTHING.encode(), "plan.yaml", "/nowhere").plan
    # params are filled in; contracts are no part of the file
    written = replace(plan, params={}, voices={}, contracts={})
    assert again(written) == written


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    step = Step(StepId("a"), run=("echo", text or "x"), values={"given": text}, description=text)
    plan = Plan("demo", {StepId("a"): step})
    assert again(plan) == plan


@pytest.mark.parametrize("value", [1, 1.5, -0.1, True, None, [1, "2"], {"a": {"b": []}}, "${x}"])
def test_any_value_comes_back_as_it_was(value: Any) -> None:
    step = Step(StepId("a"), run=("x",), values={"given": value})
    plan = Plan("demo", {StepId("a"): step})
    assert plan_digest(again(plan)) == plan_digest(plan)


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m"), (90, "90s"), (0.25, "0.25s"), (7200, "2h"), (604800, "7d")]
)
def test_a_time_is_written_in_the_largest_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("name", ["enrich", "review"])
def test_an_imported_graph_keeps_its_steps(name: str) -> None:
    content = (GRAPHS / f"{name}.json").read_bytes()
    plan = load_text(content, "graph.json", "/nowhere").plan
    able = {
        step_id: replace(step, uses="shell", run=("x",)) if step.uses == "agent" else step
        for step_id, step in plan.steps.items()
    }
    back = again(replace(plan, steps=able))
    assert back.steps == able
    assert back.limits == plan.limits
    assert back.origin == {
        "graph": {key: json.loads(content)[key] for key in ("graph_id", "phase")}
    }


MODELS = """
name: demo
steps:
  a:
    prompt: {role: r, task: "use ${{ steps.b.output }}"}
    model: {id: small, temperature: 0.5, max_tokens: 100}
    retries: 0
    budget: {usd: 0.5, tokens: 1000}
    guards:
      - judge: {rubric: is it good?, min: 0.75, votes: 3}
      - cites: {each: facts, in: "sources/*.md"}
  b:
    uses: agent
    prompt: look
    model: "fake:m"
    tools: ["work:add", "work:take"]
    turns: 7
    schema: {type: object}
"""


def test_steps_of_models_come_back() -> None:
    def load(text: str) -> Plan:
        asked = Asked(models=lambda _: Known({"small": "fake:s"}))
        return load_text(text.encode(), "plan.yaml", "/nowhere", asked).plan

    plan = load(MODELS)
    first, second = plan.steps.values()
    assert (first.model, first.tier, first.retries) == ("fake:s", "small", 0)
    assert (second.tools, second.turns, second.retries) == (("work:add", "work:take"), 7, 2)
    assert load(plan_yaml(plan)) == plan


CODERS = """
steps:
  first:
    uses: cli-agent
    run: claude --model small
    prompt: do it
    retries: 0
  second:
    uses: cli-agent
    run: ["acp:python3", agent.py]
    prompt: do it
    effects: workspace
"""


@pytest.mark.req("R184")
def test_steps_of_coding_agents_come_back() -> None:
    plan = load_text(CODERS.encode(), "plan.yaml", "/nowhere").plan
    first, second = plan.steps.values()
    assert (first.workspace, first.retries) == ("scratch", 0)
    assert first.tool_versions == {"claude": ("claude", "--version")}
    assert (second.workspace, second.retries, second.tool_versions) == ("worktree", 2, {})
    assert again(plan) == plan
