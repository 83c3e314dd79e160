"""Fragments: steps for a plan that is there, refused with their place if they do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import PlanError
from holdfast.formats.fragment import check_added, read_fragment
from holdfast.formats.planfile import load_text
from holdfast.model.plan import Need, Plan, Step, StepId, fragment_bytes, fragment_steps

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
