"""Money is spent only after somebody agreed to it, and that is a fact of the run: it is not guessed."""

import pytest

from holdfast import api
from holdfast.testing.server import Asked, Hang, Reply, Say
from tests.cli.market import asking, market
from tests.cli.project import Project, kill, until
from tests.cli.terminal import Terminal

ANSWER = Say("good", input=10, output=5)  # $0.0005
BECAUSE = ("--because", "it is down")


def left_by_recordings(project: Project) -> None:
    """A run that nobody was asked about, because nobody would be paid; it found no recording."""
    project.plan({"a": asking("say a"), "b": asking("say b", needs=["a"])})
    assert "these steps cost money: a, b" in project.refused(2, "run")
    assert project.run("--provider", "recorded").states == {"a": "failed", "b": "skipped"}


@pytest.mark.req("R165")
@pytest.mark.parametrize(
    ("words", "paid"),
    [
        (["retry", "a"], "a, b"),
        (["resume"], "a, b"),
        (["replay"], "a, b"),
        (["skip", "a", *BECAUSE], "b"),
        (["fork", "@", "--from", "a"], "a, b"),
    ],
)
@pytest.mark.parametrize("budgets", [None, {"run": 1}])
def test_the_own_budget_is_a_bound_and_no_yes(
    project: Project, words: list[str], paid: str, budgets: dict[str, float] | None
) -> None:
    with market(project, lambda _: ANSWER) as shop:
        shop.configure(budgets=budgets)
        left_by_recordings(project)
        before = project.events()
        assert f"these steps cost money: {paid}" in project.refused(2, *words)
        assert (project.events(), shop.asked) == (before, [])
        assert project.call(*words, "--yes").code == 0
        assert shop.asked


@pytest.mark.req("R165")
@pytest.mark.parametrize("said", [["--yes"], ["--max-cost", "1"]])
def test_what_was_said_where_nobody_is_paid_is_no_yes(project: Project, said: list[str]) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a")})
        assert project.run("--provider", "recorded", *said).code == 1
        assert "these steps cost money: a" in project.refused(2, "retry", "a")
        assert shop.asked == []


@pytest.mark.req("R165")
def test_a_program_that_takes_recordings_agrees_to_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a")})
        monkeypatch.setenv("HOME", str(project.home))
        plan = api.load(str(project.root / "plan.yaml"))
        assert api.run(plan, provider="recorded").status == "failed"
        assert "these steps cost money: a" in project.refused(2, "retry", "a")
        assert api.run(plan).status == "completed"
        assert len(shop.asked) == 1
        assert project.events()[0]["agreed"] == "anything"


@pytest.mark.req("R165", "R166")
@pytest.mark.parametrize("price", [None, {"input": 0, "output": 100}])
def test_a_yes_holds_for_a_killed_run(project: Project, price: dict[str, float] | None) -> None:
    held = True

    def script(asked: Asked) -> Reply:
        return Hang() if held and "say b" in asked.last else ANSWER

    with market(project, script) as shop:
        shop.configure(price=price)
        project.plan({"a": asking("say a"), "b": asking("say b", needs=["a"])})
        engine = project.start("run", "--yes")
        until(lambda: len(shop.asked) == 2, "b is asked")
        kill(engine)
        held = False
        assert project.resume().states == {"a": "done", "b": "done"}
        assert len(shop.asked) == 3


@pytest.mark.req("R165")
def test_a_yes_at_the_terminal_holds_for_a_killed_run(project: Project) -> None:
    held = True

    def script(asked: Asked) -> Reply:
        return Hang() if held and "say b" in asked.last else ANSWER

    with market(project, script) as shop:
        shop.configure(price=None)
        project.plan({"a": asking("say a"), "b": asking("say b", needs=["a"])})
        terminal = Terminal(project, "run")
        terminal.read(until=lambda text: "Proceed?" in text)
        terminal.press(b"y\n")
        until(lambda: len(shop.asked) == 2, "b is asked")
        terminal.process.kill()
        terminal.finish()
        held = False
        assert project.resume().states == {"a": "done", "b": "done"}


@pytest.mark.req("R165")
def test_what_was_agreed_to_is_written_down(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a")})
        project.ok("plan", "-o", "review.json")
        agreed = []
        for words in (["review.json"], ["--yes", "--force"], ["--max-cost", "1", "--force"], []):
            assert project.call("run", *words).code == 0
            agreed.append(project.events()[0]["agreed"])
        assert agreed == ["shown", "anything", "anything", "nothing"]
        project.plan({"a": asking("say something else")})
        project.ok("plan", "-o", "review.json")
        project.ok("run", "review.json", "--detach")
        until(lambda: len(shop.asked) == 4, "the background asks")
        assert project.events()[0]["agreed"] == "shown"


@pytest.mark.req("R165")
def test_a_watch_asks_before_it_pays_for_what_nobody_saw(project: Project) -> None:
    with market(project, lambda _: ANSWER) as shop:
        project.plan({"a": asking("say a")})
        assert project.run("--yes").code == 0
        watcher = project.start("run", "--watch")
        assert watcher.stderr is not None
        told = iter(watcher.stderr.readline, b"")
        assert any(b"watching" in line for line in told)
        project.plan({"a": asking("say something else")})
        said = next(line for line in told if b"cost money" in line or b"watching" in line)
        assert b"these steps cost money: a" in said
        assert len(shop.asked) == 1
        kill(watcher)
