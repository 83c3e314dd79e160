"""What models cost is foreseen from what they cost before, told under way, and accounted for after."""

import json
import subprocess
import sys
from typing import Any

import pytest

from holdfast.model.digest import digest_bytes
from holdfast.testing.server import Asked, Hang, Reply, Say
from tests.cli.market import asking, market
from tests.cli.models import kill_before_it_asks, served, step
from tests.cli.project import Project, finish, kill, until

ANSWER = Say("good", input=10, output=5)  # $0.0005
MODELS = (
    "anthropic",
    "boto3",
    "genai_prices",
    "google.genai",
    "mistralai",
    "openai",
    "pydantic_ai",
)
LOADS = f"""
import atexit, sys
atexit.register(lambda: print([m for m in {MODELS} if m in sys.modules], file=sys.stderr))
from holdfast.cli.main import main
main()
"""


def varied(asked: Asked) -> Reply:
    """Answers whose length depends on who asks, and by up to a third on how often it was asked."""
    step = int(digest_bytes(asked.last.encode())[:4], 16)
    round_ = int(digest_bytes(f"{asked.number}/{asked.last}".encode())[:4], 16)
    length = 40 + step % 400
    return Say("words " * 3, input=20, output=length + length * (round_ % 67) // 200)


@pytest.mark.req("R166")
def test_after_five_runs_the_typical_total_is_within_a_quarter_of_the_actual(
    project: Project,
) -> None:
    with market(project, varied):
        steps: dict[str, Any] = {f"extract{n}": asking(f"extract {n}", most=900) for n in range(8)}
        steps["sum"] = asking("sum it all up", most=900, needs=["extract0", "extract1"])
        steps["list"] = {"shell": "echo list"}
        project.plan(steps)
        for _ in range(5):
            assert project.run("--force", "--yes", "-j", "4").code == 0
        before = project.ok("plan", "--force", "--json").json
        assert {step["cost_usd"]["basis"] for step in before["steps"].values()} == {
            "history",
            "none",
        }
        foreseen = before["totals"]["cost_usd"]
        high = sum(step["cost_usd"]["p90"] for step in before["steps"].values())
        assert foreseen["p50"] <= foreseen["p90"] < high
        actual = project.run("--force", "--yes", "-j", "4").data["totals"]["cost_usd"]
        assert 0.75 * actual <= foreseen["p50"] <= 1.25 * actual
        assert before["totals"]["saved_usd"] == 0.0

        runs = project.ok("cost", "--by", "run", "--json").json["rows"]
        assert runs[0]["cost_usd"] == actual
        assert runs[0]["expected_usd"] == pytest.approx(foreseen["p50"])
        assert runs[-1]["expected_usd"] is None, "nothing was known before the first run"
        assert "EXPECTED" in project.ok("cost", "--by", "run").out

        stands = project.ok("plan", "--json").json
        assert stands["totals"]["cost_usd"] == {"p50": 0.0, "p90": 0.0, "unknown": 0}
        assert stands["totals"]["saved_usd"] == actual
        reused = project.call("run")
        assert f"~${actual:.2f} saved" in reused.out


@pytest.mark.req("R166")
def test_without_history_the_price_of_the_most_is_shown(project: Project) -> None:
    with market(project, lambda _: ANSWER):
        bounded = asking("say a")
        open_end = {"prompt": "say b", "model": "fake:m", "retries": 1}
        project.plan({"a": bounded, "b": open_end, "c": {"shell": "echo c"}})
        found = project.ok("plan", "--json").json["steps"]
        assert found["a"]["cost_usd"] == {
            "p50": 0.0005,
            "p90": 0.0005,
            "basis": "price",
            "price": "known",
        }
        assert found["b"]["cost_usd"]["p50"] == 0.1024
        assert found["b"]["cost_usd"]["p90"] == 0.2048
        assert found["c"]["cost_usd"]["basis"] == "none"
        table = project.ok("plan").out
        assert "no history: ≤ $0.0005" in table
        assert "no history: ~$0.20" in table
        assert "Runs 3 of 3 · $0.10 typical, $0.21 high" in table


@pytest.mark.req("R166")
def test_another_step_with_the_same_prompt_tells_what_a_new_one_costs(project: Project) -> None:
    with market(project, lambda _: ANSWER):
        project.plan({"a": asking("say it")})
        assert project.run("--yes").code == 0
        project.plan({"a": asking("say it"), "b": asking("say it"), "c": asking("other")})
        found = project.ok("plan", "--json").json["steps"]
        assert found["b"]["cost_usd"]["basis"] == "history"
        assert found["b"]["cost_usd"]["p50"] == pytest.approx(0.0005, rel=0.3)
        assert found["c"]["cost_usd"]["basis"] == "price"


@pytest.mark.req("R166")
def test_an_estimate_that_was_far_off_is_said(project: Project) -> None:
    lengths = iter([100, 100, 500])
    with market(project, lambda _: Say("good", input=10, output=next(lengths))):
        project.plan({"a": asking("say a", most=1000)})
        assert "far off" not in project.call("run", "--yes").out
        assert "far off" not in project.call("run", "--yes", "--force").out
        ended = project.call("run", "--yes", "--force").out
        assert "! the estimate was far off: $0.01 expected, $0.05 spent" in ended
        told = project.ok("plan", "--force").out
        assert "The last estimate was far off: $0.01 expected, $0.05 spent in r-" in told


@pytest.mark.req("R167")
def test_everything_that_was_paid_is_accounted_for(project: Project) -> None:
    answers = iter(["good", "bad", "good"])
    with market(project, lambda _: Say(next(answers), input=10, output=5)):
        guarded = asking("say b", retries=1, needs=["a"], guards=[{"regex": {"pattern": "good"}}])
        project.plan({"a": asking("say a"), "b": guarded})
        first = project.call("run", "--yes")
        assert "✓ a: " in first.err
        assert ", $0.0005" in first.err
        assert "$0.0015 spent" in first.out
        again = project.run()
        assert again.data["totals"]["saved_usd"] == 0.0015

        bill = project.ok("cost", "--json").json
        assert bill["schema"] == "holdfast.cost/1"
        assert [(row["step"], row["cost_usd"], row["rejected_usd"]) for row in bill["rows"]] == [
            ("b", 0.001, 0.0005),
            ("a", 0.0005, 0.0),
        ]
        whole = bill["totals"]
        assert (whole["calls"], whole["tokens"], whole["cost_usd"]) == (3, 45, 0.0015)
        assert (whole["saved_usd"], whole["unpriced"], bill["runs"]) == (0.0015, 0, 2)
        for by in ("model", "day", "run"):
            cut = project.ok("cost", "--by", by, "--since", "1d", "--json").json
            assert cut["totals"] == whole
        assert [row["model"] for row in project.ok("cost", "--by", "model", "--json").json["rows"]]
        assert len(project.ok("cost", "--by", "run", "--json").json["rows"]) == 2
        why = project.ok("why", "b", "--cost").out
        assert "cost        $0.0010 in r-" in why
        assert "attempt 1, fake:m: 10 + 5 tokens, $0.0005, the attempt did not count" in why
        assert "attempt 2, fake:m: 10 + 5 tokens, $0.0005, used" in why
        assert project.ok("why", "b", "--cost", "--json").json["notes"]["call 2"].endswith("used")
        assert [run["cost_usd"] for run in project.ok("history", "--json").json["runs"]] == [
            0.0,
            0.0015,
        ]
        assert "$0.0015" in project.ok("history").out
        told = project.ok("cost").out
        assert "$0.0015 spent in 3 calls (45 tokens) of 2 runs · ~$0.0015 saved by reuse" in told
        assert "lost: $0.0005 in rejected attempts" in told


@pytest.mark.req("R167")
def test_a_call_that_was_cut_off_is_told_with_the_most_it_may_have_cost(project: Project) -> None:
    with market(project, lambda asked: Hang() if asked.number == 1 else ANSWER) as shop:
        project.plan({"a": asking("say a")})
        engine = project.start("run", "--yes")
        until(lambda: shop.asked or engine.poll() is not None, "the model is asked")
        assert shop.asked, finish(engine)
        kill(engine)
        bill = project.ok("cost", "--json").json["totals"]
        assert (bill["interrupted_usd"], bill["interrupted"]) == (0.0005, 1)
        resumed = project.call("resume")
        assert "(1 call under way, which may have cost up to $0.0005)" in resumed.err
        assert resumed.code == 0
        assert "$0.0010 spent" in resumed.out
        told = project.ok("cost").out
        assert "lost: up to $0.0005 in 1 interrupted call" in told


@pytest.mark.req("R166", "R167")
def test_what_was_lost_at_an_unknown_price_is_not_nothing(project: Project) -> None:
    replies: list[Reply] = [Say("bad", input=10, output=5), Hang()]
    with market(project, replies) as shop:
        shop.configure(price=None)
        picky = asking("say a", guards=[{"regex": {"pattern": "good"}}]) | {"retries": 1}
        project.plan({"a": picky})
        engine = project.start("run", "--yes")
        until(lambda: len(shop.asked) == 2 or engine.poll() is not None, "it is asked again")
        kill(engine)
        told = project.ok("cost").out.splitlines()
        assert told[0].split() == ["STEP", "CALLS", "TOKENS", "SPENT", "REJECTED", "INTERRUPTED"]
        assert told[1].split()[3:] == ["?", "?", "?"]
        lost = (
            "price unknown (1 call) in rejected attempts, price unknown (1 call) in 1 interrupted"
        )
        assert f"lost: {lost} call" in told


@pytest.mark.req("R165", "R167")
@pytest.mark.parametrize("command", ["resume", "run"])
def test_a_call_that_had_not_left_when_its_engine_died_costs_nothing(
    project: Project, command: str
) -> None:
    project.plan({"a": step()})
    kill_before_it_asks(project)
    with served(project, [Say("said")]) as server:
        project.ok(command, "--yes")
    assert len(server.requests) == 1
    bill = project.ok("cost", "--json").json["totals"]
    assert (bill["calls"], bill["interrupted"], bill["interrupted_usd"]) == (1, 0, 0)
    project.ok("verify")


@pytest.mark.req("R167")
def test_cost_without_calls_says_so(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    assert project.run().code == 0
    assert "no model was asked" in project.ok("cost").out
    assert project.ok("cost", "--json").json["totals"]["cost_usd"] == 0.0


@pytest.mark.req("R166")
def test_a_preview_loads_no_library_of_models(project: Project) -> None:
    with market(project, lambda _: ANSWER):
        project.plan({"a": asking("say a")})
        assert project.run("--yes").code == 0
        for words in (["plan", "--force"], ["status"], ["check"], ["cost"], ["--help"]):
            done = subprocess.run(
                [sys.executable, "-c", LOADS, *words],
                cwd=project.root,
                env=project.environment(),
                capture_output=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0
            assert json.loads(done.stderr.decode().splitlines()[-1].replace("'", '"')) == []


@pytest.mark.req("R166")
def test_judges_are_foreseen_as_often_as_they_are_asked(project: Project) -> None:
    with market(project, lambda _: ANSWER):
        judge = {"judge": {"rubric": "is good", "votes": 3}}
        project.plan({"a": asking("say a", guards=[judge]), "b": asking("say b")})
        found = project.ok("plan", "--json").json
        assert found["steps"]["b"]["cost_usd"]["p90"] == 0.0005
        assert found["steps"]["a"]["cost_usd"]["p90"] == pytest.approx(0.0005 + 3 * 0.1024)
        assert found["steps"]["a"]["tokens"]["p90"] > 5 + 3 * 1024
        assert found["models"] == {"fake:m": {"tiers": [], "steps": 2}}
        table = project.ok("plan").out
        assert "no history: ~$0.31" in table, "nobody bounds what a judge says"
        assert "no history: ≤ $0.0005" in table


@pytest.mark.req("R165", "R166")
def test_judges_who_look_once_more_are_foreseen_and_agreed_to(project: Project) -> None:
    verdict = Say('{"score": 1, "verdict": "", "quote": ""}', input=10, output=5)
    with market(project, lambda _: verdict) as shop:

        def rubric(words: str) -> None:
            judged = {"judge": {"rubric": words, "model": "fake:m"}}
            project.plan(
                {"a": {"shell": "echo a > a.txt", "produces": "a.txt", "guards": [judged]}}
            )

        rubric("is good")
        assert project.run("--yes").code == 0
        rubric("is very good")
        found = project.ok("plan", "--json").json
        assert found["steps"]["a"]["reason"]["code"] == "guard_changed"
        assert found["steps"]["a"]["cost_usd"]["p50"] == 0.0005
        assert found["models"] == {"fake:m": {"tiers": [], "steps": 1}}
        refused = project.call("run")
        assert (refused.code, len(shop.asked)) == (2, 1)
        assert "these steps cost money: a" in refused.err
        assert project.run("--yes").code == 0
        assert len(shop.asked) == 2

        project.write("a.txt", "by hand\n")
        edited = project.ok("plan", "--json").json["steps"]["a"]
        assert edited["reason"]["code"] == "output_modified"
        assert edited["cost_usd"]["p50"] > 0
        assert (project.call("run").code, len(shop.asked)) == (2, 2)
        assert project.run("--yes").code == 0
        assert len(shop.asked) == 3


@pytest.mark.req("R165", "R166")
def test_a_kept_artifact_that_new_guards_may_refuse_is_agreed_to_first(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a", guards=[{"regex": {"pattern": "o"}}])})
        assert project.run("--yes").code == 0
        project.plan({"a": asking("say a", guards=[{"regex": {"pattern": "bad"}}])})
        found = project.ok("plan", "--json").json["steps"]["a"]
        assert (found["decision"], found["reason"]["code"]) == ("maybe", "guard_changed")
        assert (found["cost_usd"]["p50"], found["cost_usd"]["p90"]) == (0.0, 0.0005)
        assert (found["tokens"]["p50"], found["tokens"]["p90"]) == (0, 15)
        assert (project.call("run").code, len(shop.asked)) == (2, 1)
        assert project.run("--yes").codes == {"a": "guard_rejected"}
        assert len(shop.asked) == 2, "what was kept is refused, and the model is asked again"


@pytest.mark.req("R166")
def test_an_agent_without_history_may_take_all_its_turns(project: Project) -> None:
    with market(project, lambda _: Say("good", input=100, output=50)) as shop:
        shop.configure({"input": 1000, "output": 1000})
        model = {"id": "fake:m", "max_tokens": 100}
        agent = {"uses": "agent", "prompt": "do it", "model": model, "retries": 0}
        one = {"prompt": "do it", "model": model, "retries": 0}
        project.plan({"one": one, "eight": {**agent, "turns": 8}, "many": agent})
        found = project.ok("plan", "--json").json["steps"]
        once = found["one"]["cost_usd"]["p90"]
        eight, many = found["eight"]["cost_usd"], found["many"]["cost_usd"]
        assert eight["p90"] == pytest.approx(8 * once + 0.1 * sum(range(8)), abs=0.2)
        assert eight["p50"] == pytest.approx(4 * once + 0.1 * sum(range(4)), abs=0.2)
        assert many["p90"] > 20 * once
        assert found["eight"]["tokens"]["p90"] > 8 * found["one"]["tokens"]["p50"]
        project.plan({"eight": {**agent, "turns": 8, "budget": {"usd": 1.5}}})
        assert "no history: ≤ $1.50" in project.ok("plan").out


@pytest.mark.req("R166")
@pytest.mark.parametrize(
    ("budget", "shown"),
    [
        ({"tokens": 400}, "no history: ≤ $0.40"),
        ({"tokens": 60}, "$0: no call fits its budget"),
        ({"usd": 0.05}, "$0: no call fits its budget"),
        ({"usd": 0.4, "tokens": 300}, "no history: ≤ $0.30"),
    ],
)
def test_a_budget_of_a_step_bounds_what_it_is_expected_to_cost(
    project: Project, budget: dict[str, float], shown: str
) -> None:
    with market(project, lambda _: Say("good", input=100, output=50)) as shop:
        shop.configure({"input": 1000, "output": 1000})
        model = {"id": "fake:m", "max_tokens": 100}
        project.plan({"a": {"prompt": "say a", "model": model, "budget": budget}})
        assert shown in project.ok("plan").out
        run = project.run("--yes")
        if "fits" in shown:
            assert (run.codes["a"], shop.asked) == ("budget_spent", [])
        else:
            assert run.code == 0
