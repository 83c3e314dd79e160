"""A step that is mapped is done once for each item, and gives the list of what they made."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import holdfast
from holdfast.api import Result
from holdfast.errors import PlanError, UsageError
from holdfast.model.plan import StepId
from tests.api.flows import imported

pytestmark = [pytest.mark.req("R181", "R182")]

MODULE = """
from dataclasses import dataclass
from pathlib import Path

from holdfast import Guarded, guard, plan, step


@dataclass
class Hit:
    url: str
    words: int


@dataclass
class Fact:
    said: str


@guard
def says_something(out: Fact, hit: Hit) -> Guarded:
    return Guarded.ok() if out.said.startswith(hit.url) else Guarded.reject("says nothing")


@step(inputs="hits.txt")
def search() -> list[Hit]:
    lines = Path("hits.txt").read_text().split()
    return [Hit(line, len(line)) for line in lines]


@step(guards=[says_something])
def extract(hit: Hit, suffix: str = "?") -> Fact:
    if hit.words > 8:
        raise ValueError("too long")
    return Fact(f"{hit.url}{suffix}{hit.words}")


@step
def size(facts: list[Fact]) -> int:
    return sum(len(fact.said) for fact in facts)


@step
def brief(extract: list[Fact], total: int) -> str:
    return ", ".join(fact.said for fact in extract) + f": {total}"


@step
def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@plan
def market(suffix: str = "/"):
    facts = extract.map(search(), key=lambda hit: hit.url, suffix=suffix)
    names(facts)
    return brief(facts, size(facts))


@plan
def fixed(suffix: str = "/"):
    hits = [Hit("a", 1), Hit("b b", 2)]
    return size(extract.map(hits, key=lambda hit: hit.url, suffix=suffix))


@plan
def counted():
    return square.map(range(3))


@step
def square(number: int) -> int:
    return number * number


@plan
def wrong():
    return step(inline=True)(lambda x: x).named("w").map([1])
