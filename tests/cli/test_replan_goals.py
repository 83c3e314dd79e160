"""A model refutes a claim that the plan of a goal stands on: another plan is made, bounded and approved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.model.digest import Json
from holdfast.testing.server import Asked, Reply, Say
from tests.cli import models
from tests.cli.goals import GOAL, TIERS, answer, artifact, digest, is_planning
from tests.cli.project import Project

CLAIM = "one table holds ${{ all }} users"
AGAIN = ("--yes", "--on-failure", "regenerate")


def trial(name: str, *requires: str) -> dict[str, Any]:
    return artifact(name, *requires, produces_file=f"{name}.txt", tests=CLAIM)


def made(name: str, *requires: str) -> dict[str, Any]:
    return artifact(name, *requires, produces_file=f"{name}.txt")


class Script:
    """Answers planners in turn; makers of what tests a claim hand over how it stands."""

    def __init__(self, *plans: str) -> None:
        self.plans = list(plans)
        self.planned: list[str] = []
        self.made: list[str] = []  # the names of what was made, in the order of the questions
        self.told: list[Any] = []
        self.status = "refuted"

    def __call__(self, asked: Asked) -> Reply:
        if is_planning(asked):
            self.planned.append(asked.last)
            return Say(self.plans[min(len(self.planned), len(self.plans)) - 1])
        name = asked.last.partition("This artifact: the ")[2].partition(" ")[0]
        self.made.append(name)
        if "handoff" not in json.dumps(asked.body.get("response_format")):
            return Say(f"{name}\n")
        self.told.append(asked.body)
        return Say(json.dumps({"output": f"{name}\n", "handoff": self.handoff(name)}))

    def handoff(self, name: str) -> Json:
        found: Json = {
            "finding": f"{name} needs two tables",
            "source": "the schema",
            "confidence": 0.9,
            "supports": [],
            "refutes": [name],
        }
        return {
            "attempted": f"test {name}",
            "observed": [found],
            "changed": [],
            "not_done": [],
            "highest_impact_uncertainty": "",
            "next_agent_should_first": "split the table",
            "hypotheses": {name: {"status": self.status, "evidence": []}},
        }


@contextmanager
def served(project: Project, *plans: str, more: str = "") -> Iterator[Script]:
    script = Script(*plans)
    with models.served(project, script, TIERS + more):
        yield script


FIRST = answer(trial("A"), made("B", "A"), made("Z"))
OTHER = answer(trial("A"), made("C", "A"), made("Z"))


@pytest.mark.req("R118", "R121", "R96", "C24")
def test_a_refuted_claim_has_another_plan_made_that_a_person_approves(project: Project) -> None:
    with served(project, FIRST, OTHER) as script:
        project.ok("plan", GOAL, "--yes")
        trusted = digest(project)
        first = project.call("run", GOAL, *AGAIN, "--trust", trusted)
        assert "speaks against its plan; planning again" in first.err
        assert len(script.planned) == 2
        learned = script.planned[1].partition("WHAT FAILED")[2]
        assert "'A' was refuted, and the plan stands on it" in learned
        assert CLAIM in learned
        assert "found by A: A needs two tables (the schema)" in learned
        assert "split the table" in learned
        assert '"tests"' in script.planned[1].partition("EARLIER PLAN")[2]
        assert "nobody approved its plan" in first.err
        assert sorted(script.made) == ["A", "Z"]
        assert not project.has("B.txt")
        assert digest(project) != trusted
        second = project.call("run", GOAL, *AGAIN, "--trust", digest(project), "--json")
        assert (second.code, second.json["status"]) == (0, "completed"), second.err
        states = {name: one["state"] for name, one in second.json["steps"].items()}
        assert states == {"A": "reused", "C": "done", "Z": "reused"}
        assert sorted(script.made) == ["A", "C", "Z"], "what was finished is kept"
    before, after = project.ok("plans", "show", GOAL, "--json").json["versions"]
    assert after["parent"] == before["plan"]
    assert after["answers"], "the version says what it answers"
    text = project.ok("plans", "show", GOAL).out
    assert after["answers"][0] in text
    stands = project.ok("ledger", "--json", "--plan-id", line(project)).json
    assert stands["hypotheses"]["A"]["status"] == "refuted"
    assert project.call("verify").code == 0


def line(project: Project) -> str:
    return str(project.ok("plan", GOAL, "--json").json["plan"]["line"])


@pytest.mark.req("R118", "R121")
def test_rounds_are_bounded_for_the_whole_line(project: Project) -> None:
    plans = [answer(trial(f"A{number}"), made(f"B{number}", f"A{number}")) for number in range(4)]
    with served(project, *plans, more="[planner]\nregenerations = 2\n") as script:
        project.ok("plan", GOAL, "--yes")
        for number in range(3):
            project.call("run", GOAL, *AGAIN, "--trust", digest(project))
            assert len(script.planned) == min(number + 2, 3)
        last = project.call("run", GOAL, *AGAIN, "--trust", digest(project))
        assert last.code == 3, "both rounds were made: now a person is asked"
        assert len(script.planned) == 3
        assert script.made == ["A0", "A1", "A2"]


@pytest.mark.req("R118", "R121")
def test_without_that_word_a_person_is_asked(project: Project) -> None:
    with served(project, FIRST, OTHER) as script:
        project.ok("plan", GOAL, "--yes")
        run = project.call("run", GOAL, "--yes", "--trust", digest(project))
        assert (run.code, len(script.planned)) == (3, 1)
        assert "'A' was refuted" in run.out + run.err
        project.ok("approve", "replan", "--yes", "--plan-id", line(project))
        assert project.call("run", GOAL, "--yes", "--trust", digest(project)).code == 0
        assert project.has("B.txt")


@pytest.mark.req("R121", "R123")
def test_a_claim_that_holds_lets_the_plan_be(project: Project) -> None:
    with served(project, FIRST, OTHER) as script:
        script.status = "supported"
        project.ok("plan", GOAL, "--yes")
        assert project.call("run", GOAL, *AGAIN, "--trust", digest(project)).code == 0
        assert (len(script.planned), sorted(script.made)) == (1, ["A", "B", "Z"])
        assert f"A ({CLAIM}) is untested" in json.dumps(script.told[0], ensure_ascii=False)
