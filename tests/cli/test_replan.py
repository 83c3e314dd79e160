"""A run whose plan no longer holds stops, says why, and goes on when somebody decided."""

from __future__ import annotations

import json

import pytest

from holdfast.engine.lines import tell_line
from holdfast.model.digest import Json
from holdfast.model.line import HandoffGiven
from holdfast.model.plan import StepId
from holdfast.store.sqlite import SqliteStore
from tests.cli.goals import GOAL, answer, artifact, digest, planner
from tests.cli.project import Project, finish, until

PREMISES = """
requirements:
  report: {description: a written report, priority: must}
  map: {description: a map, priority: must}
  poem: {description: a poem, priority: could}
hypotheses:
  grows: {statement: the market grows, critical: true}
  shrinks: {statement: the market shrinks}
unknowns: {known_knowns: [the register is complete]}
replan: {gaps: 1}
"""

STEPS = """
steps:
  test:
    type: experiment
    hypotheses: [grows, shrinks]
    inputs: test.json
    shell: cp test.json $HOLDFAST_HANDOFF; echo tested
  write:
    needs: [test]
    shell: cat $HOLDFAST_INPUTS/test; echo written
"""

PLAIN: dict[str, Json] = {
    "attempted": "test it",
    "observed": [],
    "changed": [],
    "not_done": [],
    "highest_impact_uncertainty": "",
    "next_agent_should_first": "write",
}
SPEAKING: dict[str, dict[str, Json]] = {
    "assumption by a finding": {
        "observed": [{"finding": "two are missing", "refutes": ["The register is complete"]}]
    },
    "assumption by a question": {
        "highest_impact_uncertainty": "Is it so that the register is complete?"
    },
    "gaps": {
        "not_done": [
            {"item": "the summary", "reason": "no time", "requirement": "report"},
            {"item": "a map", "reason": "no data"},
        ]
    },
    "hypothesis": {"hypotheses": {"grows": {"status": "refuted"}}},
    "request": {"replan": {"reason": "there is another source"}},
    "request in words": {"highest_impact_uncertainty": "We need to replan: wrong source"},
}
ASKING = {**PLAIN, "replan": {"reason": "no"}}
SILENT: dict[str, dict[str, Json]] = {
    "a question about something else": {"highest_impact_uncertainty": "Is the register old?"},
    "as many gaps as are borne": {
        "not_done": [
            {"item": "the summary", "reason": "no time", "requirement": "report"},
            {"item": "rhymes", "reason": "no time", "requirement": "poem"},
        ]
    },
    "a hypothesis that nothing stands on": {"hypotheses": {"shrinks": {"status": "refuted"}}},
    "a critical hypothesis that holds": {"hypotheses": {"grows": {"status": "supported"}}},
}


def say(project: Project, **more: Json) -> None:
    project.write("test.json", json.dumps({**PLAIN, **more}))


@pytest.fixture
def doubtful(project: Project) -> Project:
    project.write("plan.yaml", PREMISES + STEPS)
    say(project)
    return project


@pytest.mark.req("R118", "R119", "R120", "R121", "R122")
@pytest.mark.parametrize("about", SPEAKING)
def test_what_speaks_against_the_plan_holds_the_run(doubtful: Project, about: str) -> None:
    say(doubtful, **SPEAKING[about])
    run = doubtful.run()
    assert (run.code, run.data["status"]) == (3, "waiting")
    assert run.data["reason"]["code"] == "replan_wanted"
    (waits,) = run.data["waiting"]
    assert (waits["for"], waits["approval"][:2]) == ("replan", "t-")
    assert run.data["replan"]["triggers"] == [waits["approval"]]
    assert run.states == {"test": "done", "write": "pending"}
    assert waits["approval"] in doubtful.ok("status").out
    assert doubtful.ok("approvals", "--json").json["approvals"][0]["gate"] == "replan"


@pytest.mark.req("R119", "R120", "R121")
@pytest.mark.parametrize("about", SILENT)
def test_what_does_not_speak_against_the_plan_lets_the_run_end(
    doubtful: Project, about: str
) -> None:
    say(doubtful, **SILENT[about])
    run = doubtful.run()
    assert (run.code, run.data["replan"]) == (0, None)


