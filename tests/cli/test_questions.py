"""Questions that several steps raise are one, and each of them stays to be found."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.digest import Json
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


# --- what is taken up and resolved ----------------------------------------------------------------

ASKED = "Why is the sky over the sea so blue?"
SKY = entry_id("u", StepId("a"), ASKED)


@pytest.fixture
def sky(project: Project) -> Project:
    """A step that asks, one below it that answers, and one beside them."""
    shell = {"shell": "cat $HOLDFAST_STEP.js* > $HOLDFAST_HANDOFF; echo 1"}
    project.plan({"a": shell, "b": {**shell, "needs": ["a"]}, "c": shell})
    project.write(
        "a.json", handoff({"finding": "it is", "source": "s"}, highest_impact_uncertainty=ASKED)
    )
    project.write("b.json", handoff())
    project.write("c.json", handoff())
    return project


@pytest.mark.req("R125")
@pytest.mark.parametrize("name", [SKY, SKY[:8], "u-", ASKED, "why is the sky over the sea so Blue"])
def test_a_question_is_resolved_by_its_id_its_beginning_or_its_words(
    sky: Project, name: str
) -> None:
    sky.write("b.json", handoff(resolves=[name]))
    assert sky.run().states == dict.fromkeys("abc", "done")
    (found,) = questions(sky)
    assert (found["status"], found["resolved_by"]) == ("resolved", "b")
    kept = sky.ok("ledger", "handoffs", "--step", "b", "--json").json["handoffs"][0]["handoff"]
    assert kept["resolves"] == [SKY if name.startswith("u-") else name], "an id is spelled out"


@pytest.mark.req("R125")
@pytest.mark.parametrize("key", ["resolves", "testing"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("u-0123", "which nobody told"),
        ("u-0123456789ab", "which nobody told"),
        ("no question like it", "which is no question that was raised before it"),
        (
            entry_id("e", StepId("a"), "it is", "s"),
            "which is no question that was raised before it",
        ),
    ],
)
def test_what_is_no_question_is_refused_with_the_nearest(
    sky: Project, key: str, name: str, told: str
) -> None:
    sky.write("b.json", handoff(**{key: [name]}))
    run = sky.run()
    assert run.states == {"a": "done", "b": "failed", "c": "done"}
    assert f"'{key}' names '{name}', {told}; questions are: {SKY} ({ASKED})" in run.err
    sky.write("mine.txt", "2\n")
    said = sky.refused(2, "amend", "b", "mine.txt", "--handoff", "b.json")
    assert f"'{key}' names '{name}', {told}" in said


def test_without_any_question_there_is_none_to_resolve(project: Project) -> None:
    project.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}})
    project.write("a.json", handoff(resolves=["Who is there?"]))
    assert "no question that was raised before it; no question was" in project.run().err


@pytest.mark.req("R124", "R125")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_question_of_a_step_beside_it_is_known_from_the_next_run_on(
    sky: Project, jobs: str
) -> None:
    """Whether it was asked before is a matter of time, for its words as for its id."""
    sky.write("c.json", handoff(resolves=[ASKED]))
    run = sky.run("-j", jobs)
    assert run.states == {"a": "done", "b": "done", "c": "failed"}
    assert "no question that was raised before it" in run.err
    assert sky.run().states == {"a": "reused", "b": "reused", "c": "done"}
    assert questions(sky)[0]["resolved_by"] == "c"


def test_a_step_may_raise_again_what_it_takes_up(sky: Project) -> None:
    sky.write("b.json", handoff(testing=[ASKED], highest_impact_uncertainty=ASKED))
    assert sky.run().states == dict.fromkeys("abc", "done")


@pytest.mark.parametrize("name", [SKY, SKY[:8], ASKED])
def test_a_person_resolves_by_a_handoff_what_a_step_beside_it_asked(
    project: Project, name: str
) -> None:
    """People know what stands in the ledger when they speak."""
    shell = {"shell": "cat $HOLDFAST_STEP.js* > $HOLDFAST_HANDOFF; echo 1"}
    project.plan({"a": shell, "who": {"uses": "human", "prompt": "why?"}})
    project.write("a.json", handoff(highest_impact_uncertainty=ASKED))
    project.write("who.json", handoff(resolves=[name]))
    project.write("who.txt", "light\n")
    project.run()
    project.ok("answer", "who", "who.txt", "--handoff", "who.json")
    assert project.resume().states == {"a": "done", "who": "done"}
    assert questions(project)[0]["resolved_by"] == "who"


@pytest.mark.req("R125")
def test_a_shortened_id_is_spelled_out_wherever_it_stands(sky: Project) -> None:
    name = entry_id("e", StepId("a"), "it is", "s")
    sky.write(
        "b.json",
        handoff({"finding": "so it is", "source": name[:8]}, {"finding": "x", "source": "e-0000"}),
    )
    assert sky.run().states["b"] == "done"
    found = sky.ok("ledger", "evidence", "--step", "b", "--json").json["evidence"]
    assert [(one["source"], one["stands_on"]) for one in found] == [(name, [name]), ("e-0000", [])]


@pytest.mark.req("R129")
def test_a_contest_says_which_questions_are_open_again(rivers: Project) -> None:
    rivers.write("b.json", handoff({"finding": "it fell", "source": "pegel.csv"}, resolves=[FIRST]))
    rivers.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
            "b": {"needs": ["a"], "shell": "cat b.js* > $HOLDFAST_HANDOFF; echo 1"},
        }
    )
    rivers.run()
    assert questions(rivers)[0]["status"] == "resolved"
    for entry in ("b", "pegel.csv"):
        words = ("ledger", "contest", entry, "--because", "no", "--dry-run")
        assert f"open again: {ONE} · {FIRST}" in rivers.ok(*words).out
        found = rivers.ok(*words, "--json").json["uncertainties"]
        assert found == {FIRST: {"status": "open", "was": "resolved"}}
    rivers.ok("ledger", "contest", "pegel.csv", "--because", "no")
    assert questions(rivers)[0]["status"] == "open"


@pytest.mark.req("R120")
def test_a_gap_is_shown_with_every_requirement_that_it_leaves_open(project: Project) -> None:
    twice = [
        {"item": "the map", "reason": "no data", "requirement": "nice"},
        {"item": "the map", "reason": "no time", "requirement": "numbers"},
    ]
    project.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}})
    project.write("a.json", handoff(not_done=twice))
    project.run()
    assert "the map: no data; no time · for nice, numbers · g-" in project.ok("ledger", "gaps").out
    (gap,) = project.ok("ledger", "gaps", "--json").json["gaps"]
    assert (gap["requirement"], gap["requirements"]) == ("nice", ["nice", "numbers"])


def test_shares_are_shown_without_what_rounding_left(project: Project) -> None:
    seen: list[Json] = [
        {"finding": f"{name} saw it", "source": name, "confidence": sure, "supports": ["wet"]}
        for name, sure in (("north", 0.3), ("south", 0.4))
    ]
    project.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}})
    verdict = {"wet": {"status": "supported"}}
    project.write("a.json", handoff(*seen, hypotheses=verdict))
    project.run()
    found = project.ok("ledger", "--json").json["hypotheses"]["wet"]
    assert found["confidence_for"] == 0.58  # and not 0.5800000000000001


@pytest.mark.req("R129")
def test_a_list_is_contested_in_any_order(project: Project) -> None:
    project.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}})
    project.write("a.json", handoff({"finding": "it rains", "source": "b.csv and c.csv"}))
    project.run()
    found = project.ok("ledger", "contest", "c.csv, b.csv", "--because", "old", "--json").json
    assert found["steps"] == ["a"]
    assert project.ok("ledger", "--json").json["evidence"][0]["contested"] == "old"
    project.ok("ledger", "contest", "b.csv; c.csv", "--take-back", "--because", "no")
    assert project.ok("ledger", "--json").json["evidence"][0]["contested"] is None
