"""Guards that ask models cost money, whoever made it: priced, asked about, bounded, counted."""

from typing import Any

import pytest

from holdfast.testing.server import Asked, Reply, Say
from tests.cli.market import asking, market
from tests.cli.project import Project, kill
from tests.cli.served import verdict
from tests.cli.test_add import adds

RUBRIC = "Is it about cats?"


def judged(rubric: str = RUBRIC, **more: Any) -> dict[str, Any]:
    return {"judge": {"rubric": rubric, "model": "fake:m", **more}}


def script(asked: Asked) -> Reply:
    """A judge that is content, and a writer; each answer costs $0.0005."""
    said = verdict(1) if "# RUBRIC" in asked.last else "Cats"
    return Say(said, input=10, output=5)


@pytest.mark.req("R165", "R166")
def test_a_judge_of_a_command_is_priced_asked_about_and_counted(project: Project) -> None:
    with market(project, script) as shop:
        step = {"shell": "echo Cats", "retries": 0, "guards": [judged(votes=3)]}
        project.plan({"a": step, "b": {"shell": "echo b"}})
        before = project.ok("plan", "--json").json["steps"]["a"]["cost_usd"]
        assert before == {"p50": 0.3072, "p90": 0.3072, "basis": "price", "price": "known"}
        assert "these steps cost money: a" in project.refused(2, "run")
        assert shop.asked == []
        ended = project.run("--max-cost", "1")
        assert (ended.code, ended.data["totals"]["calls"]) == (0, 2)
        assert ended.data["totals"]["cost_usd"] == 0.001
        (row,) = project.ok("cost", "--json").json["rows"]
        assert (row["step"], row["calls"], row["cost_usd"]) == ("a", 2, 0.001)
        assert project.run().code == 0, "what stands costs nothing"
        after = project.ok("plan", "--force", "--json").json["steps"]["a"]["cost_usd"]
        assert (after["p50"], after["basis"]) == (0.001, "history")


@pytest.mark.req("R165", "R166")
def test_what_is_only_judged_again_costs_money_too(project: Project) -> None:
    with market(project, script) as shop:
        step = {"shell": "echo Cats", "guards": [judged()]}
        project.plan({"a": step})
        assert project.run("--yes").code == 0
        project.plan({"a": {**step, "guards": [judged("Is it short?")]}})
        cost = project.ok("plan", "--json").json["steps"]["a"]["cost_usd"]
        assert (cost["p50"], cost["p90"]) == (0.0005, 0.001), "it is made again if it is refused"
        assert "these steps cost money: a ($0.0005 typical, $0.0010 high)" in project.refused(
            2, "run"
        )
        assert len(shop.asked) == 1
        assert project.run("--yes").codes == {"a": "reguarded"}


@pytest.mark.req("R165")
def test_a_changed_guard_may_have_a_model_make_it_again(project: Project) -> None:
    with market(project, script) as shop:
        project.plan({"a": asking("say a", guards=[{"regex": {"pattern": "Cats"}}])})
        assert project.run("--yes").code == 0
        project.plan({"a": asking("say a", guards=[{"regex": {"pattern": "Dogs"}}])})
        cost = project.ok("plan", "--json").json["steps"]["a"]["cost_usd"]
        assert (cost["p50"], cost["p90"]) == (0.0, 0.0005)
        assert "these steps cost money: a" in project.refused(2, "run")
        assert len(shop.asked) == 1
        assert project.run("--yes").code == 1
        assert len(shop.asked) == 2


@pytest.mark.req("R165")
def test_judging_what_a_person_wrote_asks_first(project: Project) -> None:
    with market(project, script) as shop:
        step = {"shell": "echo Cats > a.txt", "produces": ["a.txt"], "guards": [judged()]}
        project.plan({"a": step, "b": asking("say b")})
        assert project.run("--yes").code == 0
        project.write("a.txt", "Kittens\n")
        said = project.refused(2, "run")
        assert "these steps cost money: a ($0.0005 typical)" in said
        assert project.run("--max-cost", "1").codes["a"] == "amended"
        assert len(shop.asked) == 3


@pytest.mark.req("R165")
@pytest.mark.parametrize(
    ("where", "code", "reason"),
    [
        ("step", 1, "budget_spent"),
        ("run", 5, None),
        ("day", 5, None),
        ("project", 5, None),
    ],
)
def test_every_budget_holds_for_a_judge(
    project: Project, where: str, code: int, reason: str | None
) -> None:
    with market(project, script) as shop:
        step: dict[str, Any] = {"shell": "echo Cats", "guards": [judged()]}
        if where == "step":
            step["budget"] = {"usd": 0.001}
        else:
            shop.configure(budgets={where: 0.001})
        project.plan({"a": step})
        ended = project.run("--yes")
        assert (ended.code, ended.codes["a"] if reason else None) == (code, reason), ended
        assert shop.asked == [], "16 tokens may cost $0.0016"


# --- steps that are added while a run goes on ---------------------------------------------------------


def grows(project: Project, more: dict[str, Any]) -> dict[str, Any]:
    return {"shell": adds(project, {"b": more})}