@pytest.mark.req("R118", "R92")
def test_a_run_goes_on_after_a_yes_and_asks_no_more(doubtful: Project) -> None:
    say(doubtful, **SPEAKING["hypothesis"])
    assert doubtful.run().code == 3
    assert doubtful.resume().code == 3  # nobody decided yet
    shown = doubtful.call("approve", "replan")
    assert shown.code == 2
    assert "'grows' was refuted, and the plan stands on it" in shown.out
    assert "say --yes" in shown.err
    told = doubtful.ok("approve", "--yes", "--because", "go on anyway").out
    assert "the plan stands as it is: t-" in told
    assert doubtful.resume().states == {"test": "done", "write": "done"}
    assert doubtful.call("approve", "replan", "--yes").code == 2  # nothing waits any more
    again = doubtful.run("--force-node", "write")
    assert (again.code, again.states["test"]) == (0, "reused")
    assert doubtful.call("verify").code == 0


@pytest.mark.req("R118", "R121")
def test_another_plan_answers_what_spoke_against_the_one_before(doubtful: Project) -> None:
    say(doubtful, **SPEAKING["request"])
    assert doubtful.run().code == 3
    assert doubtful.run("--yes").code == 3  # the same plan is no answer
    doubtful.write("plan.yaml", PREMISES + STEPS.replace("echo written", "echo otherwise"))
    run = doubtful.run("--yes")
    assert (run.code, run.states) == (0, {"test": "reused", "write": "done"})
    assert "otherwise" in doubtful.ok("show", "write").out
    assert doubtful.run().code == 0
    first, last = doubtful.ok("plans", "show", "--json").json["versions"]
    assert (first["answers"], last["parent"]) == ([], first["plan"])
    assert last["answers"][0] in doubtful.ok("plans", "show").out


@pytest.mark.req("R118", "R92")
def test_an_engine_that_waits_for_people_goes_on_when_somebody_said_yes(doubtful: Project) -> None:
    say(doubtful, **SPEAKING["hypothesis"])
    waiting = doubtful.start("run", "--wait", "--poll", "0.05")
    until(lambda: doubtful.call("approve", "replan", "--yes").code == 0, "it is held")
    ended = finish(waiting)
    assert ended.code == 0, ended.err
    assert "waiting for a person: t-" in ended.err
    assert "the plan stands as it is, says" in ended.err


@pytest.mark.req("R118")
def test_what_changed_since_may_let_a_run_go_on_by_itself(project: Project) -> None:
    steps = {"draw": {"shell": "test -e there && echo drawn", "description": "draw a map"}}
    needed = {"map": {"description": "draw", "priority": "must"}}
    project.plan(steps, requirements=needed, replan={"gaps": 0})
    assert project.run().code == 3
    assert "approve replan" not in project.ok("why", "draw", "--wait").out
    project.write("there", "")
    assert project.resume().code == 0
    kinds = [event["event"] for event in project.events()]
    assert kinds.count("replan_decided") == 1


@pytest.mark.req("R118")
def test_a_sub_plan_brings_what_it_stands_on(project: Project) -> None:
    project.write("inner.yaml", PREMISES + STEPS)
    say(project, **SPEAKING["hypothesis"])
    project.plan({"part": {"uses": "plan", "run": "inner.yaml"}})
    run = project.run()
    assert (run.code, run.data["reason"]["code"]) == (3, "replan_wanted")


@pytest.mark.req("R118")
def test_what_runs_already_ends_and_nothing_more_starts(project: Project) -> None:
    project.plan(
        {
            "ask": {"shell": f"echo '{json.dumps(ASKING)}' > $HOLDFAST_HANDOFF"},
            "beside": {"shell": "echo beside"},
            "later": {"needs": ["ask"], "shell": "echo later"},
            "last": {"needs": ["later"], "shell": "echo last"},
        }
    )
    run = project.run("--barrier")
    assert run.code == 3
    assert run.states == {"ask": "done", "beside": "done", "later": "pending", "last": "pending"}


@pytest.mark.req("R118", "E18")
def test_a_run_that_says_its_plan_is_wrong_at_its_very_end_is_not_complete(
    project: Project,
) -> None:
    project.plan({"ask": {"shell": f"echo '{json.dumps(ASKING)}' > $HOLDFAST_HANDOFF"}})
    run = project.run()
    assert (run.code, run.states, run.data["status"]) == (3, {"ask": "done"}, "waiting")


@pytest.mark.req("R118", "E18")
def test_blocked_is_not_complete(project: Project) -> None:
    project.plan({"a": {"shell": "exit 1"}, "b": {"needs": ["a"], "shell": "echo b"}})
    run = project.run()
    assert (run.code, run.data["status"]) == (1, "failed")
    assert run.states == {"a": "failed", "b": "skipped"}


