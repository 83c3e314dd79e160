"""People add to the ledger, resolve and contest what stands in it, and see what falls with it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from holdfast.model.digest import Json
from tests.cli.project import Project

PLAN = """
steps:
  look:
    inputs: look.json
    shell: cp look.json $HOLDFAST_HANDOFF; echo 12
  ping:
    needs: [look]
    shell: cp ping.json $HOLDFAST_HANDOFF; echo all
  other:
    shell: cp other.json $HOLDFAST_HANDOFF; echo 3
"""


def handoff(*observed: Json, **more: Json) -> str:
    whole: dict[str, Json] = {
        "attempted": "look",
        "observed": list(observed),
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "",
        "next_agent_should_first": "",
        **more,
    }
    return json.dumps(whole)


@pytest.fixture
def stations(project: Project) -> Project:
    project.write("plan.yaml", PLAN)
    counted: Json = {"finding": "12 stations", "source": "a.csv", "confidence": 0.9}
    project.write(
        "look.json",
        handoff(
            counted,
            not_done=[{"item": "the map", "reason": "no data"}],
            highest_impact_uncertainty="Are all online?",
        ),
    )
    answer: Json = {"finding": "all answer", "source": "look", "supports": ["H1"]}
    project.write(
        "ping.json", handoff(answer, hypotheses={"H1": {"status": "supported", "evidence": []}})
    )
    project.write("other.json", handoff({"finding": "three rivers", "source": "b.csv"}))
    project.run()
    return project


def entry(project: Project, kind: str, step: str) -> dict[str, Any]:
    found = project.ok("ledger", "--json").json
    return next(one for one in found[kind] if one["from_step"] == step)


def test_a_person_adds_entries_of_their_own(stations: Project) -> None:
    for kind, text in (("evidence", "7 is shut"), ("uncertainty", "who pays?"), ("gap", "a map")):
        stations.ok("ledger", "add", kind, text, "--because", "I know")
    found = stations.ok("ledger", "--json").json
    assert found["evidence"][-1]["finding"] == "7 is shut"
    asked = found["uncertainties"][-1]
    assert (asked["question"], asked["raised_by"]) == ("who pays?", ["a person"])
    assert (found["gaps"][-1]["item"], found["gaps"][-1]["reason"]) == ("a map", "I know")
    assert [(one["word"], one["because"]) for one in found["said"]] == [
        ("evidence", "I know"),
        ("uncertainty", "I know"),
        ("gap", "I know"),
    ]
    assert "7 is shut" in stations.ok("ledger", "evidence").out
    assert "from a person" in stations.ok("ledger", "gaps").out


def test_a_person_resolves_a_question_and_a_gap(stations: Project) -> None:
    question = entry(stations, "uncertainties", "look")["id"]
    gap = entry(stations, "gaps", "look")["id"]
    stations.ok("ledger", "resolve", question[:6], "--because", "they answer")
    stations.ok("ledger", "resolve", gap, "--because", "not needed")
    found = stations.ok("ledger", "--json").json
    assert found["uncertainties"][0]["status"] == "resolved"
    assert found["uncertainties"][0]["because"] == "they answer"
    assert found["uncertainties"][0]["resolved_by"] == "a person"
    assert found["gaps"][0]["closed"] == "not needed"
    text = stations.ok("ledger", "--open").out
    assert "Are all online?" not in text
    assert "the map" not in text


def test_a_contest_shows_what_falls_and_what_checking_again_takes_before_anything_runs(
    stations: Project,
) -> None:
    name = entry(stations, "evidence", "look")["id"]
    asked = ("ledger", "contest", name, "--because", "counted twice")
    before = stations.ok(*asked, "--dry-run", "--json").json
    after = stations.ok(*asked, "--json").json
    assert {**before, "dry_run": False} == {**after, "duration_ms": before["duration_ms"]}
    fell = entry(stations, "evidence", "ping")
    assert after["steps"] == ["look"]
    assert after["stale"] == {
        "evidence": [fell["id"]],
        "hypotheses": ["H1"],
        "steps": {"ping": [name]},
    }
    assert [(one["step"], one["decision"]) for one in after["again"]] == [
        ("look", "run"),
        ("ping", "maybe"),
    ]
    assert after["again"][0]["why"] == f"a person contested what it told or stands on: {name}"
    assert after["duration_ms"] > 0
    assert after["cost_usd"] == 0
    found = stations.ok("ledger", "--json").json
    assert found["evidence"][0]["contested"] == "counted twice"
    assert fell["stale"] is True
    assert found["stale"] == [fell["id"], "H1"]
    assert found["stale_steps"] == {"ping": [name]}
    text = stations.ok("ledger").out
    assert "contested: counted twice" in text
    assert f"stale · {fell['id']} · from ping" in text
    assert "H1: inconclusive · 0 for, 0 against · stale" in text


def test_a_program_gets_of_words_and_of_what_is_stale_only_what_it_asks_for(
    stations: Project,
) -> None:
    stations.ok("ledger", "contest", "a.csv", "--because", "old")
    stations.ok("ledger", "resolve", "u-", "--because", "they are")
    stations.ok("ledger", "add", "gap", "a chart", "--because", "later")
    fell, asked = (
        entry(stations, *one) for one in (("evidence", "ping"), ("uncertainties", "look"))
    )

    def got(*words: str) -> tuple[list[str], list[str], list[str]]:
        found = stations.ok("ledger", *words, "--json").json
        return [one["word"] for one in found["said"]], found["stale"], [*found["stale_steps"]]

    assert got() == (["contest", "resolve", "gap"], [fell["id"], "H1"], ["ping"])
    assert got("evidence") == (["contest"], [fell["id"]], [])
    assert got("evidence", "--step", "other") == ([], [], [])
    assert got("hypotheses") == ([], ["H1"], [])
    assert got("uncertain") == (["resolve"], [], [])
    assert got("gaps") == (["gap"], [], [])
    assert got("--step", "look") == (["contest", "resolve"], [], [])
    assert got("--step", "ping") == ([], [fell["id"], "H1"], ["ping"])
    assert got(fell["id"]) == ([], [fell["id"]], [])
    assert got(asked["id"]) == (["resolve"], [], [])


@pytest.mark.parametrize("what", ["look", "a.csv", "evidence", "handoffs"])
def test_what_is_contested_is_made_again_and_what_is_below_only_if_that_changes(
    stations: Project, what: str
) -> None:
    name = entry(stations, what, "look")["id"] if what in {"evidence", "handoffs"} else what
    text = stations.ok("ledger", "contest", name, "--because", "I doubt it").out
    assert text.startswith("contested: ")
    run = stations.run()
    assert run.states == {"look": "done", "ping": "reused", "other": "reused"}
    assert run.codes["look"] == "evidence_contested"
    assert set(stations.run().states.values()) == {"reused"}


def test_a_step_that_was_made_again_is_no_longer_contested(stations: Project) -> None:
    stations.ok("ledger", "contest", "look", "--because", "I doubt it")
    assert entry(stations, "evidence", "look")["contested"] == "I doubt it"
    stations.run()
    assert entry(stations, "evidence", "look")["contested"] is None
    assert entry(stations, "evidence", "ping")["stale"] is False


def test_evidence_that_is_said_again_stays_contested_until_that_is_taken_back(
    stations: Project,
) -> None:
    name = entry(stations, "evidence", "look")["id"]
    stations.ok("ledger", "contest", name, "--because", "counted twice")
    stations.run()
    assert entry(stations, "evidence", "look")["contested"] == "counted twice"
    stations.ok("ledger", "contest", name, "--take-back", "--because", "it was right")
    assert entry(stations, "evidence", "look")["contested"] is None
    assert stations.ok("ledger", "--json").json["stale"] == []


def test_a_contest_that_is_taken_back_makes_nothing_run(stations: Project) -> None:
    stations.ok("ledger", "contest", "look", "--because", "I doubt it")
    stations.ok("ledger", "contest", "look", "--take-back", "--because", "no")
    assert set(stations.run().states.values()) == {"reused"}
    told = stations.refused(2, "ledger", "contest", "look", "--take-back", "--because", "no")
    assert "'look' is not contested" in told


@pytest.mark.req("R127")
def test_two_findings_that_were_taken_for_one_are_kept_apart(stations: Project) -> None:
    stations.write("other.json", handoff({"finding": "12 Stations!", "source": "b.csv"}))
    stations.run("--force-node", "other")
    one, other = (entry(stations, "evidence", step) for step in ("look", "other"))
    assert (one["same_as"], other["same_as"]) == (None, one["id"])
    stations.ok("ledger", "apart", one["id"], other["id"])
    one, other = (entry(stations, "evidence", step) for step in ("look", "other"))
    assert (one["same_as"], other["same_as"]) == (None, None)


@pytest.mark.req("R127")
def test_two_that_joined_a_third_are_kept_apart(stations: Project) -> None:
    same: list[Json] = [
        {"finding": f"12 {word}", "source": "b.csv"} for word in ("Stations", "stations.")
    ]
    stations.write("other.json", handoff(*same))
    stations.run("--force-node", "other")
    found = stations.ok("ledger", "--json").json["evidence"]
    third, one, other = (item for item in found if "12" in item["finding"])
    assert one["same_as"] == other["same_as"] == third["id"]
    stations.ok("ledger", "apart", one["id"], other["id"])
    found = stations.ok("ledger", "--json").json["evidence"]
    heads = [item["same_as"] for item in found if "12" in item["finding"]]
    assert heads == [None, third["id"], None]
    assert "it was already: " in stations.ok("ledger", "apart", one["id"], other["id"]).out
    answers = entry(stations, "evidence", "ping")["id"]
    told = stations.refused(2, "ledger", "apart", one["id"], answers)
    assert f"'{one['id']}' and '{answers}' are not taken for one" in told
    assert {item["text"] for item in stations.ok("ledger", "--json").json["said"]} == {other["id"]}


@pytest.mark.parametrize("kind", ["uncertainties", "gaps"])
def test_what_is_resolved_already_says_so_and_takes_the_new_reason(
    stations: Project, kind: str
) -> None:
    words = ("ledger", "resolve", entry(stations, kind, "look")["id"], "--because")
    assert stations.ok(*words, "no need", "--json").json["already"] is None
    told = stations.ok(*words, "it is drawn").out
    assert "it was already: no need; what you say takes its place" in told
    assert stations.ok(*words, "once more", "--json").json["already"] == "it is drawn"
    found = entry(stations, kind, "look")
    assert "once more" in {found.get("because"), found.get("closed")}


@pytest.mark.parametrize("what", ["a.csv", "look"])
def test_what_is_contested_already_says_so_and_takes_the_new_reason(
    stations: Project, what: str
) -> None:
    words = ("ledger", "contest", what, "--because")
    assert "already" not in stations.ok(*words, "no", "--dry-run").out
    assert stations.ok(*words, "no", "--json").json["already"] is None
    again = "it was already: no; what you say takes its place"
    assert again in stations.ok(*words, "never", "--dry-run").out
    assert again in stations.ok(*words, "never").out
    assert entry(stations, "evidence", "look")["contested"] == "never"
    stations.run()  # which answers the contest of a step
    already = stations.ok(*words, "still", "--json").json["already"]
    assert already == ("never" if what == "a.csv" else None)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("contest", "nothing"), "the ledger has no evidence, handoff, step or source 'nothing'"),
        (("contest", "LOOK"), "is the step 'look' meant?"),
        (("contest", "e-"), "say more of the id"),
        (("resolve", "e-1"), "the ledger has no question or gap 'e-1'"),
        (("add", "gap", " "), "the text is empty"),
        (("apart", "look", "ping"), "the ledger has no finding or question 'look'"),
        (("contest", "look", "--dry-run", "--take-back"), "'look' is not contested"),
    ],
)
def test_a_word_about_nothing_is_refused(
    stations: Project, words: tuple[str, ...], told: str
) -> None:
    assert told in stations.refused(2, "ledger", *words, "--because", "x")
    assert stations.ok("ledger", "--json").json["said"] == []


def test_no_step_says_anything_about_the_ledger(project: Project) -> None:
    command = f"{sys.executable} -m holdfast ledger add gap x --because y 2> told; cat told"
    project.plan({"a": {"shell": command, "inputs": "changes"}})
    project.write("changes", "1")
    project.run()
    project.write("changes", "2")
    project.run()
    assert project.ok("ledger", "--json").json["said"] == []
    assert "there is no run yet" in project.ok("show", "a").out, "the store is hidden from it"
    project.run("--no-sandbox", "--force")
    assert project.ok("ledger", "--json").json["said"] == []
    assert "only a person" in project.ok("show", "a").out


@pytest.fixture
def asked(project: Project) -> Project:
    project.plan(
        {
            "who": {"uses": "human", "prompt": "who knows?", "handoff": True},
            "then": {"needs": ["who"], "shell": "cat $HOLDFAST_CONTEXT"},
        }
    )
    project.write("told.json", handoff({"finding": "Ann knows", "source": "a call"}))
    project.write("who.txt", "Ann")
    assert project.run().states["who"] == "waiting"
    return project


def test_a_person_hands_over_with_an_answer(asked: Project) -> None:
    asked.ok("answer", "who", "who.txt", "--handoff", "told.json")
    run = asked.resume()
    assert run.states == {"who": "done", "then": "done"}, run
    assert "Ann knows (a call) e-" in asked.ok("show", "then").out
    assert asked.ok("ledger", "--json").json["evidence"][0]["from_step"] == "who"
    assert set(asked.run().states.values()) == {"reused"}
    assert asked.ok("ledger", "--json").json["evidence"][0]["from_step"] == "who"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "'who' is done only with a handoff"),
        (("--handoff", "who.txt"), "the handoff for 'who' is none: the handoff is not JSON"),
        (("--handoff", "gone.json"), "cannot read 'gone.json'"),
    ],
)
def test_a_person_who_must_hand_over_is_told_what_is_missing(
    asked: Project, words: tuple[str, ...], told: str
) -> None:
    assert told in asked.refused(2, "answer", "who", "who.txt", *words)
    assert asked.status().states["who"] == "waiting"


def test_a_person_hands_over_with_a_version_of_their_own(stations: Project) -> None:
    stations.write("mine.json", handoff({"finding": "13 stations", "source": "my own eyes"}))
    stations.write("mine.txt", "13\n")
    stations.ok("amend", "look", "mine.txt", "--handoff", "mine.json")
    stations.run()
    assert entry(stations, "evidence", "look")["finding"] == "13 stations"
    stations.write("mine.txt", "14\n")
    stations.ok("amend", "look", "mine.txt")
    stations.run()
    found = stations.ok("ledger", "--json").json
    assert [one["from_step"] for one in found["evidence"]] == ["other", "ping"]


def test_what_is_only_guarded_again_has_handed_over_already(project: Project) -> None:
    project.write("told.json", handoff({"finding": "12 stations"}))
    step = {"shell": "cp told.json $HOLDFAST_HANDOFF; echo 12", "handoff": True}
    project.plan({"a": step})
    project.run()
    project.plan({"a": {**step, "guards": [{"regex": {"pattern": "12"}}]}})
    run = project.run()
    assert (run.states, run.codes) == ({"a": "reused"}, {"a": "reguarded"}), run
    assert entry(project, "evidence", "a")["finding"] == "12 stations"


def test_show_prints_what_a_step_handed_over_and_what_it_was_told(stations: Project) -> None:
    given = json.loads(stations.ok("show", "look", "--handoff").out)
    assert given["observed"][0]["finding"] == "12 stations"
    told = stations.ok("show", "look", "--handoff", "--json").json
    assert (told["id"][:2], told["attempt"], told["handoff"]) == ("h-", 1, given)
    page = stations.ok("show", "ping", "--context").out
    assert "12 stations (a.csv, 0.90) e-" in page
    stations.run()  # reused: it is the page of the attempt that made it
    assert stations.ok("show", "ping", "--context").out == page
    assert stations.ok("show", "ping@1", "--context", "--json").json["text"] + "\n" == page
    first = stations.call("show", "look", "--context")
    assert (first.code, first.out) == (0, "")
    assert "was told nothing" in first.err
    assert f"handed over look ({told['id']})" in " ".join(stations.ok("why", "look").out.split())


def test_show_says_what_a_failed_step_did_not_do(project: Project) -> None:
    project.plan({"a": {"shell": "exit 1", "description": "count"}, "b": {"shell": "echo 1"}})
    project.run()
    told = project.ok("show", "a", "--handoff", "--json").json
    assert (told["failed"], told["handoff"]["attempted"]) == (True, "count")
    assert told["handoff"]["not_done"][0]["item"] == "a"
    assert "'b' handed nothing over" in project.refused(2, "show", "b", "--handoff")


def chain(project: Project, context: Json) -> None:
    told = {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}  # no file that its key knows
    project.plan(
        {
            "a": told,
            "b": {"needs": ["a"], "shell": "echo 2"},
            "c": {"needs": ["b"], "shell": "cat $HOLDFAST_CONTEXT", "context": context},
        }
    )
    project.write("a.json", handoff({"finding": "12 stations"}))


@pytest.mark.req("R117")
def test_another_handoff_above_an_equal_artifact_runs_nothing(project: Project) -> None:
    chain(project, True)
    project.run()
    project.write("a.json", handoff({"finding": "13 stations"}))
    run = project.run("--force-node", "a")
    assert run.states == {"a": "done", "b": "reused", "c": "reused"}


@pytest.mark.req("R117")
def test_with_context_in_ref_another_handoff_above_runs_a_step(project: Project) -> None:
    chain(project, "in-ref")
    project.run()
    before = project.ok("plan", "--json").json["steps"]
    assert {name: one["decision"] for name, one in before.items()} == dict.fromkeys("abc", "reuse")
    assert set(project.run().states.values()) == {"reused"}
    project.write("a.json", handoff({"finding": "13 stations"}))
    seen = project.ok("plan", "--force-node", "a", "--json").json["steps"]
    assert seen["c"]["decision"] == "maybe"
    run = project.run("--force-node", "a")
    assert run.states == {"a": "done", "b": "reused", "c": "done"}
    assert run.codes["c"] == "context_changed"
    assert "13 stations" in project.ok("show", "c").out
    told = project.ok("why", "c", "--run", "@").out
    assert "what it is told of the work before it changed" in told
    assert set(project.run().states.values()) == {"reused"}


def test_with_context_in_ref_a_contest_runs_what_was_told_of_it(project: Project) -> None:
    chain(project, "in-ref")
    project.run()
    name = entry(project, "evidence", "a")["id"]
    seen = project.ok("ledger", "contest", name, "--because", "no", "--json").json
    assert [one["step"] for one in seen["again"]] == ["a", "b", "c"]
    assert project.run().states == {"a": "done", "b": "reused", "c": "done"}
    assert "12 stations" not in project.ok("show", "c").out
    why = project.ok("why", "c").out
    assert "c is reused" in why


def decisions(project: Project, *words: str) -> dict[str, str]:
    seen = project.ok("plan", "--json", *words).json["steps"]
    return {name: one["decision"] for name, one in seen.items()}


@pytest.mark.req("R117")
def test_a_contest_that_was_answered_is_so_in_the_preview_of_what_is_told(project: Project) -> None:
    chain(project, "in-ref")
    project.run()
    project.ok("ledger", "contest", "a", "--because", "I doubt it")
    assert decisions(project) == {"a": "run", "b": "maybe", "c": "maybe"}
    assert project.run().states == {"a": "done", "b": "reused", "c": "reused"}
    assert decisions(project) == dict.fromkeys("abc", "reuse")
    assert "Nothing to do" in project.ok("plan", "--detailed-exitcode").out
    assert "c is reused" in project.ok("why", "c").out
    assert set(project.run().states.values()) == {"reused"}


@pytest.mark.req("R117")
@pytest.mark.parametrize("what", ["evidence", "handoffs", "a.csv"])
@pytest.mark.parametrize("budget", [None, 40])
def test_with_context_in_ref_a_contest_that_stands_is_foreseen_to_run_the_step(
    project: Project, what: str, budget: int | None
) -> None:
    chain(project, "in-ref")
    if budget is not None:  # the finding is summed up only
        plan = json.loads(project.read("plan.yaml"))
        plan["steps"]["c"]["context_tokens"] = budget
        project.plan(plan["steps"])
    finding = "12 stations" if budget is None else "12 stations " + "and so on " * 14
    project.write("a.json", handoff({"finding": finding, "source": "a.csv"}))
    project.run()
    name = entry(project, what, "a")["id"] if what != "a.csv" else what
    asked = ("ledger", "contest", name, "--because", "no")
    before = project.ok(*asked, "--dry-run", "--json").json["again"]
    assert project.ok(*asked, "--json").json["again"] == before
    assert [(one["step"], one["decision"]) for one in before] == [
        ("a", "run"),
        ("b", "maybe"),
        ("c", "run"),
    ]
    changed = "what it is told of the work before it changed"
    assert before[-1]["why"] == changed
    assert decisions(project) == {"a": "run", "b": "maybe", "c": "run"}
    assert changed in project.ok("run", "--dry-run").out
    why = " ".join(project.ok("why", "c").out.split())
    assert changed in why
    assert "With the old context" in why
    run = project.run()
    assert run.states == {"a": "done", "b": "reused", "c": "done"}
    assert run.codes["c"] == "context_changed"
    assert decisions(project) == dict.fromkeys("abc", "reuse")
    project.ok("ledger", "contest", name, "--take-back", "--because", "it was right")
    assert decisions(project) == dict.fromkeys("abc", "reuse")
    assert set(project.run().states.values()) == {"reused"}
    project.ok("ledger", "contest", name, "--because", "no, after all")  # both pages are known now
    assert decisions(project)["c"] == "maybe"
    assert project.run().states == {"a": "done", "b": "reused", "c": "reused"}


@pytest.mark.req("R117")
def test_a_question_that_a_person_answered_is_told_to_nobody_whatever_else_runs(
    project: Project,
) -> None:
    chain(project, "in-ref")
    project.write("a.json", handoff(highest_impact_uncertainty="Are all online?"))
    project.run()
    name = entry(project, "uncertainties", "a")["id"]
    project.ok("ledger", "resolve", name, "--because", "they are")
    assert decisions(project, "--force-node", "a")["c"] == "run"
    assert project.run("--force-node", "a").states == {"a": "done", "b": "reused", "c": "done"}


def stands(project: Project, kind: str, text: str) -> tuple[str, dict[str, Any]]:
    part, key = {"uncertainty": ("uncertainties", "question"), "gap": ("gaps", "item")}[kind]
    (one,) = [e for e in project.ok("ledger", "--json").json[part] if e[key] == text]
    state = one["status"] if kind == "uncertainty" else "resolved" if one["closed"] else "open"
    return state, one


@pytest.mark.req("R113")
@pytest.mark.parametrize("kind", ["uncertainty", "gap"])
def test_what_a_person_raises_again_after_it_was_resolved_is_open(
    stations: Project, kind: str
) -> None:
    stations.ok("ledger", "add", kind, "who pays", "--because", "nobody knows")
    name = stands(stations, kind, "who pays")[1]["id"]
    stations.ok("ledger", "resolve", name, "--because", "they do")
    assert stands(stations, kind, "who pays")[0] == "resolved"
    stations.ok("ledger", "add", kind, "who pays", "--because", "they do not")
    state, one = stands(stations, kind, "who pays")
    assert (state, one.get("because"), one.get("reason", "they do not")) == (
        "open",
        None,
        "they do not",
    )
    assert "who pays" in stations.ok("ledger", "--open").out
    stations.ok("ledger", "resolve", name, "--because", "paid")
    assert stands(stations, kind, "who pays")[0] == "resolved"


@pytest.mark.req("R113")
@pytest.mark.parametrize(("kind", "text"), [("uncertainty", "Are all online?"), ("gap", "the map")])
def test_that_something_is_resolved_is_taken_back(stations: Project, kind: str, text: str) -> None:
    name = stands(stations, kind, text)[1]["id"]
    back = ("ledger", "resolve", name, "--take-back", "--because", "by mistake")
    assert f"nobody resolved '{name}'" in stations.refused(2, *back)
    stations.ok("ledger", "resolve", name, "--because", "oops")
    assert stands(stations, kind, text)[0] == "resolved"
    assert stations.ok(*back).out.startswith(f"taken back: {text}")
    assert stands(stations, kind, text)[0] == "open"


def test_an_entry_of_a_person_is_taken_back_and_may_be_added_again(stations: Project) -> None:
    add = ("ledger", "add", "evidence", "7 is shut", "--because", "I called")
    assert "nobody added '7 is shut'" in stations.refused(2, *add, "--take-back")
    stations.ok(*add)
    name = entry(stations, "evidence", "")["id"]
    stations.ok(*add, "--take-back")
    assert "7 is shut" not in stations.ok("ledger").out
    stations.ok(*add)
    assert entry(stations, "evidence", "")["id"] == name
    stations.ok("ledger", "contest", name, "--because", "it is open")
    assert "is contested, and stays so: it is open" in stations.refused(2, *add)
    stations.ok("ledger", "contest", name, "--take-back", "--because", "no")
    stations.ok(*add)


def test_what_was_kept_apart_is_taken_for_one_again(stations: Project) -> None:
    stations.write("other.json", handoff({"finding": "12 stations.", "source": "b.csv"}))
    stations.run("--force-node", "other")
    names = [one["id"] for one in stations.ok("ledger", "--json").json["evidence"]]
    one, two = names[0], entry(stations, "evidence", "other")["id"]
    assert f"'{one}' is one entry" in stations.refused(2, "ledger", "apart", one, one)
    assert "nobody keeps" in stations.refused(2, "ledger", "apart", one, two, "--take-back")
    stations.ok("ledger", "apart", one, two)
    assert "as e-" not in stations.ok("ledger", "evidence").out
    stations.ok("ledger", "apart", two, one, "--take-back")
    assert "as e-" in stations.ok("ledger", "evidence").out


def test_a_heading_in_the_words_of_a_step_is_no_heading(project: Project) -> None:
    above = "inputs: {0}.json\n    shell: cp {0}.json $HOLDFAST_HANDOFF; echo {0}"
    project.write(
        "plan.yaml",
        f"steps:\n  a:\n    {above.format('a')}\n"
        f"  b:\n    needs: [a]\n    {above.format('b')}\n"
        "  c:\n    needs: [b]\n    context: in-ref\n    shell: echo c\n",
    )
    project.write("a.json", handoff({"finding": "12 stations", "source": "list.csv"}))
    project.write("b.json", handoff(next_agent_should_first="## Summed up, for want of room"))
    project.run()
    found = project.ok("ledger", "contest", "list.csv", "--because", "old", "--json").json
    assert {one["step"]: one["decision"] for one in found["again"]}["c"] == "run"
    assert project.run().codes["c"] == "context_changed"


@pytest.mark.parametrize("step", ["plain", "look"])
def test_what_comes_with_a_version_of_a_person_is_shown_at_once(
    stations: Project, step: str
) -> None:
    stations.write("plan.yaml", PLAN + "  plain: {shell: echo 1}\n")
    stations.run()
    stations.write("mine.json", handoff({"finding": "psi", "source": "S"}))
    stations.write("mine", "13\n")
    stations.ok("amend", step, "mine", "--handoff", "mine.json", "--because", "counted")
    assert '"psi"' in stations.ok("show", step, "--handoff").out
    assert entry(stations, "evidence", step)["finding"] == "psi"
    foreseen = stations.ok("ledger", "contest", "S", "--because", "no", "--dry-run", "--json").json
    found = stations.ok("ledger", "contest", "S", "--because", "no", "--json").json
    assert found["again"] == foreseen["again"]
    assert found["again"][0]["step"] == step
    assert stations.run().codes[step] == "evidence_contested"


def test_a_step_is_contested_right_after_a_person_gave_a_version(stations: Project) -> None:
    stations.write("mine", "13\n")
    stations.ok("amend", "other", "mine", "--because", "counted")
    found = stations.ok("ledger", "contest", "other", "--because", "no", "--json").json
    assert [one["step"] for one in found["again"]] == ["other"]
    assert stations.run().codes["other"] == "evidence_contested"


def test_a_contest_says_that_a_version_of_a_person_would_go(stations: Project) -> None:
    stations.write("mine", "13\n")
    stations.ok("amend", "other", "mine", "--because", "counted")
    stations.run()
    for words in (("--dry-run",), ()):
        said = stations.ok("ledger", "contest", "other", "--because", "no", *words).out
        assert "; a person's version of other is replaced" in said
    assert "replaces your version of other" in stations.ok("plan").out
    assert stations.run().states["other"] == "done"
    assert stations.ok("show", "other").out == "3\n"


def test_a_contest_names_the_same_causes_before_and_after_it_is_said(stations: Project) -> None:
    two: list[Json] = [{"finding": f"river {n}", "source": f"{n}.csv"} for n in ("7", "8", "9")]
    stations.write("other.json", handoff(*two))
    stations.run("--force-node", "other")
    for name in ("9.csv", "7.csv", "8.csv"):
        words = ("ledger", "contest", name, "--because", "no", "--json")
        assert stations.ok(*words, "--dry-run").json["again"] == stations.ok(*words).json["again"]


def test_why_shows_how_the_page_differs_that_a_step_is_told(project: Project) -> None:
    chain(project, "in-ref")
    project.run()
    name = project.ok("ledger", "--json").json["evidence"][0]["id"]
    project.ok("ledger", "contest", name, "--because", "no")
    said = project.ok("why", "c").out
    assert "content not kept" not in said
    assert f"12 stations {name}" in said
