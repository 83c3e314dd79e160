"""A plan that names its models wrongly is told so before anybody is asked."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.cli.project import Project

JUDGE = {"run": ["true"], "guards": [{"judge": {"rubric": "good"}}]}


def told(project: Project, step: Mapping[str, object], **top: Any) -> list[tuple[str, str, str]]:
    """The code, message and hint of every problem of a plan with this one step."""
    project.plan({"a": step}, **top)
    answer = project.call("check", "--json")
    assert answer.code == 2, answer.out
    problems = answer.json["problems"]
    return [(one["code"], one["message"], one["hint"] or "") for one in problems]


def configure(project: Project, text: str) -> None:
    place = project.home / ".config" / "holdfast" / "config.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


@pytest.mark.req("R16")
@pytest.mark.parametrize(
    ("model", "message", "hint"),
    [
        ("nowhere:gpt-5", "there is no provider 'nowhere'", "known: anthropic, bedrock, google"),
        ("opanai:gpt-5", "there is no provider 'opanai'", "did you mean 'openai:gpt-5'?"),
        ("openai:", "'openai:' names no model", "say openai:name"),
        (":gpt-5", "':gpt-5' names no provider", "say provider:gpt-5"),
    ],
)
def test_a_provider_that_nobody_knows_is_a_problem(
    project: Project, model: str, message: str, hint: str
) -> None:
    judge = {"run": ["true"], "guards": [{"judge": {"rubric": "good", "model": model}}]}
    for step in ({"prompt": "x", "model": model}, {**JUDGE, "model": model}, judge):
        ((code, said, help_),) = told(project, step)
        assert (code, said) == ("P069", message)
        assert hint in help_
    project.refused(2, "run", "--yes")


@pytest.mark.req("R16")
def test_a_tier_of_a_provider_that_nobody_knows_is_a_problem(project: Project) -> None:
    configure(project, '[tiers]\nsmall = "opanai:m"\n')
    ((code, said, hint),) = told(project, {"prompt": "x", "model": "small"})
    assert (code, said) == (
        "P069",
        "'small' stands for 'opanai:m', and there is no provider 'opanai'",
    )
    assert "did you mean 'openai:m'?" in hint
    configure(project, '[tiers]\nsmall = "mine:m"\n[providers.mine]\nkind = "openai"\n')
    project.ok("check")


def test_where_nobody_is_asked_any_provider_will_do(project: Project) -> None:
    project.plan({"a": {"prompt": "x", "model": "inhouse:m"}})
    project.refused(2, "check")
    assert project.call("check", env={"HOLDFAST_PROVIDER": "recorded"}).code == 0


@pytest.mark.req("R16")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gpt-5", 'say model: openai:gpt-5, or [aliases] gpt-5 = "provider:model" in config.toml'),
        ("claude-x.1", 'say model: anthropic:claude-x.1, or [aliases] "claude-x.1" = '),
        ("whale", "say model: provider:whale, or [aliases] whale = "),
        ("smal", "did you mean 'small'?"),
        (
            "large",
            '[tiers] large = "provider:model" in config.toml of your configuration directory',
        ),
    ],
)
def test_a_name_that_stands_for_nothing_says_what_to_write_where(
    project: Project, name: str, hint: str
) -> None:
    for step in ({"prompt": "x", "model": name}, {**JUDGE, "model": name}):
        ((code, said, help_),) = told(project, step)
        assert (code, said) == ("P068", f"nobody said which model '{name}' is")
        assert hint in help_
        assert "tiers" not in help_ or name == "large"


@pytest.mark.req("R16")
@pytest.mark.parametrize("model", ["", 5, {"temperature": 1}])
def test_a_model_that_cannot_be_read_is_one_problem(project: Project, model: object) -> None:
    assert len(told(project, {"prompt": "x", "model": model})) == 1
    assert len(told(project, {"prompt": "x"}, defaults={"model": model})) == 1


def test_a_model_with_nothing_to_say_to_it_lacks_a_prompt(project: Project) -> None:
    ((code, _, hint),) = told(project, {"model": "small"})
    assert (code, hint) == ("P042", "give it a 'prompt'")


@pytest.mark.req("R77")
@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("", "'prompt' of 'a' is empty"),
        (" \n ", "'prompt' of 'a' is empty"),
        ("empty.md", "'prompt' of 'a' is empty"),
        ({"role": "You are terse.", "task": " "}, "'task' of 'a' is empty"),
        (
            {"task": "x", "feedback_wrapper": "no"},
            "'feedback_wrapper' of 'a' has no place for what",
        ),
    ],
)
def test_a_prompt_that_says_nothing_is_a_problem(
    project: Project, prompt: object, said: str
) -> None:
    project.write("empty.md", "\n")
    ((code, message, _),) = told(project, {"prompt": prompt, "model": "openai:m"})
    assert code == "P064"
    assert message.startswith(said)
    whole = {"role": "", "task": "${{ steps.b.output }}", "feedback_wrapper": "so: {feedback}"}
    project.plan({"a": {"prompt": whole, "model": "openai:m"}, "b": {"run": ["true"]}})
    project.ok("check")
