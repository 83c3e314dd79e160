"""The JSON Schema says the same as the loader, as far as a schema can."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import jsonschema
import pytest
import yaml

from holdfast.formats.grammar import DEFAULTS, LIMITS, PLAN, STEP, plan_schema
from tests.formats.test_good_plans import EVERYTHING

pytestmark = pytest.mark.req("R180")

SCHEMA = cast("dict[str, object]", plan_schema())


def test_the_schema_is_legal_and_accepts_every_available_key() -> None:
    validator = jsonschema.Draft202012Validator
    validator.check_schema(SCHEMA)
    plan = yaml.safe_load(EVERYTHING.replace("no: on", '"no": "on"').replace("yes:", '"yes":'))
    assert [error.message for error in validator(SCHEMA).iter_errors(plan)] == []


SHAPES = [
    "unknown_step_key",
    "unknown_top_key",
    "unknown_default",
    "unknown_limit",
    "retries_negative",
    "retries_text",
    "guard_two_kinds",
    "guard_unknown_kind",
    "guard_no_kind",
    "guards_mapping",
    "limits_zero",
    "no_steps",
    "steps_list",
    "steps_empty",
    "step_text",
    "id_with_path",
    "id_with_digit_first",
    "effects_typo",
    "uses_typo",
    "name_number",
    "timeout_word",
    "timeout_number",
    "run_empty",
    "run_mapping",
    "need_without_step",
    "need_wrong_type",
    "env_assignment",
    "inputs_without_glob",
    "prompt_without_task",
    "schema_other",
    "reserved_default",
    "params_list",
    "param_text",
    "param_no_type",
    "param_type_typo",
    "param_unknown_key",
    "param_name",
    "workspace_typo",
    "priority_typo",
    "top_list",
    "tool_versions_list",
]


@pytest.mark.parametrize("name", SHAPES)
def test_the_schema_refuses_what_the_loader_refuses(name: str) -> None:
    plan = yaml.safe_load((Path(__file__).parent / "bad" / f"{name}.yaml").read_text())
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(plan)


GOOD = [
    "steps: {a: {run: x}}",
    "steps: {a: {shell: x | y, needs: b}, b: {uses: python, run: m:f, produces: o}}",
    "params: {a: {type: int}, b: {type: files, default: '*.md'}}\nsteps: {a: {run: x}}",
    "steps: {a: {run: x, prompt: p.md, schema: s.json, priority: High, env: TZ}}",
    "steps: {a: {run: [x], guards: [{any: [{syntax: json}]}], inputs: {glob: x, optional: true}}}",
    "steps: {a: {run: x, with: {v: '${{ steps.b.output.c }}'}}, b: {run: x, outputs: c}}",
]


@pytest.mark.parametrize("text", GOOD)
def test_the_schema_accepts_what_the_loader_accepts(text: str) -> None:
    found = jsonschema.Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(text))
    assert [error.message for error in found] == []


def test_every_key_says_what_it_means() -> None:
    missing = []
    pending: list[tuple[str, object]] = [("plan", SCHEMA)]
    while pending:
        name, schema = pending.pop()
        if isinstance(schema, dict):
            for key, value in schema.get("properties", {}).items():
                if not str(value.get("description", "")).endswith("."):
                    missing.append(f"{name}: {key}")
            pending += [(f"{name}.{key}", value) for key, value in schema.items()]
        elif isinstance(schema, list):
            pending += [(name, item) for item in schema]
    assert missing == []


def test_every_available_key_stands_in_the_golden_plan() -> None:
    plan = yaml.safe_load(EVERYTHING)
    steps = {name for step in plan["steps"].values() for name in step}
    given = [
        (PLAN, plan.keys()),
        (STEP, steps),
        (DEFAULTS, plan["defaults"]),
        (LIMITS, plan["limits"]),
    ]
    for table, names in given:
        assert {name for name, key in table.items() if key.shape is not None} == set(names)
