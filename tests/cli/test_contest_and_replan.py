"""What people say of the ledger reaches the plan: a held run goes on, what is doubted is checked again."""

from __future__ import annotations

import json

import pytest

from holdfast.model.digest import Json
from holdfast.model.handoff import entry_id
from holdfast.model.plan import StepId
from tests.cli.project import Project
from tests.cli.test_ledger_words import entry, handoff
from tests.cli.test_replan import PREMISES, STEPS

GAP: Json = {"item": "the summary", "reason": "no time", "requirement": "report"}
MORE: Json = {"item": "a map", "reason": "no data"}


@pytest.fixture
def held(project: Project) -> Project:
    """A run that is held for three reasons: gaps, a doubted assumption, an open question."""
    project.write("plan.yaml", PREMISES + STEPS)
    missing: Json = {"finding": "two are missing", "refutes": ["the register is complete"]}
    project.write(
        "test.json",
        handoff(
            missing,
            not_done=[GAP, MORE],
            highest_impact_uncertainty="Is it so that the register is complete?",
        ),
    )
    run = project.run()
    assert (run.code, len(run.data["replan"]["triggers"])) == (3, 3)
    return project


@pytest.mark.req("R118", "R119", "R120")
def test_words_that_answer_every_doubt_let_a_held_run_go_on(held: Project) -> None:
    finding = entry(held, "evidence", "test")["id"]
    question = entry(held, "uncertainties", "test")["id"]
    gap = entry(held, "gaps", "test")["id"]
    for number, words in enumerate(
        [
            ("contest", finding, "--because", "they are listed elsewhere"),
            ("resolve", question, "--because", "it is"),
            ("resolve", gap, "--because", "it was written since"),
        ]
    ):
        assert held.resume().code == 3, number
        held.ok("ledger", *words)
    run = held.resume()
    assert (run.code, run.states) == (0, {"test": "done", "write": "done"})
    decided = [one for one in held.events() if one["event"] == "replan_decided"]
    assert [one["code"] for one in decided] == ["withdrawn"]
    assert held.call("verify").code == 0


@pytest.mark.req("R119")
def test_a_contest_that_is_taken_back_holds_the_run_again(project: Project) -> None:
    project.write("plan.yaml", PREMISES + STEPS)
    missing: Json = {"finding": "two are missing", "refutes": ["the register is complete"]}
    project.write("test.json", handoff(missing))
    assert project.run().code == 3
    finding = entry(project, "evidence", "test")["id"]
    project.ok("ledger", "contest", finding, "--because", "no")
    project.ok("ledger", "contest", finding, "--take-back", "--because", "it is so")
    assert project.resume().code == 3


@pytest.mark.req("R121")
@pytest.mark.parametrize("what", ["evidence", "source", "step"])
def test_a_refutation_falls_with_all_that_refutes(project: Project, what: str) -> None:
    project.write("plan.yaml", PREMISES + STEPS)
    fell: Json = {"finding": "sales fell", "source": "register", "refutes": ["grows"]}
    fewer: Json = {"finding": "fewer shops", "source": "map", "refutes": ["grows"]}
    project.write("test.json", handoff(fell, fewer, hypotheses={"grows": {"status": "refuted"}}))
    assert project.run().code == 3
    ids = [one["id"] for one in project.ok("ledger", "--json").json["evidence"]]
    every = {"evidence": ids, "source": ["register", "map"], "step": ["test"]}[what]
    for name in every:
        assert project.resume().code == 3, "not all of it fell"
        project.ok("ledger", "contest", name, "--because", "wrong year")
    stands = project.ok("ledger", "--json").json["hypotheses"]["grows"]
    assert (stands["status"], stands["stale"]) == ("inconclusive", True)
    assert project.resume().states == {"test": "done", "write": "done"}
    seen = project.ok("plan", "--json").json["steps"]
    assert {name: one["decision"] for name, one in seen.items()} == {
        "test": "run",
        "write": "maybe",
    }
    again = project.run()  # it says the same, and nobody doubts it if the step alone was contested
    assert again.code == (3 if what == "step" else 0)


@pytest.mark.req("R121")
def test_a_verdict_that_names_no_evidence_falls_with_what_its_step_found(project: Project) -> None:
    project.write("plan.yaml", PREMISES + STEPS)
    fell: Json = {"finding": "sales fell", "source": "register", "confidence": 0.9}
    project.write("test.json", handoff(fell, hypotheses={"grows": {"status": "refuted"}}))
    assert project.run().code == 3
    project.ok("ledger", "contest", "register", "--because", "wrong year")
    stands = project.ok("ledger", "--json").json["hypotheses"]["grows"]
    assert (stands["status"], stands["stale"]) == ("inconclusive", True)
    assert project.resume().states == {"test": "done", "write": "done"}