@pytest.mark.req("R165")
@pytest.mark.parametrize("more", [asking("say b"), {"shell": "echo Cats", "guards": [judged()]}])
def test_what_a_step_adds_and_costs_money_waits_for_a_yes(
    project: Project, more: dict[str, Any]
) -> None:
    with market(project, script) as shop:
        project.plan({"a": grows(project, more)})
        ended = project.run()
        assert ended.states == {"a": "done", "b": "waiting"}, ended
        assert shop.asked == []
        told = project.ok("status").out
        assert "costs money, and nobody was asked when it was added: needs an approval" in told
        assert "asks fake:m, which costs money" in project.call("approve", "b").out
        project.ok("approve", "b", "--yes")
        assert project.resume().states == {"a": "done", "b": "done"}
        assert len(shop.asked) == 1
        assert project.ok("verify")
        again = project.run("--force-node", "b", "--yes")
        assert again.states == {"a": "reused", "b": "done"}, (
            "what is foreseen is asked about before"
        )


@pytest.mark.req("R165")
def test_one_yes_is_for_all_tries_of_what_was_added(project: Project) -> None:
    def tries(asked: Asked) -> Reply:
        return Say("Cats" if "refused" in asked.last else "Dogs", input=10, output=5)

    with market(project, tries) as shop:
        more = asking("say b", guards=[{"regex": {"pattern": "Cats"}}]) | {"retries": 1}
        project.plan({"a": grows(project, more)})
        assert project.run().states["b"] == "waiting"
        project.ok("approve", "b", "--yes")
        assert project.resume().states == {"a": "done", "b": "done"}
        assert len(shop.asked) == 2


@pytest.mark.req("R165")
@pytest.mark.parametrize("agreed", ["--yes", "--max-cost 1", "resume --max-cost 1"])
def test_who_agreed_to_pay_is_not_asked_again_for_what_is_added(
    project: Project, agreed: str
) -> None:
    with market(project, script) as shop:
        project.plan({"a": grows(project, asking("say b"))})
        if agreed.startswith("resume"):
            assert project.run().states["b"] == "waiting"
            ended = project.resume(*agreed.split()[1:])
        else:
            ended = project.run(*agreed.split())
        assert ended.states == {"a": "done", "b": "done"}, ended
        assert len(shop.asked) == 1


@pytest.mark.req("R165")
def test_the_own_budget_of_a_run_is_no_yes_to_what_is_added(project: Project) -> None:
    with market(project, script) as shop:
        shop.configure(budgets={"run": 1})
        project.plan({"a": grows(project, asking("say b"))})
        assert project.run().states == {"a": "done", "b": "waiting"}
        assert shop.asked == []


@pytest.mark.req("R165")
def test_a_yes_to_whatever_is_added_holds_when_the_run_goes_on(project: Project) -> None:
    with market(project, script) as shop:
        waits = f"{adds(project, {'b': asking('say b')})}; {project.gate('go')}"
        project.plan({"a": {"shell": project.sh(waits)}})
        kill(project.begun_by("run", "--yes", step="a"))
        project.open("go")
        assert project.resume().states == {"a": "done", "b": "done"}
        assert len(shop.asked) == 1


@pytest.mark.req("R165")
@pytest.mark.parametrize("words", [["run", "--force-node", "b"], ["retry", "b"]])
def test_what_comes_with_a_reused_artifact_is_asked_about_before(
    project: Project, words: list[str]
) -> None:
    with market(project, script) as shop:
        project.plan({"a": grows(project, asking("say b"))})
        assert project.run("--yes").code == 0
        if words == ["retry", "b"]:
            failed = project.run("--force-node", "b", "--provider", "recorded")
            assert failed.states == {"a": "reused", "b": "failed"}
        before = len(shop.asked)
        assert "these steps cost money: b" in project.refused(2, *words)
        assert len(shop.asked) == before
        assert project.call(*words, "--max-cost", "1").code == 0
        assert len(shop.asked) == before + 1


@pytest.mark.req("R165")
def test_the_own_budget_of_a_run_holds_for_what_is_added(project: Project) -> None:
    with market(project, script) as shop:
        shop.configure(budgets={"run": 0.0007})
        more = {name: asking(f"say {name}") for name in "bcd"}
        project.plan({"a": {"shell": adds(project, more)}})
        ended = project.run("--yes", "-j", "1")
        assert (ended.code, ended.data["totals"]["max_cost_usd"]) == (5, 0.0007)
        assert len(shop.asked) == 1


# --- effects outside ----------------------------------------------------------------------------------


@pytest.mark.req("R77")
def test_no_effect_outside_is_left_to_models_alone(project: Project) -> None:
    step = {"shell": "true", "effects": "external", "approve": "always"}
    known, sure = judged(model="openai:m"), {"command": ["true"]}
    for guards in (
        [known],
        [{"any": [known, sure]}],
        [{"majority": [known] * 2 + [sure]}],
    ):
        project.plan({"a": {**step, "guards": guards}})
        said = project.refused(2, "check")
        assert "error[P066]: nothing but a model judges 'a', which has effects outside" in said
        project.plan(
            {"a": {"shell": adds(project, {"b": {**step, "guards": guards}}), "retries": 0}}
        )
        assert project.run("--force").codes == {"a": "guard_rejected"}
        assert "nothing but a model judges 'b'" in project.ok("status").out
    project.plan({"a": {**step, "guards": [known, sure]}})
    project.ok("check")
