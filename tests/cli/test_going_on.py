"""A run that came to a limit says how to go on, and what it says works as it stands."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from holdfast.testing.server import Asked, Hang, Say
from tests.cli.market import Market, market
from tests.cli.project import Answer, Project, finish, kill, until
from tests.cli.served import verdict

pytestmark = pytest.mark.req("R165")

PRICE = {"input": 1000, "output": 1000}  # a call costs $0.15
MODEL = {"id": "fake:m", "max_tokens": 100}


def said(asked: Asked) -> Say:
    """A judge is content, and everybody else says so."""
    text = verdict(1, "fine") if "is it good" in str(asked.body) else "good"
    return Say(text, input=100, output=50)


@pytest.fixture
def shop(project: Project) -> Iterator[Market]:
    with market(project, said) as found:
        found.configure(PRICE)
        yield found


def told(answer: Answer) -> list[str]:
    """The commands of the last line."""
    line = answer.out.splitlines()[-1]
    assert line.startswith("next: "), answer.out
    return line.removeprefix("next: ").split("    ")


def pasted(project: Project, answer: Answer) -> Answer:
    """What comes of doing what was said first."""
    first = told(answer)[0].rpartition(", then ")[2]  # a file may have to be changed before
    return project.call(*shlex.split(first)[1:])


def chain(*names: str, **more: Any) -> dict[str, dict[str, Any]]:
    """Steps that ask, one after the other."""
    steps = {name: {"prompt": f"say {name}", "model": MODEL, **more} for name in names}
    for before, name in pairwise(names):
        steps[name] = {**steps[name], "needs": [before]}
    return steps


def test_the_amount_that_is_named_is_enough_for_the_call_that_was_refused(
    project: Project, shop: Market
) -> None:
    judge = {"judge": {"rubric": "is it good?", "votes": 3, "model": "fake:m"}}
    long = r"echo kelp; head -c 3000 /dev/zero | tr '\0' 'x'"
    project.plan(
        {"c": {"shell": long, "guards": [judge]}, "d": {"prompt": "hello", "model": "fake:m"}}
    )
    ended = project.call("run", "-q", "-j", "1", "--max-cost", "0.2")
    assert ended.code == 5, ended.out
    before = len(shop.asked)
    assert before <= 1, "the judge reads too much"
    spent, left = (0.15, 0.05) if before else (0.0, 0.2)
    assert f"of $0.20 the run has ${left:.2f} left, and another call may cost $" in ended.out
    assert not before or f"spent ${spent:.2f} of $0.20" in ended.out
    assert pasted(project, ended).code == 0, ended.out
    assert len(shop.asked) > before


@pytest.mark.parametrize(
    "words",
    [
        ("fork", "@", "--from", "b", "--max-cost", "0.01"),
        ("run", "--resample", "b", "--max-cost", "0.05"),
        ("run", "--force", "--max-cost", "0.2"),
    ],
)
def test_a_hint_of_any_command_works(
    project: Project, shop: Market, words: tuple[str, ...]
) -> None:
    project.plan(chain("a", "b", "c"))
    assert project.run("--yes").code == 0
    ended = project.call(*words)
    assert ended.code == 5, ended.err
    before = len(shop.asked)
    assert pasted(project, ended).code == 0, ended.out
    assert len(shop.asked) > before
    project.ok("verify")


def test_a_model_that_counts_little_lets_no_hint_be_too_low(project: Project) -> None:
    """What was seen of a model is seen anew by the next engine."""
    with market(project, lambda _: Say("good", input=1, output=50)) as shop:
        shop.configure(PRICE)
        steps = chain("a", "b")
        steps["b"]["prompt"] = "say b " * 1000
        steps["a"]["retries"] = steps["b"]["retries"] = 0
        project.plan(steps)
        ended = project.call("run", "--max-cost", "0.2")
        assert (ended.code, len(shop.asked)) == (5, 1), ended.out
        assert pasted(project, ended).code == 0, ended.out


def test_where_the_plan_bounds_the_run_its_limit_is_named(project: Project, shop: Market) -> None:
    project.plan(chain("a", "b"), limits={"usd": 0.2})
    ended = project.call("run", "--yes")
    assert ended.code == 5
    found = re.fullmatch(
        r"raise limits\.usd in the plan to (\S+), then (holdfast run --max-cost \1)",
        told(ended)[0],
    )
    assert found is not None, ended.out
    assert told(project.ok("status")) == told(ended)
    project.plan(chain("a", "b"), limits={"usd": float(found[1])})
    assert project.call(*found[2].split()[1:]).code == 0
    assert len(shop.asked) == 2


def test_where_a_person_bounds_every_run_his_file_is_named(project: Project, shop: Market) -> None:
    shop.configure(PRICE, budgets={"run": 0.2})
    project.plan(chain("a", "b"))
    ended = project.call("run", "--yes")
    assert ended.code == 5
    file = project.home / ".config" / "holdfast" / "config.toml"
    start = f"raise [budgets] run in {file} to "
    assert told(ended)[0].startswith(start), ended.out
    amount, _, command = told(ended)[0].removeprefix(start).partition(", then ")
    assert command == f"holdfast resume --max-cost {amount}"
    project.write("holdfast.toml", f"[budgets]\nrun = {amount}\n")
    shop.configure(PRICE)
    assert project.call(*command.split()[1:]).code == 0


def test_where_tokens_are_bounded_only_the_plan_helps(project: Project, shop: Market) -> None:
    shop.configure(price=None)
    steps = chain("a", "b", "c")
    project.plan(steps, limits={"tokens": 400})
    ended = project.call("run", "--yes")
    assert ended.code == 5, ended.out
    found = re.fullmatch(
        r"raise limits\.tokens in the plan to (\d+), then (holdfast run --yes)", told(ended)[0]
    )
    assert found is not None, ended.out
    assert told(project.ok("status"))[0] == told(ended)[0]
    before = len(shop.asked)
    project.plan(steps, limits={"tokens": int(found[1])})
    assert project.call(*found[2].split()[1:]).code == 0
    assert (before, len(shop.asked)) == (2, 3), "what was answered is not asked again"


@pytest.mark.parametrize("name", ["day", "project"])
def test_the_file_is_named_that_says_the_smaller_budget(
    project: Project, shop: Market, name: str
) -> None:
    shop.configure(PRICE, budgets={name: 5})
    project.write("holdfast.toml", f"[budgets]\n{name} = 0.2\n")
    project.plan(chain("a", "b"))
    ended = project.call("run", "--yes")
    assert ended.code == 5
    assert f"raise [budgets] {name} in {project.root / 'holdfast.toml'}" in ended.out
    assert f"of the $0.20 for the {name} the run has $0.05 left" in ended.out
    project.write("holdfast.toml", f"[budgets]\n{name} = 1\n")
    shop.configure(PRICE, budgets={name: 0.2})
    told_again = project.call("resume")
    assert told_again.code == 5
    own = project.home / ".config" / "holdfast" / "config.toml"
    assert f"raise [budgets] {name} in {own}" in told_again.out
    shop.configure(PRICE, budgets={name: 2})
    assert pasted(project, told_again).code == 0


def test_a_run_that_spent_nothing_before_its_day_was_over_can_go_on(
    project: Project, shop: Market
) -> None:
    shop.configure(PRICE, budgets={"day": 0.2})
    project.plan(chain("a"), name="one")
    assert project.run("--yes").code == 0
    project.plan(chain("b"), name="two")
    ended = project.call("run", "--yes")
    assert ended.code == 5
    shop.configure(PRICE, budgets={"day": 1})
    assert pasted(project, ended).code == 0


def test_a_watch_is_bounded_as_a_whole(project: Project, shop: Market) -> None:
    project.write("in.txt", "0")
    project.plan({"a": {"prompt": "read it", "model": MODEL, "inputs": "in.txt", "retries": 0}})
    watcher = project.start("run", "--watch", "--max-cost", "0.4")
    assert watcher.stderr is not None
    while b"watching" not in watcher.stderr.readline():
        pass
    project.write("in.txt", "1")
    while b"watching" not in watcher.stderr.readline():
        pass
    project.write("in.txt", "2")
    ended = finish(watcher)
    assert ended.code == 5, ended.err
    assert "of $0.10 the run has $0.10 left" in ended.out
    assert "the runs of this watch spent $0.30 of $0.40" in ended.err
    assert len(shop.asked) == 2


def test_a_watch_goes_on_after_a_smaller_bound(project: Project, shop: Market) -> None:
    project.write("in.txt", "0")
    step = {"prompt": "read it", "model": MODEL, "inputs": "in.txt", "retries": 0}
    project.plan({"a": step}, limits={"usd": 0.1})
    watcher = project.start("run", "--watch", "--max-cost", "0.4")
    assert watcher.stderr is not None
    while b"watching" not in watcher.stderr.readline():
        pass
    assert watcher.poll() is None
    assert shop.asked == []
    kill(watcher)


def test_a_step_says_what_of_its_budget_is_left(project: Project, shop: Market) -> None:
    refuse = {"regex": {"pattern": "better"}}
    step = chain("a", budget={"usd": 0.3}, retries=3, guards=[refuse])
    project.plan(step)
    run = project.run("--yes")
    assert (run.codes["a"], len(shop.asked)) == ("budget_spent", 1)
    told = project.ok("status").out
    assert "its budget is $0.30, of which $0.15 is left, and another call may cost $0." in told


@pytest.mark.req("R167")
def test_what_was_cut_off_is_told_alike_everywhere(project: Project) -> None:
    with market(project, lambda asked: Hang() if asked.number == 1 else said(asked)) as shop:
        shop.configure(PRICE)
        project.plan(chain("a"), limits={"usd": 1})
        engine = project.start("run", "--yes")
        until(lambda: shop.asked or engine.poll() is not None, "the model is asked")
        kill(engine)
        totals = project.ok("cost", "--json").json["totals"]
        most = f"up to ${totals['interrupted_usd']:.2f}"
        status = project.ok("status").out.splitlines()
        assert f"{most} spent" in status[0]
        assert status[1].endswith(f"interrupted, {most}")
        assert most in project.ok("history").out
        resumed = project.call("resume")
        assert f"{most} of $1.00 spent so far" in resumed.err
        assert resumed.code == 0


@pytest.mark.req("R165", "R82")
def test_only_what_is_sampled_is_asked_about(project: Project, shop: Market) -> None:
    project.plan(chain("a", "b", "c"))
    assert project.run("--yes").code == 0
    told = project.refused(2, "run", "--resample", "b")
    assert "these steps cost money: b ($0.15 typical)" in told
    before = len(shop.asked)
    assert project.run("--yes", "--resample", "b").code == 0
    assert len(shop.asked) == before + 1
    assert "· $0.15 typical" in project.ok("plan", "--resample", "b").out


@pytest.mark.req("R166")
def test_a_preview_names_the_bounds_that_a_run_would_come_to(
    project: Project, shop: Market
) -> None:
    shop.configure(PRICE, budgets={"day": 0.4})
    project.plan(chain("a"), name="one")
    assert project.run("--yes").code == 0
    project.plan(chain("b", "c", retries=0), name="two", limits={"tokens": 250})
    table = project.ok("plan").out
    assert "· limit 250 tokens" in table
    assert "! limits.tokens is 250, and this may use " in table
    assert "! of the $0.40 for the day $0.25 is left, and this may cost $0." in table
    shop.configure(PRICE, budgets={"day": 5})
    project.plan(chain("b", "c", retries=0), name="two", limits={"tokens": 5000})
    table = project.ok("plan").out
    assert "· limit 5000 tokens" in table
    assert "! " not in table
