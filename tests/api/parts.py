"""Steps of every kind, for plans that tests put together."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from holdfast import Guarded, guard, step


@dataclass
class Fact:
    quote: str
    page: int | None = None


class Facts(TypedDict, total=False):
    facts: list[Fact]
    kind: Literal["old", "new"]


@guard(timeout="5s")
def good(out: Facts, given: Any) -> Guarded:
    return Guarded.ok()


@step
def plain(given: Any, other: Any = None) -> str:
    """Plain words: with a colon."""
    return f"{given}{other}"


@step(
    guards=[good, {"regex": {"pattern": "a+"}}, "human"],
    retries=3,
    timeout="90s",
    env=["HOME"],
    runs_on="lab",
    resources={"memory": "1GB"},
)
def typed(given: Any, other: Any = None) -> Facts:
    return {"facts": [Fact(str(given))]}


@step.llm(prompt={"role": "you", "task": "do it"}, model="fake:m", budget_usd=0.25)
def asked(given: Any, other: Any = None) -> Facts:
    raise NotImplementedError


@step.agent(model={"id": "fake:m", "temperature": 0.5}, turns=3, retries=0, inputs=["*.toml"])
def looked(given: Any, other: Any = None) -> list[Fact]:
    """Look at everything."""
    raise NotImplementedError


@step(produces="out.txt", effects="external", idempotent=True, approve="always")
def sent(given: Any, other: Any = None) -> None: ...


STEPS = (plain, typed, asked, looked, sent)
