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


@pytest.mark.parametrize(
    "name", ["unknown_step_key", "retries_negative", "guard_two_kinds", "limits_zero"]
)
def test_the_schema_refuses_what_the_loader_refuses(name: str) -> None:
    plan = yaml.safe_load((Path(__file__).parent / "bad" / f"{name}.yaml").read_text())
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(plan)


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
