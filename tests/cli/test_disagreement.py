"""Agents that disagree in a run: found when their wave is settled, settled by the registry, shown."""

import json
from typing import Any

import pytest

from tests.cli.project import Project

pytestmark = pytest.mark.req("R85", "C28")


def saying(agent: str, action: str, **more: Any) -> dict[str, Any]:
    item = {"scope": "token storage", "action": action, **more}
    return {"agent": agent, "shell": f"echo '{json.dumps({'recommendations': [item]})}'"}


def found(project: Project) -> list[Any]:
    return list(project.ok("conflicts", "--json").json["conflicts"])


def test_a_disagreement_is_settled_by_weight_and_recorded_with_its_dissent(
    project: Project,
) -> None:
    project.plan(
        {
            "audit": saying("security-analyst", "use cookies", confidence=95, domain="security"),
            "page": saying("dev-react", "use localStorage", confidence=80, relevance=0.6),
            "build": {"shell": "echo built", "needs": ["audit", "page"]},
        }
    )
    assert project.run().code == 0
    (one,) = found(project)
    assert (one["kind"], one["scope"], one["how"]) == ("agents", "token storage", "score")
    assert not one["open"]
    sides = {side["agent"]: side["score"] for side in one["positions"]}
    assert sides == {"security-analyst": 1.425, "dev-react": 0.384}
    assert one["positions"][one["winner"]]["agent"] == "security-analyst"
    assert [one["positions"][place]["agent"] for place in one["dissent"]] == ["dev-react"]
    lines = project.ok("conflicts").out.splitlines()
    assert lines[0] == f"{one['conflict_id']} · agents · token storage: by its score"
    assert lines[1:3] == [
        "  * security-analyst: use cookies (1.425)",
        "  - dev-react: use localStorage (0.384)",
    ]
    project.ok("verify")


def test_an_agent_that_says_the_same_in_two_steps_counts_once(project: Project) -> None:
    project.plan(
        {
            "x": saying("reviewer", "split it", confidence=90),
            "y": saying("reviewer", "split it", confidence=60),
            "z": saying("qa-engineer", "keep it", confidence=90),
        }
    )
    assert project.run().code == 3
    (one,) = found(project)
    assert (one["how"], one["open"]) == ("tie", True)
    assert [side["score"] for side in one["positions"]] == [0.63, 0.42, 0.63]


def test_a_tie_waits_for_a_person_and_what_stands_on_it_does_not_start(project: Project) -> None:
    project.plan(
        {
            "a": saying("reviewer", "split it"),
            "b": saying("qa-engineer", "keep it"),
            "c": {"shell": project.sh(), "needs": ["a", "b"]},
        }
    )
    run = project.run()
    assert (run.code, run.states["c"]) == (3, "waiting")
    assert project.ran() == []
    (one,) = found(project)
    assert (one["how"], one["winner"], one["open"]) == ("tie", None, True)
    assert "too close: a person decides" in project.ok("conflicts").out


def test_the_agents_of_a_plan_count_what_the_plan_says(project: Project) -> None:
    steps = {
        "a": {**saying("ada", "split it", domain="design"), "action": "say"},
        "b": {**saying("bob", "keep it"), "action": "say"},
    }
    say: dict[str, Any] = {"input_schema": {"actions": {"say": {}}}}
    project.plan(steps, agents={"ada": {**say, "weight": 0.2}, "bob": {**say, "weight": 0.9}})
    assert project.run().code == 0
    (one,) = found(project)
    assert one["positions"][one["winner"]]["agent"] == "bob"
    loud = {"weight": 0.2, "boost": 2.0, "domains": ["design"]}
    project.plan(steps, agents={"ada": {**say, **loud}, "bob": {**say, "weight": 0.9}})
    assert project.run("--force").code == 0
    (one,) = found(project)
    assert one["positions"][one["winner"]]["agent"] == "ada"


def test_a_run_without_disagreement_says_so(project: Project) -> None:
    project.plan({"a": saying("reviewer", "split it"), "b": saying("qa-engineer", "Split it.")})
    project.run()
    assert found(project) == []
    assert "no conflicts" in project.ok("conflicts").out


def test_findings_of_reviewers_are_merged_by_a_ready_made_step(project: Project) -> None:
    one = {"title": "user input reaches the query unescaped", "location": "db.py:41"}
    project.plan(
        {
            "r1": {"shell": f"echo '{json.dumps({'findings': [{**one, 'confidence': 82}]})}'"},
            "r2": {"shell": f"echo '{json.dumps({'findings': [{**one, 'confidence': 0.97}]})}'"},
            "r3": {"shell": f"echo '{json.dumps([{'title': 'a guess', 'confidence': 20}])}'"},
            "merge": {
                "uses": "python",
                "run": "holdfast.findings:merge",
                "needs": ["r1", "r2", "r3"],
                "outputs": ["merged_findings", "summary"],
            },
        }
    )
    assert project.run().code == 0
    made = json.loads(project.shown("merge"))
    assert made["summary"]["kept"] == 1
    assert made["merged_findings"][0]["confidence"] == 0.97
    assert made["merged_findings"][0]["sources"] == ["r1", "r2"]
    again = project.run()
    assert again.states["merge"] == "reused"
