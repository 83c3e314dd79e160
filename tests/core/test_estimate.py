"""Estimates: laws that hold for any history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.estimate import (
    ENOUGH,
    NOTHING,
    UNKNOWN,
    Estimate,
    Judge,
    Looked,
    Total,
    asked_models,
    either,
    from_history,
    from_price,
    from_size,
    from_template,
    judges_of,
    looked_back,
    total,
)
from holdfast.core.outlay import Account, Made, Outlay
from holdfast.model.digest import Digest
from holdfast.model.plan import Guard, RunId, Step, StepId

pytestmark = pytest.mark.req("R166")

COSTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=15)
HISTORIES = st.dictionaries(st.text(min_size=1, max_size=5).map(StepId), COSTS, max_size=8)


def known(histories: dict[StepId, list[int]]) -> dict[StepId, Estimate]:
    return {step: from_history(costs) for step, costs in histories.items()}


@given(COSTS)
def test_typical_and_high_really_occurred(costs: list[int]) -> None:
    found = from_history(costs)
    assert found.p50 in costs
    assert found.p90 in costs
    assert found.p50 is not None
    assert found.p90 is not None
    assert found.p50 <= found.p90
    assert (found.basis, found.attempts) == ("history", min(len(costs), ENOUGH))


@given(HISTORIES)
def test_a_total_lies_between_the_least_and_the_most(histories: dict[StepId, list[int]]) -> None:
    found = total(known(histories))
    newest = [costs[-ENOUGH:] for costs in histories.values()]
    assert sum(map(min, newest)) <= found.p50 <= found.p90 <= sum(map(max, newest))


@given(HISTORIES, st.randoms(use_true_random=False))
def test_a_total_is_the_same_whatever_the_order(
    histories: dict[StepId, list[int]], source: "object"
) -> None:
    steps = list(histories)
    source.shuffle(steps)  # type: ignore[attr-defined]  # hypothesis gives a Random
    assert total(known({step: histories[step] for step in steps})) == total(known(histories))


@given(HISTORIES, st.integers(1, 1000))
def test_what_costs_so_many_times_as_much_is_foreseen_so(
    histories: dict[StepId, list[int]], times: int
) -> None:
    more = {step: [cost * times for cost in costs] for step, costs in histories.items()}
    found, scaled = total(known(histories)), total(known(more))
    assert (scaled.p50, scaled.p90) == (found.p50 * times, found.p90 * times)


@given(COSTS)
def test_the_total_of_one_step_is_the_step(costs: list[int]) -> None:
    found, one = total({StepId("a"): from_history(costs)}), from_history(costs)
    assert (found.p50, found.p90) == (one.p50, one.p90)


def test_high_totals_are_less_than_the_sum_of_high_steps() -> None:
    history = from_history([10, 10, 10, 10, 10, 10, 10, 10, 100, 100])
    found = total({StepId(f"s{n}"): history for n in range(20)})
    assert found.p90 < 20 * 100 * 0.5
    assert 20 * 28 * 0.8 < found.p50 < 20 * 28 * 1.2


def test_a_price_that_is_not_known_is_counted_and_not_added() -> None:
    found = total({StepId("a"): UNKNOWN, StepId("b"): from_history([7]), StepId("c"): NOTHING})
    assert (found.p50, found.p90, found.unknown) == (7, 7, 1)
    assert from_history([5, None]).p50 is None
    assert from_history([None, 5]).costs == (5,)
    assert total({}) == total({StepId("a"): NOTHING})._replace(without_history=0)


@given(COSTS, st.integers(1, 10**6), st.integers(1, 10**6))
def test_another_step_with_the_same_prompt_tells_in_the_ratio_of_what_is_read(
    costs: list[int], size: int, read: int
) -> None:
    found = from_template([(cost, read) for cost in costs], size)
    assert found.basis == "history"
    ratio = min(10.0, max(0.1, size / read))
    assert found.costs == tuple(round(cost * ratio) for cost in costs[-ENOUGH:])


def test_without_history_the_price_bounds_it() -> None:
    assert from_price(100, 3, None, bounded=True) == Estimate(
        (100, 100, 300), "price", bounded=True
    )
    assert from_price(100, 3, 250, bounded=False) == Estimate(
        (100, 100, 250), "price", bounded=True
    )
    assert from_price(100, 3, 1000, bounded=False).bounded is False
    assert from_price(None, 3, None, bounded=False) == UNKNOWN
    assert from_price(None, 3, 250, bounded=False).p50 == 250


@given(COSTS, COSTS)
def test_what_guards_refuse_costs_the_look_and_then_the_making(
    look: list[int], made: list[int]
) -> None:
    first, then = from_history(look), from_history(made)
    found = either(first, then)
    assert first.p50 is not None
    assert then.p90 is not None
    assert (found.p50, found.p90) == (first.p50, first.p50 + then.p90)
    assert (found.basis, found.bounded) == ("history", False)
    assert either(first, UNKNOWN) == either(UNKNOWN, then) == UNKNOWN


@given(st.integers(0, 10**6), st.integers(1, 9), st.none() | st.integers(0, 10**6))
def test_tokens_are_bounded_as_prices_are(once: int, tries: int, most: int | None) -> None:
    found = from_size(once, tries, most)
    assert found.costs == from_price(once, tries, most, bounded=False).costs
    assert found.basis == "size"


def test_judges_are_counted_with_their_votes() -> None:
    twice = Guard("judge", {"model": "p:m", "votes": 2})
    both = Guard("any", items=(twice, Guard("judge", {"model": "p:n"})))
    step = Step(StepId("a"), uses="llm", model="p:m", guards=(both, Guard("judge", {})))
    assert [(one.model, one.votes) for one in judges_of(step)] == [
        ("p:m", 2),
        ("p:n", 1),
        ("p:m", 1),
    ]
    assert judges_of(Step(StepId("b"), guards=(Guard("regex"),))) == []


def test_a_step_asks_its_own_model_and_those_of_its_guards() -> None:
    judge = Guard("judge", {"model": "p:judge"})
    step = Step(StepId("a"), uses="llm", model="p:m", guards=(Guard("all", items=(judge,)),))
    assert asked_models(step) == ("p:m", "p:judge")
    assert asked_models(Step(StepId("b"), shell="true")) == ()


def made(run: str, step: str, cost: int | None, at: int, model: str = "p:m") -> Made:
    call = Outlay(RunId(run), StepId(step), 1, model, Digest(""), at, cost, 10, fate="used")
    return Made(RunId(run), StepId(step), at, Digest(f"{run}{step}"), (call,))


def test_looking_back_a_run_is_held_to_what_the_runs_before_it_let_expect() -> None:
    ones = [made("r1", "a", 100, 1), made("r2", "a", 110, 2), made("r2", "b", 50, 3)]
    ones += [made("r3", "a", 400, 4), made("r3", "b", 60, 5), made("r4", "a", 1, 6, "p:other")]
    found = looked_back(Account(made=ones))
    assert found == {
        RunId("r2"): Looked(100, 110, partly=True),
        RunId("r3"): Looked(150, 460, partly=False),
    }
    assert not found[RunId("r2")].is_off
    assert found[RunId("r3")].is_off
    assert looked_back(Account(made=[*ones[:1], made("r2", "a", None, 2)])) == {}


@pytest.mark.parametrize(
    ("expected", "actual", "is_off"),
    [(10, 20, False), (10, 21, True), (20, 10, False), (21, 10, True), (0, 0, False), (0, 1, True)],
)
def test_more_than_twice_as_much_is_off(expected: int, actual: int, *, is_off: bool) -> None:
    assert Looked(expected, actual, partly=False).is_off is is_off


@pytest.mark.parametrize(("size", "read"), [(0, 5), (5, 0), (0, 0)])
def test_where_nobody_knows_what_is_read_the_cost_stays_as_it_was(size: int, read: int) -> None:
    assert from_template([(7, read)], size).costs == (7,)


@pytest.mark.parametrize("tries", [0, 1])
def test_there_is_one_try_at_least(tries: int) -> None:
    assert from_price(100, tries, None, bounded=True).costs == (100, 100, 100)
    assert from_size(100, tries, None).costs == (100, 100, 100)


def test_a_step_whose_items_are_not_known_asks_the_models_of_its_items() -> None:
    item = Step(StepId("each"), uses="llm", model="p:m", guards=(Guard("judge", {"model": "p:j"}),))
    each = Step(StepId("each"), for_each="${{ steps.list }}", template=item)
    assert each.awaits_items
    assert asked_models(each) == ("p:m", "p:j")
    assert asked_models(each, about_it=True) == ("p:j",)


def test_nothing_costs_nothing() -> None:
    assert total({}) == Total() == Total(p50=0, p90=0, unknown=0, attempts=0, without_history=0)


def test_a_judge_has_its_rubric() -> None:
    step = Step(StepId("a"), guards=(Guard("judge", {"model": "p:m", "rubric": "is it short?"}),))
    assert judges_of(step) == [Judge("p:m", "is it short?", 1)]


def test_any_name_of_a_step_can_be_counted() -> None:
    found = total({StepId("a\udc80"): from_history([1, 2]), StepId("b"): from_history([1, 2])})
    assert 2 <= found.p50 <= found.p90 <= 4


def test_runs_are_looked_back_at_in_the_order_of_time_whatever_their_names() -> None:
    ones = [made("r2", "a", 110, 2), made("r9", "a", 100, 1)]
    assert looked_back(Account(made=ones)) == {RunId("r2"): Looked(100, 110, partly=False)}
