"""What a plan stands on: which hypotheses are critical, how they stand, when it is made again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.premises import premises_of, rules_of, standings, statements, substance
from holdfast.core.replan import Premises, Rules, may_matter
from holdfast.core.waves import graph_of
from holdfast.model.digest import Json
from holdfast.model.handoff import Handoff, Observation, Trial, Undone
from holdfast.model.plan import Limits, Need, Plan, Step, StepId


def plan(last: str, **premises: Json) -> Plan:
    steps = (
        Step(StepId("test"), type="experiment", hypotheses=("h",)),
        Step(StepId("between"), needs=(Need(StepId("test")),)),
        Step(StepId("last"), type=last, needs=(Need(StepId("between")),)),
    )
    return Plan("p", {step.id: step for step in steps}, premises=premises)


@pytest.mark.req("R121")
@pytest.mark.parametrize(
    ("last", "said", "critical"),
    [
        ("develop", {}, True),
        ("synthesize", {}, False),
        ("develop", {"critical": False}, False),
        ("synthesize", {"critical": True}, True),
    ],
)
def test_a_hypothesis_is_critical_if_said_so_or_something_is_built_on_it(
    last: str, said: dict[str, Json], critical: bool
) -> None:
    made = plan(last, hypotheses={"h": {"statement": "s", **said}})
    assert (premises_of(made, graph_of(made)).critical == {"h"}) is critical


@pytest.mark.req("R113", "R123")
def test_a_hypothesis_is_untested_until_a_step_that_tests_it_runs() -> None:
    made = plan(
        "", hypotheses={"h": {"statement": "s"}, "g": {"statement": "t", "status": "refuted"}}
    )
    assert standings(made) == {"h": "untested", "g": "refuted"}
    assert standings(made, {StepId("test")}) == {"h": "testing", "g": "refuted"}


@pytest.mark.req("R120")
def test_rules_are_those_of_the_plan_and_gaps_may_be_left_alone() -> None:
    assert rules_of(plan("")) == Rules()
    said = plan("", replan={"gaps": False, "rounds": 4, "ask": False})
    assert rules_of(said) == Rules(gaps=None, rounds=4, ask=False)


TOLD = Handoff("a")
STANDS = Premises(("known",), {"r": "must"}, frozenset({"h"}))


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (replace(TOLD, replan="no"), "requests"),
        (replace(TOLD, uncertainty="we need to replan"), "requests"),
        (replace(TOLD, observed=(Observation("f", refutes=("known",)),)), "assumptions"),
        (replace(TOLD, not_done=(Undone("i", "r"),)), "gaps"),
        (replace(TOLD, hypotheses={"h": Trial("refuted")}), "hypotheses"),
    ],
)
def test_what_may_speak_against_the_plan_is_looked_at_if_its_rule_is_on(
    told: Handoff, rule: str
) -> None:
    off = Rules(requests=False, assumptions=False, gaps=None, hypotheses=False)
    on = replace(off, **{rule: getattr(Rules(), rule)})
    assert may_matter(told, STANDS, Rules())
    assert may_matter(told, STANDS, on)
    assert not may_matter(told, STANDS, off)
    assert not may_matter(TOLD, STANDS, Rules())


def test_what_each_hypothesis_says_is_known() -> None:
    made = plan("", hypotheses={"h": {"statement": "s"}, "g": {}})
    assert statements(made) == {"h": "s", "g": ""}


def test_words_limits_and_origin_make_no_other_plan() -> None:
    made = plan("", hypotheses={"h": {"statement": "s"}})
    steps = {name: replace(step, description="words") for name, step in made.steps.items()}
    other = replace(
        made,
        steps=steps,
        goal="words",
        description="words",
        limits=Limits(attempts=9),
        params={"n": 1},
        origin={"file": "plan.yaml"},
        premises={**made.premises, "replan": {"rounds": 4}},
    )
    assert substance(other) == substance(made)
    assert substance(plan("", hypotheses={"h": {"statement": "t"}})) != substance(made)
