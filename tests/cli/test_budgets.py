"""Money has bounds: of a step, a run, a day and a project; nothing is sent that could go beyond."""

import threading

import pytest

from holdfast.testing.server import Asked, Reply, Say
from tests.cli.market import asking, market
from tests.cli.project import DEADLINE, Project, finish
from tests.cli.terminal import Terminal

ANSWER = Say("good", input=10, output=5)  # $0.0005


@pytest.mark.req("R165")
def test_a_fan_out_of_100_with_a_budget_for_10_stops_at_10(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({f"s{n:02}": asking(f"say {n}") for n in range(100)})
        stopped = project.run("--max-cost", "0.005", "-j", "16")
        assert stopped.code == 5
        assert stopped.data["status"] == "limit"
        assert len(shop.asked) == 10
        totals = stopped.data["totals"]
        assert (totals["done"], totals["failed"], totals["calls"]) == (10, 0, 10)
        assert (totals["cost_usd"], totals["max_cost_usd"]) == (0.005, 0.005)
        assert sorted(stopped.states.values()) == ["done"] * 10 + ["pending"] * 90

        told = project.ok("status").out
        assert "$0.0050 spent" in told
        assert "next: holdfast resume --max-cost 0.07" in told
        assert project.resume().code == 5, "nothing was raised"
        less = project.refused(2, "resume", "--max-cost", "0.005")
        assert "has spent $0.0050 already" in less
        assert len(shop.asked) == 10

        resumed = project.resume("--max-cost", "0.07", "-j", "16")
        assert (resumed.code, resumed.data["status"]) == (0, "completed")
        assert resumed.data["totals"]["cost_usd"] == 0.05, resumed.err
        assert len(shop.asked) == len(set(shop.asked)) == 100


@pytest.mark.req("R165")
def test_the_end_says_what_is_spent_what_is_left_and_how_to_go_on(project: Project) -> None:
    with market(project, lambda _: ANSWER):
        project.plan({"a": asking("say a"), "b": asking("say b", needs=["a"])})
        ended = project.call("run", "--max-cost", "0.0007")
        assert ended.code == 5
        assert "$0.0005 ($0.0005 of $0.0007)" in ended.err
        lines = ended.out.splitlines()
        assert "1 of 2 done" in lines[0]
        assert "$0.0005 spent" in lines[0]
        assert "a limit was reached: cost" in lines[0]
        assert lines[1:] == [
            "! of $0.0007 the run has $0.0002 left, and another call may cost $0.0005",
            "  spent $0.0005 of $0.0007; 1 step left to do: b",
            "next: holdfast resume --max-cost 0.0013    holdfast cost    holdfast status",
        ]
        assert project.call("resume", "--max-cost", "0.0013").code == 0


@pytest.mark.req("R165")
def test_the_smallest_of_flag_plan_and_own_budget_holds(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        steps = {f"s{n}": asking(f"say {n}") for n in range(4)}
        for flag, planned, own, calls in (
            (None, 0.001, None, 2),
            (None, 0.01, 0.0005, 1),
            ("0.0015", 0.01, 0.01, 3),
        ):
            shop.configure(budgets=None if own is None else {"run": own})
            project.plan(steps, name=f"p{calls}", limits={"usd": planned})
            before = len(shop.asked)
            words = ["--max-cost", flag] if flag else ["--yes"]
            assert project.run(*words, "-j", "4").code == 5
            assert len(shop.asked) - before == calls


@pytest.mark.req("R165")
def test_tokens_are_bounded_too(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        steps = {f"s{n}": asking(f"say {n}") for n in range(9)}
        project.plan(steps, limits={"tokens": 110})
        ended = project.call("run", "--yes", "-j", "1")
        assert ended.code == 5
        assert len(shop.asked) == 7, "an eighth might use 120 tokens in all"
        assert "of 110 tokens the run has" in ended.out
        assert "--max-cost" not in ended.out


@pytest.mark.req("R165")
@pytest.mark.parametrize(
    ("budget", "words"), [({"usd": 0.0004}, "its budget is $0.0004"), ({"tokens": 20}, "20 tokens")]
)
def test_a_step_that_may_not_spend_so_much_fails_and_is_not_tried_again(
    project: Project, budget: dict[str, float], words: str
) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a", budget=budget), "b": asking("say b")})
        ended = project.run("--yes")
        assert ended.code == 1
        assert ended.states == {"a": "failed", "b": "done"}
        assert ended.codes["a"] == "budget_spent"
        told = project.ok("status").out
        assert words in told
        assert "raise 'budget' of 'a' in the plan, then holdfast run --yes" in told
        assert len(shop.asked) == 1
        project.plan({"a": asking("say a"), "b": asking("say b")})
        assert project.run("--yes").states == {"a": "done", "b": "reused"}


@pytest.mark.req("R165")
def test_the_budget_of_a_day_holds_over_all_runs_of_the_store(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        shop.configure(budgets={"day": 0.0015})
        project.plan({"a": asking("say a"), "b": asking("say b")}, name="one")
        assert project.run("--yes").code == 0
        project.plan({"c": asking("say c"), "d": asking("say d")}, name="two")
        ended = project.call("run", "--yes", "-j", "1")
        assert ended.code == 5
        assert len(shop.asked) == 3
        assert "a limit was reached: day budget" in ended.out
        said = "! of the $0.0015 for the day the run has $0 left, and another call may cost"
        assert said in ended.out
        assert "resume --max-cost" not in ended.out
        told = project.ok("status").out
        assert said in told
        assert "resume --max-cost" not in told
        file = project.home / ".config/holdfast/config.toml"
        goes_on = f"next: raise [budgets] day in {file} to 0.0022, then holdfast resume"
        for words in (ended.out, told, project.ok("why", "d", "--wait").out):
            assert goes_on in words
        shop.configure(budgets={"day": 0.0022})
        assert project.resume().code == 0
        assert len(shop.asked) == 4


@pytest.mark.req("R165", "R187")
@pytest.mark.parametrize("budget", ["day", "project"])
def test_what_a_run_cost_counts_after_it_is_collected(project: Project, budget: str) -> None:
    with market(project, lambda _: ANSWER) as shop:
        shop.configure(budgets={budget: 0.0015})
        project.plan({"a": asking("say a"), "b": asking("say b")})
        assert project.run("--yes").code == 0
        project.plan({"a": {"shell": "echo 1"}, "b": {"shell": "echo 2"}})
        assert project.run().code == 0
        assert len(project.ok("gc", "--keep", "0s", "--yes", "--json").json["removed"]) == 1
        project.plan({"a": asking("say c"), "b": asking("say d")})
        assert project.run("--yes", "-j", "1").code == 5
        assert len(shop.asked) == 3
        assert project.ok("cost", "--json").json["budgets"][budget]["spent_usd"] == 0.0015


@pytest.mark.req("R165")
def test_a_project_can_only_lower_its_budget(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        shop.configure(budgets={"project": 0.0005})
        project.write("holdfast.toml", "[budgets]\nproject = 1\nday = 1\n")
        project.plan({"a": asking("say a"), "b": asking("say b")})
        assert project.run("--yes", "-j", "1").code == 5
        assert len(shop.asked) == 1


@pytest.mark.req("R165")
def test_a_budget_cannot_be_kept_where_the_price_is_unknown(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        shop.configure(price=None)
        project.plan({"a": asking("say a")})
        told = project.refused(2, "run", "--max-cost", "1")
        assert shop.asked == []
        assert "the price of 'fake:m' is not known" in told
        assert "so no bound in dollars can be kept" in told
        assert "[prices." in told


@pytest.mark.req("R166")
def test_an_unknown_price_is_never_nothing(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        shop.configure(price=None)
        project.plan({"a": asking("say a")})
        before = project.ok("plan", "--json").json
        assert before["steps"]["a"]["cost_usd"] == {
            "p50": None,
            "p90": None,
            "basis": "none",
            "price": "unknown",
        }
        assert before["totals"]["cost_usd"]["unknown"] == 1
        assert "? (price unknown)" in project.ok("plan").out
        ended = project.call("run", "--yes")
        assert "price unknown (1 call) spent" in ended.out
        assert "✓ a: " in ended.err
        assert "price unknown (1 call)" in ended.err
        data = project.status().data
        assert data["steps"]["a"]["cost_usd"] is None
        assert data["steps"]["a"]["price"] == "unknown"
        assert data["totals"]["cost_usd"] is None
        again = project.run()
        assert again.data["totals"]["saved_usd"] is None
        cost = project.ok("cost", "--json").json
        assert cost["totals"]["cost_usd"] is None
        assert cost["totals"]["unpriced"] == 1


@pytest.mark.req("R165")
def test_a_run_that_costs_money_asks_first(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a"), "b": {"shell": "echo b"}})
        said = project.refused(2, "run")
        assert "these steps cost money: a ($0.0005 typical)" in said
        assert "say --yes, or --max-cost USD" in said
        assert shop.asked == []
        project.ok("plan", "-o", "review.plan.json")
        assert project.call("run", "review.plan.json").code == 0
        assert len(shop.asked) == 1
        assert project.run().code == 0, "what stands costs nothing"
        assert project.refused(2, "run", "--force-node", "a")
        assert project.run("--force-node", "b").code == 0
        assert len(shop.asked) == 1


@pytest.mark.req("R165")
def test_on_a_terminal_it_shows_the_price_and_asks_once(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a")}, limits={"usd": 2})
        terminal = Terminal(project, "run", columns=100)
        said = terminal.read(until=lambda text: "Proceed?" in text)
        assert "no history: ≤ $0.0005" in said
        assert "$0.0005 typical · budget $2.00" in said
        terminal.press(b"n\n")
        terminal.finish()
        assert terminal.process.returncode == 130
        assert shop.asked == []
        terminal = Terminal(project, "run", columns=100)
        terminal.read(until=lambda text: "Proceed?" in text)
        terminal.press(b"y\n")
        screen = "\n".join(terminal.finish().text)
        assert terminal.process.returncode == 0
        assert "$0.0005 spent" in screen
        assert terminal.bytes.count(b"Proceed?") == 1


@pytest.mark.req("R165")
def test_steps_that_cost_money_are_not_added_unasked(project: Project) -> None:
    with market(project, lambda _: ANSWER):
        project.plan({"a": {"shell": "exit 1"}})
        assert project.run().code == 1
        project.write("more.yaml", '{"steps": {"b": {"prompt": "say b", "model": "fake:m"}}}')
        said = project.refused(2, "add", "more.yaml")
        assert "these steps cost money: b" in said
        assert "--max-cost" not in said


@pytest.mark.req("R165")
def test_free_providers_are_not_asked_about(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        shop.configure(price={"input": 0, "output": 0})
        project.plan({"a": asking("say a")})
        assert project.run().code == 0
        assert "$0 spent" in project.ok("status").out


@pytest.mark.req("R165")
@pytest.mark.parametrize("budget", ["day", "project"])
def test_two_engines_together_keep_a_budget_that_they_share(project: Project, budget: str) -> None:
    both = threading.Barrier(2)

    def script(asked: Asked) -> Reply:
        if asked.last.startswith("first"):  # none goes on before both are at work
            both.wait(DEADLINE)
        return ANSWER

    with market(project, script) as shop:
        shop.configure(budgets={budget: 0.005})
        for name in ("one", "two"):
            steps = {f"s{n}": asking(f"say {name} {n}", needs=["first"]) for n in range(12)}
            steps["first"] = asking(f"first of {name}")
            project.plan(steps, name=name, file=f"{name}.yaml")
        engines = [
            project.start("run", f"{name}.yaml", "--yes", "-j", "4") for name in ("one", "two")
        ]
        assert [finish(engine).code for engine in engines] == [5, 5]
        assert len(shop.asked) == len(set(shop.asked)) == 10
        spent = project.ok("cost", "--all", "--json").json["budgets"][budget]
        assert spent == {"spent_usd": 0.005, "limit_usd": 0.005}
