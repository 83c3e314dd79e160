"""A run in the words of the execution graph."""

import pytest

from holdfast.core.nodes import (
    STATUS,
    Times,
    completed_batches,
    current_batch,
    restored,
    result_of,
    status_of,
    times,
)
from holdfast.core.reasons import sentence
from holdfast.core.state import PHASES, State
from holdfast.formats.graph import STATUSES
from holdfast.model.event import (
    Event,
    Reason,
    Recorded,
    Skipped,
    StepFailed,
    StepHeld,
    StepsSkipped,
)
from holdfast.model.plan import Plan, StepId
from tests.core.builders import accepted, begun, graph, ref, reused, sid, started, state_of

PLAN = graph("a>c b>c c>d c>e")


def folded(plan: Plan, events: list[Event]) -> State:
    return state_of(plan, *events[1:])


def held(name: str) -> StepHeld:
    return StepHeld(sid(name), Reason("awaiting_person"))


def failed(name: str) -> StepFailed:
    return StepFailed(sid(name), Reason("command_failed"))


def skipped(*pairs: tuple[str, str]) -> StepsSkipped:
    return StepsSkipped(
        tuple(Skipped(sid(step), "dependency_failed", sid(above)) for step, above in pairs)
    )


def story() -> list[Event]:
    return [begun(), reused("a"), started("b"), accepted("b"), started("c"), accepted("c")]


def words(state: State) -> dict[str, str]:
    return {str(step): status_of(state, step) for step in state.steps}


@pytest.mark.req("C8", "C9", "R25")
def test_every_phase_has_a_word_of_the_document() -> None:
    assert set(STATUS) == set(PHASES)
    assert set(STATUS.values()) <= set(STATUSES)


@pytest.mark.req("C8", "C9", "R25")
def test_steps_are_told_in_the_words_of_the_document() -> None:
    state = folded(PLAN, [begun(), reused("a"), started("b")])
    assert words(state) == {
        "a": "complete",
        "b": "running",
        "c": "pending",
        "d": "pending",
        "e": "pending",
    }
    state = folded(PLAN, [*story(), held("d")])
    assert (words(state)["d"], words(state)["e"]) == ("pending", "queued")
    state = folded(PLAN, [begun(), reused("a"), failed("b"), skipped(("c", "b"), ("d", "c"))])
    assert [words(state)[step] for step in "bcd"] == ["failed", "skipped", "skipped"]


@pytest.mark.req("C9", "R80")
def test_results_say_what_was_reused_and_which_dependency_failed() -> None:
    state = folded(PLAN, [begun(), reused("a"), failed("b"), skipped(("c", "b"), ("d", "c"))])
    found = {name: result_of(state, sid(name)) for name in "abcde"}
    said = {"skipped_reason": "Dependency b failed"}
    assert found["a"] == {"artifact": ref("content of a"), "reused": True}
    assert (found["c"], found["d"], found["e"]) == (said, said, None)
    assert set(found["b"] or {}) == {"error"}


@pytest.mark.req("R80")
def test_who_was_skipped_for_another_reason_says_that_one() -> None:
    skips = (
        Skipped(sid("b"), "condition_unmet", sid("it rains")),
        Skipped(sid("e"), "not_selected", sid("e")),
    )
    state = folded(PLAN, [begun(), StepsSkipped(skips)])
    for name in "be":
        found = result_of(state, sid(name))
        reason = state.steps[sid(name)].reason
        assert reason is not None
        assert found == {"skipped_reason": sentence(reason)}


@pytest.mark.req("R70")
def test_batches_are_complete_when_all_their_steps_are_settled() -> None:
    state = folded(PLAN, story()[:4])
    assert (completed_batches(state), current_batch(state)) == ([1], 2)
    state = folded(PLAN, [*story(), started("d"), accepted("d")])
    assert (completed_batches(state), current_batch(state)) == ([1, 2], 3)
    state = folded(PLAN, [*story(), started("d"), accepted("d"), started("e"), accepted("e")])
    assert (completed_batches(state), current_batch(state)) == ([1, 2, 3], None)


@pytest.mark.req("R70")
def test_times_are_those_of_the_journal() -> None:
    events = [Recorded(number, number * 10, event) for number, event in enumerate(story(), 1)]
    assert times(events) == {
        sid("a"): Times(0, 20),
        sid("b"): Times(30, 40),
        sid("c"): Times(50, 60),
    }


def test_what_stands_on_something_that_is_open_is_open_again() -> None:
    needs = {"a": [], "b": ["a"], "c": ["b"], "d": []}
    complete = dict.fromkeys(needs, "complete")
    assert restored(complete, needs) == complete
    found = restored({**complete, "a": "failed", "d": "running"}, needs)
    assert found == dict.fromkeys(needs, "pending")
    assert restored({**complete, "b": "skipped"}, needs) == {
        "a": "complete",
        "b": "pending",
        "c": "pending",
        "d": "complete",
    }
    assert restored({}, {"a": []}) == {"a": "pending"}


def test_what_a_condition_left_out_says_so() -> None:
    words = "'n' is 1"
    left = StepsSkipped((Skipped(sid("d"), "condition_unmet", StepId(words)),))
    found = result_of(state_of(PLAN, reused("a", "b"), reused("c"), left), sid("d"))
    assert found == {"skipped_reason": sentence(Reason("condition_unmet", (words,)))}
