"""When nothing more may start before a person looked, against the plain definition."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.escalation import escalates
from holdfast.core.fold import apply, fold
from holdfast.core.moves import TRANSITIONS
from holdfast.core.react import react
from holdfast.errors import BugError
from holdfast.model.event import (
    Event,
    Reason,
    Recorded,
    RunRested,
    RunResumed,
    Skipped,
    StepFailed,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.plan import Plan
from tests.core.builders import (
    about,
    accepted,
    begun,
    follow,
    graph,
    plan,
    recorded,
    ref,
    rejected,
    reused,
    sid,
    skipped,
    started,
    state_of,
    step,
)
from tests.laws.escalating import escalations

WIDE = graph("a>d>f b>d c>e>f g")
FATAL = Reason("guard_fatal", ("g",))


def failing(*names: str) -> list[Event]:
    return [event for n in names for event in (started(n), rejected(n), about(n, "step_failed"))]


def escalated(of: Plan, *events: Event) -> str | None:
    story = recorded([begun(), *events])
    state = fold(of, story)
    code = state.escalation.code if state.escalation else None
    assert code == escalations(of, story)[-1]
    return code


@pytest.mark.req("R81", "C19")
def test_a_critical_step_that_fails_escalates_and_nothing_more_is_told() -> None:
    of = plan(replace(step("a"), priority="critical"), step("b"), step("c"))
    state = state_of(of, started("b"), *failing("a"))
    assert state.escalation == Reason("critical_failed", ("a",))
    assert react(state, seen=0, now=0) == ((), 0, None, None), "what runs may end"
    follow(state, accepted("b"))
    end = react(state, seen=0, now=0)
    assert (end.probe, end.end) == ((), RunRested("escalated", state.escalation))
    assert state.steps[sid("c")].phase == "pending"
    follow(state, RunRested("escalated", Reason("critical_failed", ("a",))), RunResumed("e"))
    assert react(state, seen=0, now=0).probe == ("c",)


@pytest.mark.req("R77", "C19")
def test_a_fatal_verdict_escalates_if_the_step_says_so() -> None:
    strict = plan(replace(step("a"), on_fatal="escalate"), step("b"))
    refusal: list[Event] = [started("a"), rejected("a", fatal=True), StepFailed(sid("a"), FATAL)]
    assert escalated(strict, *refusal) == "fatal_verdict"
    assert escalated(plan(step("a"), step("b")), *refusal) is None
    assert escalated(strict, *failing("a")) is None, "an ordinary failure is none"


@pytest.mark.req("R83")
@pytest.mark.parametrize(
    "events, code",
    [
        (failing("a", "b", "c", "g"), "wave_failed"),
        ([*failing("a", "b", "c"), reused("g")], "wave_failed"),
        ([reused("g"), *failing("a", "b", "c")], "wave_failed"),
        ([*failing("a", "b", "c"), started("g"), accepted("g")], None),
        ([*failing("a", "b", "c"), started("g")], None),
        ([*failing("a"), reused("b", "c", "g")], None),
        ([*failing("a", "b"), about("c", "step_failed"), about("g", "step_failed")], "wave_failed"),
        ([*failing("a"), *(about(n, "step_failed") for n in "bcg")], None),
        ([*failing("a", "b", "c"), about("g", "steps_skipped")], "wave_failed"),
        (
            [
                *failing("a", "b", "c"),
                replace(started("g"), reguard=ref("kept")),
                accepted("g"),
            ],
            "wave_failed",
        ),
    ],
)
def test_a_wave_has_failed_when_all_that_ran_in_it_did(
    events: list[Event], code: str | None
) -> None:
    assert escalated(WIDE, *events) == code


@pytest.mark.req("R83")
def test_steps_that_are_skipped_later_end_their_wave_too() -> None:
    of = graph("a>x b>y z>w>v")
    early: list[Event] = [started("a"), accepted("a"), started("b"), accepted("b")]
    late: list[Event] = [
        *early,
        *failing("x", "y", "z"),
        StepsSkipped((Skipped(sid("w"), "dependency_failed", sid("z")),)),
    ]
    assert escalated(of, *late[:-1]) is None, "w could still be made"
    assert escalated(of, *late) == "wave_failed"


@pytest.mark.req("R93")
def test_a_wave_that_is_tried_again_is_over_only_when_it_is_settled_again() -> None:
    of = plan(step("a"), step("b"))
    again = StepsReset((sid("a"),), "retried")
    state = state_of(of, *failing("a", "b"), RunRested("escalated", Reason("wave_failed")))
    follow(state, RunResumed("e"), again, started("a", 2))
    assert state.escalation is None
    follow(state, rejected("a", 2))
    assert state.escalation is None
    assert (
        escalated(of, *failing("a", "b"), again, started("a", 2), accepted("a", 2)) == "wave_failed"
    )
    follow(state, about("a", "step_failed"))
    assert state.escalation == Reason("wave_failed", ("a", "b"))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_it_is_what_the_plain_definition_says_after_every_event(data: st.DataObject) -> None:
    draw = data.draw
    critical, strict = (draw(st.sampled_from("abcdefg?")) for _ in range(2))
    of = plan(
        *(
            replace(
                one,
                priority="critical" if name == critical else "normal",
                on_fatal="escalate" if name == strict else "fail",
            )
            for name, one in WIDE.steps.items()
        )
    )
    state, story = state_of(of), recorded([begun()])
    kinds = sorted(TRANSITIONS.keys() - {"outputs_placed", "effect_started", "effect_confirmed"})
    for _ in range(draw(st.integers(0, 40))):
        name, kind = draw(st.sampled_from("abcdefg")), draw(st.sampled_from([*kinds, "resume"]))
        event: Event = RunResumed("e") if kind == "resume" else about(name, kind)
        if kind == "step_failed" and draw(st.booleans()):
            event = StepFailed(sid(name), FATAL)
        if hasattr(event, "attempt"):
            here = state.steps[sid(name)]
            number = here.attempts + (kind == "attempt_started")
            event = replace(event, attempt=number)  # type: ignore[arg-type]  # it has one
        item = Recorded(state.seq + 1, 10, event)
        try:
            apply(state, item)
        except BugError:
            continue
        story.append(item)
        code = state.escalation.code if state.escalation else None
        assert code == escalations(of, story)[-1], story
    assert fold(of, story) == state


def test_who_would_stop_everything_is_known_before() -> None:
    plain = step("a")
    critical, fatal = replace(plain, priority="critical"), replace(plain, on_fatal="escalate")
    no, lost_one = Reason("guard_fatal", ("g",)), Reason("lost")
    assert [escalates(one, no) for one in (plain, critical, fatal)] == [False, True, True]
    assert [escalates(one, lost_one) for one in (plain, critical, fatal)] == [False, True, False]


def test_a_wave_that_failed_names_those_that_failed_and_not_what_was_left_out() -> None:
    of = plan(*map(step, "abc"))
    assert state_of(of, *failing("a"), skipped("b"), *failing("c")).escalation == Reason(
        "wave_failed", (sid("a"), sid("c"))
    )


def test_a_step_that_failed_before_it_ran_counts_when_it_ran() -> None:
    of = plan(*map(step, "abc"))
    unborn = StepFailed(sid("b"), Reason("command_failed"))
    again = [unborn, StepsReset((sid("b"),), "retried"), *failing("b")]
    assert state_of(of, *failing("a"), *again, skipped("c")).escalation == Reason(
        "wave_failed", (sid("a"), sid("b"))
    )