"""


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[ModuleType]:
    (tmp_path / "mapped.py").write_text(MODULE)
    (tmp_path / "hits.txt").write_text("a/b c\n")
    with imported(tmp_path, "mapped") as module:
        yield module


def states(result: Result) -> dict[str, str]:
    return {name: result[name].state for name in result}


def test_values_of_items_are_typed_and_only_new_items_run(flow: ModuleType, tmp_path: Path) -> None:
    result = flow.market.build().run()
    assert result.status == "completed", str(result["extract"].why())
    assert result["brief"].value == "a/b/3, c/1: 8"
    assert result["names"].value == ["a%2Fb", "c", "index.json"]
    assert result[flow.extract].value == [flow.Fact("a/b/3"), flow.Fact("c/1")]
    assert [item.id for item in result[flow.extract]] == ["extract[a%2Fb]", "extract[c]"]
    assert result["extract"][0].attempts[0].status == "accepted"
    assert result["extract"]["a/b"].value == result["extract[a/b]"].value == flow.Fact("a/b/3")
    assert len(result["extract"]) == 2
    assert len(result["brief"]) == 0
    with pytest.raises(KeyError):
        result["extract"]["d"]
    (tmp_path / "hits.txt").write_text("c dd\n")
    found = states(flow.market.build().run())
    assert found["extract[c]"] == "reused"
    assert found["extract[dd]"] == "done"
    assert "extract[a%2Fb]" not in found


def test_an_item_that_fails_is_told_and_the_others_stand(flow: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "hits.txt").write_text("ok much/too/long\n")
    result = flow.market.build().run()
    assert result.status == "failed"
    assert result["extract"]["ok"].state == "done"
    assert result["extract"]["much/too/long"].state == "failed"
    assert result["extract"].state == result["brief"].state == "skipped"
    with pytest.raises(UsageError, match="made nothing: it is failed"):
        result["extract"].value  # noqa: B018 - it is asked for


@pytest.mark.parametrize("name", ["market", "fixed", "counted"])
def test_a_mapped_plan_comes_back_from_its_file(
    flow: ModuleType, tmp_path: Path, name: str
) -> None:
    made = getattr(flow, name).build()
    (tmp_path / "again.yaml").write_text(made.to_yaml())
    again = holdfast.load(str(tmp_path / "again.yaml"))
    assert again.build() == made.build()
    (tmp_path / "third.yaml").write_text(again.to_yaml())
    third = holdfast.load(str(tmp_path / "third.yaml"))
    assert third.steps == made.steps


def test_a_list_of_the_program_is_known_before_the_run(flow: ModuleType) -> None:
    made = flow.fixed.build()
    assert {"extract[a]", "extract[b%20b]"} <= made.steps.keys()
    assert made.run()["size"].value == len("a/1") + len("b b/2")
    assert flow.counted.build().run()["square"].value == [0, 1, 4]


def test_what_cannot_be_mapped_is_refused(flow: ModuleType) -> None:
    with pytest.raises(UsageError, match=r"inline and cannot be done for each"):
        flow.wrong.build()
    with pytest.raises(UsageError, match=r"belongs into a @plan function"):
        flow.square.map([1])

    @holdfast.plan
    def given() -> None:
        flow.extract.map([1], hit=2)

    with pytest.raises(UsageError, match="'hit' of 'extract' is the item, and is given for all"):
        given.build()

    @holdfast.plan
    def twice() -> None:
        flow.square.map([1, 1])

    with pytest.raises(PlanError, match="the same key"):
        twice.build()


def test_conditions_and_sub_plans_come_back_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(
        "steps: {a: {shell: echo 1}, b: {needs: [a], for_each: [x, y], shell: echo 2}}"
    )
    (tmp_path / "plan.yaml").write_text(
        "name: p\nsteps:\n  s: {uses: plan, run: inner.yaml}\n"
        "  w: {shell: echo w, when: {steps.s.output.b.0: {at_least: 2}}, optional: true}\n"
        "  l: {shell: echo l, needs: [w]}\n"
    )
    made = holdfast.load(str(tmp_path / "plan.yaml"))
    (tmp_path / "again.yaml").write_text(made.to_yaml())
    assert holdfast.load(str(tmp_path / "again.yaml")).build() == made.build()
    assert set(states(made.run()).values()) == {"done"}


FOUND = """name: found
steps:
  numbers: {uses: python, run: 'work:numbers'}
  all:
    uses: python
    run: 'work:one'
    for_each: ${{ steps.numbers.output }}
    with: {number: "${{ item }}"}
"""


def test_a_run_that_was_repeated_keeps_its_state_when_the_store_is_gone(tmp_path: Path) -> None:
    def again() -> Result:
        plan = holdfast.Plan("kept", root=str(tmp_path))
        plan.step("one", lambda: "1", inline=True)
        return holdfast.run(plan)

    _, _, found = (again() for _ in range(3))
    assert [*(tmp_path / ".holdfast" / "unchanged").iterdir()]
    shutil.rmtree(tmp_path / ".holdfast")
    assert found["one"].state == "reused"


def test_an_id_that_is_no_text_is_refused_as_any_other(tmp_path: Path) -> None:
    plan = holdfast.Plan("numbers", root=str(tmp_path))
    plan.step(5, lambda: "1", inline=True)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="'5' is not a step id"):
        holdfast.run(plan)


def test_a_run_that_was_repeated_by_its_note_can_be_looked_into(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(FOUND, encoding="utf-8")

    def one(number: int) -> str:
        return str(number)

    def again() -> Result:
        plan = holdfast.load(str(tmp_path / "plan.yaml"))
        items = {StepId(f"all[{number}]"): one for number in range(3)}
        plan.functions = {StepId("numbers"): lambda: "[0, 1, 2]", **items}
        return holdfast.run(plan)

    _, _, found = (again() for _ in range(3))
    assert [*(tmp_path / ".holdfast" / "unchanged").iterdir()]
    assert found.state.counts["reused"] == len(found) == 5
