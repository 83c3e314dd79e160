"""State in, instructions out."""

import pytest
from hypothesis import given

from holdfast.core.react import (
    Next,
    can_never_start,
    conclude,
    front,
    is_full,
    limit_reached,
    may_start,
    react,
    time_limit,
)
from holdfast.model.event import (
    Event,
    Options,
    Reason,
    ReplanWanted,
    RunEnded,
    RunRested,
    RunResumed,
)
from holdfast.model.plan import Limits, Step
from tests.core.builders import (
    about,
    accepted,
    follow,
    graph,
    lost,
    plan,
    ref,
    rejected,
    reused,
    sid,
    started,
    state_of,
    step,
)
from tests.core.test_fold import stories

DIAMOND = graph("z>m>a z>b>a")
GPUS = Limits(resources={"gpu": 2})
PAUSED = RunRested("paused", Reason("stopped"))


def test_the_first_wave_is_told_first_then_what_becomes_ready() -> None:
    state = state_of(DIAMOND)
    first = react(state, seen=0, now=0)
    assert first == Next((sid("z"),), 1, None, None)
    follow(state, started("z"))
    assert react(state, seen=first.seen, now=0) == Next((), 1, None, None)
    follow(state, accepted("z"))
    assert react(state, seen=first.seen, now=0).probe == ("b", "m")


@pytest.mark.req("R88")
def test_who_starts_anew_is_told_everything_that_is_ready() -> None:
    state = state_of(DIAMOND, reused("z"))
    told = react(state, seen=0, now=0)
    assert told.probe == ("b", "m")
    assert react(state, seen=told.seen, now=0).probe == ()
    assert react(state, seen=0, now=0) == told


@given(stories())
def test_nothing_ready_is_ever_forgotten(events: list[Event]) -> None:
    state = state_of(graph("a>b>d a>c>d e"))
    seen, told = 0, set(react(state, seen=0, now=0).probe)
    for event in events[1:]:
        follow(state, event)
        told = {name for name in told if name in state.ready}
        following = react(state, seen=seen, now=0)
        seen = following.seen
        told |= set(following.probe)
        assert told == state.ready
        assert set(react(state, seen=0, now=0).probe) == state.ready


def test_a_refused_or_lost_attempt_is_told_again() -> None:
    for ending in (rejected("z"), lost("z")):
        state = state_of(DIAMOND, started("z"), ending)
        assert react(state, seen=1, now=0).probe == ("z",)


@pytest.mark.parametrize(
    "events, end",
    [
        ([reused("z", "m", "b", "a")], RunEnded("completed")),
        (
            [about("z", "step_failed"), *(about(name, "steps_skipped") for name in "mba")],
            RunRested("failed", Reason("dependency_failed", ("z",))),
        ),
        ([about("z", "step_held")], RunRested("waiting", Reason("awaiting_person", ("z",)))),
        (
            [about(name, "steps_skipped") for name in "zmba"],
            RunRested("blocked", Reason("dependency_skipped", ("z", "b", "m", "a"))),
        ),
        (  # nothing can start, nothing failed, nobody is waited for
            [about("z", "steps_skipped")],
            RunRested("blocked", Reason("deadlocked", ("b", "m", "a"))),
        ),
    ],
)
def test_a_run_ends_when_nothing_is_ready_and_nothing_runs(
    events: list[Event], end: RunEnded | RunRested
) -> None:
    state = state_of(DIAMOND, *events)
    assert react(state, seen=0, now=0).end == end
    assert conclude(state) == end


def test_a_run_with_work_left_does_not_end() -> None:
    assert react(state_of(DIAMOND), seen=9, now=0).end is None
    assert react(state_of(DIAMOND, started("z")), seen=9, now=0).end is None


def test_a_run_at_rest_or_ended_asks_for_nothing() -> None:
    for end in (PAUSED, RunEnded("superseded")):
        assert react(state_of(DIAMOND, end), seen=0, now=0) == Next((), 1, None, None)


def test_stopping_starts_nothing_and_rests_when_the_last_has_ended() -> None:
    state = state_of(DIAMOND, started("z"))
    assert react(state, seen=0, now=0, stopping=True) == Next((), 0, None, None)
    follow(state, accepted("z"))
    assert react(state, seen=0, now=0, stopping=True).end == PAUSED
    done = state_of(DIAMOND, reused("z", "m", "b", "a"))
    assert react(done, seen=0, now=0, stopping=True).end == RunEnded("completed")
    fast = state_of(DIAMOND, about("z", "step_failed"), options=Options(fail_fast=True))
    ended = react(fast, seen=0, now=0, stopping=True).end
    assert isinstance(ended, RunRested)
    assert ended.status == "failed"


# --- limits ------------------------------------------------------------------------------------------


def test_time_is_counted_from_the_last_start() -> None:
    of = plan(step("s"), limits=Limits(time=2))
    state = state_of(of)  # began at 10
    assert react(state, seen=0, now=2009) == Next((sid("s"),), 1, None, 2010)
    assert react(state, seen=0, now=2010).end == RunRested(
        "limit", Reason("limit_reached", ("time",))
    )
    follow(state, PAUSED, RunResumed("e"))
    assert react(state, seen=0, now=2010).end is None


def test_attempts_are_counted_from_the_last_start() -> None:
    of = plan(step("a"), step("b"), limits=Limits(attempts=1))
    state = state_of(of, started("a"))
    assert not may_start(state, sid("b"))
    assert react(state, seen=0, now=0).end is None, "the running one may end"
    follow(state, accepted("a"))
    reached = Reason("limit_reached", ("attempts",))
    assert limit_reached(state, 0) == reached
    assert react(state, seen=0, now=0).end == RunRested("limit", reached)
    follow(state, RunRested("limit", reached), RunResumed("e"))
    assert may_start(state, sid("b"))


