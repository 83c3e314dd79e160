"""Each event of a run ends, begins or settles exactly what it speaks of; the axis is exact to the place."""

import pytest

from holdfast.core.timeline import WIDE, Axis, Bar, Cut, Worked, axis_of, critical_path, folded
from holdfast.core.waves import graph_of
from holdfast.model.event import Event, RunEnded, RunResumed
from tests.core.builders import about, accepted, begun, graph, lost, sid, skipped, started
from tests.core.test_timeline import worked

A = sid("a")


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("attempt_accepted", "accepted"),
        ("attempt_rejected", "rejected"),
        ("attempt_failed", "failed"),
        ("attempt_lost", "lost"),
        ("attempt_parked", "parked"),
    ],
)
def test_an_attempt_ends_as_its_event_says(kind: str, how: str) -> None:
    found = worked((0, begun()), (10, started("a")), (30, about("a", kind)))
    assert [(bar.begun, bar.ended, bar.how, bar.attempt) for bar in found.bars[A]] == [
        (10, 30, how, 1)
    ]
    assert (A in found.settled) is (kind == "attempt_accepted")
    assert (found.seq, found.last, found.over) == (3, 30, False)


@pytest.mark.parametrize(
    ("kind", "settles"),
    [
        ("step_failed", True),
        ("step_waived", True),
        ("steps_reused", True),
        ("steps_taken", True),
        ("steps_skipped", True),
        ("steps_released", False),
        ("steps_reset", False),
        ("steps_reopened", False),
        ("gap_closed", False),
        ("attempt_started", False),
    ],
)
def test_a_wait_ends_with_whatever_moves_its_step(kind: str, settles: bool) -> None:
    found = worked((0, begun()), (10, about("a", "step_held")), (30, about("a", kind)))
    assert found.bars == {A: [Bar(10, 30, "waiting")]}
    assert found.settled == ({A: 30} if settles else {})
    before = worked((0, begun()), (10, about("a", "steps_reused")), (30, about("a", kind)))
    assert before.settled == ({A: 30} if settles else {}), "what moves it again unsettles it"


@pytest.mark.parametrize("kind", ["outputs_placed", "call_started", "tool_used", "effect_started"])
def test_other_events_end_no_wait(kind: str) -> None:
    found = worked((0, begun()), (10, about("a", "step_held")), (30, about("a", kind)))
    assert found.bars == {}
    assert found.of(A, 40) == (Bar(10, 40, "waiting"),)


def test_a_parked_attempt_waits_from_then_on_and_a_rejection_ends_that() -> None:
    parked: tuple[int, Event] = (20, about("a", "attempt_parked"))
    first: list[tuple[int, Event]] = [(0, begun()), (10, started("a")), parked]
    assert worked(*first).of(A, 50) == (Bar(10, 20, "parked", 1), Bar(20, 50, "waiting"))
    again = worked(*first, (30, about("a", "step_held")), (60, about("a", "attempt_rejected")))
    assert again.of(A, 99) == (Bar(10, 20, "parked", 1), Bar(20, 60, "waiting"))
    ended = worked(*first, (70, RunEnded("superseded")))
    assert ended.over
    assert ended.of(A, 99) == (Bar(10, 20, "parked", 1), Bar(20, 70, "waiting"))
    assert ended.all(99) == {A: [Bar(10, 20, "parked", 1), Bar(20, 70, "waiting")]}


def test_a_wait_without_any_length_and_clocks_that_went_back_draw_nothing_backwards() -> None:
    still = worked((0, begun()), (10, about("a", "step_held")), (10, about("a", "steps_released")))
    assert still.bars == {}
    back = worked((0, begun()), (10, started("a")), (5, accepted("a")))
    assert back.of(A, 0) == (Bar(10, 10, "accepted", 1),)
    assert worked((0, begun()), (10, started("a"))).of(A, 5) == (Bar(10, 10, "running", 1),)
    assert worked((0, begun()), (10, about("a", "step_held"))).of(A, 5) == (Bar(10, 10, "waiting"),)


