"""Schemas: legal, and true of what commands print."""

import json
from typing import Any, cast

import jsonschema
import pytest

from holdfast.cli.schema import shape_schema
from tests.cli.project import Project

pytestmark = pytest.mark.req("R180")

SHAPES: list[Any] = [{}, [], {"schema": "other/1"}, {"event": "nonsense", "seq": 1, "ts": ""}]


def validator(project: Project, shape: str) -> jsonschema.Draft202012Validator:
    schema = project.ok("schema", shape).json
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def wrong(found: jsonschema.Draft202012Validator, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in found.iter_errors(value)]


def test_what_commands_print_is_as_the_schemas_say(project: Project) -> None:
    project.write("in.txt", "1")
    project.plan(
        {
            "a": {"run": "cat in.txt", "inputs": ["in.txt"], "produces": "a.txt"},
            "b": {"shell": "cp in.txt b.txt", "needs": ["a"], "produces": "b.txt", "retries": 1},
            "c": {"run": "true", "needs": ["a"]},
            "d": {"run": "true", "guards": [{"command": "false"}]},
            "e": {"run": "true"},
        }
    )
    runs, previews, events = (validator(project, s) for s in ("run", "preview", "events"))
    assert wrong(previews, project.ok("plan", "--json").json) == []
    first = project.run()
    assert first.code == 1
    assert wrong(runs, first.data) == []
    assert {"done", "failed", "skipped"} <= set(first.states.values())
    assert wrong(previews, project.ok("plan", "--json").json) == []
    assert wrong(runs, project.status().data) == []
    project.write("in.txt", "2")
    assert wrong(runs, project.run().data) == []
    lines = [line for run in ("@", "@-1") for line in project.events(run)]
    assert {line["event"] for line in lines} >= {"run_started", "steps_reused", "step_failed"}
    for line in lines:
        assert wrong(events, line) == []


def test_the_schemas_refuse_other_shapes() -> None:
    for shape in ("run", "preview", "events", "plan"):
        found = jsonschema.Draft202012Validator(cast("dict[str, Any]", shape_schema(shape)))
        for value in SHAPES:
            assert wrong(found, value), (shape, value)


def test_a_schema_is_written_to_a_file_for_editors(project: Project) -> None:
    answer = project.ok("schema", "plan", "-o", "plan.schema.json")
    assert answer.out == ""
    assert "# yaml-language-server: $schema=plan.schema.json" in answer.err
    assert json.loads(project.read("plan.schema.json"))["title"] == "holdfast.plan/1"
    assert "cannot write 'none/x'" in project.refused(2, "schema", "plan", "-o", "none/x")
    answer = project.ok("schema", "plan", "-o", "plan.schema.json", "--json")
    assert answer.json["file"] == "plan.schema.json"