def test_a_step_that_changes_the_project_runs_alone() -> None:
    alone = Step(sid("x"), effects="workspace")
    of = plan(step("a"), step("b"), alone)
    assert may_start(state_of(of, started("a")), sid("b"))
    assert not may_start(state_of(of, started("a")), sid("x"))
    assert not may_start(state_of(of, started("x")), sid("a"))
    assert may_start(state_of(of), sid("x"))


def test_no_more_run_at_once_than_the_plan_allows() -> None:
    of = plan(*(step(name) for name in "abc"), limits=Limits(parallel=2))
    state = state_of(of, started("a"))
    assert not is_full(state)
    assert may_start(state, sid("b"))
    follow(state, started("b"))
    assert is_full(state)
    assert not may_start(state, sid("c"))
    assert not is_full(state_of(plan(step("a")), started("a")))


def test_what_is_scarce_is_waited_for_and_what_there_is_not_enough_of_can_never_start() -> None:
    def takes(name: str, count: int) -> Step:
        return Step(sid(name), resources={"gpu": count})

    of = plan(takes("a", 1), takes("b", 1), takes("c", 3), step("d"), limits=GPUS)
    state = state_of(of, started("a"))
    assert may_start(state, sid("b"))
    assert not may_start(state, sid("b"), {"gpu": 1})
    assert not may_start(state, sid("c"))
    assert may_start(state, sid("d"), {"gpu": 1})
    assert [can_never_start(state, sid(name)) for name in "abcd"] == [False, False, True, False]
    assert can_never_start(state, sid("b"), {"gpu": 0})
    follow(state, accepted("a"))
    assert may_start(state, sid("b"), {"gpu": 1}), "it was given back"


def test_a_run_whose_ready_steps_can_never_start_is_blocked_by_them() -> None:
    state = state_of(graph("a b c"), reused("b"))
    stuck = frozenset({sid("c")})
    assert react(state, seen=0, now=0, stuck=stuck).end is None
    both = frozenset({sid("a"), sid("c")})
    blocked = RunRested("blocked", Reason("deadlocked", ("a", "c")))
    assert react(state, seen=0, now=0, stuck=both).end == blocked
    follow(state, started("a"))
    assert react(state, seen=0, now=0, stuck=both).end is None
    waits = state_of(graph("a>b c"), about("c", "steps_skipped"))
    assert conclude(waits, frozenset({sid("a")})) == RunRested(
        "blocked", Reason("deadlocked", ("a",))
    )


def test_who_stays_waits_for_people_and_for_nothing_else() -> None:
    held = state_of(graph("a"), about("a", "step_held"))
    assert react(held, seen=0, now=0, staying=True).end is None
    assert react(held, seen=0, now=0, staying=False).end is not None
    done = state_of(graph("a"), reused("a"))
    assert react(done, seen=0, now=0, staying=True).end == RunEnded("completed")


def test_the_less_of_plan_and_person_is_the_limit_of_time() -> None:
    def limit(planned: float | None, own: int | None) -> int | None:
        of = plan(step("s"), limits=Limits(time=planned))
        return time_limit(state_of(of, options=Options(max_ms=own)))

    assert limit(None, None) is None
    assert limit(2, None) == 2000
    assert limit(None, 500) == 500
    assert limit(2, 500) == 500
    assert limit(0.25, 500) == 250


def test_what_speaks_against_the_plan_starts_nothing_more() -> None:
    against = ReplanWanted(("t1",), 0, ref("words"))
    state = state_of(graph("a b"), started("a"), against)
    assert react(state, seen=0, now=0) == Next((), 0, None, None)
    follow(state, accepted("a"))
    waits = RunRested("waiting", Reason("replan_wanted", ("t1",)))
    assert react(state, seen=0, now=0) == Next((), 0, waits, None)
    assert react(state, seen=0, now=0, staying=True).end is None
    done = state_of(graph("a"), reused("a"), against)
    assert conclude(done) == waits, "it is not complete while that is open"
    assert react(done, seen=0, now=0, stopping=True).end == waits


def test_attempts_that_are_spent_matter_only_while_something_is_ready() -> None:
    of = plan(step("a"), limits=Limits(attempts=1))
    state = state_of(of, started("a"), accepted("a"))
    assert limit_reached(state, 0) is None
    assert react(state, seen=0, now=0).end == RunEnded("completed")


def test_a_person_who_stops_pauses_the_run_though_something_failed() -> None:
    state = state_of(graph("a b"), about("a", "step_failed"))
    assert react(state, seen=0, now=0, stopping=True).end == PAUSED


def test_of_many_steps_five_are_named() -> None:
    names = "abcdefg"
    fails = [about(name, "step_failed") for name in names]
    ended = conclude(state_of(graph(" ".join(names)), *fails[:1], *fails[2:]))
    assert ended == RunRested("failed", Reason("dependency_failed", ("a", "c", "d", "e", "f")))
    left = [about(name, "steps_skipped") for name in names]
    assert conclude(state_of(graph(" ".join(names)), *left)) == RunRested(
        "blocked", Reason("dependency_skipped", ("a", "b", "c", "d", "e"))
    )
    assert conclude(state_of(graph(" ".join(names)))) == RunRested(
        "blocked", Reason("deadlocked", ("a", "b", "c", "d", "e"))
    )


def test_the_front_is_the_first_step_that_is_not_settled() -> None:
    state = state_of(graph("a>b>c"))
    assert front(state) == 0
    follow(state, started("a"))
    assert front(state) == 0
    follow(state, accepted("a"))
    assert front(state) == 1
    assert front(state, 2) == 2
    follow(state, reused("b", "c"))
    assert front(state, 1) == 3
