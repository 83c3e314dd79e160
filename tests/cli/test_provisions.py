"""What a run lacks is said before it begins: libraries, keys, and prices that a bound is kept by."""

from typing import Any

import pytest

from holdfast.testing.server import ModelServer, Say
from tests.cli.keyrings import give_keyring
from tests.cli.market import asking, market
from tests.cli.models import LOADED
from tests.cli.project import Project, finish
from tests.cli.served import verdict
from tests.cli.terminal import Terminal

KEY = {"FAKE_KEY": "sk-of-the-fake-one"}
HIDES = """
import sys


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"mistralai", "anthropic"}:
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Hidden())
"""


def configure(project: Project, url: str, more: str = "") -> None:
    project.loaded = LOADED
    place = project.home / ".config" / "holdfast" / "config.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        f'[providers.fake]\nkind = "openai"\nbase_url = "{url}"\napi_key_env = "FAKE_KEY"\n'
        f'[providers.free]\nkind = "openai"\nbase_url = "{url}"\n'
        f'[prices."fake:m"]\ninput = 1\noutput = 2\n{more}'
    )


def begun(project: Project) -> bool:
    return project.log.read_text() != "" or (project.root / ".holdfast").exists()


@pytest.mark.req("R165")
def test_a_key_that_is_missing_is_said_before_anything_runs(project: Project) -> None:
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url)
        judge = {"judge": {"rubric": "good", "model": "fake:m"}}
        project.plan(
            {
                "first": asking("say it", model="free:m"),
                "second": asking("say more", needs=["first"], model="fake:m"),
                "third": {"shell": "echo x", "needs": ["second"], "guards": [judge]},
            }
        )
        for words in (["--yes"], ["--max-cost", "1"], []):
            answer = project.call("run", *words, "--json")
            assert answer.code == 4, answer.err
            told = answer.json["error"]
            assert told["code"] == "credentials_missing"
            assert told["message"] == "there is no key for 'fake' (asked by 'second', 'third')"
            assert told["hint"] == "set FAKE_KEY, or holdfast auth set fake"
        assert server.requests == []
        assert not begun(project)
        project.ok("plan")
        assert project.run("--yes", "-s", "first").code == 0
        assert len(server.requests) == 1, "what is not asked needs no key"


@pytest.mark.req("R165")
def test_nobody_is_asked_for_a_yes_to_what_cannot_be_done(project: Project) -> None:
    project.plan({"a": {"prompt": "x", "model": "openai:gpt-5"}})
    terminal = Terminal(project, "run")
    text = " ".join(terminal.finish().text)
    assert "error[credentials_missing]: there is no key for 'openai'" in text
    assert "Proceed?" not in text
    assert "OPENAI_API_KEY" in text


def test_what_is_reused_needs_no_key(project: Project) -> None:
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url)
        steps = {"a": asking("say it", model="fake:m"), "b": {"shell": "cat x", "inputs": "x"}}
        project.write("x", "1")
        project.plan(steps)
        assert project.run("--yes", env=KEY).code == 0
        project.write("x", "2")
        again = project.run("--yes")
        assert (again.code, again.states) == (0, {"a": "reused", "b": "done"})
        assert project.refused(4, "run", "--yes", "--force-node", "a")


def test_a_key_in_the_keyring_counts_and_so_does_having_none(project: Project) -> None:
    give_keyring(project)
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url)
        project.plan({"a": asking("say it", model="fake:m"), "b": asking("x", model="free:m")})
        project.refused(4, "run", "--yes")
        project.ok("auth", "set", "fake", stdin=b"sk-of-the-fake-one")
        assert project.run("--yes").code == 0


def test_recorded_answers_need_neither_key_nor_price(project: Project) -> None:
    project.plan({"a": {"prompt": "x", "model": "openai:gpt-none"}}, limits={"usd": 1})
    assert "price" not in project.ok("plan", "--provider", "recorded").out
    ended = project.run("--yes", "--provider", "recorded")
    assert ended.codes == {"a": "not_recorded"}


@pytest.mark.req("R165")
def test_a_library_that_is_missing_is_said_before_anything_runs(project: Project) -> None:
    place = project.folder / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(HIDES)
    env = {"PYTHONPATH": str(place), "MISTRAL_API_KEY": "sk-mistral-key"}
    project.plan(
        {
            "a": {"shell": "echo a"},
            "b": {"prompt": "x", "model": "mistral:m", "needs": ["a"]},
            "c": {"prompt": "x", "model": "anthropic:m", "needs": ["a"]},
        }
    )
    answer = finish(project.start("run", "--yes", env=env))
    assert answer.code == 2, answer.err
    assert "'mistral' needs a library (asked by 'b')" in answer.err
    assert "pip install 'holdfast[mistral,anthropic]'" in answer.err
    assert not begun(project)