@pytest.mark.req("R120", "R129")
def test_what_failed_is_a_gap_that_may_speak_against_the_plan(project: Project) -> None:
    needed = {"map": {"description": "a map", "priority": "must"}}
    steps = {"draw": {"shell": "exit 1", "outputs": ["a map"]}}
    project.plan(steps, requirements=needed, replan={"gaps": 0})
    run = project.run()
    assert (run.code, run.data["reason"]["code"], run.states) == (
        3,
        "replan_wanted",
        {"draw": "failed"},
    )
    project.plan(steps, requirements=needed, replan={"gaps": False})
    assert project.run("--yes").code == 1


@pytest.mark.req("R113", "R123", "R117")
def test_an_experiment_is_told_which_hypotheses_it_tests(doubtful: Project) -> None:
    doubtful.write("plan.yaml", (PREMISES + STEPS).replace("echo tested", "cat $HOLDFAST_CONTEXT"))
    say(doubtful, hypotheses={"shrinks": {"status": "supported", "evidence": []}})
    doubtful.run()
    page = doubtful.ok("show", "test").out
    assert "- grows (the market grows) is untested: 0 for, 0 against" in page
    stand = doubtful.ok("ledger", "--json").json["hypotheses"]
    assert {name: one["status"] for name, one in stand.items()} == {
        "grows": "inconclusive",
        "shrinks": "supported",
    }


@pytest.mark.req("R123")
def test_a_hypothesis_is_being_tested_while_a_step_runs_that_tests_it(doubtful: Project) -> None:
    gate = doubtful.gates / "go"
    shell = f"until [ -e {gate} ]; do sleep 0.05; done; echo tested"
    doubtful.write("plan.yaml", (PREMISES + STEPS).replace("echo tested", shell))
    running = doubtful.start("run")

    def statuses() -> set[str]:
        if not doubtful.call("status").out:
            return set()
        told = doubtful.call("ledger", "--json")
        return {one["status"] for one in told.json["hypotheses"].values()} if told.out else set()

    until(lambda: statuses() == {"testing"}, "both are being tested")
    gate.touch()
    finish(running)
    assert statuses() == {"inconclusive"}


# --- goals: another plan is made ------------------------------------------------------------------


def plant(project: Project, step: str, handoff: dict[str, Json]) -> None:
    """Let a step of the last run of a goal have told something, as its attempt would have."""
    store = SqliteStore.open(str(project.store), create=False)
    try:
        row = [row for row in store.runs() if not row.line.endswith(".planning")][-1]
        made = store.newest(row.project, row.line, StepId(step))
        assert made is not None
        told = store.put(json.dumps(handoff).encode())
        event = HandoffGiven(made.run, made.step, made.attempt, made.input_ref, made.digest, told)
        tell_line(store, row.project, row.line, lambda: (1, event, []))
    finally:
        store.close()


@pytest.mark.req("R118", "R122")
def test_for_a_goal_another_plan_is_made_as_often_as_the_policy_lets_it(project: Project) -> None:
    first = answer(artifact("A", produces_file="a.txt"), artifact("B", "A", produces_file="b.txt"))
    other = answer(artifact("A", produces_file="a.txt"), artifact("C", "A", produces_file="c.txt"))
    third = answer(artifact("A", produces_file="a.txt"), artifact("D", "A", produces_file="d.txt"))
    words = ("--yes", "--on-failure", "regenerate")
    with planner(project, first, other, third) as (model, _):
        project.ok("plan", GOAL, "--yes")
        project.ok("run", GOAL, "--yes", "--trust", digest(project))
        plant(project, "A", {**PLAIN, "replan": {"reason": "there is a better way"}})
        asks = project.call("run", GOAL, "--yes", "--force-node", "B")
        assert (asks.code, len(model.planned)) == (3, 1)  # a person is asked
        again = project.call("run", GOAL, *words, "--force-node", "B")
        assert "speaks against its plan; planning again" in again.err
        assert "there is a better way" in model.planned[1]
        assert "nobody approved its plan" in again.err
        project.ok("run", GOAL, "--yes", "--trust", digest(project))
        assert project.has("c.txt")
        assert model.made[-1] != model.made[0]
        assert len([one for one in model.made if "the A of the API" in one]) == 1  # A stands
        plant(project, "A", {**PLAIN, "replan": {"reason": "and a better one"}})
        bounded = project.call("run", GOAL, *words, "--force-node", "C")
        assert (bounded.code, len(model.planned)) == (3, 2)  # one round was made: now it asks


@pytest.mark.req("R118", "R120")
def test_what_a_step_left_that_serves_a_must_speaks_against_the_plan(project: Project) -> None:
    needed = {"q": {"description": "the answer", "priority": "must"}}
    steps = {"draw": {"shell": "exit 1", "requirements": ["q"]}}
    project.plan(steps, requirements=needed, replan={"gaps": 0})
    assert project.run().data["reason"]["code"] == "replan_wanted"


