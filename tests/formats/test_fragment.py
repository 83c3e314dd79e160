"""Fragments: steps for a plan that is there, refused with their place if they do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import PlanError
from holdfast.formats.fragment import check_added, held, read_fragment
from holdfast.formats.planfile import load_text
from holdfast.model.agent import Action, Agent, Registry
from holdfast.model.plan import (
    Need,
    Plan,
    Step,
    StepId,
    fragment_bytes,
    fragment_steps,
    plan_bytes,
    plan_from_json,
)

pytestmark = pytest.mark.req("R32", "C24")

BASE = """
params: {word: {type: string, default: hello}}
steps:
  first: {run: make it, produces: out/first.txt, outputs: [size]}
  second: {run: make it, needs: [first], inputs: 'notes/*.md'}
"""


def plan() -> Plan:
    return load_text(BASE.encode(), "plan.yaml", ".").plan


def read(text: str, *, again: bool = False) -> dict[StepId, Step]:
    return read_fragment(text.encode(), "more.yaml", ".", plan(), again=again)


def wrong(text: str) -> list[str]:
    """Codes and places of everything that is refused."""
    with pytest.raises(PlanError) as caught:
        read(text)
    assert {item.file for item in caught.value.problems} == {"more.yaml"}
    return [f"{item.code}:{item.line}:{item.column}" for item in caught.value.problems]


def test_a_fragment_may_need_steps_of_the_plan_and_read_its_params() -> None:
    steps = read(
        "steps:\n  third: {run: [a], needs: [second], with: {w: '${{ params.word }}'}}\n"
        "  fourth: {run: [b], needs: [third, {step: first, type: sequence}]}\n"
    )
    assert steps[StepId("third")].values == {"w": "hello"}
    assert steps[StepId("fourth")].needs == (
        Need(StepId("third")),
        Need(StepId("first"), "sequence"),
    )
    assert fragment_steps(fragment_bytes(steps)) == steps
    check_added(plan(), steps)


@pytest.mark.parametrize(
    "text, found",
    [
        ("steps: {third: {run: [a], nedds: [first]}}", ["P030:1:27"]),
        ("name: x\nsteps: {third: {run: [a]}}", ["P030:1:1"]),
        ("steps:\n  first: {run: [a]}", ["P058:2:3"]),
        ("steps:\n  First: {run: [a]}", ["P050:2:3"]),
        ("steps:\n  x: {run: [a], needs: [frist]}", ["P003:2:25"]),
        ("steps:\n  x: {run: [a], needs: [y]}\n  y: {run: [a], needs: [x]}", ["P052:2:25"]),
        ("steps:\n  x: {run: [a], produces: out/first.txt}", ["P053:2:27"]),
        ("steps:\n  x: {run: [a], produces: out}", ["P053:2:27"]),
        ("steps:\n  x: {run: [a], inputs: 'out/*.txt'}", ["P054:2:25"]),
        ("steps:\n  x: {run: [a], produces: notes/a.md}", ["P054:2:3"]),
        ("steps:\n  x: {run: [a], needs: [{step: first, key: sise}]}", ["P012:2:44"]),
        ("steps: {}", ["P001:1:8"]),
        ("[]", ["P032:1:1"]),
        ("schema: other/1\nsteps: {x: {run: [a]}}", ["P005:1:9"]),
        ("steps: {1x: {run: [a]}}", ["P002:1:9"]),
        ("steps: {x: {run: [a], run: [b]}}", ["P016:1:23"]),
        ("steps: {x: {}}", ["P042:1:12"]),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(text: str, found: list[str]) -> None:
    assert wrong(text) == found


def test_a_writer_of_the_same_path_that_comes_after_the_other_fits() -> None:
    assert read("steps: {x: {run: [a], produces: out/first.txt, needs: [first]}}")
    assert read("steps: {x: {run: [a], produces: out/first.txt, needs: [second]}}")


def test_a_step_that_is_there_may_be_said_again_if_the_caller_sees_to_it() -> None:
    steps = read("steps: {second: {run: make it, needs: [first]}, x: {run: [a]}}", again=True)
    assert list(steps) == ["second", "x"]


def test_steps_made_by_hand_are_checked_too() -> None:
    for step in (
        Step(StepId("first"), run=("a",)),
        Step(StepId("x"), run=("a",), needs=(Need(StepId("ghost")),)),
        Step(StepId("x"), run=("a",), produces=("out/first.txt",)),
    ):
        with pytest.raises(PlanError):
            check_added(plan(), {step.id: step})
    check_added(plan(), {StepId("x"): Step(StepId("x"), run=("a",))})


def test_a_plan_that_was_never_checked_is_not_blamed_on_the_fragment() -> None:
    both = [Step(StepId(name), run=("a",), produces=("same",)) for name in ("a", "b")]
    of = Plan("made in python", {step.id: step for step in both})
    assert read_fragment(b"steps: {x: {run: [c]}}", "more.yaml", ".", of)


def test_json_is_a_fragment_too(tmp_path: Path) -> None:
    text = json.dumps({"schema": "holdfast.fragment/1", "steps": {"x": {"run": ["a"]}}})
    assert read_fragment(text.encode(), "more.json", str(tmp_path), plan())


# --- contracts ----------------------------------------------------------------------------------------

BOUND = """
params: {topic: {type: string, default: hello}}
agents:
  writer:
    version: "1.2"
    input_schema: {actions: {write: {required_context: [topic, size], run: [./write, it]}}}
    output_schema: {actions: {write: {required_outputs: [text]}}}
    constraints: {timeout_ms: 1500, max_concurrent: 2, requires_human_approval: true}
