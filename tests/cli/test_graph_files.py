"""Execution graphs through the front door: check, import, trust, run, export."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.formats.planfile import load_plan
from tests.cli.project import Project

GRAPHS = Path(__file__).parents[1] / "formats" / "graphs"
TWO: dict[str, Any] = {
    "graph_id": "GRAPH-20250114-a3f2",
    "issue_number": 42,
    "phase": "implementing",
    "created_at": "2025-01-14T10:00:00Z",
    "mood": "good",
    "nodes": [
        {
            "id": "write",
            "agent": "writer",
            "action": "write",
            "status": "pending",
            "dependencies": [],
            "outputs": ["text"],
            "priority": "HIGH",
            "timeout_ms": 60000,
            "started_at": None,
            "completed_at": None,
            "result": None,
        },
        {
            "id": "check",
            "agent": "critic@1.0",
            "action": "read",
            "status": "pending",
            "dependencies": ["write"],
            "outputs": ["findings"],
            "colour": "red",
        },
    ],
    "edges": [{"from": "write", "to": "check", "type": "data", "data_key": "text"}],
    "batches": [
        {"batch_id": 1, "tasks": ["write"], "status": "pending"},
        {"batch_id": 2, "tasks": ["check"], "status": "pending"},
    ],
}


def put(project: Project, graph: Any = TWO, name: str = "graph.json") -> None:
    project.write(name, json.dumps(graph, indent=1))


def employ(project: Project, *, write: str = "echo '{\"text\": 1}'") -> None:
    """A registry in the person's own configuration that says how the two agents work."""
    place = project.home / ".config" / "holdfast"
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.toml").write_text('agents = "agents.json"\n')
    inputs = {
        "writer": {"write": {"shell": project.sh(write)}},
        "critic": {"read": {"shell": project.sh("echo '{\"findings\": []}'")}},
    }
    known = {
        name: {"version": "1.0", "input_schema": {"actions": actions}}
        for name, actions in inputs.items()
    }
    (place / "agents.json").write_text(json.dumps({"agents": known}))


def digest(project: Project) -> str:
    answer = project.ok("import", "graph.json", "--json").json
    return str(answer["files"][0]["plan"]["digest"])


@pytest.mark.req("R22", "R33")
def test_check_names_the_contract_violations_of_an_example(project: Project) -> None:
    put(project, json.loads((GRAPHS / "review.json").read_text()), "review.json")
    answer = project.ok("check", "review.json", "--json").json
    assert answer["ok"]
    assert answer["steps"] == 7
    assert {item["code"] for item in answer["warnings"]} == {"P910", "P912"}


@pytest.mark.req("R22", "R33")
def test_import_prints_one_answer_for_each_file(project: Project) -> None:
    for name in ("enrich", "review"):
        put(project, json.loads((GRAPHS / f"{name}.json").read_text()), f"{name}.json")
    project.write("bad.json", '{"graph_id": "GRAPH-1", "nodes": [{"id": "a"}]}')
    answer = project.call("import", "enrich.json", "review.json", "bad.json", "--json")
    assert answer.code == 2
    files = answer.json["files"]
    assert [(one["file"], one["result"]) for one in files] == [
        ("enrich.json", "loaded"),
        ("review.json", "loaded"),
        ("bad.json", "refused"),
    ]
    assert files[0]["plan"]["line"] == "GRAPH-20250114-a3f2"
    assert files[1]["plan"]["steps"] == ["r1", "r2", "r3", "r4", "r5", "r6", "merge"]
    assert files[2]["errors"] == [
        "bad.json:1:35: error[P033]: a node has no 'agent'",
        "bad.json:1:35: error[P033]: a node has no 'action'",
    ]
    assert not project.store.exists()


def test_an_imported_graph_is_a_plan_of_ones_own(project: Project) -> None:
    put(project)
    employ(project)
    project.ok("import", "graph.json", "-o", "plan.yaml")
    run = project.run("plan.yaml")
    assert run.states == {"write": "done", "check": "done"}
    assert "is there already" in project.refused(2, "import", "graph.json", "-o", "plan.yaml")
    assert "is a graph" in project.refused(2, "import", "graph.json", "--format", "plan")
    graph = json.loads(project.ok("export", "-", "--format", "graph").out)
    assert (graph["graph_id"], graph["issue_number"]) == ("GRAPH-20250114-a3f2", 42)
    assert graph["edges"] == TWO["edges"]


