"""Who starts next: by priority, never more than there is, and nobody is passed over for ever."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.react import can_never_start, may_start
from holdfast.core.state import State
from holdfast.engine.desk import Desk
from holdfast.engine.places import HERE, INLINE
from holdfast.model.event import Options
from holdfast.model.plan import PRIORITIES, Limits, Plan, Step, StepId
from tests.core.builders import accepted, follow, plan, sid, started, state_of, step

NAMES = "abcdefgh"
THERE = {"gpu": 2, "disk": 3}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Steps of all priorities in a random graph, some of which take resources or have an agent."""
    steps: list[Step] = []
    for place, name in enumerate(NAMES):
        above = draw(st.sets(st.sampled_from(NAMES[:place]), max_size=2)) if place else set()
        wants = draw(st.dictionaries(st.sampled_from(["gpu", "disk", "desk"]), st.just(1)))
        if "gpu" in wants:
            wants["gpu"] = draw(st.integers(1, 2))
        steps.append(
            replace(
                step(name, *sorted(above)),
                priority=draw(st.sampled_from(list(PRIORITIES))),
                resources=wants,
                agent=draw(st.sampled_from(["", "", "reviewer", "writer"])),
                effects=draw(st.sampled_from(["none"] * 5 + ["workspace"])),
            )
        )
    return plan(*steps, limits=Limits(resources=THERE, agents={"reviewer": 1}))


def taken(state: State) -> dict[str, int]:
    """What is taken now, counted anew from what runs."""
    found: dict[str, int] = {}
    for name in state.running:
        one = state.plan.steps[name]
        for thing, count in one.resources.items():
            found[thing] = found.get(thing, 0) + count
        if one.agent == "reviewer":
            found["reviewer"] = found.get("reviewer", 0) + 1
    return found


def could_start(state: State, name: StepId) -> bool:
    """The plain definition."""
    one, now = state.plan.steps[name], taken(state)
    lonely = [state.plan.steps[other].effects == "workspace" for other in state.running]
    if any(lonely) or (lonely and one.effects == "workspace"):
        return False
    most = {**THERE, "desk": 1}
    fits = all(now.get(thing, 0) + count <= most[thing] for thing, count in one.resources.items())
    return fits and not (one.agent == "reviewer" and now.get("reviewer", 0))


def things(of: Plan, name: StepId) -> set[str]:
    """The scarce things that a step takes."""
    one = of.steps[name]
    return {*one.resources, *(["agent"] if one.agent == "reviewer" else [])}


def place(state: State, name: StepId, inline: set[str]) -> tuple[bool, int, int]:
    """Functions of this process come first, then priority, then the order of the plan."""
    priority = PRIORITIES[state.plan.steps[name].priority]
    return name not in inline, priority, state.graph.rank[name]


@pytest.mark.req("R26", "R168")
@settings(max_examples=150, deadline=None)
@given(of=plans(), inline=st.sets(st.sampled_from(NAMES)), data=st.data())
def test_nothing_is_exceeded_and_nobody_waits_for_ever(
    of: Plan, inline: set[str], data: st.DataObject
) -> None:
    most = data.draw(st.integers(1, 4))
    state = state_of(of)
    desk = Desk(state, lambda name: INLINE if name in inline else HERE, {})
    waiting: set[StepId] = set()
    told = 0

    def room(place: str) -> bool:
        return place == INLINE or sum(name not in inline for name in state.running) < most

    while not state.complete:
        fresh = state.ready_log[told:]
        told = len(state.ready_log)
        for name in fresh:
            desk.put(name)
            waiting.add(name)
        while (taking := desk.take(room, waiting.discard)) is not None:
            name = taking
            waiting.remove(name)
            assert could_start(state, name)
            assert may_start(state, name)
            kept: set[str] = set()
            for other in sorted(waiting, key=lambda each: place(state, each, inline)):
                if place(state, other, inline) > place(state, name, inline):
                    break
                short = things(of, other) & kept
                assert short or not could_start(state, other), "the better one could have started"
                kept |= things(of, other)
            assert not kept & things(of, name), "it took what a better one waits for"
            follow(state, started(name))
            assert taken(state).get("gpu", 0) <= 2
        assert state.running, "something can always start"
        follow(state, accepted(data.draw(st.sampled_from(sorted(state.running)))))
    assert not any(state.taken.values())


@pytest.mark.req("R26")
def test_the_ready_queue_goes_by_priority() -> None:
    order = ["low", "normal", "high", "critical"]
    of = plan(*(replace(step(f"s-{word}"), priority=word) for word in order))
    state = state_of(of)
    desk = Desk(state, lambda _: HERE, {})
    for name in state.ready_log:
        desk.put(name)
    came = []
    while (taking := desk.take(lambda _: True, lambda _: None)) is not None:
        came.append(taking)
    assert came == [f"s-{word}" for word in reversed(order)]


def test_a_step_that_asks_for_more_than_there_is_can_never_start() -> None:
    of = plan(replace(step("a"), resources={"gpu": 2}), limits=Limits(resources={"gpu": 2}))
    state = state_of(of)
    assert not can_never_start(state, sid("a"))
    assert can_never_start(state, sid("a"), {"gpu": 1}), "the machine may have less"
    assert not can_never_start(state, sid("a"), {"gpu": 9})
    unnamed = state_of(plan(replace(step("a"), resources={"gpu": 2})))
    assert can_never_start(unnamed, sid("a"))
    assert not can_never_start(unnamed, sid("a"), {"gpu": 4})


@pytest.mark.req("C1")
def test_a_barrier_lets_a_wave_start_when_the_one_before_is_settled() -> None:
    of = plan(step("a"), step("b"), replace(step("c", "a"), priority="critical"))
    state = state_of(of, started("a"), started("b"), accepted("a"), options=Options(barrier=True))
    desk = Desk(state, lambda _: HERE, {})
    desk.put(sid("c"))
    assert desk.take(lambda _: True, lambda _: None) is None
    follow(state, accepted("b"))
    assert desk.take(lambda _: True, lambda _: None) == "c"


@pytest.mark.req("R168")
def test_the_limit_of_the_plan_counts_whatever_runs() -> None:
    of = plan(step("a"), step("b"), limits=Limits(parallel=1))
    state = state_of(of, started("a"))
    assert not may_start(state, sid("b"))
    follow(state, accepted("a"))
    assert may_start(state, sid("b"))
