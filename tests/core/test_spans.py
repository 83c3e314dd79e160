"""A run is one trace that follows from its journal alone."""

from collections.abc import Iterable
from dataclasses import replace

from holdfast.core import genai
from holdfast.core.spans import Span, Spans, Value, trace_of
from holdfast.model.event import (
    AttemptAccepted,
    AttemptParked,
    CallAnswered,
    CallFailed,
    CallStarted,
    Event,
    Reason,
    RunEnded,
    RunRested,
    RunResumed,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    ToolStarted,
    ToolUsed,
)
from holdfast.model.plan import CLI_AGENT, Guard, RunId, Step
from tests.core.builders import (
    accepted,
    begun,
    failed,
    lost,
    recorded,
    ref,
    rejected,
    reused,
    sid,
    skipped,
    started,
    step,
    taken,
)

S = sid("s")
PLAIN = step("s")
JUDGE, TESTS = Guard("judge", "model"), Guard("command", "", name="tests")
TALKS = replace(PLAIN, uses="llm", model="fast", agent="coder", guards=(JUDGE, TESTS))
ASKED = CallStarted(S, 1, 1, "google:gem-1", ref("request"), 100, 50)
HEARD = CallAnswered(
    S, 1, 1, ref("answer"), 10, 5, cost=2_000_000, cached=3, finish="tools", id="i"
)
USED = ToolUsed(S, 1, ref("use"), "add", ref("{}"), ref("3"), took_ms=4)
ENDED = RunEnded("completed")


def told(*events: Event, of: Step = PLAIN, planning: str = "") -> list[Span]:
    spans = Spans({S: of}.get, planning)
    found = [span for one in recorded([begun(), *events]) for span in spans.take(one)]
    assert {one.trace for one in found} <= {trace_of("r-1")}
    assert len({one.id for one in found}) == len(found)
    assert all(one.start <= one.end for one in found)
    assert all(one.values.get(genai.ERROR, "") == one.error for one in found)
    return found


def brief(spans: Iterable[Span]) -> list[tuple[str, int, int, str]]:
    return [(one.name, one.start, one.end, one.error) for one in spans]


def values(span: Span, *names: str) -> list[Value | None]:
    return [span.values.get(name) for name in names]


def test_a_run_is_told_from_its_start_to_its_end_with_what_it_did_not_make() -> None:
    (run,) = told(reused("a", "b"), taken("c"), skipped("d"), ENDED)
    assert brief([run]) == [("invoke_workflow line", 10, 50, "")]
    assert (run.parent, run.kind) == ("", "internal")
    assert run.values == {
        genai.OPERATION: "invoke_workflow",
        genai.WORKFLOW: "line",
        genai.RUN: "r-1",
        genai.PLAN_REF: ref("w"),
        genai.PLAN_DIGEST: ref("plan"),
        genai.RESUMED: False,
        genai.STATUS: "completed",
        genai.STEPS_REUSED: 3,
        genai.STEPS_SKIPPED: 1,
    }


def test_a_run_that_goes_on_is_a_span_below_the_first_and_counts_anew() -> None:
    rest = RunRested("waiting", Reason("awaiting_approval"))
    first, second = told(reused("a"), skipped("b"), rest, RunResumed("e"), ENDED)
    assert second.parent == first.id
    assert values(first, genai.STATUS, genai.RESUMED) == ["waiting", False]
    assert values(second, genai.STATUS, genai.RESUMED) == ["completed", True]
    assert values(second, genai.STEPS_REUSED, genai.STEPS_SKIPPED) == [0, 0]
    _, _, third = told(rest, RunResumed("e"), rest, RunResumed("e"), ENDED)
    assert third.parent == first.id


def test_a_start_that_nobody_saw_end_died_with_the_last_that_was_heard_of_it() -> None:
    died, attempt, run = told(started("s"), RunResumed("e"), lost("s"), ENDED)
    assert brief([died]) == [("invoke_workflow line", 10, 20, "engine_died")]
    assert values(died, genai.STATUS) == ["running"]
    assert (attempt.parent, run.parent) == (died.id, died.id)


def test_only_a_run_that_went_wrong_is_an_error() -> None:
    for status in ("failed", "escalated", "blocked"):
        (run,) = told(RunRested(status, Reason("x")))
        assert run.error == status
    (run,) = told(RunRested("limit", Reason("x")))
    assert run.error == ""


