"""`guard` and `amend` with guards that ask models: the same rules for money as a run has."""

import json
from typing import Any

import pytest

from holdfast.testing.server import Asked, Fail, OpenAI, Raw, Reply, Say
from tests.cli.market import market
from tests.cli.project import Project
from tests.cli.served import plan_quotes, verdict

JUDGE: dict[str, Any] = {"judge": {"rubric": "Is it about cats?", "model": "fake:m"}}
STEP: dict[str, Any] = {"shell": "echo Cats", "guards": [JUDGE]}


def script(asked: Asked) -> Reply:
    """A judge that likes no dogs; each answer costs $0.0005."""
    if "Dogs" in asked.last:
        return Say(verdict(0.1, "it is about dogs", "Dogs"), input=10, output=5)
    return Say(verdict(1), input=10, output=5)


@pytest.mark.req("R77", "R165")
def test_guards_that_cost_money_ask_first_and_are_counted(project: Project) -> None:
    with market(project, script) as shop:
        shop.configure(budgets={"day": 1, "project": 1})
        project.plan({"a": STEP})
        project.write("mine.txt", "Dogs\n")
        said = project.refused(2, "guard", "a", "--on", "mine.txt")
        assert "these steps cost money: a (no history: ~$0.10)" in said
        assert "say --yes, or --max-cost USD" in said
        assert shop.asked == []
        told = project.call("guard", "a", "--on", "mine.txt", "--yes")
        assert told.code == 1
        assert "✗ judge rejects" in told.out
        assert 'fails: "Dogs"' in told.out
        assert project.run("--yes").code == 0
        assert project.ok("guard", "a", "--max-cost", "1", "--json").json["passed"]
        assert len(shop.asked) == 3
        cost = project.ok("cost", "--json").json
        assert (cost["totals"]["calls"], cost["totals"]["cost_usd"]) == (3, 0.0015)
        assert cost["budgets"]["day"]["spent_usd"] == 0.0015
        assert cost["budgets"]["project"]["spent_usd"] == 0.0015
        rows = project.ok("cost", "--by", "run", "--json").json["rows"]
        assert [row["calls"] for row in rows] == [1, 2]
        assert "(guard, amend)" in project.ok("cost", "--by", "run").out
        assert project.ok("verify")


@pytest.mark.req("R165")
@pytest.mark.parametrize("limit", ["flag", "day", "project", "run"])
def test_guards_ask_nobody_beyond_a_budget(project: Project, limit: str) -> None:
    with market(project, script) as shop:
        project.plan({"a": STEP})
        project.write("mine.txt", "Cats\n")
        if limit != "flag":
            shop.configure(budgets={limit: 0.001})
        words = ["--max-cost", "0.001"] if limit == "flag" else ["--yes"]
        told = project.call("guard", "a", "--on", "mine.txt", *words)
        assert told.code == 5, told
        assert "another call may cost $0.41" in told.out
        assert shop.asked == []


@pytest.mark.req("R165")
def test_what_guards_asked_by_themselves_is_gone_for_runs(project: Project) -> None:
    with market(project, script) as shop:
        shop.configure(budgets={"day": 0.41})
        project.plan({"a": STEP})
        project.write("mine.txt", "Cats\n")
        assert project.call("guard", "a", "--on", "mine.txt", "--yes").code == 0
        told = project.call("guard", "a", "--on", "mine.txt", "--yes")
        assert told.code == 5
        assert "of the $0.41 for the day there is $0.40 left" in told.out
        assert len(shop.asked) == 1


def test_a_judge_that_cannot_be_asked_gives_no_verdict(project: Project) -> None:
    with market(project, lambda _: Fail(400, "no such thing")):
        project.plan({"a": STEP})
        project.write("mine.txt", "Cats\n")
        told = project.call("guard", "a", "--on", "mine.txt", "--yes")
        assert told.code == 1
        assert "! judge broke: no verdict" in told.out
        assert "no such thing" in told.out
        cost = project.ok("cost", "--json").json["totals"]
        assert (cost["calls"], cost["cost_usd"]) == (1, 0.0)


@pytest.mark.req("R165")
def test_an_answer_without_an_encoding_is_asked_for_again_and_counted(project: Project) -> None:
    def told(asked: Asked) -> Reply:
        return broken(asked, Say(tools=[("look", {})]), "use-0") if asked.number == 1 else good

    good = Say(verdict(1), input=10, output=5)
    with market(project, told) as shop:
        project.plan({"a": STEP})
        project.write("mine.txt", "Cats\n")
        said = project.ok("guard", "a", "--on", "mine.txt", "--yes")
        assert "what 'fake:m' answered cannot be read; asking again" in said.err
        assert len(shop.asked) == 2
        rows = project.ok("cost", "--json").json["totals"]
        assert (rows["calls"], rows["interrupted"]) == (2, 1), (
            "nobody knows what the first one cost"
        )
        project.ok("verify")


def test_an_answer_whose_name_is_none_is_an_answer(project: Project) -> None:
    with market(project, lambda asked: broken(asked, Say(verdict(1)), "answer-1")) as shop:
        project.plan({"a": STEP})
        project.write("mine.txt", "Cats\n")
        project.ok("guard", "a", "--on", "mine.txt", "--yes")
        assert len(shop.asked) == 1
        assert project.ok("cost", "--json").json["totals"]["cost_usd"] == 0.0005


def broken(asked: Asked, reply: Say, name: str) -> Raw:
    """An answer in which a name is half a character."""
    said = b"".join(OpenAI().events(asked, reply))
    wrong = said.replace(json.dumps(name).encode(), json.dumps("\ud800").encode())
    assert wrong != said
    return Raw(wrong, "text/event-stream")


@pytest.mark.req("R165")
def test_a_version_of_a_person_is_judged_once_he_agreed_to_the_price(project: Project) -> None:
    with market(project, script) as shop:
        project.plan({"a": STEP})
        assert project.run("--yes").code == 0
        project.write("mine.txt", "Kittens\n")
        assert "these steps cost money: a ($0.0005)" in project.refused(2, "amend", "a", "mine.txt")
        assert len(shop.asked) == 1
        assert project.ok("amend", "a", "mine.txt", "--yes")
        assert project.shown("a") == b"Kittens\n"
        assert len(shop.asked) == 2
        project.write("mine.txt", "Dogs\n")
        assert "guard 'judge' refuses" in project.call("amend", "a", "mine.txt", "--yes").err


@pytest.mark.req("R77")
def test_quotes_are_found_in_what_a_step_needs_also_outside_of_a_run(project: Project) -> None:
    plan_quotes(project)
    assert project.run().code == 0
    assert project.ok("guard", "a", "--json").json["passed"]
    project.write("mine.json", json.dumps([{"quote": "three"}]))
    told = project.call("guard", "a", "--on", "mine.json")
    assert told.code == 1
    assert told.out.count("1 of 1 quote is not in the source") == 2, told
