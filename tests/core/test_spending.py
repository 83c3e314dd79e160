"""Money and tokens: reserved before a call is sent, settled by its end, never lost from the books."""

from holdfast.core.state import Spent, State
from holdfast.model.event import AttemptLost, CallAnswered, CallFailed, CallStarted, Event
from tests.core.builders import (
    accepted,
    failed,
    follow,
    lost,
    plan,
    ref,
    rejected,
    sid,
    started,
    state_of,
    step,
)

S = sid("s")


def asked(call: int = 1, reserved: int | None = 100, tokens: int = 50) -> CallStarted:
    return CallStarted(S, 1, call, "p:m", ref(f"request {call}"), reserved, tokens)


def heard(call: int = 1, cost: int | None = 20) -> CallAnswered:
    return CallAnswered(S, 1, call, ref("answer"), 10, 5, cost=cost)


def after(*events: Event) -> State:
    return state_of(plan(step("s")), started("s"), *events)


def books(state: State) -> tuple[int, int, Spent]:
    """What is reserved in money and tokens, and what is spent, of the run and of its only step alike."""
    assert state.spent == (state.steps[S].spent or Spent())
    return state.reserved, state.reserved_tokens, state.spent


def test_a_call_reserves_the_most_that_it_may_cost() -> None:
    state = after(asked(1), asked(2, reserved=None, tokens=7))
    assert books(state) == (100, 57, Spent(calls=2))


def test_an_answer_gives_back_what_it_did_not_need() -> None:
    state = after(asked(1), asked(2), heard(1))
    assert books(state) == (100, 50, Spent(cost=20, tokens=15, calls=2))


def test_a_price_that_nobody_knows_is_counted_as_such() -> None:
    assert books(after(asked(), heard(cost=None))) == (0, 0, Spent(tokens=15, calls=1, unpriced=1))


def test_a_call_that_failed_counts_with_what_it_may_have_cost_in_vain() -> None:
    state = after(asked(), CallFailed(S, 1, 1, "cut_off", 60, 30))
    assert books(state) == (0, 0, Spent(cost=60, tokens=30, calls=1, interrupted=60))
    free = after(asked(), CallFailed(S, 1, 1, "refused", 0, 0))
    assert books(free) == (0, 0, Spent(calls=1))


def test_a_call_without_an_end_counts_with_all_that_it_had_reserved() -> None:
    state = after(asked(1), heard(1), asked(2), lost("s"))
    assert books(state) == (0, 0, Spent(cost=120, tokens=65, calls=2, interrupted=100, cut=1))
    unpriced = after(asked(1, reserved=None), lost("s"))
    assert books(unpriced) == (0, 0, Spent(tokens=50, calls=1, unpriced=1, cut=1))


def test_a_call_that_was_never_sent_costs_nothing() -> None:
    state = after(asked(1), asked(2), AttemptLost(S, 1, "limit_reached", unsent=(2,)))
    assert books(state) == (0, 0, Spent(cost=100, tokens=50, calls=1, interrupted=100, cut=1))


def test_what_a_refused_attempt_cost_is_spent_in_vain_and_what_an_accepted_one_did_is_not() -> None:
    talk = (asked(), heard())
    for ending in (rejected("s"), failed("s")):
        assert books(after(*talk, ending))[2] == Spent(20, 15, 1, rejected=20)
    assert books(after(*talk, accepted("s")))[2] == Spent(20, 15, 1)


def test_of_a_refused_attempt_a_call_in_vain_is_not_counted_twice() -> None:
    cut = CallFailed(S, 1, 1, "cut_off", 60, 30)
    state = after(asked(1), cut, asked(2), heard(2), rejected("s"))
    assert state.spent == Spent(80, 45, 2, rejected=20, interrupted=60)


def test_what_a_lost_attempt_heard_is_in_vain_once_the_next_is_refused() -> None:
    state = after(asked(), heard(), lost("s"))
    assert state.spent.rejected == 0
    again = follow(state, started("s", 2), rejected("s", 2))
    assert again.spent == Spent(20, 15, 1, rejected=20)
    assert follow(again, started("s", 3), accepted("s", 3)).spent == again.spent