# --- trust --------------------------------------------------------------------------------------


def test_a_graph_runs_only_after_a_person_approved_its_digest(project: Project) -> None:
    put(project)
    employ(project)
    said = project.refused(2, "run", "graph.json", "--yes")
    assert "nobody approved its plan" in said
    assert project.ran() == []
    assert "not '000000000000'" in project.refused(2, "run", "graph.json", "--trust", "0" * 12)
    run = project.run("graph.json", "--trust", digest(project)[:12])
    assert run.states == {"write": "done", "check": "done"}
    assert project.ran() == ["check", "write"]
    assert project.run("graph.json").code == 0  # the same digest was approved
    put(project, {**TWO, "mood": "bad"})
    assert "nobody approved" in project.refused(2, "run", "graph.json")
    project.ok("verify")


def test_an_approval_of_a_plan_can_be_taken_back(project: Project) -> None:
    put(project)
    employ(project)
    project.run("graph.json", "--trust", digest(project))
    (made,) = project.ok("approvals", "--all", "--plan-id", TWO["graph_id"], "--json").json[
        "approvals"
    ]
    assert (made["gate"], made["state"]) == ("plan", "approved")
    project.ok("revoke", made["approval"], "--plan-id", TWO["graph_id"])
    assert "nobody approved" in project.refused(2, "run", "graph.json")


def test_a_step_cannot_approve_a_plan(project: Project) -> None:
    put(project)
    employ(project)
    words = ("run", "graph.json", "--trust", digest(project))
    assert "a person must" in project.refused(2, *words, env={"HOLDFAST_STEP": "x"})


def test_a_graph_of_which_nobody_knows_how_it_is_done_says_so(project: Project) -> None:
    put(project)
    said = project.refused(2, "run", "graph.json")
    assert "'write' (and 1 more) has nothing to run" in said
    assert "holdfast import graph.json -o plan.yaml" in said
    assert project.ok("plan", "graph.json", "--json").json["plan"]["line"] == TWO["graph_id"]
    shown = project.ok("plan", "graph.json").out
    assert " ! write  it cannot run: nobody said how 'writer' does 'write'" in shown
    assert " ! check  it cannot run: nobody said how 'critic' does 'read'" in shown
    assert "Runs nothing · 2 cannot run\n" in shown
    assert (
        "A run is refused: give each action a 'run' in a registry of agents, or bring it" in shown
    )
    assert "next: holdfast run" not in shown
    assert not project.store.exists()


# --- contracts while a run goes on ----------------------------------------------------------------


@pytest.mark.req("R31")
def test_an_artifact_without_a_required_output_is_rejected(project: Project) -> None:
    writer = {
        "input_schema": {"actions": {"write": {}}},
        "output_schema": {"actions": {"write": {"required_outputs": ["text"]}}},
    }
    step = {"agent": "writer", "action": "write"}
    project.plan({"a": {**step, "shell": "echo '{\"txt\": 1}'"}}, agents={"writer": writer})
    run = project.run()
    assert (run.code, run.states) == (1, {"a": "failed"})
    assert run.because("a") == ["outputs"]
    project.plan({"a": {**step, "shell": "echo '{\"text\": 1}'"}}, agents={"writer": writer})
    assert project.run().states == {"a": "done"}


@pytest.mark.req("R31")
def test_no_more_steps_of_an_agent_run_at_once_than_its_contract_allows(project: Project) -> None:
    writer = {
        "input_schema": {"actions": {"write": {}}},
        "constraints": {"max_concurrent": 1},
    }
    alone = "mkdir busy || exit 9; sleep 0.05; rmdir busy"
    steps = {
        f"s{number}": {"agent": "writer", "action": "write", "shell": alone} for number in range(6)
    }
    project.plan(steps, agents={"writer": writer})
    run = project.run("-j", "6")
    assert set(run.states.values()) == {"done"}, run.err


