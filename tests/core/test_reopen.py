"""Beyond the retries: a step that cannot get through sends one above it back, then asks a person."""

from dataclasses import replace

import pytest

from holdfast.core.decide import free, settle
from holdfast.core.react import may_start
from holdfast.core.reopen import beyond, reopenings, sent_back, stagnates
from holdfast.core.state import Fed, State
from holdfast.model.event import (
    AttemptFailed,
    AttemptRejected,
    Event,
    Options,
    Reason,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReopened,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.plan import Step
from tests.core.builders import (
    accepted,
    failed,
    follow,
    lost,
    plan,
    ref,
    rejected,
    reused,
    sid,
    started,
    state_of,
    step,
    waived,
)

A, B, C, D = map(sid, "abcd")
STUCK = StepHeld(C, Reason("stuck"))


def held(above: str, name: str = "c") -> StepHeld:
    return StepHeld(sid(name), Reason("reopening", (sid(above),)))


def asking(*above: str, rounds: int = 1) -> Step:
    return replace(step("c", "b"), escalate=above, rounds=rounds, retries=0)


def chain(last: Step | None = None) -> tuple[Step, ...]:
    return (step("a"), step("b", "a"), last or asking("b"), step("d", "a"))


def after(*events: Event, last: Step | None = None, options: Options | None = None) -> State:
    return state_of(plan(*chain(last)), *events, options=options)


BELOW = (reused("a", "b"), started("c"))


# --- patience ------------------------------------------------------------------------------------


def tried(*alike: str | None, patience: int | None = 3) -> bool:
    """Whether the last of these equal or different words is once too often."""
    of = plan(replace(step("s"), patience=patience, retries=9))
    state = state_of(of)
    for attempt, words in enumerate(alike, 1):
        said = None if words is None else ref(words)
        ending = replace(rejected("s", attempt), alike=said)
        follow(state, started("s", attempt))
        if attempt == len(alike):
            return stagnates(state, ending)
        follow(state, ending)
    raise AssertionError


def test_the_same_words_as_often_as_the_step_has_patience_for_are_enough() -> None:
    assert tried("x", "x", "x")
    assert tried("y", "x", "x", "x")
    assert not tried("x", "x")
    assert not tried("x", "y", "x")
    assert not tried("y", "x", "x")
    assert not tried("x", "x", "y")
    assert tried("x", patience=1)


def test_without_patience_or_words_nothing_stagnates() -> None:
    assert not tried("x", "x", "x", patience=None)
    assert not tried(None, None, None)


def test_equal_words_of_another_guard_are_others() -> None:
    of = plan(replace(step("s"), patience=2, retries=9))
    first = AttemptRejected(sid("s"), 1, "g", ref("bad"), feedback=ref("no"), alike=ref("x"))
    state = state_of(of, started("s"), first, started("s", 2))
    assert stagnates(state, replace(first, attempt=2))
    assert not stagnates(state, replace(first, attempt=2, guard="h"))
    assert not stagnates(state, AttemptFailed(sid("s"), 2, "command_failed", alike=ref("x")))


def test_a_step_that_stagnates_gives_up_before_its_tries_are_spent() -> None:
    of = plan(replace(step("s"), patience=2, retries=9))
    wrong = replace(failed("s"), alike=ref("x"))
    state = state_of(of, started("s"), wrong, started("s", 2))
    again = replace(wrong, attempt=2)
    assert settle(state, again) == [
        again,
        StepFailed(sid("s"), Reason("stagnated", ("its command",))),
    ]
    refused = replace(rejected("s"), alike=ref("x"))
    state = state_of(of, started("s"), refused, started("s", 2))
    again_refused = replace(refused, attempt=2)
    reason = Reason("stagnated", ("guard 'g'",))
    assert settle(state, again_refused) == [again_refused, StepFailed(sid("s"), reason)]


# --- who is sent back -----------------------------------------------------------------------------


def test_a_step_without_anybody_to_ask_simply_fails() -> None:
    assert beyond(after(*BELOW, last=step("c", "b")), step("c", "b")) is None


def test_each_step_of_the_list_has_its_turn_as_often_as_there_are_rounds_then_a_person() -> None:
    state = after(*BELOW, last=asking("b", "a", rounds=2))
    turns = []
    for count in range(5):
        state.steps[C].reopened = count
        turns.append(beyond(state, state.plan.steps[C]))
    assert turns == [held("b"), held("a"), held("b"), held("a"), STUCK]


def test_who_is_not_made_in_this_run_cannot_help() -> None:
    only = Options(select=(A, C))
    last = asking("b", "a")
    assert beyond(after(*BELOW, last=last, options=only), last) == held("a")
    gone = after(reused("a"), waived("b"), started("c"), last=last)
    assert beyond(gone, last) == STUCK  # it is not made from either


@pytest.mark.parametrize(
    "ending", [rejected("c"), rejected("c", fatal=True), failed("c")], ids=["no", "fatal", "failed"]
)
def test_what_went_wrong_with_the_candidate_is_for_those_above(
    ending: AttemptRejected | AttemptFailed,
) -> None:
    assert settle(after(*BELOW), ending) == [ending, held("b")]


def test_what_no_other_version_can_help_is_a_failure() -> None:
    refused = AttemptFailed(C, 1, "credentials_missing")
    assert settle(after(*BELOW), refused)[1:] == [StepFailed(C, Reason("credentials_missing"))]


def test_who_stagnates_asks_those_above_too() -> None:
    last = replace(asking("b"), retries=9, patience=1)
    no = replace(rejected("c"), alike=ref("x"))
    assert settle(after(*BELOW, last=last), no) == [no, held("b")]


# --- sending back ---------------------------------------------------------------------------------

HELD = (*BELOW, rejected("c"), held("b"))


def test_the_step_above_is_made_again_with_what_went_wrong_below() -> None:
    state = after(*HELD)
    (event,) = reopenings(state)
    assert event == StepsReopened(B, C, (B, C), "g", ref("bad"), ref("no"))
    follow(state, event)
    above, below = state.steps[B], state.steps[C]
    assert (above.phase, below.phase) == ("pending", "pending")
    assert above.fed == (Fed(ref("bad"), "c: g", ref("no")),)
    assert (above.sent_back, below.reopened) == (1, 1)
    assert above.remade
    assert above.stood
    assert above.last == below.last == Reason("reopened", (C,))
    assert (below.rejections, below.reason) == (0, None)
    assert state.ready == {B, D}
    assert state.frozen == frozenset()
    assert reopenings(state) == ()
    follow(state, started("b"), accepted("b"))
    assert state.ready == {C, D}


def test_nothing_starts_on_the_old_version_and_what_runs_ends_first() -> None:
    of = plan(*chain(asking("a")))
    state = state_of(of, *BELOW, started("d"), rejected("c"), held("a"))
    assert state.frozen == {A, B, C, D}
    assert reopenings(state) == ()
    follow(state, accepted("d"))
    (event,) = reopenings(state)
    assert event == StepsReopened(A, C, (A, B, D, C), "g", ref("bad"), ref("no"))
    waiting = state_of(of, *BELOW, rejected("c"), held("a"))
    assert not may_start(waiting, D)


def test_of_several_that_wait_the_topmost_step_is_sent_back_first() -> None:
    of = plan(step("a"), step("b", "a"), asking("b"), replace(step("d", "a"), escalate=("a",)))
    state = state_of(
        of, *BELOW, started("d"), rejected("c"), held("b"), rejected("d"), held("a", "d")
    )
    event = reopenings(state)[0]
    assert isinstance(event, StepsReopened)
    assert (event.step, event.by) == (A, D)


def test_a_waiting_effect_stays_as_it_is() -> None:
    of = plan(step("a"), replace(step("b", "a"), effects="external"), asking("a"))
    unknown = StepHeld(B, Reason("effect_unconfirmed"))
    state = state_of(of, reused("a"), started("b"), lost("b"), unknown)
    assert sent_back(state, A, [A, B, C]) == [A]
    asked = StepHeld(B, Reason("awaiting_approval"))
    state = state_of(of, reused("a"), asked)
    assert sent_back(state, A, [A, B, C]) == [A, B, C]


def test_an_effect_that_a_person_rejected_is_not_repeated_if_it_may_have_happened() -> None:
    of = plan(step("a"), replace(step("b", "a"), effects="external"))
    no = StepFailed(B, Reason("rejected_by_person"))
    assert sent_back(state_of(of, reused("a"), no), A, [A, B]) == [A]
    tried_once = state_of(of, reused("a"), started("b"), failed("b"), no)
    assert sent_back(tried_once, A, [A, B]) == [A, B]
    harmless = plan(step("a"), step("b", "a"))
    assert sent_back(state_of(harmless, reused("a"), no), A, [A, B]) == [A, B]


def test_what_was_not_selected_stays_out_and_what_a_condition_left_out_is_judged_again() -> None:
    of = plan(step("a"), step("b", "a"), step("c", "b"))
    for code, moved in (("not_selected", [A]), ("condition_unmet", [A, B])):
        left = StepsSkipped((Skipped(B, code, B),))
        assert sent_back(state_of(of, reused("a"), left), A, [A, B]) == moved


def test_a_skipped_step_stays_out_while_something_else_keeps_it_so() -> None:
    of = plan(step("a"), step("b"), step("c", "a", "b"))
    lost_both = (
        StepFailed(B, Reason("command_failed")),
        StepsSkipped((Skipped(C, "dependency_failed", B),)),
    )
    assert sent_back(state_of(of, reused("a"), *lost_both), A, [A, C]) == [A]
    state = state_of(of, reused("a"), StepsSkipped((Skipped(C, "dependency_failed", B),)))
    assert sent_back(state, A, [A, C]) == [A, C]


def test_a_step_that_stays_skipped_is_told_its_new_cause() -> None:
    of = plan(step("a"), step("b"), step("c", "a", "b"))
    unmet = StepsSkipped((Skipped(A, "condition_unmet", A), Skipped(C, "condition_above", A)))
    state = state_of(of, unmet, StepFailed(B, Reason("command_failed")))
    assert free(state, A) == [
        StepsReset((A,), "retried"),
        StepsReset((C,), "retried"),
        StepsSkipped((Skipped(C, "dependency_failed", B),)),
    ]
    follow(state, *free(state, A))
    assert state.steps[C].reason == Reason("dependency_failed", (B,))
    assert state.unselected == 0


def test_who_is_made_from_a_step_may_ask_it_although_another_is_gone_without() -> None:
    last = asking("b")
    state = after(reused("a", "b"), waived("d"), started("c"), last=last)
    assert beyond(state, last) == held("b")


def test_the_step_above_hears_the_last_words_only() -> None:
    other = replace(rejected("c"), guard="first", feedback=ref("other words"))
    again = rejected("c", 2)
    state = after(*BELOW, other, started("c", 2), again, held("b"))
    (event,) = reopenings(state)
    assert isinstance(event, StepsReopened)
    assert (event.guard, event.feedback) == (again.guard, again.feedback)