limits: {agents: {writer: 4}}
steps:
  first: {run: make it, outputs: [size]}
"""
WRITE = "steps:\n  second: {agent: writer@1.0, action: write, needs: [first]}\n"


def kept(text: str) -> Plan:
    """A plan as a run has it: read back from its snapshot."""
    return plan_from_json(json.loads(plan_bytes(load_text(text.encode(), "plan.yaml", ".").plan)))


@pytest.mark.req("R31")
def test_added_steps_are_held_to_the_contracts_that_a_plan_keeps() -> None:
    bound = kept(BOUND)
    whole = load_text((BOUND + WRITE.removeprefix("steps:\n")).encode(), "plan.yaml", ".").plan
    found = read_fragment(WRITE.encode(), "more.yaml", ".", bound)
    second = StepId("second")
    assert found == {second: whole.steps[second]}
    assert (found[second].agent, found[second].approve) == ("writer", "always")
    assert held(bound, found) == (found, whole.limits), "once more changes nothing"
    assert whole.limits.agents == {"writer": 2}
    raw = Step(second, agent="writer", action="write", needs=found[second].needs, shell="echo")
    assert held(bound, {second: raw})[0][second].outputs == ("text",)


@pytest.mark.req("R31")
def test_what_breaks_a_contract_is_told_with_its_place() -> None:
    text = (
        "steps:\n  second: {agent: writer, action: sing, run: [x]}\n  third: {agent: who, run: [x]}"
    )
    with pytest.raises(PlanError) as caught:
        read_fragment(text.encode(), "more.yaml", ".", kept(BOUND))
    found = [f"{item.code}:{item.line}:{item.column}" for item in caught.value.problems]
    assert found == ["P071:2:35", "P070:3:18"]


@pytest.mark.req("R31")
def test_a_persons_own_agents_and_those_of_a_graph_bind_added_steps_too() -> None:
    own = Registry({"ada": Agent("ada", {"add": Action()}, max_concurrent=3, timeout=9.0)})
    step = {StepId("x"): Step(StepId("x"), agent="ada", action="add", shell="echo")}
    mine = kept("agents: default\nsteps: {a: {run: [x]}}")
    more, limits = held(mine, step, lambda: own)
    assert (more[StepId("x")].timeout, limits.agents) == (9.0, {"ada": 3})
    graph = kept('{"graph_id": "g", "nodes": [{"id": "a", "agent": "ada", "action": "add"}]}')
    assert held(graph, step, lambda: own)[1].agents == {"ada": 3}
    assert held(plan(), step, lambda: own) == (step, plan().limits)
