"""The second reading of a run's journal: what it finds by itself, without the fold."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from holdfast.engine.referee import Reading, Stand, read
from holdfast.ports import Raw

PLAN: Mapping[str, Any] = {"steps": {"a": {}, "b": {"needs": [["a", "data", ""]]}}}
Fact = tuple[str, Mapping[str, Any]]

START: Fact = ("run_started", {})
END: Fact = ("run_ended", {"status": "completed"})
REST: Fact = ("run_rested", {"status": "failed", "reason": ["stopped"]})


def begin(step: str, attempt: int = 1, **more: object) -> Fact:
    return "attempt_started", {"step": step, "attempt": attempt, "config_ref": "ref", **more}


def accept(step: str, attempt: int = 1) -> Fact:
    return "attempt_accepted", {"step": step, "attempt": attempt, "digest": "made"}


def fail(step: str, attempt: int = 1) -> Fact:
    return "attempt_failed", {"step": step, "attempt": attempt, "code": "command_failed"}


def call(kind: str, step: str = "a", number: int = 1, attempt: int = 1) -> Fact:
    return f"call_{kind}", {"step": step, "attempt": attempt, "call": number}


def reuse(*steps: str) -> Fact:
    return "steps_reused", {"items": [[step, "ref", "kept"] for step in steps]}


WHOLE = [START, begin("a"), fail("a"), begin("a", 2), accept("a", 2), reuse("b"), END]


def reading(facts: Sequence[Fact]) -> Reading:
    rows = (Raw(seq, 0, kind, json.dumps(body)) for seq, (kind, body) in enumerate(facts, 1))
    return read(rows, PLAN)


@pytest.mark.req("I3")
def test_it_says_where_each_step_stands() -> None:
    found = reading(WHOLE)
    assert found.problems == []
    assert found.status == "completed"
    assert found.steps == {
        "a": Stand("done", 2, "made", "ref"),
        "b": Stand("reused", 0, "kept", "ref"),
    }


@pytest.mark.req("I3")
def test_calls_go_on_within_an_attempt_and_number_anew_in_the_next() -> None:
    first = [begin("a"), call("started"), call("failed"), call("started", number=2), fail("a")]
    second = [begin("a", 2), call("started", attempt=2), call("answered", attempt=2)]
    found = reading([START, *first, *second, accept("a", 2), reuse("b"), END])
    assert found.problems == []


WRONG = {
    "accepted twice": ([*WHOLE[:5], begin("a", 3), accept("a", 3)], "for the second time"),
    "begun before its need": ([START, begin("b")], "before 'a' is complete"),
    "reused before its need": ([START, reuse("b", "a")], "before 'a' is complete"),
    "an attempt left out": ([START, begin("a", 2)], "attempt 2 of step 'a' follows attempt 0"),
    "an end without a start": ([START, fail("a")], "was not going on"),
    "the end of another attempt": ([START, begin("a"), accept("a", 2)], "was not going on"),
    "after the end": ([*WHOLE, ("run_resumed", {})], "although the run is completed"),
    "at rest": ([START, REST, begin("a")], "although the run is failed"),
    "begun twice": ([START, START], "although the run is running"),
    "never begun": ([reuse("a")], "although the run is not begun"),
    "rests while a step runs": ([START, begin("a"), REST], "while ['a'] go on"),
    "completed with a step open": ([START, reuse("a"), END], "step 'b' is pending"),
    "a step of no plan": ([START, reuse("z")], "'z' is no step of the plan"),
    "a call outside an attempt": ([START, call("started")], "call 1 of step 'a' begins"),
    "a call of another attempt": (
        [START, begin("a"), call("started", attempt=2)],
        "call 1 of step 'a' begins",
    ),
    "a call begun twice": (
        [START, begin("a"), call("started"), call("started")],
        "call 1 of step 'a' begins",
    ),
    "an answer to nothing": ([START, begin("a"), call("answered")], "was not under way"),
    "an answer after the attempt": (
        [START, begin("a"), call("started"), fail("a"), call("failed")],
        "was not under way",
    ),
    "answers for no step": (
        [START, ("answers_kept", {"step": "z", "items": []})],
        "'z', which is no step",
    ),
    "an event of a line": ([START, ("run_opened", {"run": "r"})], "does not belong"),
    "outputs of a running step": (
        [START, begin("a"), ("outputs_placed", {"step": "a"})],
        "cannot be",
    ),
}


@pytest.mark.req("I2", "I4")
@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_found(name: str) -> None:
    facts, told = WRONG[name]
    assert told in "\n".join(reading(facts).problems)


@pytest.mark.req("I4")
def test_a_rest_can_be_resumed_and_reset() -> None:
    again: Fact = ("steps_reset", {"steps": ["a"], "code": "retried"})
    lost: Fact = ("step_failed", {"step": "a"})
    found = reading([START, lost, REST, ("run_resumed", {}), again, reuse("a", "b"), END])
    assert found.problems == []
    assert found.engines == 2


@pytest.mark.req("I4")
def test_a_step_that_nobody_selected_may_stay_undone() -> None:
    left: Fact = ("steps_skipped", {"items": [["b", "not_selected", ""]]})
    assert reading([START, reuse("a"), left, END]).problems == []
    failed: Fact = ("steps_skipped", {"items": [["b", "dependency_failed", "a"]]})
    assert reading([START, reuse("a"), failed, END]).problems != []


@pytest.mark.req("I4")
@pytest.mark.parametrize(
    "limits, is_right",
    [
        ({"time": 9, "agents": {"w": 2}}, True),
        ({"time": 9, "agents": {"w": 1, "x": 1}}, True),
        ({"time": 9, "agents": {"w": 3}}, False),
        ({"time": 9, "agents": {"x": 1}}, False),
        ({"agents": {"w": 2}}, False),
    ],
)
def test_a_plan_that_grew_only_binds_agents_further(
    limits: Mapping[str, Any], *, is_right: bool
) -> None:
    before = {**PLAN, "limits": {"time": 9, "agents": {"w": 2}}}
    later = {"steps": {**PLAN["steps"], "c": {}}, "limits": limits}
    body = json.dumps({"plan": "p", "added": ["c"]})
    rows = [Raw(1, 0, "run_started", "{}"), Raw(2, 0, "plan_extended", body)]
    problems = read(rows, before, {"p": later}.__getitem__).problems
    assert (not any("other limits" in one for one in problems)) is is_right
