"""A report in, events out."""

from dataclasses import replace

import pytest

from holdfast.core.decide import (
    PERMANENT,
    Ending,
    close_gaps,
    cut_off,
    fail,
    free,
    leave_out,
    lose,
    reset,
    set_aside,
    settle,
    stop,
    waive,
)
from holdfast.core.moves import INTERRUPTED
from holdfast.model.digest import digest_bytes
from holdfast.model.event import (
    AttemptFailed,
    AttemptParked,
    EffectConfirmed,
    Event,
    GapClosed,
    Options,
    Reason,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.line import SkipRequested
from holdfast.model.plan import Need, Plan, RunId, Step
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
    reused,
    sid,
    skipped,
    started,
    state_of,
    step,
    waived,
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


# --- what no further try can help ------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(PERMANENT))
def test_what_will_be_the_same_again_is_not_tried_again(code: str) -> None:
    one = replace(step("s"), retries=5)
    assert tries(one, AttemptFailed(S, 1, code)) == (1, Reason(code))


def test_a_step_that_took_too_long_is_told_how_long_it_may() -> None:
    one = replace(step("s"), lost_retries=0, timeout=2.5)
    assert tries(one, lost("s", code="timed_out")) == (1, Reason("timed_out", ("2.5 s",)))
    assert tries(one, lost("s")) == (1, Reason("lost"))
    unbounded = replace(one, timeout=None)
    assert tries(unbounded, lost("s", code="timed_out")) == (1, Reason("timed_out"))


# --- effects -----------------------------------------------------------------------------------------------


def test_a_candidate_says_that_its_effect_has_happened() -> None:
    outside = replace(step("s"), effects="external")
    state = state_of(plan(outside), started("s"), about("s", "effect_started"))
    happened = EffectConfirmed(S, 1, ref("key"))
    for ending in (accepted("s"), rejected("s"), AttemptParked(S, 1, ref("x"), ("g",), ("a",))):
        assert settle(state, ending)[:2] == [happened, ending]
    for gone in (failed("s"), lost("s")):
        assert settle(state, gone)[0] == gone


def test_what_a_person_gave_confirms_an_effect_only_once_it_is_accepted() -> None:
    outside = replace(step("s"), effects="external", retries=3)
    begun_before = (started("s"), about("s", "effect_started"), lost("s"))
    given = replace(started("s", 2), reguard=ref("kept"))
    state = state_of(plan(outside), *begun_before, given)
    assert settle(state, accepted("s", 2)) == [EffectConfirmed(S, 2, ref("key")), accepted("s", 2)]
    assert settle(state, rejected("s", 2)) == [rejected("s", 2)]


# --- what is left out --------------------------------------------------------------------------------------

OPTIONAL = plan(
    step("a"),
    replace(step("b"), needs=(Need(sid("a"), optional=True),)),
    step("c", "a"),
    step("d", "c", "b"),
)


def test_a_condition_that_does_not_hold_leaves_out_what_cannot_do_without() -> None:
    assert set_aside(state_of(OPTIONAL), sid("a"), "x > 1") == StepsSkipped(
        (
            Skipped(sid("a"), "condition_unmet", sid("x > 1")),
            Skipped(sid("c"), "condition_above", sid("a")),
            Skipped(sid("d"), "condition_above", sid("c")),
        )
    )


def test_what_is_not_selected_is_left_out_with_what_waits_for_it() -> None:
    state = state_of(OPTIONAL, options=Options(select=(sid("d"),)))
    assert leave_out(state, sid("a")) == StepsSkipped(
        (
            Skipped(sid("a"), "not_selected", sid("a")),
            Skipped(sid("c"), "not_selected", sid("a")),
            Skipped(sid("d"), "dependency_skipped", sid("a")),
        )
    )


@pytest.mark.parametrize(
    "above, code, below",
    [
        (StepFailed(sid("a"), Reason("lost")), "dependency_failed", "dependency_skipped"),
        (
            StepsSkipped((Skipped(sid("a"), "condition_unmet", sid("a")),)),
            "condition_above",
            "condition_above",
        ),
        (skipped("a"), "dependency_skipped", "dependency_skipped"),
    ],
)
def test_a_ready_step_that_cannot_do_without_a_lost_one_is_skipped_for_its_reason(
    above: Event, code: str, below: str
) -> None:
    state = state_of(OPTIONAL, above)
    assert stop(state, sid("b"), sid("a")) == StepsSkipped(
        (Skipped(sid("b"), code, sid("a")), Skipped(sid("d"), below, sid("b")))
    )


def test_what_another_run_lost_is_lost_here_with_what_waits_for_it() -> None:
    there = state_of(OPTIONAL, StepFailed(sid("c"), Reason("lost"), because=ref("words")))
    assert lose(state_of(OPTIONAL), sid("c"), there.steps[sid("c")]) == [
        StepFailed(sid("c"), Reason("lost"), because=ref("words")),
        StepsSkipped((Skipped(sid("d"), "dependency_failed", sid("c")),)),
    ]
    for code, below in (
        ("condition_unmet", "condition_above"),
        ("not_selected", "not_selected"),
        ("dependency_failed", "dependency_skipped"),
    ):
        left = Skipped(sid("c"), code, sid("a"))
        there = state_of(OPTIONAL, StepsSkipped((left,)))
        assert lose(state_of(OPTIONAL), sid("c"), there.steps[sid("c")]) == [
            StepsSkipped((left, Skipped(sid("d"), below, sid("c"))))
        ]


def test_added_steps_that_need_a_lost_one_are_skipped() -> None:
    state = state_of(OPTIONAL, StepFailed(sid("a"), Reason("lost")))
    assert cut_off(state, map(sid, "dcb")) == StepsSkipped(
        (
            Skipped(sid("c"), "dependency_failed", sid("a")),
            Skipped(sid("d"), "dependency_skipped", sid("c")),
        )
    )
    assert cut_off(state, [sid("b")]) is None
    assert cut_off(state_of(OPTIONAL), map(sid, "bcd")) is None


# --- going on without ------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [(), ("out",)])
def test_a_person_goes_on_without_a_step(files: tuple[str, ...]) -> None:
    of = plan(replace(step("a"), produces=files), step("b", "a"))
    state = state_of(of)
    asked = SkipRequested(RunId("r-1"), sid("a"), "me", ref("why"))
    event, content = waive(state, 7, asked)
    assert event.digest == digest_bytes(content)
    assert (event.form, event.by, event.because) == ("tree" if files else "bytes", "me", ref("why"))
    assert bool(content) == bool(files), "no file is a tree without any"
    follow(state, event)
    assert state.heard == 7
    assert state.ready == {sid("b")}
    other, _ = waive(state, 7, replace(asked, step=sid("b")))
    assert other.config_ref != event.config_ref


def test_a_gap_is_closed_with_what_was_made_without_it() -> None:
    of = graph("a>b>c x>c d")
    state = state_of(of, waived("a"), reused("x", "b", "c", "d"))
    assert close_gaps(state, [sid("a")]) == [GapClosed(sid("a"), tuple(map(sid, "abc")))]
    assert close_gaps(state, [sid("x"), sid("d")]) == []
    follow(state, *close_gaps(state, [sid("a")]))
    assert state.ready == {sid("a")}
    assert sid("a") not in state.gaps
    assert state.steps[sid("a")].asked


def test_another_gap_stays_one_unless_it_is_named_too() -> None:
    of = graph("a>b>c")
    state = state_of(of, waived("a"), waived("b"), reused("c"))
    assert close_gaps(state, [sid("a")]) == [GapClosed(sid("a"), (sid("a"),))]
    both = close_gaps(state, [sid("a"), sid("b")])
    assert both == [GapClosed(sid("a"), tuple(map(sid, "abc")))]


def test_free_frees_what_is_stuck_and_nothing_else() -> None:
    state = state_of(graph("a b"), skipped("a"))
    assert free(state, sid("a")) == [StepsReset((sid("a"),), "retried")]
    assert free(state, sid("b")) == []
    for stuck in ("step_failed", "step_held"):
        again = free(state_of(graph("a"), about("a", stuck)), sid("a"))
        assert again == [StepsReset((sid("a"),), "retried")]
    asked = state_of(graph("a"), about("a", "step_failed"))
    wanted = reset(asked, [sid("a")], "retried", [sid("a")])
    assert wanted == [StepsReset((sid("a"),), "retried", (sid("a"),))]


def test_what_a_failure_left_out_stays_out_when_a_gap_is_closed() -> None:
    of = graph("a>b x>b a>c")
    state = state_of(
        of,
        waived("a"),
        StepFailed(sid("x"), Reason("lost")),
        StepsSkipped((Skipped(sid("b"), "dependency_failed", sid("x")),)),
        reused("c"),
    )
    assert close_gaps(state, [sid("a")]) == [GapClosed(sid("a"), (sid("a"), sid("c")))]


def test_these_ends_are_the_same_again() -> None:
    assert {
        "call_refused",
        "model_refused",
        "not_recorded",
        "credentials_missing",
        "answer_too_large",
        "budget_spent",
        "tool_unconfirmed",
    } == PERMANENT


def test_an_added_step_is_skipped_once_for_the_first_that_it_needs_and_only_while_it_waits() -> (
    None
):
    lost_ones = [StepFailed(sid(name), Reason("lost")) for name in "ab"]
    state = state_of(graph("a>c b>c a>d"), *lost_ones)
    first = Skipped(sid("c"), "dependency_failed", sid("a"))
    assert cut_off(state, [sid("c")]) == StepsSkipped((first,))
    follow(state, StepsSkipped((first,)))
    assert cut_off(state, [sid("c")]) is None


def test_what_a_condition_left_out_is_judged_again_when_a_gap_is_closed() -> None:
    of = graph("a>b a>c a>d")
    left = StepsSkipped((Skipped(sid("b"), "condition_unmet", sid("a")),))
    state = state_of(of, waived("a"), left, reused("c"))
    assert close_gaps(state, [sid("a")]) == [GapClosed(sid("a"), tuple(map(sid, "abc")))]
