"""A run as an ExecutionState says what its handoffs add up to, and never more than is complete."""

from dataclasses import replace
from typing import Any

from holdfast.core.execution import execution_state
from holdfast.core.ledger import Ledger, folded
from holdfast.core.likeness import equal
from holdfast.core.said import Said
from holdfast.core.state import State
from holdfast.model.digest import Json
from holdfast.model.event import Event, Reason, RunEnded, RunRested, StepFailed
from holdfast.model.handoff import Change, Observation, Trial, Undone, entry_id
from tests.core.builders import accepted, plan, ref, reused, sid, started, state_of, step
from tests.core.test_ledger import told

A, B, SUB, C = sid("a"), sid("b"), sid("flow.b"), sid("c")
PLAN = plan(
    replace(step("a"), description="measure"),
    replace(step("flow.b", "a"), description="inside"),
    replace(step("c", "flow.b"), description=""),
)
SPEC: dict[str, Json] = {"goal": "g", "steps": [{"id": "a"}, {"id": "flow"}, {"id": "c"}]}
TOLD = told(
    "a",
    observed=(Observation("it is wet", "gauge", 0.9, supports=("h1",)), Observation("dry", "")),
    uncertainty="is it deep?",
    not_done=(Undone("the well", "no time"),),
    changed=(Change("map", "map.svg"),),
    hypotheses={"h1": Trial("supported")},
)
INSIDE = told("flow.b", 1, resolves=(entry_id("u", A, "is it deep?"),), first="look up")


def after(*events: Event) -> State:
    return state_of(PLAN, *events)


def ledger(*said: Said) -> Ledger:
    return folded([replace(TOLD, at=7), INSIDE], equal, hypotheses={"h1": "untested"}, said=said)


def shown(state: State, of: Ledger | None = None) -> dict[str, Any]:
    return dict(execution_state(state, of or ledger(), SPEC, {SUB: 99}))


ALL = (reused("a"), started("flow.b"), accepted("flow.b"), started("c"), accepted("c"))


def test_a_plan_of_which_nothing_ran_is_all_pending() -> None:
    found = execution_state(after(), Ledger(), SPEC, {})
    assert found == {
        "plan": SPEC,
        "completedStepIds": [],
        "pendingStepIds": ["a", "c"],
        "currentStepId": None,
        "handoffLog": [],
        "evidenceLedger": [],
        "uncertaintyInventory": [],
        "artifactRegistry": [],
        "gapsRegistry": [],
        "iterations": 0,
        "planComplete": False,
        "needsReplanning": False,
        "hypothesisStatuses": {},
    }


def test_what_is_complete_counts_and_what_failed_is_pending_still() -> None:
    state = after(
        reused("a"), StepFailed(SUB, Reason("timed_out")), RunRested("failed", Reason("x"))
    )
    found = shown(state)
    assert found["completedStepIds"] == ["a"]
    assert found["pendingStepIds"] == ["c"]
    assert found["planComplete"] is False
    assert shown(after(*ALL, RunEnded("completed")))["planComplete"] is True
    assert shown(after(*ALL))["completedStepIds"] == ["a", "c"]


def test_what_a_step_of_a_flow_does_the_flow_does() -> None:
    assert shown(after(reused("a"), started("flow.b")))["currentStepId"] == "flow"
    assert shown(after(started("a")))["currentStepId"] == "a"


def test_the_log_has_every_handoff_and_those_that_are_done_and_told_nothing() -> None:
    found = shown(after(*ALL))
    assert found["iterations"] == 3
    log = found["handoffLog"]
    assert [(one["stepId"], one["timestamp"]) for one in log] == [("a", 7), ("flow", 99), ("c", 0)]
    first, inside, silent = (one["handoff"] for one in log)
    assert first["notDone"] == [{"item": "the well", "reason": "no time"}]
    assert first["highestImpactUncertainty"] == "is it deep?"
    assert inside["nextAgentShouldFirst"] == "look up"
    assert silent["attempted"] == "c"
    assert silent["changed"] == [{"artifact": "c", "ref": ref("content of c")}]
    assert found["artifactRegistry"] == [
        {"artifact": "map", "ref": "map.svg", "fromStepId": "a"},
        {"artifact": "c", "ref": ref("content of c"), "fromStepId": "c"},
    ]


def test_a_silent_step_is_told_by_what_it_was_to_do() -> None:
    found = shown(after(reused("a")), Ledger())
    (only,) = found["handoffLog"]
    assert only["handoff"]["attempted"] == "measure"
    assert found["artifactRegistry"] == [
        {"artifact": "a", "ref": ref("content of a"), "fromStepId": "a"}
    ]


def test_of_a_step_the_handoff_that_counts_is_the_last() -> None:
    older = replace(told("a", place=9, first="older"), at=3)
    gone = replace(told("left"), at=4)
    known = folded([replace(TOLD, at=7)], equal, earlier=[older, gone])
    log = shown(after(reused("a")), known)["handoffLog"]
    assert [one["timestamp"] for one in log] == [3, 7]


def test_findings_questions_gaps_and_hypotheses_are_listed() -> None:
    found = shown(after(*ALL))
    assert found["evidenceLedger"] == [
        {"finding": "it is wet", "source": "gauge", "confidence": 0.9, "fromStepId": "a"},
        {"finding": "dry", "fromStepId": "a"},
    ]
    assert found["uncertaintyInventory"] == [
        {
            "question": "is it deep?",
            "raisedByStepId": "a",
            "status": "resolved",
            "resolvedByStepId": "flow",
        }
    ]
    assert found["gapsRegistry"] == [{"item": "the well", "reason": "no time", "fromStepId": "a"}]
    assert found["hypothesisStatuses"] == {
        "h1": {"status": "supported", "testedByStepIds": ["a"], "evidenceStepIds": ["a"]}
    }


def test_what_was_contested_is_no_evidence_and_what_was_closed_no_gap() -> None:
    wet = entry_id("e", A, "it is wet", "gauge")
    said = (Said("contest", wet, "no"), Said("resolve", entry_id("g", A, "the well"), "none"))
    found = shown(after(*ALL), ledger(*said))
    assert [one["finding"] for one in found["evidenceLedger"]] == ["dry"]
    assert found["gapsRegistry"] == []
    one = found["hypothesisStatuses"]["h1"]
    assert one["evidenceStepIds"] == []


def test_a_step_that_left_the_plan_is_not_among_its_steps() -> None:
    gone = told("left", 1, hypotheses={"h1": Trial("supported")})
    known = folded([replace(TOLD, at=7), gone], equal, hypotheses={"h1": "untested"})
    assert shown(after(*ALL), known)["hypothesisStatuses"]["h1"]["testedByStepIds"] == ["a"]