def test_only_a_new_engine_ends_what_another_had_begun() -> None:
    begun_both: list[tuple[int, Event]] = [(0, begun()), (10, started("a")), (20, started("b"))]
    found = worked(*begun_both, (90, RunResumed("e")))
    assert found.all(95) == {A: [Bar(10, 20, "lost", 1)], sid("b"): [Bar(20, 20, "lost", 1)]}
    assert worked(*begun_both, (90, skipped("c"))).all(95) == {
        A: (Bar(10, 95, "running", 1),),
        sid("b"): (Bar(20, 95, "running", 1),),
    }


def test_nothing_is_known_before_the_first_event() -> None:
    none = Worked()
    assert (none.seq, none.last, none.over, none.all(5), none.of(A, 5)) == (0, 0, False, {}, ())


# --- the axis ------------------------------------------------------------------------------------------


def test_without_cuts_time_is_drawn_alike() -> None:
    axis = axis_of([Bar(100, 300, "accepted")], 100, 300)
    assert axis == Axis((100, 300), (0.0, WIDE), ())
    assert [axis.at(moment) for moment in (0, 100, 150, 300, 999)] == [0.0, 0.0, 250.0, WIDE, WIDE]
    assert axis_of([], 5, 5) == Axis((5, 6), (0.0, WIDE), ())


@pytest.mark.parametrize(("gap", "is_cut"), [(2_000, False), (2_001, True)])
def test_a_stretch_of_two_seconds_is_drawn_as_long_as_it_is(gap: int, is_cut: bool) -> None:
    bars = [Bar(0, 10, "accepted"), Bar(10 + gap, 20 + gap, "accepted")]
    assert bool(axis_of(bars, 0, 20 + gap).cuts) is is_cut


@pytest.mark.parametrize(("gap", "is_cut"), [(10_000, False), (10_001, True)])
def test_beside_much_work_only_longer_stretches_are_cut(gap: int, is_cut: bool) -> None:
    bars = [Bar(0, 60_000, "accepted"), Bar(60_000 + gap, 100_000 + gap, "accepted")]
    assert bool(axis_of(bars, 0, 100_000 + gap).cuts) is is_cut


def test_a_cut_has_its_place_its_length_and_what_it_was() -> None:
    bars = [Bar(0, 1_000, "accepted"), Bar(11_000, 12_000, "failed"), Bar(3_000, 8_001, "waiting")]
    axis = axis_of(bars, 0, 12_000)
    assert axis.cuts == (Cut(488.0, 512.0, 10_000, waiting=True),)
    assert axis.moments == (0, 1_000, 11_000, 12_000)
    assert axis.places == (0.0, 488.0, 512.0, WIDE)
    assert axis.at(500) == 244.0
    assert axis.at(6_000) == 500.0
    assert axis.at(11_500) == 756.0
    half = [*bars[:2], Bar(3_000, 8_000, "waiting")]
    assert not axis_of(half, 0, 12_000).cuts[0].waiting, "half of it is not most of it"


def test_stretches_at_both_ends_are_cut_too() -> None:
    axis = axis_of([Bar(10_000, 11_000, "accepted")], 0, 31_000)
    assert axis.cuts == (
        Cut(0.0, 24.0, 10_000, waiting=False),
        Cut(976.0, 1000.0, 20_000, waiting=False),
    )
    assert axis.moments == (0, 10_000, 11_000, 31_000)
    assert axis.places == (0.0, 24.0, 976.0, 1000.0)


def test_a_run_in_which_nobody_worked_is_drawn_whole() -> None:
    assert axis_of([], 0, 90_000).cuts == ()
    waited = axis_of([Bar(0, 90_000, "waiting")], 0, 90_000)
    assert waited == Axis((0, 90_000), (0.0, WIDE), ())


def test_of_many_stretches_the_twelve_longest_are_cut() -> None:
    bars, at = [], 0
    for number in range(14):
        bars.append(Bar(at, at + 10, "accepted"))
        at += 10 + 3_000 + number
    bars.append(Bar(at, at + 10, "accepted"))
    axis = axis_of(bars, 0, at + 10)
    assert [cut.lasted for cut in axis.cuts] == [3_000 + number for number in range(2, 14)]