def test_an_attempt_stands_below_its_run_with_why_it_ran_and_what_it_gave() -> None:
    attempt, run = told(replace(started("s"), approvals=("a-1",)), accepted("s"), ENDED)
    assert brief([attempt]) == [("step s", 20, 30, "")]
    assert attempt.parent == run.id
    assert attempt.values == {
        genai.STEP_ID: "s",
        genai.ATTEMPT: 1,
        genai.REASON: "never_ran",
        genai.REUSE: "miss",
        genai.CONFIG_REF: ref("cs"),
        genai.APPROVALS: ("a-1",),
        genai.OUTCOME: "accepted",
        genai.ARTIFACT: ref("content of s"),
        genai.VERIFIED: False,
    }
    for code in ("forced", "resampled", "retried"):
        (again,) = told(replace(started("s"), reason=Reason(code)), failed("s"))
        assert values(again, genai.REUSE, genai.OUTCOME) == ["forced", "failed"]
        assert again.error == "command_failed"


def test_an_attempt_that_asks_a_model_is_one_of_an_agent() -> None:
    (attempt,) = told(started("s"), lost("s"), of=TALKS)
    assert brief([attempt]) == [("invoke_agent s", 20, 30, "lost")]
    assert values(attempt, genai.OPERATION, genai.AGENT) == ["invoke_agent", "coder"]
    (nameless,) = told(started("s"), lost("s"), of=replace(PLAIN, uses=CLI_AGENT))
    assert values(nameless, genai.AGENT) == ["s"]
    (planned,) = told(started("s"), lost("s"), planning="ine")
    assert brief([planned]) == [("plan s", 20, 30, "lost")]
    (other,) = told(started("s"), lost("s"), planning=".goal")
    assert other.name == "step s"


def test_verdicts_are_noted_in_their_attempt() -> None:
    passed = AttemptAccepted(S, 1, ref("x"), verified=True, score=750)
    (attempt,) = told(started("s"), passed, of=TALKS)
    assert [(one.name, one.at, dict(one.values)) for one in attempt.noted] == [
        (
            genai.EVALUATION,
            30,
            {
                genai.EVALUATION_NAME: name,
                genai.EVALUATION_LABEL: "pass",
                **({genai.EVALUATION_SCORE: 0.75} if name == "judge" else {}),
            },
        )
        for name in ("judge", "tests")
    ]
    (unverified,) = told(started("s"), replace(passed, verified=False), of=TALKS)
    assert unverified.noted == ()
    (refused,) = told(started("s"), rejected("s"))
    assert refused.error == "guard_rejected"
    (note,) = refused.noted
    assert dict(note.values) == {genai.EVALUATION_NAME: "g", genai.EVALUATION_LABEL: "fail"}
    assert dict(note.content) == {genai.EVALUATION_WORDS: ref("no")}


def test_a_call_stands_below_its_attempt_with_what_it_used() -> None:
    call, attempt = told(started("s"), ASKED, HEARD, accepted("s"), of=TALKS)
    assert brief([call]) == [("chat gem-1", 30, 40, "")]
    assert (call.parent, call.kind) == (attempt.id, "client")
    assert call.values == {
        genai.OPERATION: "chat",
        genai.PROVIDER: "gcp.gemini",
        genai.MODEL: "gem-1",
        genai.STEP_ID: "s",
        genai.ATTEMPT: 1,
        genai.COST: 2.0,
        genai.INPUT_TOKENS: 10,
        genai.OUTPUT_TOKENS: 5,
        genai.CACHE_READ_TOKENS: 3,
        genai.FINISH_REASONS: ("tool_call",),
        genai.RESPONSE_ID: "i",
    }
    assert call.content == {
        genai.INPUT_MESSAGES: ref("request"),
        genai.OUTPUT_MESSAGES: ref("answer"),
    }


def test_a_call_without_an_answer_has_its_error_and_its_price_if_that_is_known() -> None:
    (call,) = told(started("s"), ASKED, CallFailed(S, 1, 1, "overloaded", None, 0))
    assert call.error == "overloaded"
    assert genai.COST not in call.values
    assert genai.INPUT_TOKENS not in call.values
    assert told(started("s"), HEARD) == []  # its beginning was never told


