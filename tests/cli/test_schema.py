"""Schemas: legal, and true of what commands print."""

import json
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.schema import shape_schema
from holdfast.model.digest import Json
from holdfast.model.handoff import (
    OPTIONAL,
    REQUIRED,
    Change,
    Handoff,
    Observation,
    Trial,
    Undone,
    handoff_json,
    read_handoff,
)
from tests.cli.project import Project
from tests.core.test_ledger import handoffs

pytestmark = pytest.mark.req("R180")

WHOLE = Handoff(
    "count",
    (Observation("12 stations", "a.csv", 0.9, ("H1",)), Observation("a dozen")),
    (Change("table", "a.csv"),),
    (Undone("the map", "no data", "R1"),),
    "All online?",
    "ping them",
    {"n": 12},
    ("All online?",),
    ("all online",),
    {"H1": Trial("supported", ("a",))},
)
ODD: list[Any] = [
    None,
    "",
    " ",
    "x",
    1,
    0.5,
    True,
    False,
    [],
    ["x"],
    [1],
    {},
    {"reason": "x"},
    {"x": 1},
]
ODD += [[{}], [{"finding": "x"}], [{"item": "x", "reason": "y"}], {"H": "refuted"}, {"H": {}}]
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
    for shape in ("run", "preview", "events", "plan", "handoff", "ledger"):
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


@pytest.mark.req("R116")
def test_handoffs_are_as_their_schema_says(project: Project) -> None:
    found = validator(project, "handoff")
    assert wrong(found, handoff_json(WHOLE)) == []
    assert wrong(found, handoff_json(Handoff("look"))) == []


@given(handoffs)
def test_every_handoff_that_is_read_fits_the_schema(handoff: Handoff) -> None:
    found = jsonschema.Draft202012Validator(cast("dict[str, Any]", shape_schema("handoff")))
    assert wrong(found, handoff_json(handoff)) == []


@given(st.dictionaries(st.sampled_from([*REQUIRED, *OPTIONAL]), st.sampled_from(ODD)))
def test_what_the_schema_takes_is_read(odd: dict[str, Json]) -> None:
    whole: dict[str, Json] = {**handoff_json(Handoff("look")), **odd}
    found = jsonschema.Draft202012Validator(cast("dict[str, Any]", shape_schema("handoff")))
    read, _ = read_handoff(whole)
    assert wrong(found, whole) or read is not None


def test_the_ledger_is_as_its_schema_says(project: Project) -> None:
    project.write("told.json", json.dumps(handoff_json(WHOLE)))
    told = {"shell": "cat told.js* > $HOLDFAST_HANDOFF; echo 1"}
    project.plan({"a": told, "b": {**told, "needs": ["a"]}, "c": {"shell": "exit 1"}})
    ledgers = validator(project, "ledger")
    project.run()
    for kind in ("evidence", "uncertainty", "gap"):
        project.ok("ledger", "add", kind, f"an own {kind}", "--because", "I know")
    project.ok("ledger", "contest", "a.csv", "--because", "old")
    project.run()
    seen = project.ok("ledger", "--json").json
    assert wrong(ledgers, seen) == []
    assert all(seen[part] for part in ("evidence", "uncertainties", "gaps", "handoffs", "said"))