def test_work_outside_of_what_is_drawn_counts_as_far_as_it_reaches_in() -> None:
    bars = [Bar(-50, 100, "accepted"), Bar(900, 2_000, "accepted"), Bar(-90, -80, "accepted")]
    assert axis_of(bars, 0, 1_000) == Axis((0, 1_000), (0.0, WIDE), ())
    far = axis_of([Bar(0, 10, "accepted"), Bar(50_000, 60_000, "accepted")], 0, 20_000)
    assert [cut.lasted for cut in far.cuts] == [19_990]


# --- what decided the end ------------------------------------------------------------------------------


def test_what_decided_the_end_is_followed_through_what_was_settled_last() -> None:
    net = graph_of(graph("a>c b>c c>d r>d"))
    told: list[tuple[int, Event]] = [(0, begun()), (1, about("r", "steps_reused"))]
    for name, begin, end in (("a", 2, 30), ("b", 2, 20), ("c", 31, 40), ("d", 41, 50)):
        told += [(begin, started(name)), (end, accepted(name))]
    told.sort(key=lambda one: one[0])
    assert critical_path(net, worked(*told)) == ("d", "c", "a")
    assert critical_path(net, worked(*told[:-1])) == ("c", "a"), "d is not settled"
    assert critical_path(net, Worked()) == ()
    lone = worked((0, begun()), (1, started("x")), (2, accepted("x")))
    assert critical_path(net, lone) == (), "no step of this plan"


def test_of_steps_that_ended_together_the_first_of_the_plan_is_named() -> None:
    net = graph_of(graph("a>c b>c"))
    told: list[tuple[int, Event]] = [
        (0, begun()),
        (1, started("a")),
        (1, started("b")),
        (9, accepted("a")),
        (9, accepted("b")),
    ]
    assert critical_path(net, worked(*told)) == (net.order[0],)
    more = worked(*told, (9, started("c")), (9, accepted("c")))
    assert critical_path(net, more) == (net.order[0],), "c took no time: it did not end later"
    later = worked(*told, (9, started("c")), (12, accepted("c")))
    assert critical_path(net, later) == ("c", net.order[0])
    failed = worked(*told, (10, started("c")), (11, lost("c")), (12, about("c", "step_failed")))
    assert critical_path(net, failed) == ("c", net.order[0])


def test_what_is_made_again_above_holds_up_nobody_yet() -> None:
    net = graph_of(graph("a>c"))
    told: list[tuple[int, Event]] = [(0, begun()), (1, started("a")), (2, accepted("a"))]
    told += [(3, started("c")), (4, accepted("c")), (5, about("a", "steps_reset"))]
    assert critical_path(net, worked(*told)) == ("c",)


# --- the row of a group --------------------------------------------------------------------------------


def test_a_group_is_one_row_of_work_and_one_of_waits() -> None:
    bars = [
        Bar(0, 10, "rejected", 1),
        Bar(5, 20, "accepted", 2),
        Bar(30, 40, "lost", 1),
        Bar(8, 12, "waiting"),
        Bar(11, 35, "waiting"),
    ]
    assert folded(bars) == (
        Bar(0, 20, "accepted"),
        Bar(30, 40, "accepted"),
        Bar(8, 35, "waiting"),
    )
    assert folded([*bars, Bar(32, 50, "running", 3)]) == (
        Bar(0, 20, "accepted"),
        Bar(30, 50, "running"),
        Bar(8, 35, "waiting"),
    )
    assert folded([]) == ()


def test_of_many_pieces_the_nearest_are_drawn_as_one() -> None:
    sixty = [Bar(n * 100, n * 100 + 10, "accepted") for n in range(60)]
    assert len(folded(sixty)) == 60
    near = Bar(15, 20, "accepted")
    found = folded([*sixty, near])
    assert len(found) == 60
    assert found[0] == Bar(0, 20, "accepted")
    assert found[1:] == tuple(sixty[1:])
