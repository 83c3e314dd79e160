"""Time as a drawing: attempts side by side, waits, what nobody worked in cut out, what decided the end."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.timeline import (
    WIDE,
    Axis,
    Bar,
    Worked,
    axis_of,
    critical_path,
    folded,
    joined,
)
from holdfast.core.waves import graph_of
from holdfast.model.event import (
    Event,
    Reason,
    Recorded,
    RunEnded,
    RunResumed,
    StepHeld,
    StepsReleased,
)
from tests.core.builders import accepted, begun, graph, rejected, reused, sid, started

HOUR = 3_600_000


def worked(*told: tuple[int, Event]) -> Worked:
    found = Worked()
    for number, (at, event) in enumerate(told, 1):
        found.take(Recorded(number, at, event))
    return found


def test_attempts_of_a_step_stand_side_by_side() -> None:
    found = worked(
        (0, begun()),
        (10, started("a")),
        (30, rejected("a")),
        (30, started("a", 2)),
        (90, accepted("a", 2)),
    )
    assert found.of(sid("a"), 100) == (Bar(10, 30, "rejected", 1), Bar(30, 90, "accepted", 2))
    assert found.settled == {"a": 90}


def test_an_attempt_that_runs_reaches_up_to_now() -> None:
    found = worked((0, begun()), (10, started("a")))
    assert found.of(sid("a"), 50) == (Bar(10, 50, "running", 1),)
    assert found.all(50) == {"a": (Bar(10, 50, "running", 1),)}


def test_what_a_dead_engine_had_begun_ends_with_the_last_thing_it_wrote() -> None:
    found = worked(
        (0, begun()),
        (10, started("a")),
        (20, started("b")),
        (40, accepted("b")),
        (HOUR, RunResumed("engine")),
        (HOUR + 5, started("a", 2)),
        (HOUR + 9, accepted("a", 2)),
    )
    first, second = found.of(sid("a"), HOUR)
    assert first == Bar(10, 40, "lost", 1)
    assert second == Bar(HOUR + 5, HOUR + 9, "accepted", 2)


def test_a_wait_for_a_person_is_a_bar_of_its_own() -> None:
    found = worked(
        (0, begun()),
        (10, StepHeld(sid("a"), Reason("awaiting_approval"))),
        (500, StepsReleased((sid("a"),), "approved")),
        (510, started("a")),
        (600, accepted("a")),
        (600, RunEnded("completed")),
    )
    assert found.of(sid("a"), 999) == (Bar(10, 500, "waiting"), Bar(510, 600, "accepted", 1))
    assert found.over


def test_a_wait_without_an_end_reaches_up_to_now() -> None:
    found = worked((0, begun()), (10, StepHeld(sid("a"), Reason("awaiting_approval"))))
    assert found.of(sid("a"), 70) == (Bar(10, 70, "waiting"),)


def test_taking_events_one_by_one_or_later_is_the_same() -> None:
    events: list[Event] = [begun(), started("a"), rejected("a"), started("a", 2), accepted("a", 2)]
    told = [(10 * n, event) for n, event in enumerate(events)]
    whole = worked(*told)
    half = worked(*told[:2])
    for number, (at, event) in enumerate(told[2:], 3):
        half.take(Recorded(number, at, event))
    assert half == whole


def test_a_long_stretch_without_work_is_cut_and_says_how_long_it_was() -> None:
    bars = [Bar(0, 10_000, "accepted", 1), Bar(HOUR, HOUR + 10_000, "accepted", 1)]
    axis = axis_of(bars, 0, HOUR + 10_000)
    (cut,) = axis.cuts
    assert cut.lasted == HOUR - 10_000
    assert not cut.waiting
    assert axis.at(0) == 0
    assert axis.at(HOUR + 10_000) == WIDE
    assert axis.at(10_000) == pytest.approx(cut.left)
    assert axis.at(HOUR) == pytest.approx(cut.right)
    assert axis.at(5_000) == pytest.approx(cut.left / 2)


def test_a_cut_says_whether_somebody_was_waited_for() -> None:
    bars = [Bar(0, 9_000, "accepted", 1), Bar(9_000, HOUR, "waiting")]
    (cut,) = axis_of(bars, 0, HOUR).cuts
    assert cut.waiting


def test_a_short_stretch_without_work_is_drawn_as_it_is() -> None:
    bars = [Bar(0, 10_000, "accepted", 1), Bar(10_900, 20_000, "accepted", 1)]
    assert axis_of(bars, 0, 20_000).cuts == ()


spans = st.lists(
    st.tuples(st.integers(0, 10**8), st.integers(0, 10**6)).map(lambda p: (p[0], sum(p))),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(spans, spans)
def test_later_is_never_further_left(
    work: list[tuple[int, int]], wait: list[tuple[int, int]]
) -> None:
    bars = [Bar(a, b, "accepted", 1) for a, b in work] + [Bar(a, b, "waiting") for a, b in wait]
    edges = sorted({moment for span in (*work, *wait) for moment in span} | {0, 10**8})
    axis = axis_of(bars, edges[0], edges[-1])
    places = [axis.at(moment) for moment in edges]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, WIDE)
    assert len(axis.cuts) <= 12
    assert all(0 <= cut.left < cut.right <= WIDE + 0.001 for cut in axis.cuts)


@settings(max_examples=100, deadline=None)
@given(spans)
def test_spans_that_are_joined_hold_the_same_moments(given_spans: list[tuple[int, int]]) -> None:
    found = joined(given_spans)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    for begin, end in given_spans:
        assert any(a <= begin and end <= b for a, b in found)


def test_the_path_that_decided_the_end_goes_through_whoever_was_last() -> None:
    plan = graph("a>slow>end a>quick>end old>end")
    found = worked(
        (0, begun()),
        (1, reused("old")),
        (1, started("a")),
        (10, accepted("a")),
        (10, started("slow")),
        (10, started("quick")),
        (20, accepted("quick")),
        (90, accepted("slow")),
        (90, started("end")),
        (99, accepted("end")),
    )
    assert critical_path(graph_of(plan), found) == ("end", "slow", "a")


def test_a_group_is_one_row_of_few_bars() -> None:
    bars = [Bar(n * 10, n * 10 + 5, "accepted", 1) for n in range(500)]
    bars += [Bar(4995, 6000, "running", 1), Bar(0, 7000, "waiting")]
    found = folded(bars)
    assert len(found) <= 61
    assert found[0].begun == 0
    assert [bar.how for bar in found if bar.ended >= 6000] == ["running", "waiting"]


def test_what_lies_outside_an_axis_lies_at_its_ends() -> None:
    axis = Axis((100, 200, 300), (0.0, 10.0, WIDE), ())
    assert [axis.at(moment) for moment in (0, 100, 150, 200, 300, 999)] == [
        0.0,
        0.0,
        5.0,
        10.0,
        WIDE,
        WIDE,
    ]


def test_the_ends_of_an_axis_are_its_first_and_last_moment() -> None:
    hour = 3_600_000
    bars = [Bar(0, 1000, "accepted"), Bar(hour, hour + 1000, "accepted")]
    axis = axis_of(bars, 0, hour + 1000)
    assert (axis.moments[0], axis.moments[-1]) == (0, hour + 1000)
    assert (axis.places[0], axis.places[-1]) == (0.0, WIDE)
    assert [cut.lasted for cut in axis.cuts] == [hour - 1000]
    assert len(set(axis.moments)) == len(axis.moments)
    late = axis_of([Bar(hour, hour + 1000, "accepted")], 0, hour + 1000)
    assert [cut.lasted for cut in late.cuts] == [hour]
    assert late.moments == (0, hour, hour + 1000)
    early = axis_of([Bar(0, 1000, "accepted")], 0, hour)
    assert early.moments == (0, 1000, hour)


def test_one_millisecond_of_work_has_all_that_cuts_leave() -> None:
    axis = axis_of([Bar(0, 1, "accepted", 1)], 0, 5_001)
    (cut,) = axis.cuts
    assert (cut.right, axis.at(1), cut.lasted) == (WIDE, cut.left, 5_000)


def test_of_many_pieces_those_nearest_to_each_other_become_one() -> None:
    begins = [1_000 * group + 10 * place for group in range(60) for place in range(2)]
    bars = [Bar(begin, begin + 5, "accepted", 1) for begin in begins]
    wide = [Bar(1_000 * group, 1_000 * group + 15, "accepted") for group in range(60)]
    assert folded(bars) == tuple(wide)


def test_the_nearest_are_those_with_the_least_time_between_them() -> None:
    spans = [(1_000 * n, 1_000 * n + 5) for n in range(61)]
    spans[30] = (29_500, 30_200)  # long itself, and close behind the one before it
    joined_ones = [*spans[:29], (29_000, 30_200), *spans[31:]]
    assert folded([Bar(*span, "accepted", 1) for span in spans]) == tuple(
        Bar(*span, "accepted") for span in joined_ones
    )