@pytest.mark.req("R108")
def test_a_team_is_the_steps_of_some_agents(project: Project) -> None:
    steps = {
        name: {"shell": project.sh(), "agent": agent}
        for name, agent in (("a", "ada"), ("b", "bob"), ("c", "cy"))
    }
    project.plan(steps)
    project.run("--team", "ada, cy")
    assert project.ran() == ["a", "c"]
    said = project.refused(2, "run", "--team", "bbo")
    assert "no step of the plan is done by 'bbo'" in said
    assert "did you mean 'bob'?" in said
    project.run("-s", "agent:bob")
    assert project.ran() == ["b"]


@pytest.mark.req("R34")
def test_agents_lists_both_registries_and_shows_a_contract(project: Project) -> None:
    employ(project)
    found = project.ok("agents", "--json").json["agents"]
    assert len(found) == 24
    assert {one["registry"] for one in found} == {"agents", "reviewers"}
    (one,) = project.ok("agents", "security-analyst", "--json").json["agents"]
    assert one["veto_domains"] == ["security", "auth", "crypto", "data_exposure"]
    assert "did you mean 'reviewer'?" in project.refused(2, "agents", "reviewr")


# --- giving a graph back --------------------------------------------------------------------------


@pytest.mark.req("R22", "R24")
@pytest.mark.parametrize("name", ["enrich", "review", "two"])
def test_a_graph_that_was_read_is_given_back_word_for_word(project: Project, name: str) -> None:
    data = TWO if name == "two" else json.loads((GRAPHS / f"{name}.json").read_text())
    put(project, data)
    out = project.ok("export", "-", "--format", "graph", "-f", "graph.json").out
    assert json.loads(out) == data


@pytest.mark.req("R25")
def test_a_run_is_exported_with_the_statuses_of_the_document(project: Project) -> None:
    put(project)
    employ(project, write="exit 3")
    run = project.call("run", "graph.json", "--trust", digest(project))
    assert run.code == 1
    project.ok("export", "@", "out.json", "--format", "graph", "-f", "graph.json")
    graph = json.loads(project.read("out.json"))
    write, check = graph["nodes"]
    assert (write["status"], check["status"]) == ("failed", "skipped")
    assert check["result"] == {"skipped_reason": "Dependency write failed"}
    assert check["colour"] == "red"
    assert write["started_at"] <= write["completed_at"]
    assert [batch["status"] for batch in graph["batches"]] == ["complete", "complete"]
    employ(project)
    project.run("graph.json", "--trust", digest(project))
    project.ok("export", "@", "out.json", "--format", "graph", "-f", "graph.json", "--force")
    graph = json.loads(project.read("out.json"))
    assert [node["status"] for node in graph["nodes"]] == ["complete", "complete"]
    assert set(graph["nodes"][0]["result"]) == {"artifact"}
    put(project, graph, "again.json")
    loaded = load_plan(str(project.root / "again.json"))
    assert list(loaded.plan.steps) == ["write", "check"]
    project.run("graph.json")
    graph = json.loads(project.ok("export", "@", "-", "--format", "graph", "-f", "graph.json").out)
    assert [node["result"]["reused"] for node in graph["nodes"]] == [True, True]


@pytest.mark.req("R20")
def test_any_plan_is_exported_as_a_graph_that_loads_again(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "echo 1", "outputs": ["x"]},
            "b": {"shell": "echo 1", "needs": [{"step": "a", "key": "x", "from": "ada"}]},
            "c": {"shell": "echo 1", "needs": [{"step": "b", "type": "approval"}]},
            "d": {
                "shell": "echo 1",
                "needs": [{"step": "c", "type": "sequence"}],
                "priority": "low",
            },
        }
    )
    project.ok("export", "graph.json", "--format", "graph")
    mine = load_plan(str(project.root / "plan.yaml")).plan
    back = load_plan(str(project.root / "graph.json")).plan
    assert {s: (x.needs, x.outputs, x.priority) for s, x in back.steps.items()} == {
        s: (x.needs, x.outputs, x.priority) for s, x in mine.steps.items()
    }