@pytest.mark.req("R165", "R166")
@pytest.mark.parametrize("by", ["flag", "plan", "step", "run", "day", "project"])
def test_a_bound_that_cannot_be_kept_is_refused_before_the_run(project: Project, by: str) -> None:
    with market(project, lambda _: Say("good", input=10, output=5)) as shop:
        budgets = {by: 5.0} if by in {"run", "day", "project"} else None
        shop.configure(price=None, budgets=budgets)
        more: dict[str, Any] = {"budget": {"usd": 0.1}} if by == "step" else {}
        top: dict[str, Any] = {"limits": {"usd": 0.1}} if by == "plan" else {}
        steps = {"first": {"shell": "echo x"}, "a": asking("say a", needs=["first"], **more)}
        project.plan(steps, **top)
        words = ["--max-cost", "1"] if by == "flag" else ["--yes"]
        said = project.refused(2, "run", *words)
        assert "the price of 'fake:m' is not known (asked by 'a')" in said
        assert 'hint: say in your own config.toml, under [prices."fake:m"], what' in said
        assert shop.asked == []
        assert not begun(project)
        if by != "flag":
            for screen in (project.ok("plan").out, project.ok("plan", "--waves").out):
                assert "≤" not in screen
                assert "price unknown" in screen
                assert "! the price of 'fake:m' is not known" in " ".join(screen.split())
        shop.configure(budgets=budgets)
        assert "is not known" not in project.ok("plan").out
        assert project.run(*words).code == 0
        shop.configure(price=None, budgets=budgets)
        assert project.run(*words).code == 0, "what stands costs nothing"


@pytest.mark.req("R165")
def test_a_bound_of_one_step_says_nothing_about_another(project: Project) -> None:
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url)
        bounded = asking("say a", model="fake:m", budget={"usd": 0.1})
        project.plan({"a": bounded, "b": asking("say b", model="fake:unpriced")})
        assert project.run("--yes", env=KEY).code == 0
        assert len(server.requests) == 2


GOING_ON = [
    ("resume",),
    ("retry", "bad"),
    ("replay",),
    ("skip", "bad", "--because", "it is broken"),
    ("fork", "@", "--from", "bad"),
]


def _plan_failed(project: Project, model: str) -> None:
    """A run in which a command failed; below it two models are asked, the second of which is `model`."""
    project.plan(
        {
            "bad": {"shell": "test -e flag"},
            "first": asking("say it", model="free:m", needs=["bad"]),
            "second": asking("say more", needs=["first"], model=model),
        }
    )


@pytest.mark.req("R165")
@pytest.mark.parametrize("words", GOING_ON)
@pytest.mark.parametrize("agreed", [(), ("--yes",), ("--max-cost", "1")])
def test_whoever_goes_on_is_told_of_a_missing_key_before_anything_is_paid(
    project: Project, words: tuple[str, ...], agreed: tuple[str, ...]
) -> None:
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url, '[prices."free:m"]\ninput = 1\noutput = 1\n')
        _plan_failed(project, "fake:m")
        assert project.run("--yes", env=KEY).code == 1
        project.write("flag", "")
        before = project.events()
        answer = project.call(*words, *agreed, "--json")
        assert answer.code == 4, answer.err
        assert answer.json["error"]["message"] == "there is no key for 'fake' (asked by 'second')"
        assert (project.events(), server.requests) == (before, [])
        assert project.call(*words, "--yes", env=KEY).code == 0
        assert len(server.requests) == 2


@pytest.mark.req("R165")
@pytest.mark.parametrize("words", GOING_ON)
def test_whoever_goes_on_is_told_that_a_bound_cannot_be_kept(
    project: Project, words: tuple[str, ...]
) -> None:
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url, '[prices."free:m"]\ninput = 1\noutput = 1\n')
        _plan_failed(project, "free:other")
        assert project.run("--yes").code == 1
        project.write("flag", "")
        before = project.events()
        told = project.refused(2, *words, "--max-cost", "1")
        assert "the price of 'free:other' is not known (asked by 'second')" in told
        assert (project.events(), server.requests) == (before, [])
        more = ["--yes"] if "fork" in words else []  # else the yes of the run stands
        assert project.call(*words, *more).code == 0, "nothing was changed by the refusal"


@pytest.mark.req("R165")
def test_a_yes_to_what_has_no_price_is_never_a_bound(project: Project) -> None:
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url)
        judge = {"judge": {"rubric": "good", "model": "free:m"}}
        project.plan({"a": asking("say it", model="free:m"), "b": {"shell": "echo b"}})
        assert "--max-cost" not in project.refused(2, "run")
        project.run("-s", "b")
        project.plan({"b": {"shell": "echo b", "guards": [judge]}})
        told = project.refused(2, "guard", "b")
        assert "these steps cost money: b" in told
        assert "--max-cost" not in told


@pytest.mark.req("R165")
def test_what_stands_needs_no_key_when_a_run_goes_on(project: Project) -> None:
    with ModelServer(lambda _: Say("good")) as server:
        configure(project, server.url)
        project.plan({"a": asking("say it", model="fake:m"), "b": {"shell": "test -e flag"}})
        assert project.run("--yes", "-s", "a", env=KEY).code == 0
        assert project.run("--yes", "--fail-fast", "-j", "1").code == 1
        project.write("flag", "")
        assert project.call("resume").code == 0
        assert len(server.requests) == 1


@pytest.mark.req("R165")
@pytest.mark.parametrize("words", [("guard", "b"), ("amend", "b", "mine.txt")])
def test_guards_outside_of_a_run_are_told_of_a_missing_key_too(
    project: Project, words: tuple[str, ...]
) -> None:
    with ModelServer(lambda _: Say(verdict(1))) as server:
        configure(project, server.url)
        project.write("mine.txt", "mine\n")
        judge = {"judge": {"rubric": "good", "model": "fake:m"}}
        project.plan({"b": {"shell": "echo b", "guards": [judge]}})
        assert project.run("--yes", env=KEY).code == 0
        for agreed in ([], ["--yes"], ["--max-cost", "1"]):
            told = project.refused(4, *words, *agreed)
            assert "there is no key for 'fake' (asked by 'b')" in told
        assert len(server.requests) == 1
