"""State in, instructions out."""

import pytest
from hypothesis import given

from holdfast.core.react import Next, conclude, limit_reached, may_start, react
from holdfast.model.event import (
    Event,
    Options,
    Reason,
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
    rejected,
    reused,
    sid,
    started,
    state_of,
    step,
)
from tests.core.test_fold import stories

DIAMOND = graph("z>m>a z>b>a")
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
