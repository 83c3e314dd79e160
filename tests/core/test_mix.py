"""Which models steps ask, and who does a step in one word."""

import pytest

from holdfast.core.mix import Mix, doer, models_of, tier_of
from holdfast.model.plan import Guard, Step, StepId


def asks(name: str, model: str, tier: str = "", *guards: Guard) -> Step:
    return Step(StepId(name), uses="llm", model=model, tier=tier, guards=guards)


def judge(model: str) -> Guard:
    return Guard("judge", {"rubric": "good", "model": model})


@pytest.mark.req("R106")
def test_a_step_is_done_by_its_tier_else_its_model_else_what_it_uses() -> None:
    assert doer(asks("a", "p:m", "small")) == "small"
    assert doer(asks("a", "p:m")) == "m"
    assert doer(asks("a", "ollama:llama3:8b")) == "llama3:8b"
    assert doer(asks("a", "p:m", "house")) == "m", "an alias is no tier"
    assert doer(Step(StepId("a"), shell="true", model="small", tier="small")) == "shell"
    assert doer(Step(StepId("a"), uses="agent")) == "agent", "nobody said how it is done"
    assert tier_of(asks("a", "p:m", "house")) == ""


@pytest.mark.req("R104", "R106")
def test_each_model_is_told_with_its_steps_and_the_tiers_that_name_it() -> None:
    steps = [
        asks("a", "p:m", "medium"),
        asks("b", "p:m", "small", judge("p:m")),
        asks("c", "p:m"),
        asks("d", "p:large", "large", judge("p:judge")),
        Step(StepId("e"), shell="true", guards=(Guard("all", items=(judge("p:judge"),)),)),
        Step(StepId("f"), shell="true"),
    ]
    found = models_of(steps)
    assert found == {
        "p:m": Mix(3, ("small", "medium")),
        "p:judge": Mix(2),
        "p:large": Mix(1, ("large",)),
    }
    assert list(found) == ["p:m", "p:judge", "p:large"], "the most asked first"
    assert list(models_of(reversed(steps))) == list(found)
    assert models_of([], [steps[1], steps[3]]) == {"p:judge": Mix(1), "p:m": Mix(1)}
    assert models_of([]) == {}
