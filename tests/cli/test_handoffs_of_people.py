"""People hand over what they learned when they say yes; what is no handoff changes nothing."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.digest import Json
from tests.cli.project import Project
from tests.cli.test_ledger_words import entry, handoff

READ: dict[str, Json] = {"finding": "two stations are missing", "confidence": 0.7}


@pytest.fixture
def asking(project: Project) -> Project:
    """A step whose candidate waits for a yes, and one below it that prints what it is told."""
    project.plan(
        {
            "count": {
                "shell": "cat count.js* > $HOLDFAST_HANDOFF; echo 12",
                "guards": ["human"],
            },
            "then": {"needs": ["count"], "shell": "cat $HOLDFAST_CONTEXT"},
        }
    )
    counted: Json = {"finding": "12 stations", "source": "a.csv"}
    project.write(
        "count.json", handoff(counted, attempted="count", highest_impact_uncertainty="All online?")
    )
    project.write(
        "told.json",
        handoff(READ, attempted="read it", highest_impact_uncertainty="Who knows them?"),
    )
    assert project.run().states["count"] == "waiting"
    return project


def findings(project: Project, *words: str) -> list[tuple[str, str]]:
    found = project.ok("ledger", "--json", *words).json["evidence"]
    return [(one["finding"], one["source"]) for one in found]


@pytest.mark.req("R116", "R129")
def test_whoever_approves_adds_to_what_the_step_told(asking: Project) -> None:
    asking.ok("approve", "count", "--yes", "--handoff", "told.json")
    assert asking.resume().states == {"count": "done", "then": "done"}
    both = [("12 stations", "a.csv"), ("two stations are missing", getpass.getuser())]
    assert sorted(findings(asking)) == both
    told = asking.ok("show", "count", "--handoff", "--json").json["handoff"]
    assert told["attempted"] == "count; read it"
    assert told["highest_impact_uncertainty"] == "All online? Who knows them?"
    assert "two stations are missing" in asking.ok("show", "then").out
    assert set(asking.run().states.values()) == {"reused"}
    assert sorted(findings(asking)) == both
    assert asking.call("verify").code == 0


def test_two_long_handoffs_are_told_together(asking: Project) -> None:
    asking.ok("reject", "count", "--because", "again")
    long = "a long way " * 5_500
    asking.write("count.json", handoff({"finding": "12 stations", "source": "a"}, attempted=long))
    asking.write("told.json", handoff(READ, attempted=long))
    asking.call("run", "--yes")
    asking.ok("approve", "count", "--yes", "--handoff", "told.json")
    asking.ok("resume")
    assert [text for text, _ in findings(asking)] == ["12 stations", READ["finding"]]


def test_a_yes_without_a_handoff_leaves_what_the_step_told(asking: Project) -> None:
    asking.ok("approve", "count", "--yes")
    asking.resume()
    assert findings(asking) == [("12 stations", "a.csv")]


def test_what_is_approved_before_it_runs_tells_both_afterwards(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1", "approve": "always"},
            "b": {"needs": ["a"], "shell": "cat $HOLDFAST_CONTEXT"},
            "quiet": {"shell": "echo 2", "approve": "always"},
        }
    )
    project.write("a.json", handoff({"finding": "12 stations", "source": "a.csv"}))
    project.write("told.json", handoff(READ, attempted="asked around"))
    assert project.run().code == 3
    project.ok("approve", "a", "--yes", "--handoff", "told.json")
    project.ok("approve", "quiet", "--yes", "--handoff", "told.json")
    assert set(project.resume().states.values()) == {"done"}
    found = project.ok("ledger", "--json").json
    assert [(one["from_step"], one["finding"]) for one in found["evidence"]] == [
        ("a", "12 stations"),
        ("a", READ["finding"]),
        ("quiet", READ["finding"]),
    ]
    assert entry(project, "handoffs", "quiet")["handoff"]["attempted"] == "asked around"
    assert "two stations are missing" in project.ok("show", "b").out


WRONG: list[tuple[str, str]] = [
    ("", "the handoff for 'count' is none: it is empty"),
    ("no", "the handoff is not JSON"),
    ("[]", "a handoff is a mapping, not a list"),
    (handoff(attempted=" "), "'attempted' is empty"),
    (handoff({"finding": "x", "confidence": 1.5}), "'observed[0].confidence' is not a number"),
    ('{"attempted": "a", "attempted": "b"}', "the key 'attempted' stands in one object twice"),
    (handoff({"finding": "x"}).replace('"x"', '"x", "confidence": NaN'), "NaN is not a number"),
    (handoff(payload={"k": [[]]}).replace("[[]]", "[" * 400 + "]" * 400), "nested too deeply"),
    (json.dumps({"attempted": "a"}), "'observed' is missing"),
    (" " * 2_000_000, "is larger than 1,024 KB"),
]


@pytest.mark.req("R116")
@pytest.mark.parametrize(("text", "told"), WRONG)
def test_what_is_no_handoff_changes_nothing(asking: Project, text: str, told: str) -> None:
    asking.write("wrong.json", text)
    events = len(journal(asking))
    assert told in asking.refused(2, "approve", "count", "--yes", "--handoff", "wrong.json")
    assert asking.status().states["count"] == "waiting"
    assert len(journal(asking)) == events


@pytest.mark.req("R116")
def test_a_person_names_what_the_plan_has_and_files_that_are_there(project: Project) -> None:
    project.plan(
        {"ask": {"uses": "human", "prompt": "What did you see?"}},
        hypotheses={"H1": {"statement": "it rains"}},
        requirements={"R1": {"description": "a map", "priority": "must"}},
    )
    assert project.run().states["ask"] == "waiting"
    project.write("said", "rain")
    gap = {"item": "map", "reason": "late", "requirement": "R2"}
    told: Json = {"finding": "rain", "source": "me", "supports": ["H2"]}
    lost: Json = {"artifact": "file", "ref": "nowhere.txt"}
    project.write("told.json", handoff(told, attempted="looked", not_done=[gap], changed=[lost]))
    refused = project.refused(2, "answer", "ask", "said", "--handoff", "told.json")
    for words in ("'H2', which is no hypothesis of the plan", "'R2', which is no requirement"):
        assert words in refused
    assert "names 'nowhere.txt'" in refused
    assert project.status().states["ask"] == "waiting"


def journal(project: Project) -> list[Any]:
    return project.database().execute("SELECT * FROM event").fetchall()


def test_a_handoff_is_about_one_step_and_not_about_a_plan(asking: Project) -> None:
    assert "cannot read 'gone.json'" in asking.refused(
        2, "approve", "count", "--yes", "--handoff", "gone.json"
    )
    asking.plan(
        {
            "a": {"shell": "echo 1", "approve": "always"},
            "b": {"shell": "echo 2", "approve": "always"},
        }
    )
    asking.run("--yes")
    said = asking.refused(2, "approve", "--all", "--yes", "--handoff", "told.json")
    assert "a handoff is what one step tells, and these are 2: a, b" in said
    assert set(asking.status().states.values()) == {"waiting"}


def test_a_doubted_plan_takes_no_handoff(project: Project) -> None:
    project.write("told.json", handoff(attempted="look", replan={"reason": "no"}))
    project.plan({"a": {"shell": "cp told.json $HOLDFAST_HANDOFF", "inputs": "told.json"}})
    assert project.run().code == 3
    said = project.refused(2, "approve", "replan", "--yes", "--handoff", "told.json")
    assert "a plan hands nothing over" in said
    assert project.resume().code == 3


def test_a_secret_in_a_handoff_of_a_person_is_refused(project: Project) -> None:
    step = {"shell": "echo 12", "guards": ["human"], "secrets": ["API_KEY"]}
    project.plan({"a": step})
    env = {"API_KEY": "very-secret-value-1"}
    assert project.run("--secret", "API_KEY", env=env).states == {"a": "waiting"}
    project.write("told.json", handoff({"finding": "it is very-secret-value-1"}))
    words = ("approve", "a", "--yes", "--handoff", "told.json")
    told = project.refused(2, *words, env=env)
    assert "the handoff for 'a' holds the value of a secret" in told
    assert "very-secret" not in told
    for path in Path(project.store).rglob("*"):
        assert not path.is_file() or b"very-secret-value-1" not in path.read_bytes()


def test_a_handoff_that_was_purged_since_tells_nothing_and_harms_nothing(asking: Project) -> None:
    asking.ok("approve", "count", "--yes", "--handoff", "told.json")
    rows = asking.database().execute("SELECT body FROM event WHERE kind = 'approval_decided'")
    ((body,),) = rows.fetchall()
    asking.ok("purge", json.loads(str(body))["handoff"], "--because", "private", "--yes")
    assert asking.resume().states["count"] == "done"
    assert findings(asking) == [("12 stations", "a.csv")]


def test_what_a_step_in_conflict_told_outlives_the_decision(project: Project) -> None:
    project.write("a", "a\n")
    scratch = {"workspace": "scratch", "effects": "workspace", "inputs": ["a", "told.json"]}
    told = "cp told.json $HOLDFAST_HANDOFF; echo $HOLDFAST_STEP > a"
    project.plan({"left": {"shell": told, **scratch}, "right": {"shell": told, **scratch}})
    project.write("told.json", handoff({"finding": "it is wrong", "source": "a"}))
    run = project.run("-j", "1")
    assert run.states == {"left": "done", "right": "waiting"}
    (conflict,) = run.data["conflicts"]
    project.ok("resolve", conflict["conflict"], "--take", "right")
    assert project.resume().code == 0
    steps = [one["from_step"] for one in project.ok("ledger", "--json").json["evidence"]]
    assert steps == ["left", "right"]
