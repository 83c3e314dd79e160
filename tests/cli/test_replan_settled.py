"""What a run was held for: gone from the ledger, answered, or decided long ago."""

from __future__ import annotations

import json

import pytest

from holdfast.model.digest import Json
from tests.cli.project import Project
from tests.cli.test_replan import PLAIN, PREMISES, SPEAKING, STEPS, say


@pytest.fixture
def held(project: Project) -> Project:
    project.write("plan.yaml", PREMISES + STEPS)
    say(project, **SPEAKING["assumption by a question"])
    assert project.run().code == 3
    return project


def test_the_command_that_a_preview_ends_with_takes_the_place_of_a_held_run(
    project: Project,
) -> None:
    project.write("plan.yaml", PREMISES + STEPS)
    say(project, **SPEAKING["request"])
    assert project.run().code == 3
    say(project, **PLAIN)
    shown = project.ok("plan").out
    assert "next: holdfast run --yes    holdfast why " in shown
    assert "say --yes" in project.refused(2, "run")
    assert project.ok("run", "--yes").code == 0


@pytest.mark.req("R118", "R115")
def test_what_the_ledger_no_longer_says_is_asked_of_nobody(held: Project) -> None:
    (asked,) = held.ok("ledger", "uncertain", "--json").json["uncertainties"]
    said = held.ok("ledger", "resolve", asked["id"], "--because", "counted again")
    assert "holdfast resume" in said.out
    assert held.ok("approvals", "--json").json["approvals"] == []
    assert "nothing waits for a person" in held.ok("approvals").out
    status = held.ok("status").out
    assert "what spoke against its plan no longer does" in status
    assert "next: holdfast resume" in status
    assert "is held" not in (shown := held.ok("plan").out)
    assert "next: holdfast resume    holdfast status" in shown
    assert "can be resumed" in (refused := held.refused(2, "run"))
    assert "holdfast resume" in refused
    assert held.ok("resume").out
    assert held.status().data["status"] == "completed"


@pytest.mark.req("R118", "R173")
def test_who_let_a_doubted_plan_go_on_and_why_can_be_read_later(held: Project) -> None:
    held.ok("approve", "replan", "--yes", "--because", "the clerk knows")
    assert "holdfast resume" in held.ok("status").out
    held.ok("resume")
    (told,) = [line for line in held.ok("approvals", "--all").out.splitlines() if "t-" in line]
    assert "approved   replan  an open question doubts" in told
    assert told.endswith("the clerk knows")
    (one,) = held.ok("approvals", "--all", "--json").json["approvals"]
    assert (one["gate"], one["state"]) == ("replan", "approved")
    assert one["covers"]["cause"] == "assumption"
    assert (one["decision"]["yes"], one["decision"]["because"]) == (True, "the clerk knows")


def test_a_plan_that_another_one_replaced_is_told_as_such(held: Project) -> None:
    held.write("plan.yaml", (PREMISES + STEPS).replace("echo written", "echo anew"))
    held.run("--yes")
    (one,) = held.ok("approvals", "--all", "--json").json["approvals"]
    assert (one["state"], one["decision"]["yes"]) == ("replaced", False)
    assert one["decision"]["plan"]


def test_a_plan_is_not_rejected_but_changed(held: Project) -> None:
    refused = held.refused(2, "reject", "replan", "--because", "no")
    assert "another one takes its place" in refused
    assert "holdfast approve replan" in refused


@pytest.mark.req("R120")
def test_gaps_are_called_by_name(project: Project) -> None:
    project.write("plan.yaml", PREMISES + STEPS)
    say(project, **SPEAKING["gaps"])
    project.run()
    said = project.ok("status").out
    assert "2 critical things were not done, 1 is borne: the summary, a map" in said


@pytest.mark.req("R117")
def test_a_step_that_is_told_nothing_finds_an_empty_page(project: Project) -> None:
    steps: dict[str, dict[str, Json]] = {
        "a": {"shell": "echo quiet"},
        "b": {
            "needs": ["a"],
            "shell": 'test ! -s "$HOLDFAST_CONTEXT"; cat "$HOLDFAST_CONTEXT"',
        },
    }
    project.plan(steps)
    assert project.run().states == {"a": "done", "b": "done"}


SKIPPED: dict[str, dict[str, Json]] = {
    "look": {"shell": "cat look.js* > $HOLDFAST_HANDOFF; echo looked"},
    "draw": {
        "needs": ["look"],
        "requirements": ["map"],
        "description": "draw a map",
        "shell": "test -e paper && echo drawn",
    },
    "write": {"needs": ["draw"], "shell": "cat $HOLDFAST_CONTEXT; echo written"},
}


@pytest.mark.req("R118", "R120")
@pytest.mark.parametrize("speaks", [True, False], ids=["others told something", "nobody told"])
def test_a_skipped_step_leaves_a_gap_that_speaks_against_the_plan_until_it_is_retried(
    project: Project, speaks: bool
) -> None:
    needed = {"map": {"description": "a map", "priority": "must"}}
    project.plan(SKIPPED, requirements=needed, replan={"gaps": 0})
    if speaks:
        project.write("look.json", json.dumps(PLAIN))
    assert project.run().code == 3
    assert project.call("skip", "draw", "--because", "no paper", "--yes").code == 3
    (gap,) = project.ok("ledger", "gaps", "--json").json["gaps"]
    assert (gap["from_step"], gap["item"]) == ("draw", "draw")
    assert gap["reason"] == "a person lets the run go on without it: no paper"
    assert "handed over" not in project.ok("why", "draw").out
    project.ok("approve", "replan", "--yes")
    assert project.resume().data["status"] == "completed"
    assert "not done draw: a person lets" in project.ok("show", "write").out
    project.write("paper", "")
    project.call("retry", "draw", "--yes")
    assert project.ok("ledger", "gaps", "--json").json["gaps"] == []
    assert project.ok("show", "draw").out == "drawn\n"
