"""Questions that several steps raise are one, and each of them stays to be found."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.handoff import entry_id
from holdfast.model.plan import StepId
from tests.cli.project import Project
from tests.cli.test_ledger_words import handoff

ONE, OTHER = "Is the river Elbe high?", "is the river Elbe high"
FIRST, SECOND = entry_id("u", StepId("a"), ONE), entry_id("u", StepId("b"), OTHER)


@pytest.fixture
def rivers(project: Project) -> Project:
    """Two steps that ask the same in nearly the same words."""
    project.plan({name: {"shell": f"cat {name}.js* > $HOLDFAST_HANDOFF; echo 1"} for name in "ab"})
    project.write("a.json", handoff(highest_impact_uncertainty=ONE))
    project.write("b.json", handoff(highest_impact_uncertainty=OTHER))
    project.run()
    return project


def questions(project: Project, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.ok("ledger", *words, "--json").json["uncertainties"]
    return found


@pytest.mark.req("R127")
def test_a_question_of_two_steps_names_both_with_the_id_of_each(rivers: Project) -> None:
    (found,) = questions(rivers)
    assert (found["id"], found["from_step"], found["raised_by"]) == (FIRST, "a", ["a", "b"])
    same = {"id": SECOND, "from_step": "b", "question": OTHER, "alike": 1.0}
    assert found["merged"] == [same]
    text = rivers.ok("ledger", "uncertain").out
    assert text.splitlines() == [
        "uncertain (1)",
        f"  {ONE} · open · {FIRST} · from a, b",
        f"    {OTHER} · as {FIRST} · {SECOND} · from b",
    ]


@pytest.mark.parametrize("step", ["a", "b"])
def test_it_is_found_for_each_step_that_raised_it(rivers: Project, step: str) -> None:
    assert [one["id"] for one in questions(rivers, "uncertain", "--step", step)] == [FIRST]
    assert ONE in rivers.ok("ledger", "uncertain", "--step", step).out


@pytest.mark.parametrize("name", [FIRST, SECOND, SECOND[:7]])
def test_it_is_found_by_the_id_of_each_and_resolved_by_it(rivers: Project, name: str) -> None:
    assert [one["id"] for one in questions(rivers, name)] == [FIRST]
    rivers.ok("ledger", "resolve", name, "--because", "it fell")
    assert questions(rivers)[0]["status"] == "resolved"


@pytest.mark.req("R127")
def test_two_questions_that_were_taken_for_one_are_kept_apart(rivers: Project) -> None:
    rivers.ok("ledger", "apart", FIRST, SECOND)
    assert [(one["id"], one["raised_by"], one["merged"]) for one in questions(rivers)] == [
        (FIRST, ["a"], []),
        (SECOND, ["b"], []),
    ]
    rivers.ok("ledger", "resolve", SECOND, "--because", "it fell")
    assert [one["status"] for one in questions(rivers)] == ["open", "resolved"]
