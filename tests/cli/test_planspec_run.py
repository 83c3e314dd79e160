"""A PlanSpec whose steps are done by all four kinds of executors, imported and run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.testing.server import Asked, Reply, Say
from tests.cli.models import served
from tests.cli.project import Project
from tests.cli.test_handoffs_of_models import HANDOFF, both
from tests.cli.test_ledger_words import handoff


def step(kind: str, name: str, above: list[str], executor: dict[str, str]) -> dict[str, Any]:
    return {
        "type": kind,
        "id": name,
        "description": f"Do {name}",
        "dependencyIds": above,
        "requirementIds": ["R1"],
        "executor": executor,
    }


SPEC: dict[str, Any] = {
    "id": "study",
    "goalSummary": "Find out whether it grows",
    "requirements": [{"id": "R1", "description": "a number", "priority": "must"}],
    "hypotheses": [
        {"id": "H1", "statement": "It grows", "assumptions": [], "testableVia": "counting"}
    ],
    "unknownsMap": {"knownKnowns": ["sales are published"], "knownUnknowns": []},
    "steps": [
        step("research", "read", [], {"kind": "agent", "ref": "literature-searcher"}),
        {
            **step("experiment", "count", ["read"], {"kind": "tool", "ref": "lab:count"}),
            "mode": "confirmatory",
            "hypothesisIds": ["H1"],
            "procedure": "count twice",
            "preregisteredCommitments": ["two counts"],
        },
        {
            **step("develop", "draw", ["count"], {"kind": "workflow", "ref": "draw.yaml"}),
            "specification": "a picture",
            "deliverables": ["picture"],
            "outputs": [{"name": "picture", "description": "in colours"}],
        },
        step("develop", "script", ["count"], {"kind": "tool", "ref": "tools/size.sh"}),
        {
            **step("synthesize", "judge", ["draw", "script"], {"kind": "human"}),
            "mode": "evaluative",
            "evaluateAgainst": ["the goal"],
        },
    ],
}
LAB = """
def count(read):
    return f"counted after: {read}"
"""
DRAW = """
steps:
  outline: {shell: echo outline}
  colour: {needs: [outline], shell: cat $HOLDFAST_INPUTS/outline; echo colour}
"""


def script(asked: Asked) -> Reply:
    assert "Do read" in asked.last
    return both("three papers", HANDOFF)


@pytest.mark.req("R37", "R35", "R36")
def test_agents_tools_workflows_and_people_do_their_steps(project: Project) -> None:
    project.write("spec.json", json.dumps(SPEC))
    project.write("lab.py", LAB)
    project.write("draw.yaml", DRAW)
    project.write("tools/size.sh", "#!/bin/sh\nwc -c < $HOLDFAST_INPUTS/count\n", executable=True)
    answer = project.ok("import", "spec.json", "-o", "plan.yaml", "--json").json["files"][0]
    steps = ["read", "count", "draw.outline", "draw.colour", "draw", "script", "judge"]
    assert answer["plan"]["steps"] == steps
    project.write("plan.yaml", "defaults: {model: 'fake:m'}\n" + project.read("plan.yaml"))
    with served(project, script):
        run = project.run("--yes")
        assert run.code == 3, run.err
        assert run.states["judge"] == "waiting"
        project.ok("answer", "judge", "-", stdin=b"it holds\n")
        run = project.resume("--yes")
        assert set(run.states.values()) == {"done"}
    assert project.shown("count") == b"counted after: three papers"
    assert project.shown("draw.colour") == b"outline\ncolour\n"
    assert project.shown("script").strip() == b"27"
    again = json.loads(project.ok("export", "@", "-", "--format", "execution-state").out)
    assert again["planComplete"] is True
    assert again["plan"] == SPEC  # its own steps with their executors, word for word
    ids = ["read", "count", "script", "draw", "judge"]
    assert (again["completedStepIds"], again["pendingStepIds"]) == (ids, [])
    assert [one["stepId"] for one in again["handoffLog"]] == ids  # each is done by handing over
    last = again["handoffLog"][-1]["handoff"]
    assert last["attempted"] == "Do judge"
    assert last["changed"] == [{"artifact": "judge", "ref": run.digests["judge"]}]
    made = json.loads(project.ok("export", "@", "-", "--format", "planspec").out)
    assert made == SPEC


TELLING = """
import json, os

def count(read):
    told = {"attempted": "count", "observed": [{"finding": "it grew", "supports": ["H1"]}],
            "changed": [], "notDone": [], "highestImpactUncertainty": "For how long?",
            "nextAgentShouldFirst": "draw it", "hypotheses": {"H1": {"status": STATUS}}}
    with open(os.environ["HOLDFAST_HANDOFF"], "w") as file:
        json.dump(told, file)
    return "counted"
