"""What conflicts mean for the state of a run: who waits, what ends, what is made again."""

import json
from dataclasses import replace

import pytest

from holdfast.core.fold import fold
from holdfast.core.react import conclude
from holdfast.core.state import State
from holdfast.engine.referee import read
from holdfast.errors import BugError
from holdfast.model.event import (
    AttemptAccepted,
    AttemptParked,
    ConflictFound,
    ConflictResolved,
    Event,
    GapClosed,
    Reason,
    RunEnded,
    RunRested,
    StepsReopened,
    StepsReset,
)
from holdfast.model.plan import plan_json
from holdfast.ports import Raw
from holdfast.store.codec import encode
from tests.core.builders import (
    accepted,
    begun,
    follow,
    graph,
    recorded,
    ref,
    sid,
    started,
    state_of,
    waived,
)

PLAN = graph("s>below t")
PARKED = AttemptParked(sid("s"), 1, ref("made"), (), (), "tree")
FOUND = ConflictFound("c-1", "files", ref("record"), (sid("s"), sid("t")), ("a",))
SETTLED = ConflictResolved("c-1", ref("settled"), sid("s"))
MADE: list[Event] = [started("t"), accepted("t"), started("s"), PARKED, FOUND]


def agree(*events: Event) -> State:
    """The fold and the second reading come to the same."""
    state = state_of(PLAN, *events)
    rows = [Raw(r.seq, r.at, *encode(r.event)) for r in recorded([begun(), *events])]
    reading = read(rows, plan_json(PLAN))
    assert reading.problems == []
    assert {s: here.phase for s, here in state.steps.items()} == {
        s: here.phase for s, here in reading.steps.items()
    }
    assert reading.conflicts.keys() == state.conflicts.keys()
    return state


def test_a_step_in_conflict_waits_and_what_needs_it_too() -> None:
    state = agree(*MADE)
    assert state.steps[sid("s")].phase == "waiting"
    assert state.steps[sid("s")].reason == Reason("conflict_open", ("c-1",))
    assert conclude(state) == RunRested("waiting", Reason("awaiting_person", (sid("s"),)))
    assert state.ready == set()


def test_a_settled_conflict_lets_the_kept_candidate_be_accepted() -> None:
    done = AttemptAccepted(sid("s"), 1, ref("rest"), "tree")
    state = agree(*MADE, SETTLED, done)
    assert state.conflicts == {}
    assert state.steps[sid("s")].digest == ref("rest")
    assert state.ready == {sid("below")}


def test_a_step_that_is_made_again_has_no_position_any_more() -> None:
    state = agree(*MADE, StepsReset((sid("s"),), "retried"))
    assert state.conflicts == {}
    assert state.steps[sid("s")].phase == "pending"


def test_a_run_does_not_end_while_a_conflict_is_open() -> None:
    plan = graph("t")
    found = ConflictFound("c-1", "agents", ref("record"), (sid("t"),))
    state = state_of(plan, started("t"), accepted("t"), found)
    assert state.complete
    assert conclude(state) == RunRested("waiting", Reason("conflict_open", ("c-1",)))
    with pytest.raises(BugError):
        follow(state, RunEnded("completed"))
    follow(state, ConflictResolved("c-1", ref("settled"), sid("t")))
    assert conclude(state) == RunEnded("completed")


@pytest.mark.parametrize(
    "events",
    [
        [SETTLED],
        [*MADE, FOUND],
        [*MADE, SETTLED, SETTLED],
        [ConflictFound("c-1", "files", ref("record"), (sid("nobody"),))],
    ],
)
def test_what_cannot_be_is_refused_by_both_readings(events: list[Event]) -> None:
    with pytest.raises(BugError):
        fold(PLAN, recorded([begun(), *events]))
    rows = [Raw(r.seq, r.at, *encode(r.event)) for r in recorded([begun(), *events])]
    assert read(rows, json.loads(json.dumps(plan_json(PLAN)))).problems


def test_who_has_a_part_in_two_conflicts_waits_until_both_are_settled() -> None:
    other = ConflictFound("c-2", "files", ref("record"), (sid("s"),), ("b",))
    state = agree(*MADE, other)
    assert state.steps[sid("s")].reason == Reason("conflict_open", ("c-1", "c-2"))
    follow(state, SETTLED)
    assert state.steps[sid("s")].reason == Reason("conflict_open", ("c-2",))
    assert state.steps[sid("s")].settled == (FOUND,)
    assert state.conflicts == {"c-2": other}


@pytest.mark.req("R85")
def test_who_is_sent_back_has_no_position_any_more() -> None:
    state = agree(*MADE, StepsReopened(sid("s"), sid("s"), (sid("s"),)))
    assert state.conflicts == {}
    assert state.steps[sid("s")].phase == "pending"


def test_who_is_made_after_all_has_no_position_any_more() -> None:
    state = state_of(PLAN, *MADE)
    follow(state, StepsReset((sid("s"),), "retried"), waived("s"), replace(FOUND, conflict="c-2"))
    assert state.conflicts.keys() == {"c-2"}
    follow(state, GapClosed(sid("s"), (sid("s"),)))
    assert state.conflicts == {}


def test_who_waits_for_people_waits_for_the_conflict_alone() -> None:
    asked = replace(PARKED, guards=("g",), approvals=("a-1",))
    state = agree(started("t"), accepted("t"), started("s"), asked, FOUND)
    assert state.steps[sid("s")].reason == Reason("conflict_open", ("c-1",))
    follow(state, replace(FOUND, conflict="c-2"))
    assert state.steps[sid("s")].reason == Reason("conflict_open", ("c-1", "c-2"))
