"""Params of a plan file: types, defaults, and what is refused; the line's name read alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import PlanError, UsageError
from holdfast.formats.heading import plan_name
from holdfast.formats.planfile import Asked, load_plan, load_text
from holdfast.model.digest import Json
from holdfast.model.plan import Input, Need, Plan, Step, StepId, plan_bytes, plan_from_json

pytestmark = pytest.mark.req("R180")

PARAMS = {
    "s": {"type": "string", "default": "a b"},
    "i": {"type": "int", "default": 3},
    "b": {"type": "bool", "default": True},
    "f": {"type": "files", "default": "./d//*.md"},
}


def load(values: Json, given: dict[str, Json] | None = None, **step: Json) -> Plan:
    steps = {"up": {"run": "x"}, "a": {"run": "x", "with": {"v": values}, **step}}
    text = json.dumps({"name": "n", "params": PARAMS, "steps": steps}).encode()
    asked = Asked(params=given or {}, find=lambda _, glob: [f"{glob[:-4]}{n}.md" for n in "yx"])
    return load_text(text, "plan.json", "/nowhere", asked).plan


def value(template: Json, given: dict[str, Json] | None = None) -> Json:
    return load(template, given).steps[StepId("a")].values["v"]


@pytest.mark.parametrize(
    "template, wanted",
    [
        ("${{ params.s }}", "a b"),
        ("${{params.i}}", 3),
        ("${{ params.b }}", True),
        ("${{ params.f }}", ["d/y.md", "d/x.md"]),
        ("<${{ params.i }} ${{ params.b }} ${{ params.s }}>", "<3 true a b>"),
        ({"x": ["${{ params.i }}"]}, {"x": [3]}),
        ("$${{ params.s }}", "$${{ params.s }}"),
        ("${{ steps.up.output }}${{ params.s }}", "${{ steps.up.output }}a b"),
    ],
)
def test_a_param_is_filled_in_with_its_type(template: Json, wanted: Json) -> None:
    assert value(template) == wanted


@pytest.mark.parametrize(
    "given, template, wanted",
    [
        ({"i": "-7"}, "${{ params.i }}", -7),
        ({"i": "+7"}, "${{ params.i }}", 7),
        ({"i": 12}, "${{ params.i }}", 12),
        ({"b": "false"}, "${{ params.b }}", False),
        ({"b": False}, "${{ params.b }}", False),
        ({"s": ""}, "<${{ params.s }}>", "<>"),
        ({"s": "a=b"}, "${{ params.s }}", "a=b"),
        ({"s": "${{ steps.up.output }}"}, "${{ params.s }}", "$${{ steps.up.output }}"),
        ({"s": "$"}, "${{ params.s }}{{ x }}", "$${{ x }}"),
        ({"s": "$"}, "${{ params.s }}${{ steps.up.output }}", "$$${{ steps.up.output }}"),
    ],
)
def test_a_given_value_stands_for_the_default(
    given: dict[str, Json], template: str, wanted: Json
) -> None:
    assert value(template, given) == wanted


@pytest.mark.parametrize(
    "given, message",
    [
        ({"x": "1"}, "no param 'x'"),
        ({"i": "1.0"}, "'i' is a whole number, and '1.0' is not"),
        ({"i": ""}, "'i' is a whole number"),
        ({"i": True}, "'i' is a whole number"),
        ({"i": "9" * 5000}, "'i' is a whole number"),
        ({"b": "yes"}, "'b' is true or false, and 'yes' is not"),
        ({"b": 1}, "'b' is true or false"),
        ({"s": 4}, "'s' is text"),
        ({"s": "\x1b[31m"}, "holds the character U\\+001B"),
        ({"s": "\udcff"}, "holds the character U\\+DCFF"),
    ],
)
def test_a_value_of_another_type_is_a_usage_error(given: dict[str, Json], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        value("x", given)


@pytest.mark.parametrize("glob", ["../x", "/etc/*", "", ".git/*", "a/../../b"])
def test_files_stay_inside_the_project(glob: str) -> None:
    with pytest.raises(PlanError) as caught:
        value("x", {"f": glob})
    assert [problem.code for problem in caught.value.problems] == ["P043"]


def test_a_file_whose_name_a_plan_cannot_hold_is_refused() -> None:
    text = b"params: {f: {type: files, default: '*'}}\nsteps: {a: {run: x}}"
    asked = Asked(find=lambda _, __: ["ok", "a\udcff"])
    with pytest.raises(PlanError, match="a name that a plan cannot hold"):
        load_text(text, "plan.yaml", "/nowhere", asked)


def test_needs_and_inputs_come_with_the_expression() -> None:
    step = load("${{ steps.up.output.a }} ${{ params.f }}", prompt="${{ steps.up.output }}").steps[
        StepId("a")
    ]
    assert step.needs == (Need(StepId("up")),)
    assert step.inputs == (Input("d/*.md"),)
    declared = load("${{ steps.up.output }}", needs=[{"step": "up", "key": "k"}])
    assert declared.steps[StepId("a")].needs == (Need(StepId("up"), "data", "k"),)
    unused = load("${{ params.i }}").steps[StepId("a")]
    assert (unused.needs, unused.inputs) == ((), ())


def test_the_snapshot_keeps_values_and_templates() -> None:
    plan = load("${{ params.s }} ${{ steps.up.output }} $${{", {"s": "${{"})
    again = plan_from_json(json.loads(plan_bytes(plan)))
    assert again == plan
    assert plan.params == {"s": "${{", "i": 3, "b": True, "f": "d/*.md"}
    assert plan.steps[StepId("a")].values["v"] == "$${{ ${{ steps.up.output }} $${{"
    assert b"params" not in plan_bytes(Plan("n", {StepId("a"): Step(StepId("a"))}))


NAMES = [
    "name: plain\nsteps: {a: {run: x}}",
    "steps: {name: {run: x, with: {name: inner}}}\nname: 'quoted # x'",
    "steps: {a: {run: x}}",
    "? name\n: odd\nsteps: {a: {run: x}}",
    'steps: &s {a: {run: x}}\ndescription: name\nname: "\\u00e9"',
    "goal: [name, x]\nname: 2024-report",
    "name: 1e\nsteps: {a: {run: x}}",
]


@pytest.mark.parametrize("text", NAMES)
@pytest.mark.parametrize("file", ["plan.yaml", "other.yml"])
def test_the_name_alone_is_the_name_of_the_plan(text: str, file: str, tmp_path: Path) -> None:
    place = tmp_path / file
    place.write_text(text)
    found = plan_name(str(place))
    try:
        assert found == load_plan(str(place)).plan.name
    except PlanError:
        assert found == "2024-report"


@pytest.mark.parametrize(
    "content",
    [b"name: 5", b"name: ~", b"name: [a]", b"- name\n- x", b"name: '${{ x }}'", b"\xff", b"name: {",
     b"name: ''\nsteps", b"[" * 100_000, b'{"name": "a\\u0000"}'],
)  # fmt: skip
def test_a_name_that_is_not_easy_to_tell_is_left_to_the_load(
    content: bytes, tmp_path: Path
) -> None:
    place = tmp_path / "plan.yaml"
    place.write_bytes(content)
    assert plan_name(str(place)) is None
    assert plan_name(str(tmp_path / "none.yaml")) is None


def test_the_name_of_a_json_plan_is_read_as_json(tmp_path: Path) -> None:
    place = tmp_path / "plan.json"
    place.write_text('{\n\t"steps": {"a": {"run": "x"}},\n\t"name": "\\ud83d\\ude00"\n}')
    assert plan_name(str(place)) == load_plan(str(place)).plan.name == "\U0001f600"
