"""Defaults hold for every step that does not say otherwise."""

from __future__ import annotations

import pytest

from holdfast.errors import PlanError
from holdfast.formats.planfile import load_text
from holdfast.model.plan import Guard, Step, StepId

pytestmark = pytest.mark.req("R180")


def steps(defaults: str, own: str) -> tuple[Step, Step]:
    text = f"defaults: {{{defaults}}}\nsteps:\n  plain: {{run: x}}\n  own: {{run: x, {own}}}\n"
    plan = load_text(text.encode(), "plan.yaml", "/nowhere").plan
    return plan.steps[StepId("plain")], plan.steps[StepId("own")]


@pytest.mark.parametrize(
    "key, default, own, wanted",
    [
        ("model", "fast", "smart", ("fast", "smart")),
        ("retries", "2", "0", (2, 0)),
        ("timeout", "5m", "90s", (300.0, 90.0)),
        ("workspace", "scratch", "shared", ("scratch", "shared")),
        ("reuse", "content", "strict", ("content", "strict")),
        ("guards", "[{syntax: json}]", "[]", ((Guard("syntax", "json", "syntax"),), ())),
    ],
)
def test_a_default_holds_unless_the_step_says_otherwise(
    key: str, default: str, own: str, wanted: tuple[object, object]
) -> None:
    plain, other = steps(f"{key}: {default}", f"{key}: {own}")
    assert (getattr(plain, key), getattr(other, key)) == wanted


def test_the_budget_is_not_available_and_says_so() -> None:
    with pytest.raises(PlanError) as caught:
        steps("budget: {usd: 1}", "retries: 1")
    (problem,) = caught.value.problems
    assert (problem.code, problem.message) == (
        "P031",
        "'budget' is not available in this version",
    )


def test_defaults_count_when_keys_are_judged_together() -> None:
    _, own = steps("workspace: scratch", "share: true")
    assert own.share
    with pytest.raises(PlanError, match="cannot be shared"):
        steps("workspace: shared", "share: true")
