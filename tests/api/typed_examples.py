"""What a type checker sees of plans in Python: this file is checked with the rest, strictly."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

from holdfast import Guarded, Plan, guard, plan, step
from holdfast.api import Handle, Preview, Result, StepResult, Why


@dataclass
class Hit:
    url: str


@dataclass
class Facts:
    facts: list[str]


@guard
def cites(out: Facts, hit: Hit) -> Guarded:
    bad = [fact for fact in out.facts if fact not in hit.url]
    return Guarded.reject(f"not in the source: {bad}") if bad else Guarded.ok()


@step(retries=2)
def search(topic: str) -> list[Hit]:
    return [Hit(topic)]


@step
async def fetch(topic: str) -> bytes:
    return topic.encode()


@step(retries=1)
async def weigh(topic: str) -> int:
    return len(topic)


@step.agent(prompt="prompts/extract.md", guards=[cites], budget_usd=0.50, tools=[len])
def extract(hit: Hit) -> Facts:
    raise NotImplementedError


@step.llm
def brief(facts: list[Facts]) -> str:
    """Write a brief."""
    raise NotImplementedError


@step(effects="external", approve="always")
def publish(brief: Path) -> None: ...


@plan
def market_brief(topic: str = "heat pumps") -> None:
    hits = search(topic)
    assert_type(hits, list[Hit])
    assert_type(fetch(topic), bytes)
    assert_type(weigh(topic), int)
    facts = extract.map(hits, key=lambda hit: hit.url)
    assert_type(facts, list[Facts])
    publish.named("out").after(hits)(Path(brief(facts)))


def use() -> None:
    made = market_brief.build(topic="boilers")
    assert_type(made, Plan)
    assert_type(made.preview(force=True), Preview)
    result = made.run(max_cost=5, jobs=2)
    assert_type(result, Result)
    assert_type(result[extract], StepResult[Facts])
    assert_type(result[extract].value, Facts)
    assert_type(result["extract"].value, Any)
    assert_type(result.why("extract"), Why)
    assert_type(made.start(), Handle)
    market_brief.build(1)  # type: ignore[arg-type]
    extract(Facts([]))  # type: ignore[arg-type]
    step(retires=1)  # type: ignore[call-overload]
