"""What check prints: compared whole, at 80 and at 120 columns and plain."""

import json

import pytest

from tests.cli.project import Project
from tests.cli.screens import Screen

pytestmark = pytest.mark.req("R180")

GOOD = """\
name: brief
params:
  topic: {type: string, default: heat pumps}
steps:
  extract:
    run: [./extract.sh]
    outputs: [facts, source_url]
  brief:
    run: [./brief.sh]
    with: {facts: "${{ steps.extract.output.facts }}", topic: "${{ params.topic }}"}
"""


def test_a_plan_with_nothing_wrong(project: Project, screen: Screen) -> None:
    project.write("plan.yaml", GOOD)
    screen("check", name="check-good")


def test_a_field_that_is_not_there(project: Project, screen: Screen) -> None:
    project.write("plan.yaml", GOOD.replace("output.facts", "output.fact"))
    screen("check", name="check-field")


def test_everything_that_is_wrong_at_once(project: Project, screen: Screen) -> None:
    project.write(
        "plan.yaml",
        GOOD.replace("topic: {type: string, default: heat pumps}", "topic: {type: string}")
        .replace("steps.extract", "steps.extarct")
        .replace("run: [./brief.sh]", "rnu: [./brief.sh]")
        + "  size: {run: x, needs: [brief], with: {b: '${{ steps.brief.output | length }}'}}\n"
        "  loop: {run: x, with: {v: '${{ steps.back.output }}'}}\n"
        "  back: {run: x, needs: [loop], produces: ../out}\n",
    )
    screen("check", name="check-everything")


def test_a_long_line_with_wide_characters_and_tabs(project: Project, screen: Screen) -> None:
    long = ", ".join(f"値{i}: 日本語のとても長い文" for i in range(40))
    project.write(
        "plan.yaml",
        "name: wide\nsteps:\n"
        f"  a: {{run: x, with: {{{long}, v: '${{{{ params.日本 }}}}'}}}}\n"
        "  b: {run: x, with: {v: 'é\u0301日本 ${{ params.topic }}'}}\n"
        '  c: {run: x, with: {v: "a\tb\tc ${{ params.topic }}"}}\n',
    )
    screen("check", name="check-wide")


def test_a_long_message_goes_on_below(project: Project, screen: Screen) -> None:
    names = [f"a_field_with_a_long_name_{i}" for i in range(9)]
    project.plan(
        {
            "a_step_with_a_rather_long_name": {"run": "x", "outputs": names},
            "another_step_with_a_long_name": {
                "run": "x",
                "with": {"v": "${{ steps.a_step_with_a_rather_long_name.output.zzz }}"},
            },
        }
    )
    screen("check", name="check-long")


def test_warnings_are_shown_and_do_not_refuse(project: Project, screen: Screen) -> None:
    project.write(
        "plan.yaml", "name: odd\nsteps:\n  a: {run: make && make test, idempotent: true}\n"
    )
    screen("check", name="check-warnings")


def test_guards_that_can_never_judge(project: Project, screen: Screen) -> None:
    project.write("facts.json", '{"type": "object",\n "properties": {"age": {"type": "int"}}}')
    project.write(
        "plan.yaml",
        "name: never\nsteps:\n"
        "  head: {run: [touch, ran], guards: [{regex: {pattern: '('}}]}\n"
        "  tone: {run: [touch, ran], guards: [{regex: {must: absent, pattern: '(?<!x)h'}}]}\n"
        "  facts: {run: [touch, ran], schema: facts.json}\n"
        "  data: {run: [touch, ran], guards: [{json-schema: {type: foo}}]}\n",
    )
    screen("check", name="check-never")
    refused = project.call("run")
    assert (refused.code, refused.err.count("error[P049]")) == (2, 4)
    assert not project.has("ran")
    assert not project.store.exists()


def test_a_schema_that_is_plainly_right_loads_no_library(project: Project) -> None:
    project.plan({"a": {"run": "x", "schema": {"type": "object", "required": ["k"]}}})
    lines = project.call("check", env={"PYTHONPROFILEIMPORTTIME": "1"}).err
    loaded = {line.rpartition("|")[2].strip() for line in lines.splitlines()}
    assert "holdfast.guards.schemaparts" in loaded
    assert not loaded & {"jsonschema", "re2", "asyncio"}


def test_problems_for_programs(project: Project) -> None:
    project.write("plan.yaml", GOOD.replace("output.facts", "output.fact"))
    answer = project.call("check", "--json")
    assert answer.code == 2
    assert answer.json == {
        "schema": "holdfast.check/1",
        "ok": False,
        "problems": [
            {
                "code": "P012",
                "file": "plan.yaml",
                "line": 10,
                "column": 45,
                "message": "'brief' reads a field that 'extract' does not give",
                "note": "the artifact of 'extract' (its outputs) has: facts, source_url",
                "hint": "did you mean 'facts'?",
            }
        ],
        "warnings": [],
    }
    project.write("plan.yaml", json.dumps({"steps": {"a": {"run": "a | b"}}}))
    good = project.ok("check", "--json").json
    assert (good["ok"], good["steps"], [w["code"] for w in good["warnings"]]) == (True, 1, ["P901"])