def test_a_tool_is_told_from_its_beginning_or_back_from_its_end() -> None:
    begun_before = ToolStarted(S, 1, ref("use"), "add", ref("{}"))
    (seen,) = told(started("s"), begun_before, USED)
    assert brief([seen]) == [("execute_tool add", 30, 40, "")]
    (unseen,) = told(started("s"), USED)
    assert brief([unseen]) == [("execute_tool add", 26, 30, "")]
    assert unseen.content == {genai.TOOL_ARGUMENTS: ref("{}"), genai.TOOL_RESULT: ref("3")}
    assert values(unseen, genai.OPERATION, genai.TOOL, genai.ATTEMPT) == ["execute_tool", "add", 1]
    (wrong,) = told(started("s"), replace(USED, ok=False, name=""))
    assert brief([wrong]) == [("execute_tool unknown", 26, 30, "tool_error")]
    _, attempt = told(started("s"), USED, accepted("s"))
    assert unseen.parent == attempt.id


def test_what_was_under_way_ends_with_its_attempt_and_with_no_other() -> None:
    tool = ToolStarted(S, 1, ref("use"), "add", ref("{}"))
    other = CallStarted(sid("t"), 1, 1, "p:m", ref("request"), 100, 50)
    used = ToolStarted(sid("t"), 1, ref("use"), "add", ref("{}"))
    spans = told(started("s"), started("t"), ASKED, other, tool, used, lost("s"))
    assert brief(spans) == [
        ("chat gem-1", 40, 80, "interrupted"),
        ("execute_tool add", 60, 80, "interrupted"),
        ("step s", 20, 80, "lost"),
    ]


def test_an_attempt_without_an_end_ends_with_its_run() -> None:
    call, attempt, run = told(started("s"), ASKED, RunRested("paused", Reason("x")))
    assert brief([call, attempt, run]) == [
        ("chat gem-1", 30, 40, "interrupted"),
        ("step s", 20, 40, "interrupted"),
        ("invoke_workflow line", 10, 40, ""),
    ]
    assert values(attempt, genai.OUTCOME) == ["lost"]


def test_people_are_waited_for_from_the_question_to_the_answer() -> None:
    held = StepHeld(S, Reason("awaiting_approval", ("a-1",)))
    again = StepHeld(S, Reason("awaiting_approval", ("a-2",)))
    answers: dict[str, Event] = {
        "approved": StepsReleased((S,), "approved"),
        "retried": StepsReset((S,), "retried"),
        "reopened": StepsReopened(S, S, (S,)),
        "rejected_by_person": StepFailed(S, Reason("rejected_by_person")),
    }
    for outcome, answer in answers.items():
        wait, run = told(held, again, answer, ENDED)
        assert brief([wait]) == [("holdfast.approval s", 20, 40, "")]
        assert wait.parent == run.id
        assert wait.values == {
            genai.STEP_ID: "s",
            genai.REASON: "awaiting_approval",
            genai.APPROVALS: ("a-1",),
            genai.OUTCOME: outcome,
        }


def test_a_candidate_that_waits_for_a_person_is_answered_by_its_verdict() -> None:
    parked = AttemptParked(S, 1, ref("x"), ("g",), ())
    attempt, wait = told(started("s"), parked, accepted("s"))
    assert brief([attempt, wait]) == [("step s", 20, 30, ""), ("holdfast.approval s", 30, 40, "")]
    assert values(attempt, genai.OUTCOME, genai.ARTIFACT) == ["parked", ref("x")]
    assert wait.values == {genai.STEP_ID: "s", genai.REASON: "guard", genai.OUTCOME: "accepted"}


def test_two_runs_have_two_traces_and_no_span_in_common() -> None:
    spans = Spans({S: PLAIN}.get)
    other = replace(begun(), run=RunId("r-2"))
    story: list[Event] = [other, started("s"), ASKED, USED, lost("s"), ENDED]
    found = [span for one in recorded(story) for span in spans.take(one)]
    mine = told(started("s"), ASKED, USED, lost("s"), ENDED)
    assert {one.trace for one in found} == {trace_of("r-2")} != {trace_of("r-1")}
    assert not {one.id for one in found} & {one.id for one in mine}
    assert len(found[0].trace) == 32
    assert {len(one.id) for one in found} == {16}
