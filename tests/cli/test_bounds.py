"""Bounds that hold whatever a plan leaves open and whatever a provider says."""

import pytest

from holdfast.testing.server import Asked, Hang, Reply, Say
from tests.cli.market import market
from tests.cli.project import Project, finish, kill, until
from tests.cli.served import of_kind

pytestmark = pytest.mark.req("R165")

OPEN = {"model": "fake:m", "retries": 0}  # nothing says how long its answer may be


def longest(asked: Asked) -> int:
    """How many tokens the model may say, as the request has it."""
    body = asked.body
    found = body.get("max_completion_tokens") or body.get("max_tokens") or 0
    assert isinstance(found, int)
    return found


def test_an_answer_that_the_plan_does_not_bound_is_bounded_by_what_was_reserved(
    project: Project,
) -> None:
    """One short answer first, then many long ones at once: the short one tells nothing of them."""

    def said(asked: Asked) -> Say:
        wanted = 5 if "short" in asked.last else 6000
        return Say("x", input=1, output=min(wanted, longest(asked) or wanted))

    steps = {"first": {**OPEN, "prompt": "short"}}
    steps |= {f"s{n}": {**OPEN, "prompt": f"long {n}", "needs": ["first"]} for n in range(20)}
    project.plan(steps, limits={"usd": 2})
    with market(project, said) as shop:
        run = project.run("--yes")
        assert all(0 < longest(asked) <= 8192 for asked in shop.server.requests)
    assert (run.code, run.data["totals"]["cost_usd"] <= 2) == (5, True), run.err


@pytest.mark.parametrize(
    "said",
    [
        Say("twelve bytes" * 50, input=0, output=0),
        Say("x", input=10, output=200, cached=100_000),
        Say("twelve bytes" * 50, input=-500, output=200),
        Say("twelve bytes" * 50, input=10, output=0),
    ],
    ids=["no usage", "more cached than read", "negative", "half of it"],
)
def test_what_a_provider_says_it_used_never_makes_room(project: Project, said: Say) -> None:
    steps = {f"s{n}": {**OPEN, "prompt": f"ask {n}"} for n in range(12)}
    project.plan(steps, limits={"usd": 1})
    with market(project, lambda _: said) as shop:
        shop.configure({"input": 10, "output": 1000, "cached": 1})
        run = project.run("--yes")
        asked = len(shop.asked)
    answered = of_kind(project, "call_answered")
    assert all(one["cost"] > 0 for one in answered)
    assert (run.code, 0 < asked < 12) == (5, True), run.err
    project.ok("verify")


def long(asked: Asked) -> Reply:
    """Needs 9,000 tokens for its answer."""
    return Say("half", finish="length") if 0 < longest(asked) < 9000 else Say("whole")


def test_what_a_bound_of_ours_cuts_is_not_recorded(project: Project) -> None:
    project.plan({"a": {**OPEN, "prompt": "write long"}})
    with market(project, long) as shop:
        run = project.run("--max-cost", "1", "--record", "rec")
        assert [longest(asked) for asked in shop.server.requests] == [8192]
        assert (run.code, run.codes) == (1, {"a": "answer_cut"})
        assert "was cut at 8,192 tokens" in run.err
        assert "$1.00 in all" in run.err
        assert "max_tokens" in run.err
        again = project.run("--provider", "recorded", "--recorded", "rec")
        assert again.codes == {"a": "not_recorded"}
        assert project.run("--yes", "--record", "rec").states == {"a": "done"}
    assert project.run("--provider", "recorded", "--recorded", "rec", "--force").code == 0
    assert project.shown("a") == b"whole"


def test_what_the_plan_cuts_is_recorded(project: Project) -> None:
    project.plan({"a": {**OPEN, "model": {"id": "fake:m", "max_tokens": 7}, "prompt": "long"}})
    with market(project, long):
        run = project.run("--max-cost", "1", "--record", "rec")
    assert "was cut at its limit of 7 tokens" in run.err
    again = project.run("--provider", "recorded", "--recorded", "rec")
    assert again.codes == {"a": "answer_cut"}