@pytest.mark.req("R122")
@pytest.mark.parametrize("what", ["h-", "test"])
def test_a_contested_handoff_asks_for_no_other_plan(project: Project, what: str) -> None:
    project.write("plan.yaml", PREMISES + STEPS)
    project.write("test.json", handoff(replan={"reason": "the moon is full"}))
    assert project.run().code == 3
    project.ok("ledger", "contest", what, "--because", "nonsense")
    assert "contested: nonsense" in project.ok("ledger", "handoffs").out
    assert entry(project, "handoffs", "test")["contested"] == "nonsense"
    assert project.resume().states == {"test": "done", "write": "done"}


CHAIN = """
name: chain
steps:
  look:
    shell: cat look.js* > $HOLDFAST_HANDOFF; echo 12
  sum:
    needs: [look]
    shell: cat sum.js* > $HOLDFAST_HANDOFF; cat $HOLDFAST_INPUTS/look
  apart:
    shell: echo 3
"""


@pytest.fixture
def chain(project: Project) -> Project:
    project.write("plan.yaml", CHAIN)
    counted: Json = {"finding": "12 stations", "source": "a.csv", "confidence": 0.9}
    project.write("look.json", handoff(counted))
    project.write("sum.json", handoff({"finding": "a dozen in all", "source": "look"}))
    project.run()
    return project


def test_before_anything_runs_the_preview_shows_what_a_contest_costs(chain: Project) -> None:
    name = entry(chain, "evidence", "look")["id"]
    assert chain.ok("plan", "--json").json["totals"]["run"] == 0
    chain.ok("ledger", "contest", name, "--because", "counted twice")
    seen = chain.ok("plan", "--json").json
    assert {step: one["decision"] for step, one in seen["steps"].items()} == {
        "look": "run",
        "sum": "maybe",
        "apart": "reuse",
    }
    reason = seen["steps"]["look"]["reason"]
    assert (reason["code"], reason["because"]) == ("evidence_contested", [name])
    assert seen["steps"]["look"]["duration_ms"]["p50"] is not None
    assert seen["steps"]["look"]["cost_usd"]["p50"] == 0
    text = chain.ok("plan").out
    assert f"a person contested what it told or stands on: {name}" in text
    assert f"a person contested what it told or stands on: {name}" in chain.ok("why", "look").out
    assert chain.why("look")["reason"]["code"] == "evidence_contested"
    stale = chain.ok("ledger", "--json").json
    assert stale["stale"] == [entry(chain, "evidence", "sum")["id"]]
    assert stale["stale_steps"] == {"sum": [name]}
    assert len(chain.database().execute("SELECT id FROM run").fetchall()) == 1, "nothing ran"


def test_what_is_contested_twice_is_contested_once_with_the_last_word(chain: Project) -> None:
    name = entry(chain, "evidence", "look")["id"]
    for why in ("first", "second"):
        chain.ok("ledger", "contest", name, "--because", why)
    assert entry(chain, "evidence", "look")["contested"] == "second"
    run = chain.run()
    assert run.states == {"look": "done", "sum": "reused", "apart": "reused"}
    assert run.because("look") == [name]
    chain.ok("ledger", "contest", name, "--take-back", "--because", "once is enough")
    assert entry(chain, "evidence", "look")["contested"] is None


@pytest.mark.req("R115")
def test_what_is_resolved_twice_stays_resolved_with_the_last_word(chain: Project) -> None:
    chain.ok("ledger", "add", "uncertainty", "who pays?", "--because", "I wonder")
    chain.ok("ledger", "add", "uncertainty", "who pays?", "--because", "I wonder still")
    (question,) = chain.ok("ledger", "--json").json["uncertainties"]
    for why in ("they do", "we do"):
        said = chain.ok("ledger", "resolve", question["id"], "--because", why, "--json").json
        assert (said["word"], said["because"]) == ("resolve", why)
    (question,) = chain.ok("ledger", "--json").json["uncertainties"]
    assert (question["status"], question["because"]) == ("resolved", "we do")