"""


@pytest.mark.req("R37", "R123", "R129")
@pytest.mark.parametrize(("status", "code"), [("supported", 0), ("refuted", 3)])
def test_what_tools_and_people_of_a_spec_tell_is_in_its_state(
    project: Project, status: str, code: int
) -> None:
    project.write("spec.json", json.dumps(SPEC))
    project.write("lab.py", TELLING.replace("STATUS", repr(status)))
    project.write("draw.yaml", DRAW)
    project.write("tools/size.sh", "#!/bin/sh\nwc -c < $HOLDFAST_INPUTS/count\n", executable=True)
    project.write("judged.json", handoff({"finding": "it holds", "source": "count"}))
    project.ok("import", "spec.json", "-o", "plan.yaml")
    project.write("plan.yaml", "defaults: {model: 'fake:m'}\n" + project.read("plan.yaml"))
    with served(project, script):
        run = project.run("--yes")
        assert run.code == 3, run.err
        if code == 0:
            project.ok("answer", "judge", "-", "--handoff", "judged.json", stdin=b"yes\n")
        assert project.resume("--yes").code == code
    state = json.loads(project.ok("export", "@", "-", "--format", "execution-state").out)
    stands = state["hypothesisStatuses"]["H1"]
    assert (stands["status"], stands["testedByStepIds"]) == (status, ["count"])
    assert (state["planComplete"], state["needsReplanning"]) == (code == 0, code == 3)
    found = [(one["fromStepId"], one["finding"]) for one in state["evidenceLedger"]]
    told = [("read", "three rivers"), ("count", "it grew"), ("judge", "it holds")]
    assert found == told[: 3 if code == 0 else 2]
    assert "draw" in state["completedStepIds" if code == 0 else "pendingStepIds"]
    (question,) = state["uncertaintyInventory"]
    assert (question["question"], question["status"]) == ("For how long?", "open")
    assert json.loads(json.dumps(state)) == state


FLOW = """
steps:
  outline: {shell: echo outline}
  colour:
    needs: [outline]
    handoff: true
    shell: cp told.json $HOLDFAST_HANDOFF; echo colour
"""
MORE: dict[str, dict[str, Any]] = {
    "research": {"query": "what colours", "stoppingRule": "three"},
    "synthesize": {"mode": "integrative"},
    "experiment": {"mode": "exploratory", "procedure": "mix", "hypothesisIds": ["H1"]},
    "develop": {"specification": "a picture", "deliverables": ["picture"]},
}


@pytest.mark.req("R37", "R112", "R114")
@pytest.mark.parametrize("kind", ["research", "synthesize", "experiment", "develop"])
def test_what_a_workflow_tells_its_step_tells(project: Project, kind: str) -> None:
    flow = {**step(kind, "draw", [], {"kind": "workflow", "ref": "flow.yaml"}), **MORE[kind]}
    then = step("develop", "say", ["draw"], {"kind": "tool", "ref": "lab:say"})
    project.write("spec.json", json.dumps({**SPEC, "steps": [flow, then]}))
    project.write("lab.py", "def say(draw):\n    return 'said'\n")
    project.write("flow.yaml", FLOW)
    project.write("told.json", handoff({"finding": "it is blue", "supports": ["H1"]}))
    project.ok("import", "spec.json", "-o", "plan.yaml")
    run = project.run()
    assert set(run.states.values()) == {"done"}, run.err
    state = json.loads(project.ok("export", "@", "-", "--format", "execution-state").out)
    assert state["plan"]["steps"] == [flow, then]
    assert state["completedStepIds"] == ["draw", "say"]
    assert [one["stepId"] for one in state["handoffLog"]] == ["draw", "say"]
    assert [one["fromStepId"] for one in state["evidenceLedger"]] == ["draw"]
    first = json.loads(project.ok("export", "-", "--format", "execution-state").out)
    assert first["pendingStepIds"] == ["draw", "say"]


@pytest.mark.req("R37", "R116")
def test_an_agent_of_a_spec_is_done_with_a_handoff_and_not_before(project: Project) -> None:
    agent = step("experiment", "try", [], {"kind": "agent", "ref": "experiment-runner"})
    agent |= {**MORE["experiment"], "outputs": [{"name": "n", "description": "how many"}]}
    then = step("develop", "say", ["try"], {"kind": "agent", "ref": "code-writer"})
    project.write("spec.json", json.dumps({**SPEC, "steps": [agent, then]}))
    project.ok("import", "spec.json", "-o", "plan.yaml")
    project.write("plan.yaml", "defaults: {model: 'fake:m'}\n" + project.read("plan.yaml"))
    told = {
        **HANDOFF,
        "observed": [{"finding": "it grew", "source": "lab", "supports": ["H1"]}],
        "hypotheses": {"H1": {"status": "supported"}},
        "payload": {"n": 3},
    }
    with served(project, [Say('{"n": 3}'), both('{"n": 3}', told), both("done")]) as server:
        run = project.run("--yes")
        assert run.states == {"try": "done", "say": "done"}, run.err
        _, again, last = server.requests
    assert "it must be JSON with 'output' and 'handoff'" in again.last
    assert "it grew (lab" in last.last  # the next one knows
    assert json.loads(project.shown("try")) == {"n": 3}
    state = json.loads(project.ok("export", "@", "-", "--format", "execution-state").out)
    assert state["plan"]["steps"] == [agent, then]
    assert state["hypothesisStatuses"]["H1"]["status"] == "supported"
    assert state["handoffLog"][0]["handoff"]["payload"] == {"n": 3}