def test_an_experiment_without_a_verdict_is_inconclusive(project: Project) -> None:
    claim = {"h": {"statement": "it grows"}}
    project.plan({"test": {"shell": "echo 1", "hypotheses": ["h"]}}, hypotheses=claim)
    assert project.run().code == 0
    found = project.ok("ledger", "--json").json["hypotheses"]["h"]
    assert (found["status"], found["tested_by"]) == ("inconclusive", ["test"])
    state = project.ok("export", "@", "-", "--format", "execution-state").json
    assert state["hypothesisStatuses"]["h"]["testedByStepIds"] == ["test"]


SIDE = """
name: side
hypotheses: {warm: {statement: the reef is warm, critical: true}}
steps:
  test:
    type: experiment
    hypotheses: [warm]
    inputs: test.json
    shell: cp test.json $HOLDFAST_HANDOFF; echo tested
  slow: {shell: WAIT}
  build: {needs: [test], shell: BUILD}
"""


def test_what_follows_may_run_until_the_wave_is_settled_and_then_the_run_waits(
    project: Project,
) -> None:
    wait, build = json.dumps(project.gate("go")), f"touch {project.gates / 'go'}"
    project.write("plan.yaml", SIDE.replace("WAIT", wait).replace("BUILD", build))
    say(project, hypotheses={"warm": "refuted"})
    run = project.run("-j", "2")
    assert (run.code, {*run.states.values()}) == (3, {"done"})
    shown = project.refused(10, "plan", "--detailed-exitcode")
    text = project.ok("plan").out
    assert "Runs nothing: all 3 steps stand, but a run would wait" in text
    assert "Nothing to do" not in text + shown
    assert "holdfast approve replan" in text
    assert "Nothing to do" not in project.ok("run", "--dry-run").out
    assert project.run("--yes").code == 3
    project.ok("approve", "replan", "--yes")
    assert project.resume().code == 0
    assert "Nothing to do" in project.ok("plan", "--detailed-exitcode").out


def test_with_a_barrier_no_later_wave_starts_before_the_plan_was_looked_at(
    project: Project,
) -> None:
    project.write("plan.yaml", SIDE.replace("WAIT", "echo 1").replace("BUILD", "echo 2"))
    say(project, hypotheses={"warm": "refuted"})
    run = project.run("--barrier")
    assert (run.code, run.states["build"]) == (3, "pending")


WORDS = {
    "a question": ("uncertainty", "I doubt that the register is complete"),
    "two gaps": ("gap", "a map"),
}


@pytest.mark.req("R119", "R120")
@pytest.mark.parametrize("about", WORDS)
@pytest.mark.parametrize("asks", ["", "Who is there?"])
def test_what_a_person_says_of_the_premises_counts_whatever_steps_said(
    doubtful: Project, about: str, asks: str
) -> None:
    doubtful.write("plan.yaml", (PREMISES + STEPS).replace("gaps: 1", "gaps: 0"))
    say(doubtful, highest_impact_uncertainty=asks)
    assert doubtful.run().code == 0
    kind, text = WORDS[about]
    doubtful.ok("ledger", "add", kind, text, "--because", "I looked")
    foretold = doubtful.ok("plan", "--json").json["replan"]["waits_for"]
    held = doubtful.run()
    assert held.code == 3
    assert [one["trigger"] for one in foretold] == held.data["replan"]["triggers"]
    name = next(
        one["id"]
        for part in ("uncertainties", "gaps")
        for one in doubtful.ok("ledger", "--json").json[part]
        if one["from_step"] == ""
    )
    doubtful.ok("ledger", "resolve", name, "--because", "it is")
    assert doubtful.resume().code == 0


@pytest.mark.req("R121")
@pytest.mark.parametrize("asks", ["", "Why?"])
def test_a_hypothesis_that_the_plan_itself_calls_refuted_holds_the_run(
    project: Project, asks: str
) -> None:
    refuted = {"grows": {"statement": "it grows", "critical": True, "status": "refuted"}}
    steps: dict[str, dict[str, Json]] = {
        "a": {"shell": "cp test.json $HOLDFAST_HANDOFF", "inputs": "test.json"},
        "b": {"needs": ["a"], "shell": "echo b"},
    }
    project.plan(steps, hypotheses=refuted)
    say(project, highest_impact_uncertainty=asks)
    held = project.run()
    assert (held.code, held.states) == (3, {"a": "done", "b": "pending"})
    assert "'grows' was refuted, and the plan stands on it" in project.ok("status").out