CUTS: dict[str, tuple[dict[str, object], dict[str, object], dict[str, float], tuple[str, str]]] = {
    # of the step, limits of the plan, budgets of the person: what is said
    "run": ({}, {"usd": 0.5}, {}, ("of $0.50 the run has $0.50 left", "--max-cost")),
    "day": ({}, {}, {"day": 0.5}, ("of the $0.50 for the day", "raise [budgets] day")),
    "tokens": ({}, {"tokens": 5000}, {}, ("of 5000 tokens the run has 5000 left", "'limits'")),
    "step": ({"budget": {"usd": 0.5}}, {}, {}, ("its budget is $0.5", "'budget'")),
    "large": ({"budget": {"tokens": 50_000}}, {}, {}, ("its budget of 50000 tokens", "max_tokens")),
}


@pytest.mark.parametrize("what", CUTS)
def test_who_is_cut_by_a_bound_of_ours_is_told_which_one_and_how_to_raise_it(
    project: Project, what: str
) -> None:
    more, limits, budgets, words = CUTS[what]
    project.plan({"a": {**OPEN, "prompt": "write long", **more}}, limits=limits)
    with market(project, long) as shop:
        shop.configure(budgets=budgets)
        run = project.run("--yes")
        (asked,) = shop.server.requests
    assert run.codes == {"a": "answer_cut"}, run.err
    assert f"was cut at {longest(asked):,} tokens, " in run.err
    assert [word for word in words if word not in run.err] == [], run.err


def test_who_counts_nothing_is_charged_for_the_tools_it_uses(project: Project) -> None:
    project.write("work.py", "def look(at: str) -> str:\n    return 'seen'\n")
    project.plan({"a": {**OPEN, "uses": "agent", "prompt": "do it", "tools": ["work:look"]}})

    def said(asked: Asked) -> Reply:
        use = ("look", {"at": "x" * 20_000})
        return Say(tools=[use], input=0, output=0) if asked.number == 1 else Say("done")

    with market(project, said):
        assert project.run("--yes").states == {"a": "done"}
    first, _ = of_kind(project, "call_answered")
    assert 10_000 <= first["output"] <= 10_020
    assert first["cost"] == 100 * first["output"]


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        (Say("x" * 400, input=7, output=0), (7, 200)),
        (Say("x" * 400, input=0, output=7), (100, 7)),
    ],
    ids=["only what is read", "only what is said"],
)
def test_what_a_provider_does_not_count_is_counted_here(
    project: Project, said: Say, counted: tuple[int, int]
) -> None:
    project.plan({"a": {**OPEN, "prompt": "ask" * 60}})
    with market(project, lambda _: said):
        assert project.run("--yes").states == {"a": "done"}
    (one,) = of_kind(project, "call_answered")
    assert (one["input"] >= counted[0], one["output"]) == (True, counted[1])


def test_a_call_that_never_ends_leaves_its_room_to_the_next(project: Project) -> None:
    def said(asked: Asked) -> Reply:
        return Hang() if "never" in asked.last else Say("done")

    bounded = {"model": {"id": "fake:m", "max_tokens": 100}, "retries": 0}
    project.plan(
        {
            "never": {**bounded, "prompt": "never", "timeout": "1s", "priority": "high"},
            "later": {**bounded, "prompt": "later"},
        },
        limits={"usd": 0.025},
    )
    with market(project, said):
        run = project.run("--yes")
    assert run.codes["never"] == "timed_out"
    assert run.states["later"] in {"done", "pending"}, "it does not wait for ever"