@pytest.mark.req("R127")
def test_a_question_that_was_merged_is_taken_apart_again(project: Project) -> None:
    for name, text in (("a", "Are all stations online?"), ("b", "are all the stations online")):
        project.write(f"{name}.json", handoff(highest_impact_uncertainty=text))
    told = "cat $HOLDFAST_STEP.js* > $HOLDFAST_HANDOFF; echo 1"
    project.plan({"a": {"shell": told}, "b": {"shell": told}})
    project.run()
    (one,) = project.ok("ledger", "--json").json["uncertainties"]
    assert (one["raised_by"], one["same"]) == (["a", "b"], ["are all the stations online"])
    text = json.loads(project.read("b.json"))["highest_impact_uncertainty"]
    told_of = {item["from_step"]: item for item in project.ok("ledger", "--json").json["handoffs"]}
    assert told_of["b"]["handoff"]["highest_impact_uncertainty"] == text
    other = question_id("b", text)
    said = project.ok("ledger", "apart", one["id"], other, "--json").json
    assert (said["word"], said["entry"], said["other"]) == ("apart", one["id"], other)
    assert len(project.ok("ledger", "--json").json["uncertainties"]) == 2
    project.ok("ledger", "apart", one["id"], other)  # twice is as once
    assert len(project.ok("ledger", "--json").json["uncertainties"]) == 2


def question_id(step: str, text: str) -> str:
    return entry_id("u", StepId(step), text)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("contest", "e-000000000000"), "the ledger has no evidence, handoff, step or source"),
        (("contest", ""), "the ledger has no evidence, handoff, step or source ''"),
        (("contest", "e-"), "' may be e-"),
        (("resolve", "u-000000000000"), "the ledger has no question or gap 'u-000000000000'"),
        (("resolve", ""), "the ledger has no question or gap ''"),
        (("apart", "e-", "e-"), "' may be e-"),
        (("apart", "--", "--help", "-x"), "the ledger has no finding or question '--help'"),
        (("contest", "--", "--json"), "the ledger has no evidence, handoff, step or source"),
        (("add", "wish", "x"), "'wish'"),
    ],
)
def test_a_word_about_nothing_changes_nothing_and_says_so_to_programs(
    chain: Project, words: tuple[str, ...], told: str
) -> None:
    name, *rest = words
    answer = chain.call("ledger", name, "--because", "x", "--json", *rest)
    assert answer.code == 2
    assert told in answer.json["error"]["message"]
    assert chain.ok("ledger", "--json").json["said"] == []


@pytest.mark.parametrize("because", ["", "  ", "\n"])
@pytest.mark.parametrize("words", [("contest", "look"), ("add", "gap", "x"), ("resolve", "g-")])
def test_a_word_without_a_reason_is_refused(
    chain: Project, words: tuple[str, ...], because: str
) -> None:
    answer = chain.call("ledger", *words, "--because", because, "--json")
    assert answer.code == 2
    message = answer.json["error"]["message"]
    assert "--because is empty" in message or "no question or gap" in message
    assert chain.ok("ledger", "--json").json["said"] == []
    assert "--because" in chain.refused(2, "ledger", *words)


BOTH = """
name: both
hypotheses: {rises: {statement: rivers rise, critical: true}}
steps:
  up:
    shell: cat up.js* > $HOLDFAST_HANDOFF; echo 1
  down:
    needs: [up]
    shell: cat down.js* > $HOLDFAST_HANDOFF; echo 2
"""


@pytest.fixture
def both(project: Project) -> Project:
    project.write("plan.yaml", BOTH)
    project.write(
        "up.json", handoff({"finding": "it rises", "source": "x.csv", "supports": ["rises"]})
    )
    project.write(
        "down.json", handoff({"finding": "it falls", "source": "z.csv", "refutes": ["rises"]})
    )
    assert project.run().code == 0
    return project


def test_a_contest_of_one_side_shows_how_the_hypothesis_stands_and_that_a_run_would_wait(
    both: Project,
) -> None:
    asked = ("ledger", "contest", "x.csv", "--because", "bad")
    shown = both.ok(*asked, "--dry-run").out
    before = both.ok(*asked, "--dry-run", "--json").json
    after = both.ok(*asked, "--json").json
    assert {**before, "dry_run": False} == {**after, "duration_ms": before["duration_ms"]}
    assert after["stale"]["hypotheses"] == ["rises"]
    assert after["hypotheses"] == {"rises": {"status": "refuted", "was": "inconclusive"}}
    assert after["replan"]["waits_for"] == []
    (trigger,) = after["replan"]["may_wait_for"]
    assert (trigger["cause"], trigger["words"][:7]) == ("hypothesis", "'rises'")
    assert "hypothesis rises: refuted, was inconclusive" in shown
    assert "if what is made again tells the same, a run would wait for a person: 'rises'" in shown
    assert both.ok("plan", "--json").json["replan"]["may_wait_for"] == [trigger]
    run = both.run()
    assert (run.code, run.states) == (3, {"up": "done", "down": "reused"})


def test_a_contest_that_speaks_against_nothing_holds_no_run(both: Project) -> None:
    told = both.ok("ledger", "contest", "z.csv", "--because", "bad", "--json").json
    assert told["hypotheses"] == {"rises": {"status": "supported", "was": "inconclusive"}}
    assert told["replan"]["may_wait_for"] == []
    assert both.run().code == 0
