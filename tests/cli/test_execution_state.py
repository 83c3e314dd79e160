"""A run as an ExecutionState, exactly as that format is documented."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.project import Project
from tests.cli.test_replan import PLAIN, PREMISES, STEPS, say

KEYS = {
    *("plan", "completedStepIds", "pendingStepIds", "currentStepId", "handoffLog"),
    *("evidenceLedger", "uncertaintyInventory", "artifactRegistry", "gapsRegistry"),
    *("iterations", "planComplete", "needsReplanning", "hypothesisStatuses"),
}
TOLD: dict[str, Any] = {
    "observed": [
        {"finding": "it grew", "source": "sales.csv", "confidence": 0.8, "supports": ["grows"]},
        {"finding": "nobody asked"},
    ],
    "changed": [{"artifact": "table", "ref": "table.csv"}],
    "not_done": [{"item": "rhymes", "reason": "no time", "requirement": "poem"}],
    "highest_impact_uncertainty": "Who buys?",
    "hypotheses": {"grows": {"status": "supported", "evidence": ["test"]}},
    "payload": {"snake_case": {"stays_so": 1}},
}


def exported(project: Project, *run: str) -> Any:
    return json.loads(project.ok("export", *run, "-", "--format", "execution-state").out)


@pytest.fixture
def market(project: Project) -> Project:
    project.write("plan.yaml", PREMISES + STEPS)
    say(project, **TOLD)
    return project


@pytest.mark.req("R113")
def test_a_plan_that_nobody_ran_is_the_state_to_begin_with(market: Project) -> None:
    found = exported(market)
    assert found.keys() == KEYS
    assert found["pendingStepIds"] == ["test", "write"]
    nothing = {"status": "untested", "testedByStepIds": [], "evidenceStepIds": []}
    assert found["hypothesisStatuses"] == {"grows": nothing, "shrinks": nothing}
    assert (found["iterations"], found["planComplete"], found["needsReplanning"]) == (
        0,
        False,
        False,
    )
    assert found["currentStepId"] is None
    assert not any(found[key] for key in KEYS if key.endswith(("Ledger", "Registry", "Log")))
    assert [one["id"] for one in found["plan"]["hypotheses"]] == ["grows", "shrinks"]
    assert found["plan"]["steps"][0]["hypothesisIds"] == ["grows", "shrinks"]
    assert found["plan"]["unknownsMap"]["knownKnowns"] == ["the register is complete"]


@pytest.mark.req("R72", "R112", "R114", "R123")
def test_a_run_is_told_whole_in_the_words_of_the_format(market: Project) -> None:
    run = market.run()
    assert run.code == 0
    found = exported(market, "@")
    assert found.keys() == KEYS
    logged, silent = found.pop("handoffLog")
    assert (logged["stepId"], silent["stepId"]) == ("test", "write")
    (at,) = next(market.database().execute("SELECT at FROM event WHERE kind = 'attempt_accepted'"))
    assert logged["timestamp"] == at
    assert logged["handoff"] == {
        "attempted": "test it",
        "observed": TOLD["observed"],
        "changed": TOLD["changed"],
        "notDone": TOLD["not_done"],
        "highestImpactUncertainty": "Who buys?",
        "nextAgentShouldFirst": PLAIN["next_agent_should_first"],
        "payload": TOLD["payload"],
        "hypotheses": TOLD["hypotheses"],
    }
    made = {"artifact": "write", "ref": run.digests["write"]}
    assert silent["handoff"] == {  # it told nothing: what the journal knows of it
        "attempted": "write",
        "observed": [],
        "changed": [made],
        "notDone": [],
        "highestImpactUncertainty": "",
        "nextAgentShouldFirst": "",
    }
    assert silent["timestamp"] > at
    del found["plan"]
    assert found == {
        "completedStepIds": ["test", "write"],
        "pendingStepIds": [],
        "currentStepId": None,
        "evidenceLedger": [
            {
                "finding": "it grew",
                "source": "sales.csv",
                "confidence": 0.8,
                "fromStepId": "test",
            },
            {"finding": "nobody asked", "fromStepId": "test"},
        ],
        "uncertaintyInventory": [
            {"question": "Who buys?", "raisedByStepId": "test", "status": "open"}
        ],
        "artifactRegistry": [
            {"artifact": "table", "ref": "table.csv", "fromStepId": "test"},
            {**made, "fromStepId": "write"},
        ],
        "gapsRegistry": [{"item": "rhymes", "reason": "no time", "fromStepId": "test"}],
        "iterations": 2,
        "planComplete": True,
        "needsReplanning": False,
        "hypothesisStatuses": {
            "grows": {
                "status": "supported",
                "testedByStepIds": ["test"],
                "evidenceStepIds": ["test"],
            },
            "shrinks": {
                "status": "inconclusive",
                "testedByStepIds": ["test"],
                "evidenceStepIds": [],
            },
        },
    }


@pytest.mark.req("R72", "R118", "E18")
def test_a_run_that_is_held_needs_another_plan_and_is_not_complete(market: Project) -> None:
    say(market, **{**TOLD, "replan": {"reason": "no"}})
    assert market.run().code == 3
    found = exported(market, "@")
    assert (found["planComplete"], found["needsReplanning"]) == (False, True)
    assert found["pendingStepIds"] == ["write"]
    market.ok("approve", "replan", "--yes")
    market.resume()
    after = exported(market, "@")
    assert (after["planComplete"], after["needsReplanning"]) == (True, False)
    assert after["handoffLog"][:1] == found["handoffLog"]  # what is restored is what was


@pytest.mark.req("E18", "R129")
def test_failed_and_blocked_steps_keep_a_plan_from_being_complete(market: Project) -> None:
    market.write("plan.yaml", PREMISES + STEPS.replace("echo tested", "exit 1"))
    assert market.run().code == 1
    found = exported(market, "@")
    assert (found["completedStepIds"], found["pendingStepIds"]) == ([], ["test", "write"])
    assert found["planComplete"] is False
    (logged,) = found["handoffLog"]
    assert logged["timestamp"] > 0
    assert found["gapsRegistry"][0]["fromStepId"] == "test"


@pytest.mark.req("R112", "R114")
def test_of_a_step_that_ran_again_the_last_handoff_counts_and_the_first_is_kept(
    market: Project,
) -> None:
    market.run()
    say(market, **{**TOLD, "observed": [{"finding": "it shrank"}]})
    market.run()
    found = exported(market, "@")
    assert [one["finding"] for one in found["evidenceLedger"]] == ["it shrank"]
    log = [one for one in found["handoffLog"] if one["stepId"] == "test"]
    told = [one["handoff"]["observed"][0]["finding"] for one in log]
    assert told == ["it grew", "it shrank"]
    assert found["iterations"] == len(found["handoffLog"]) == 3


@pytest.mark.req("R113")
def test_no_command_is_offered_that_reads_it_back(market: Project) -> None:
    told = market.ok("export", "state.json", "--format", "execution-state")
    assert "state.json: execution-state of 2 steps" in told.out
    assert "next:" not in told.out


@pytest.mark.req("R72")
def test_what_was_contested_is_no_evidence_and_stays_in_the_log(market: Project) -> None:
    observed = [
        *TOLD["observed"],
        {"finding": "it fell", "source": "letters", "refutes": ["shrinks"]},
    ]
    say(market, observed=observed)
    assert market.run().code == 0
    grows = exported(market, "@")["hypothesisStatuses"]["grows"]
    assert (grows["status"], grows["evidenceStepIds"]) == ("supported", ["test"])
    market.ok("ledger", "contest", "sales.csv", "--because", "of last year")
    found = exported(market, "@")
    assert found["evidenceLedger"] == [
        {"finding": "nobody asked", "fromStepId": "test"},
        {"finding": "it fell", "source": "letters", "fromStepId": "test"},
    ]
    stands = found["hypothesisStatuses"]
    assert (stands["grows"]["status"], stands["grows"]["evidenceStepIds"]) == ("inconclusive", [])
    assert (stands["shrinks"]["status"], stands["shrinks"]["evidenceStepIds"]) == (
        "refuted",
        ["test"],
    )
    assert found["handoffLog"][0]["handoff"]["observed"] == observed
    market.ok("ledger", "contest", "sales.csv", "--take-back", "--because", "it was right")
    assert len(exported(market, "@")["evidenceLedger"]) == 3
