"""Handoffs are read whole, or everything that is wrong with them is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.digest import Json
from holdfast.model.handoff import (
    Change,
    Handoff,
    Observation,
    Trial,
    Undone,
    handoff_json,
    joined,
    read_handoff,
)
from tests.core.test_ledger import handoffs

WHOLE: dict[str, Json] = {
    "attempted": "read the tables",
    "observed": [
        {"finding": "12 stations", "source": "a.csv", "confidence": 0.9, "supports": "H1"}
    ],
    "changed": [{"artifact": "table", "ref": "table.json"}],
    "notDone": [{"item": "the map", "reason": "no data"}],
    "highestImpactUncertainty": "are they all online?",
    "nextAgentShouldFirst": "look at the map",
    "hypotheses": {"H1": {"status": "supported", "evidence": ["a"]}, "H2": "testing"},
    "replan": {"reason": "the file is empty"},
    "refersTo": ["h-000000000000"],
}


@pytest.mark.req("R116", "C30")
def test_both_spellings_of_keys_are_read() -> None:
    found, wrong = read_handoff(WHOLE)
    assert wrong == []
    assert found == Handoff(
        attempted="read the tables",
        observed=(Observation("12 stations", "a.csv", 0.9, ("H1",)),),
        changed=(Change("table", "table.json"),),
        not_done=(Undone("the map", "no data"),),
        uncertainty="are they all online?",
        first="look at the map",
        hypotheses={"H1": Trial("supported", ("a",)), "H2": Trial("testing")},
        replan="the file is empty",
        refers_to=("h-000000000000",),
    )


@pytest.mark.req("R72")
@given(handoffs)
def test_what_is_written_is_read_again(handoff: Handoff) -> None:
    assert read_handoff(json.loads(json.dumps(handoff_json(handoff)))) == (handoff, [])


@pytest.mark.req("R116")
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"attempted": " "}, "'attempted' is empty"),
        ({"attempted": None}, "'attempted' is empty"),
        ({"attempted": "\u200b \u2060"}, "'attempted' is empty"),
        ({"observed": [{"finding": "\u200b"}]}, "'observed[0].finding' is empty"),
        ({"attempted": 5}, "'attempted' is a number, not text"),
        ({"observed": {"finding": "x"}}, "'observed' is a mapping, not a list"),
        ({"observed": ["x"]}, "'observed[0]' is text, not a mapping"),
        ({"observed": [{"source": "x"}]}, "'observed[0].finding' is missing"),
        (
            {"observed": [{"finding": "x", "confidence": 90}]},
            "'observed[0].confidence' is not a number from 0 to 1",
        ),
        (
            {"observed": [{"finding": "x", "confidance": 1}]},
            "'observed[0].confidance' is no key of a handoff; is 'confidence' meant?",
        ),
        ({"changed": [{"artifact": "x", "ref": ""}]}, "'changed[0].ref' is empty"),
        ({"not_done": []}, "'not_done' is given twice"),
        (
            {"hypotheses": {"H1": "proven"}},
            "'hypotheses.H1.status' is not one of untested, testing",
        ),
        ({"replan": {}}, "'replan.reason' is missing"),
        ({"attempted": "\ud800"}, "text holds a lone surrogate"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, Json], complaint: str) -> None:
    found, wrong = read_handoff({**WHOLE, **change})
    assert found is None
    assert wrong[0].startswith(complaint)


@pytest.mark.req("R116")
def test_a_question_of_which_nothing_can_be_seen_is_none() -> None:
    found, _ = read_handoff({**WHOLE, "highestImpactUncertainty": "\u200b"})
    assert found is not None
    assert found.uncertainty == ""


@pytest.mark.req("R116")
def test_everything_that_is_wrong_is_said_at_once() -> None:
    found, wrong = read_handoff({"observed": 1, "changed": [], "payload": []})
    assert found is None
    assert wrong == [
        "'attempted' is missing",
        "'not_done' is missing",
        "'highest_impact_uncertainty' is missing",
        "'next_agent_should_first' is missing",
        "'observed' is a number, not a list",
        "'payload' is a list, not a mapping",
    ]
    assert read_handoff([]) == (None, ["a handoff is a mapping, not a list"])


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from([*WHOLE, "finding", "status"]) | st.text(), x)
        ),
    )
)
def test_no_json_breaks_the_reader(given_: Json) -> None:
    found, wrong = read_handoff(given_)
    assert (found is None) == bool(wrong)


@given(handoffs, handoffs)
def test_joining_drops_nothing_and_says_nothing_twice(told: Handoff, more: Handoff) -> None:
    both = joined(told, more, "ann")
    for name in ("changed", "not_done", "resolves", "testing", "refers_to"):
        one, other, made = (getattr(whole, name) for whole in (told, more, both))
        assert made[: len(one)] == one
        assert set(made) == {*one, *other}
    findings = {one.finding for one in (*told.observed, *more.observed)}
    assert {one.finding for one in both.observed} == findings
    assert all(one.source for one in both.observed[len(told.observed) :])
    assert told.uncertainty in both.uncertainty
    assert more.uncertainty in both.uncertainty
    assert {**told.hypotheses, **more.hypotheses} == both.hypotheses
    assert joined(both, more, "ann") == joined(joined(both, more, "ann"), Handoff(""), "bob")
    assert read_handoff(json.loads(json.dumps(handoff_json(both)))) == (both, [])


def test_no_minus_stands_before_a_zero() -> None:
    observed: list[Json] = [{"finding": "x", "confidence": -0.0}]
    handoff, _ = read_handoff({**WHOLE, "observed": observed})
    assert handoff is not None
    assert str(handoff.observed[0].confidence) == "0.0"
