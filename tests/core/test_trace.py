"""The trace of a run tells each event once, and what was told stays."""

from holdfast.core.trace import STATUS, Line, trace
from holdfast.model.event import (
    Event,
    PlanExtended,
    Reason,
    RunEnded,
    RunRested,
    Skipped,
    StepFailed,
    StepsReopened,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.plan import StepId
from tests.core.builders import (
    accepted,
    begun,
    recorded,
    ref,
    rejected,
    reused,
    sid,
    started,
    taken,
    waived,
)

A, B, C, D = map(sid, "abcd")
WAVES = [[B, A], [C]]


def told(*events: Event, waves: list[list[StepId]] = WAVES) -> list[tuple[str, object]]:
    """What is said after the beginning; each line has the time of its event."""
    journal = recorded([begun(), *events])
    lines = trace(journal, waves)
    assert {one.at for one in lines} <= {one.at for one in journal}
    assert lines[0] == Line(10, "plan_created", {"artifact_count": lines[0].says["artifact_count"]})
    for length in range(len(journal)):  # only ever appended to
        if not any(isinstance(one, PlanExtended) for one in events):
            assert lines[: len(trace(journal[:length], waves))] == trace(journal[:length], waves)
    return [(one.event, one.says) for one in lines[1:]]


def test_waves_begin_with_their_first_step_and_end_with_their_last() -> None:
    assert told(started("a"), started("b"), accepted("b"), accepted("a"), started("c")) == [
        ("wave_start", {"wave": 0, "artifacts": [A, B]}),
        ("artifact_complete", {"id": B, "duration_ms": 10}),
        ("artifact_complete", {"id": A, "duration_ms": 30}),
        ("wave_complete", {"wave": 0}),
        ("wave_start", {"wave": 1, "artifacts": [C]}),
    ]


def test_what_was_not_made_is_told_with_its_reason() -> None:
    left = StepsSkipped((Skipped(C, "dependency_failed", A),))
    assert told(reused("b"), StepFailed(A, Reason("timed_out", ("a",))), left) == [
        ("wave_start", {"wave": 0, "artifacts": [A, B]}),
        ("artifact_skipped", {"id": B, "reason": "unchanged"}),
        ("artifact_failed", {"id": A, "error": "it took longer than it may: a"}),
        ("wave_complete", {"wave": 0}),
        ("wave_start", {"wave": 1, "artifacts": [C]}),
        ("artifact_skipped", {"id": C, "reason": "dependency_failed", "because": A}),
        ("wave_complete", {"wave": 1}),
    ]
    assert told(taken("b"), waived("a"))[1:3] == [
        ("artifact_skipped", {"id": B, "reason": "forked"}),
        ("artifact_skipped", {"id": A, "reason": "waived"}),
    ]


def test_a_refused_attempt_is_nothing_that_is_complete() -> None:
    assert told(started("a"), rejected("a")) == [
        ("wave_start", {"wave": 0, "artifacts": [A, B]}),
    ]


def test_a_wave_that_is_made_again_begins_and_ends_again() -> None:
    made: list[Event] = [started("c"), accepted("c")]
    again: list[Event] = [started("c", 2), accepted("c", 2)]
    lines = [
        ("wave_start", {"wave": 1, "artifacts": [C]}),
        ("artifact_complete", {"id": C, "duration_ms": 10}),
        ("wave_complete", {"wave": 1}),
    ]
    assert told(*made, StepsReset((C,), "retried"), *again) == lines * 2
    assert told(*made, StepsReopened(C, C, (C,)), *again) == lines * 2
    assert told(StepsReset((sid("gone"),), "retried")) == []


def test_steps_that_are_added_later_join_their_wave_then() -> None:
    grown = PlanExtended(ref("p"), ref("w"), ref("q"), (D,))
    waves = [[A], [D, C]]
    assert told(started("c"), grown, accepted("c"), started("d"), accepted("d"), waves=waves) == [
        ("wave_start", {"wave": 1, "artifacts": [C]}),
        ("artifact_complete", {"id": C, "duration_ms": 20}),
        ("artifact_complete", {"id": D, "duration_ms": 10}),
        ("wave_complete", {"wave": 1}),
    ]


def test_a_run_that_may_go_on_is_not_told_as_ended() -> None:
    assert told(RunRested("waiting", Reason("awaiting_approval"))) == []
    assert told(RunEnded("superseded")) == []
    assert told(RunRested("failed", Reason("step_failed"))) == [
        ("execution_complete", {"status": "failed"})
    ]
    assert told(RunEnded("completed")) == [("execution_complete", {"status": "completed"})]


def test_a_wave_that_begins_names_what_was_added_to_it() -> None:
    grown = PlanExtended(ref("p"), ref("w"), ref("q"), (D,))
    found = told(grown, started("c"), waves=[[A], [D, C]])
    assert found == [("wave_start", {"wave": 1, "artifacts": [C, D]})]


def test_the_words_of_the_format_for_how_a_run_stands() -> None:
    assert {
        "running": "in_progress",
        "completed": "completed",
        **dict.fromkeys(("superseded", "paused", "waiting", "limit"), "paused"),
        **dict.fromkeys(("failed", "escalated", "blocked"), "failed"),
    } == STATUS