def test_who_takes_a_claim_over_takes_over_what_was_paid(project: Project) -> None:
    project.write("work.py", "def look() -> str:\n    return 'seen'\n")
    agent = {"uses": "agent", "model": "fake:m", "prompt": "do it", "tools": ["work:look"]}
    project.plan({"a": {**agent, "workspace": "scratch"}})

    def said(asked: Asked) -> Reply:
        if not any(message["role"] == "tool" for message in asked.body["messages"]):  # type: ignore[index,union-attr,call-overload]  # JSON
            return Say(tools=[("look", {})])
        return Hang() if asked.number == 2 else Say("done")

    with market(project, said) as shop:
        first = project.start("run", "--yes", "--join")
        until(lambda: len(shop.asked) == 2, "the second turn is asked")
        kill(first)
        second = project.start("run", "--yes", "--join", "--json")
        finish(second)
        assert len(shop.asked) == 3, "the first turn was answered and is not asked again"
    project.ok("verify")


def test_who_never_said_yes_is_asked_before_a_run_goes_on(project: Project) -> None:
    """A run that was answered from recordings cost nothing; going on with a real model would."""
    project.plan({"a": {**OPEN, "prompt": "never recorded"}})
    with market(project, "done") as shop:
        run = project.run("--provider", "recorded")
        assert run.codes == {"a": "not_recorded"}
        for words in (["retry", "a"], ["replay"], ["resume"]):
            refused = project.call(*words)
            assert refused.code == 2, words
            assert "these steps cost money: a" in refused.err
        assert shop.asked == []
        assert project.call("retry", "a", "--yes").code == 0
        assert len(shop.asked) == 1


def test_what_a_replay_cost_says_nothing_of_the_price(project: Project) -> None:
    project.plan({"a": {"model": {"id": "fake:m", "max_tokens": 9}, "prompt": "again"}})
    with market(project, lambda _: Say("said", input=0, output=5)):
        assert project.run("--yes", "--record", "recorded").code == 0
        for _ in range(3):
            assert project.run("--provider", "recorded", "--force").code == 0
        seen = project.ok("plan", "--force", "--json").json["steps"]["a"]["cost_usd"]
    assert (seen["p50"], seen["p90"]) == (0.0005, 0.0005)


def test_a_bound_of_the_person_is_not_raised_by_a_flag(project: Project) -> None:
    project.plan({f"s{n}": {**OPEN, "prompt": f"{n}"} for n in range(6)})
    with market(project, lambda _: Say("said", output=1000)) as shop:
        shop.configure(budgets={"run": 0.25})
        assert project.run("--yes").code == 5
        resumed = project.call("resume", "--max-cost", "5")
        assert resumed.code in {2, 5}, resumed
        assert len(shop.asked) < 4


def test_a_link_out_of_the_project_is_read_by_no_model(project: Project) -> None:
    outside = project.folder / "private.txt"
    outside.write_text("PRIVATE")
    (project.root / "notes").mkdir()
    (project.root / "notes" / "a.md").symlink_to(outside)
    project.plan({"a": {**OPEN, "prompt": "sum it up", "inputs": ["notes/*.md"]}})
    with market(project, "done") as shop:
        run = project.run("--yes")
        assert (run.code, run.codes["a"], shop.asked) == (1, "command_failed", [])


def test_an_answer_purged_since_is_asked_for_again(project: Project) -> None:
    gate = project.gate("go")
    guards = [{"command": ["sh", "-c", gate]}]
    project.plan({"a": {**OPEN, "prompt": "say it", "guards": guards}})
    with market(project, "said") as shop:
        engine = project.start("run", "--yes")
        until(lambda: len(shop.asked) == 1, "it is asked")
        until(lambda: bool(of_kind(project, "call_answered")), "it is stored")
        kill(engine)
        answer = of_kind(project, "call_answered")[0]["answer"]
        project.ok("purge", answer, "--yes", "--because", "it must go")
        project.open("go")
        assert project.call("resume", "--yes").code == 0
        assert len(shop.asked) == 2
