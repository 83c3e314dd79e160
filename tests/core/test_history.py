"""How long things took, and how long they would take together."""

from dataclasses import replace

import pytest

from holdfast.core.history import NO_HISTORY, Room, Timing, durations, makespan, results, timing
from holdfast.core.waves import graph_of
from holdfast.model.event import Event, GapClosed, StepsReopened
from holdfast.model.plan import StepId
from tests.core.builders import (
    accepted,
    failed,
    graph,
    plan,
    recorded,
    ref,
    reused,
    sid,
    started,
    step,
    waived,
)


def took(name: str, milliseconds: int, attempt: int = 1) -> list[Event]:
    return [
        started(name, attempt),
        replace(accepted(name, attempt), duration_ms=milliseconds),
    ]


def test_only_accepted_attempts_that_made_something_count() -> None:
    guarded = replace(started("a", 3), reguard=ref("kept"))
    person = replace(accepted("b", 2), source="human", duration_ms=1)
    events = [
        *took("a", 20),
        *took("a", 30, 2),
        guarded,
        replace(accepted("a", 3), duration_ms=1),
        started("b"),
        failed("b"),
        started("b", 2),
        person,
        replace(accepted("c"), duration_ms=7),  # its start was left out by the bound
    ]
    assert durations(recorded(events)) == {sid("a"): [20, 30], sid("c"): [7]}


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        ([], NO_HISTORY),
        ([5], Timing(5, 5, 1)),
        ([9, 1], Timing(1, 9, 2)),
        ([*range(10, 0, -1)], Timing(5, 9, 10)),
        ([*range(1, 101)], Timing(50, 90, 100)),
        ([*range(1, 1001)], Timing(500, 900, 1000)),
    ],
)
def test_typical_and_high_are_durations_that_occurred(samples: list[int], found: Timing) -> None:
    assert timing(samples) == found


TIMES = {sid(name): 10 for name in "abcdz"}


def span(text: str, running: str, parallel: int, **more: int) -> int:
    times: dict[StepId, int] = {**TIMES, **{sid(k): v for k, v in more.items()}}
    return makespan(graph_of(graph(text)), {sid(n) for n in running}, times, Room(parallel))


def test_steps_take_the_longest_way_through_if_there_is_room() -> None:
    assert span("a>b>d a>c>d", "abcd", 9) == 30
    assert span("a>b>d a>c>d", "abcd", 9, c=50) == 70
    assert span("a>b>d a>c>d", "abcd", 1) == 40
    assert span("a b c d", "abcd", 2) == 20


def test_what_is_reused_takes_no_time_and_is_not_in_the_way() -> None:
    assert span("a>b>d a>c>d", "", 1) == 0
    assert span("a>b>d a>c>d", "bd", 4) == 20
    assert span("a>b>d a>c>d", "ad", 4) == 20


def test_a_step_that_changes_the_project_runs_alone() -> None:
    alone = replace(step("a"), effects="workspace")
    of = plan(alone, step("b"), step("c"))
    assert makespan(graph_of(of), {sid(n) for n in "abc"}, TIMES, Room(3)) == 20
    last = plan(replace(step("z"), effects="workspace"), step("b"), step("c"))
    assert makespan(graph_of(last), {sid(n) for n in "bcz"}, TIMES, Room(3)) == 20


def test_the_more_urgent_of_two_goes_first() -> None:
    of = plan(step("a"), replace(step("b"), priority="high"), step("c", "b"))
    times = {sid("a"): 10, sid("b"): 10, sid("c"): 10}
    assert makespan(graph_of(of), {sid(n) for n in "abc"}, times, Room(1)) == 30
    assert makespan(graph_of(of), {sid(n) for n in "abc"}, {**times, sid("a"): 20}, Room(2)) == 20


def test_who_waits_for_a_model_takes_the_room_of_its_provider() -> None:
    asking = [replace(step(name), uses="llm", model="p:m") for name in "abcd"]
    graph_ = graph_of(plan(*asking, step("z")))
    everything = {sid(n) for n in "abcdz"}
    assert makespan(graph_, everything, TIMES, Room(1, providers={"p": 4})) == 10
    assert makespan(graph_, everything, TIMES, Room(1, providers={"p": 2})) == 20
    assert makespan(graph_, everything, TIMES, Room(1, whole=1, providers={"p": 4})) == 50
    assert makespan(graph_, everything, TIMES, Room(1)) == 50


def test_who_runs_alone_holds_up_nobody_before_it_begins() -> None:
    of = plan(step("a"), replace(step("m"), effects="workspace"), step("z"))
    everything = {sid(n): 10 for n in "amz"}
    assert makespan(graph_of(of), set(everything), everything, Room(3)) == 20


def test_what_was_sent_back_or_is_made_after_all_has_no_result() -> None:
    given = recorded([reused("a", "b"), waived("c")])
    assert results(given).keys() == {"a", "b", "c"}
    back = StepsReopened(sid("a"), sid("a"), (sid("a"),))
    closed = GapClosed(sid("c"), (sid("c"),))
    assert results([*given, *recorded([back, closed])]).keys() == {"b"}
