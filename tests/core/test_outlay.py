"""Every call and what became of it: used, rejected, interrupted, kept for the next attempt."""

from collections.abc import Iterable

import pytest

from holdfast.core.outlay import Account, Totals, account_of, summed
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptLost,
    AttemptRejected,
    CallAnswered,
    CallFailed,
    CallStarted,
    Event,
    Recorded,
    Reused,
    StepsReused,
)
from holdfast.model.plan import StepId

pytestmark = pytest.mark.req("R167")

A = StepId("a")
MADE, ASKED, SAID = Digest("1" * 64), Digest("2" * 64), Digest("3" * 64)


def start(attempt: int, call: int, reserved: int | None = 100) -> CallStarted:
    return CallStarted(A, attempt, call, "p:m", ASKED, reserved, 50)


def answer(attempt: int, call: int, cost: int | None = 30) -> CallAnswered:
    return CallAnswered(A, attempt, call, SAID, 10, 5, cost=cost)


def read(*runs: Iterable[Event]) -> Account:
    return account_of(
        (f"run:r-{number}", Recorded(seq, seq * 10, event))
        for number, events in enumerate(runs)
        for seq, event in enumerate(events, 1)
    )


def whole(account: Account) -> Totals:
    return summed(account, lambda _: "all", account.saved())["all"]


def test_a_call_of_an_accepted_attempt_was_worth_it() -> None:
    account = read([start(1, 1), answer(1, 1), AttemptAccepted(A, 1, MADE)])
    assert whole(account) == Totals(calls=1, input=10, output=5, tokens=15, cost=30)
    assert [(one.step, one.digest, one.cost) for one in account.made] == [(A, MADE, 30)]


def test_what_a_rejected_attempt_cost_is_lost_and_part_of_what_it_took() -> None:
    account = read(
        [
            start(1, 1),
            answer(1, 1),
            AttemptRejected(A, 1, "g"),
            start(2, 1),
            answer(2, 1, 40),
            AttemptAccepted(A, 2, MADE),
        ]
    )
    assert (whole(account).cost, whole(account).rejected) == (70, 30)
    assert account.made[0].cost == 70


def test_an_answer_of_a_lost_attempt_is_not_lost() -> None:
    begun: list[Event] = [start(1, 1), answer(1, 1), AttemptLost(A, 1, "previous_interrupted")]
    used = whole(read([*begun, AttemptAccepted(A, 2, MADE)]))
    assert (used.cost, used.rejected, used.interrupted) == (30, 0, 0)
    refused = whole(read([*begun, AttemptRejected(A, 2, "g")]))
    assert (refused.cost, refused.rejected) == (30, 30)


@pytest.mark.parametrize("end", [[AttemptLost(A, 1, "previous_interrupted")], []])
def test_a_call_that_was_cut_off_may_have_cost_all_that_it_reserved(end: list[Event]) -> None:
    found = whole(read([start(1, 1), *end]))
    assert (found.cost, found.interrupted, found.cut, found.tokens) == (100, 100, 1, 50)


def test_a_call_that_was_refused_cost_nothing() -> None:
    refused = CallFailed(A, 1, 1, "rate_limited", 0)
    broken = CallFailed(A, 1, 2, "cut_off", 100, 50)
    found = whole(read([start(1, 1), refused, start(1, 2), broken, start(1, 3), answer(1, 3)]))
    assert (found.calls, found.cost, found.interrupted, found.cut) == (3, 130, 100, 1)


def test_a_price_that_is_not_known_is_counted_apart() -> None:
    account = read([start(1, 1, None), answer(1, 1, None), AttemptAccepted(A, 1, MADE)])
    assert (whole(account).cost, whole(account).unpriced) == (0, 1)
    assert account.made[0].cost is None


def test_reuse_saves_what_the_making_cost_each_time() -> None:
    reused = StepsReused((Reused(A, ASKED, MADE), Reused(StepId("b"), ASKED, SAID)))
    account = read([start(1, 1), answer(1, 1), AttemptAccepted(A, 1, MADE)], [reused], [reused])
    assert (whole(account).cost, whole(account).saved) == (30, 60)
    later = summed(account, lambda item: item.run, account.saved(), since=15)
    assert {run: row.saved for run, row in later.items()} == {"r-0": 0}


@pytest.mark.parametrize(
    ("end", "cost"), [(answer(1, 1), 30), (CallFailed(A, 1, 1, "cut_off", 40, 7), 40)]
)
def test_a_call_that_began_before_what_is_looked_at_counts_when_it_ended(
    end: Event, cost: int
) -> None:
    account = read([end])
    assert [(call.at, call.cost) for call in account.calls] == [(10, cost)]
    assert whole(account).cost == cost
