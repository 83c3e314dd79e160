"""Every call and what became of it: used, rejected, interrupted, kept for the next attempt."""

from collections.abc import Iterable

import pytest

from holdfast.core.outlay import Account, Begun, Reuse, Tally, Totals, account_of, summed
from holdfast.core.reasons import UNANSWERED
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptRejected,
    CallAnswered,
    CallFailed,
    CallStarted,
    Event,
    Options,
    Recorded,
    Reused,
    RunStarted,
    StepsReused,
    StepsTaken,
    Taken,
)
from holdfast.model.plan import RunId, StepId

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


# --- what counts against a budget ----------------------------------------------------------------------


def spent(*events: Event, since: int = 0) -> int:
    tally = Tally(since)
    for seq, event in enumerate(events, 1):
        tally.take(Recorded(seq, seq * 10, event))
    return tally.spent


def test_a_call_under_way_counts_with_all_that_it_reserved_and_then_with_what_it_cost() -> None:
    assert spent(start(1, 1), start(1, 2)) == 200
    assert spent(start(1, 1), start(1, 2), answer(1, 1)) == 130
    assert spent(start(1, 1), CallFailed(A, 1, 1, "cut_off", 60, 7)) == 60
    assert spent(start(1, 1, None), answer(1, 1, None)) == 0


def test_a_lost_attempt_counts_with_what_was_sent() -> None:
    lost = AttemptLost(A, 1, "lost", unsent=(2,))
    assert spent(start(1, 1), start(1, 2), start(2, 1), lost) == 200
    assert spent(start(1, 1), answer(1, 1), lost) == 30


def test_only_what_ended_since_the_moment_counts_and_what_is_under_way() -> None:
    both = (start(1, 1), answer(1, 1), start(1, 2), answer(1, 2, 7))  # they end at 20 and at 40
    assert spent(*both, since=20) == 37
    assert spent(*both, since=21) == 7
    assert spent(*both, since=41) == 0
    assert spent(start(1, 1), since=99) == 100
    assert spent(answer(1, 1), since=10) == 30, "it began before what is looked at"


def test_a_call_that_was_never_sent_is_none() -> None:
    lost = AttemptLost(A, 1, "limit_reached", unsent=(2,))
    account = read([start(1, 1), start(1, 2), lost, AttemptAccepted(A, 2, MADE)])
    assert [call.fate for call in account.calls] == ["interrupted"]
    assert whole(account).calls == 1
    assert account.made[0].cost == 100
    assert account.made[0].tokens == 50
    assert account.made[0].model == "p:m"


def test_sums_know_of_each_fate_how_much_has_no_price() -> None:
    refused: list[Event] = [start(1, 1, None), answer(1, 1, None), AttemptRejected(A, 1, "g")]
    cut: list[Event] = [start(1, 1, None), AttemptLost(A, 1, "lost")]
    found = whole(read(refused, cut))
    assert (found.unpriced, found.unpriced_rejected, found.unpriced_cut) == (2, 1, 1)
    assert (found.rejected, found.interrupted, found.cut) == (0, 0, 1)
    made: list[Event] = [start(1, 1, None), answer(1, 1, None), AttemptAccepted(A, 1, MADE)]
    taken = StepsReused((Reused(A, ASKED, MADE),))
    saved = whole(read(made, [taken]))
    assert (saved.saved, saved.unpriced_saved) == (0, 1)


def test_sums_begin_at_a_moment_and_it_belongs_to_them() -> None:
    account = read([start(1, 1), answer(1, 1), start(1, 2), answer(1, 2, 7)])
    assert summed(account, lambda _: "all", {}, since=20)["all"].calls == 2
    assert summed(account, lambda _: "all", {}, since=21)["all"].cost == 7
    assert summed(account, lambda _: "all", {}, since=41) == {}


