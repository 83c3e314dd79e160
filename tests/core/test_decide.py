"""A report in, events out."""

from dataclasses import replace

import pytest

from holdfast.core.decide import Ending, fail, reset, settle
from holdfast.core.moves import INTERRUPTED
from holdfast.model.event import (
    Event,
    Reason,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.plan import Plan, Step
from tests.core.builders import (
    about,
    accepted,
    failed,
    follow,
    graph,
    lost,
    plan,
    ref,
    rejected,
    sid,
    skipped,
    started,
    state_of,
    step,
)

S = sid("s")


def tries(one: Step, ending: Ending, most: int = 10) -> tuple[int, Reason | None]:
    """Try until the core gives up, with the same ending each time."""
    state = state_of(plan(one))
    for attempt in range(1, most + 1):
        follow(state, started("s", attempt))
        events = settle(state, replace(ending, attempt=attempt))
        follow(state, *events)
        if state.steps[S].phase != "pending":
            return attempt, state.steps[S].reason
    return most, None


@pytest.mark.req("R77", "E6")
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_retries_are_tries_after_the_first(retries: int) -> None:
    one = replace(step("s"), retries=retries)
    assert tries(one, rejected("s")) == (retries + 1, Reason("guard_rejected", ("g",)))
    assert tries(one, failed("s")) == (retries + 1, Reason("command_failed"))


@pytest.mark.req("R77")
@pytest.mark.parametrize("budget", [0, 1, 2])
def test_lost_attempts_have_a_budget_of_their_own(budget: int) -> None:
    one = replace(step("s"), retries=0, lost_retries=budget)
    assert tries(one, lost("s", code="timed_out")) == (budget + 1, Reason("timed_out"))


@pytest.mark.req("R77")
def test_neither_budget_touches_the_other() -> None:
    state = state_of(plan(replace(step("s"), retries=1, lost_retries=1)))
    endings: list[Ending] = [rejected("s", 1), lost("s", 2)]
    for attempt, ending in enumerate(endings, 1):
        follow(state, started("s", attempt))
        assert settle(state, ending) == [ending]
        follow(state, ending)
    follow(state, started("s", 3))
    last = rejected("s", 3)
    assert settle(state, last) == [last, StepFailed(S, Reason("guard_rejected", ("g",)))]
    assert settle(state, lost("s", 3))[1:] == [StepFailed(S, Reason("lost"))]


def test_an_interruption_costs_nothing() -> None:
    one = replace(step("s"), retries=0, lost_retries=0)
    assert tries(one, lost("s", code=INTERRUPTED)) == (10, None)


@pytest.mark.req("R77")
def test_a_fatal_verdict_ends_at_once() -> None:
    one = replace(step("s"), retries=9)
    assert tries(one, rejected("s", fatal=True)) == (1, Reason("guard_fatal", ("g",)))


def test_what_is_accepted_is_only_the_fact() -> None:
    state = state_of(plan(step("s")), started("s"))
    assert settle(state, accepted("s")) == [accepted("s")]


def test_a_kept_artifact_that_changed_guards_refuse_is_no_try() -> None:
    again = replace(started("s"), reguard=ref("kept"), reason=Reason("guard_changed"))
    for source in ("generated", "human"):
        state = state_of(plan(step("s")), replace(again, source=source))
        assert settle(state, rejected("s")) == [rejected("s")]
    fatal = rejected("s", fatal=True)
    state = state_of(plan(step("s")), again)
    assert settle(state, fatal)[1:] == [StepFailed(S, Reason("guard_fatal", ("g",)))]


def test_a_version_on_disk_that_the_guards_refuse_waits_for_a_decision() -> None:
    by_hand = replace(
        started("s"), reguard=ref("kept"), source="human", reason=Reason("output_modified", ("f",))
    )
    state = state_of(plan(replace(step("s"), retries=5)), by_hand)
    assert settle(state, rejected("s"))[1:] == [StepFailed(S, Reason("output_modified", ("f",)))]
    made_anew = replace(started("s"), reason=Reason("output_modified", ("f",)))
    state = state_of(plan(replace(step("s"), retries=5)), made_anew)
    assert settle(state, rejected("s")) == [rejected("s")]


def test_an_effect_that_may_have_happened_is_held() -> None:
    outside = replace(step("s"), effects="external")
    state = state_of(plan(outside), started("s"))
    for code in ("lost", "timed_out", INTERRUPTED):
        held = StepHeld(S, Reason("effect_unconfirmed"))
        assert settle(state, lost("s", code=code))[1:] == [held]
    harmless = replace(outside, idempotent=True)
    state = state_of(plan(harmless), started("s"))
    assert settle(state, lost("s")) == [lost("s")]
    only_guarded = replace(started("s"), reguard=ref("kept"))
    state = state_of(plan(outside), only_guarded)
    assert settle(state, lost("s")) == [lost("s")]


# --- what a failure means below ----------------------------------------------------------------------

WIDE = graph("z>m>a>b z>c y>c d")


@pytest.mark.req("R59", "E10")
def test_everything_below_a_failure_is_skipped_with_the_step_it_waited_for() -> None:
    events = fail(state_of(WIDE), sid("z"), Reason("command_failed"))
    assert events == [
        StepFailed(sid("z"), Reason("command_failed")),
        StepsSkipped(
            (
                Skipped(sid("c"), "dependency_failed", sid("z")),
                Skipped(sid("m"), "dependency_failed", sid("z")),
                Skipped(sid("a"), "dependency_skipped", sid("m")),
                Skipped(sid("b"), "dependency_skipped", sid("a")),
            )
        ),
    ]


@pytest.mark.req("R59")
def test_a_second_failure_skips_nothing_twice() -> None:
    state = state_of(WIDE)
    follow(state, *fail(state, sid("z"), Reason("command_failed")))
    assert fail(state, sid("y"), Reason("lost")) == [StepFailed(sid("y"), Reason("lost"))]
    assert state.steps[sid("d")].phase == "pending"


def test_needs_of_order_pass_a_failure_on_too() -> None:
    state = state_of(plan(step("a"), step("b", "~a")))
    assert len(fail(state, sid("a"), Reason("lost"))) == 2


# --- trying again ----------------------------------------------------------------------------------------


def after_two_failures(of: Plan) -> list[Event]:
    state = state_of(of)
    events: list[Event] = []
    for name in ("z", "y"):
        more = fail(state, sid(name), Reason("command_failed"))
        follow(state, *more)
        events += more
    return events


@pytest.mark.req("R93", "E13")
def test_a_reset_frees_what_was_skipped_because_of_it() -> None:
    state = state_of(WIDE, *after_two_failures(WIDE))
    both = reset(state, [sid("y"), sid("z")], "retried")
    assert both == [StepsReset(tuple(map(sid, ("y", "z", "c", "m", "a", "b"))), "retried")]
    only = reset(state, [sid("z")], "retried")
    assert only == [StepsReset(tuple(map(sid, ("z", "m", "a", "b"))), "retried")]


def test_a_reset_of_nothing_is_no_event() -> None:
    state = state_of(WIDE, started("z"), skipped("d"))
    assert reset(state, [sid("z"), sid("d"), sid("y")], "retried") == []


def test_a_held_step_can_be_reset() -> None:
    state = state_of(plan(step("s")), about("s", "step_held"))
    assert reset(state, [S], "retried") == [StepsReset((S,), "retried")]