def test_an_attempt_that_failed_without_an_answer_leaves_those_it_has_to_the_next() -> None:
    told: list[Event] = [start(1, 1), answer(1, 1)]
    kept = whole(read([*told, AttemptFailed(A, 1, min(UNANSWERED))]))
    assert kept.rejected == 0
    gone = whole(read([*told, start(1, 2), AttemptFailed(A, 1, "command_failed")]))
    assert (gone.rejected, gone.interrupted) == (30, 100)


def test_what_was_reused_at_the_moment_counts_too() -> None:
    made: list[Event] = [start(1, 1), answer(1, 1), AttemptAccepted(A, 1, MADE)]
    account = read(made, [StepsReused((Reused(A, ASKED, MADE),))])  # at 10
    assert summed(account, lambda item: item.run, account.saved(), since=10)["r-1"].saved == 30
    assert "r-1" not in summed(account, lambda item: item.run, account.saved(), since=11)


def test_each_call_ends_with_what_became_of_it() -> None:
    account = read(
        [
            start(1, 1),
            answer(1, 1),
            CallStarted(StepId("b"), 1, 1, "p:m", ASKED, 100, 50),
            start(1, 2),
            AttemptAccepted(A, 1, MADE),
            start(2, 1),
            CallFailed(A, 2, 1, "rate_limited", 0),
            start(2, 2),
            AttemptFailed(A, 2, min(UNANSWERED)),
            start(3, 1),
            answer(3, 1),
            AttemptRejected(A, 3, "g"),
            start(4, 1),
            CallFailed(A, 4, 1, "cut_off", 70, 9),
            start(5, 1),
            answer(5, 1),
        ]
    )
    assert [(call.step, call.fate, call.cost, call.tokens) for call in account.calls] == [
        ("a", "used", 30, 15),
        ("b", "open", 100, 50),
        ("a", "interrupted", 100, 50),
        ("a", "failed", 0, 0),
        ("a", "interrupted", 100, 50),
        ("a", "rejected", 30, 15),
        ("a", "interrupted", 70, 9),
        ("a", "answered", 30, 15),
    ]
    first = account.calls[0]
    assert (first.run, first.attempt, first.model, first.request) == ("r-0", 1, "p:m", ASKED)
    assert (first.at, account.calls[1].at) == (20, 30), "when it ended, else when it began"
    (made,) = account.made
    assert (made.run, made.step, made.at, made.digest) == ("r-0", A, 50, MADE)
    assert [call.fate for call in made.calls] == ["used", "interrupted"]


def test_a_call_counts_nothing_before_it_is_answered() -> None:
    (call,) = read([start(1, 1)]).calls
    assert (call.input, call.output, call.fate) == (0, 0, "open")
    assert Tally() == Tally(since=0, spent=0)
    assert whole(read([start(1, 1)])) == Totals(
        calls=1, tokens=50, cost=100, interrupted=100, cut=1
    )


def test_an_attempt_without_calls_made_nothing_that_was_paid_for() -> None:
    assert read([AttemptAccepted(A, 1, MADE)]).made == []
    once = read(
        [start(1, 1), answer(1, 1), AttemptAccepted(A, 1, MADE), AttemptAccepted(A, 2, SAID)]
    )
    assert [one.digest for one in once.made] == [MADE], "what it took counts once"


def test_a_run_is_known_as_it_began() -> None:
    start_of = RunStarted(RunId("r-0"), "line", "p", ASKED, SAID, Options(), "e")
    taken = StepsTaken((Taken(A, ASKED, ASKED, ASKED, MADE, "bytes", "generated", True, True, 1),))
    account = read([start_of, taken])
    assert account.runs == {"r-0": Begun(10, "line", "p", ASKED)}
    assert account.reused == [Reuse(RunId("r-0"), A, 20, MADE)]


def test_a_lost_attempt_ends_the_calls_of_no_other() -> None:
    lost = AttemptLost(A, 1, "lost")
    assert spent(start(1, 1), start(2, 1), lost, answer(2, 1)) == 130
