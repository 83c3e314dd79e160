"""Answers and uses of tools are kept as long as nobody acted on them, and no longer."""

import pytest

from holdfast.core.state import Paid, Tools
from holdfast.errors import BugError
from holdfast.model.event import (
    AnswersKept,
    CallAnswered,
    CallStarted,
    Event,
    StepsReset,
    ToolStarted,
    ToolUsed,
    Used,
)
from tests.core.builders import (
    about,
    failed,
    follow,
    lost,
    plan,
    ref,
    rejected,
    sid,
    started,
    state_of,
    step,
)

S = sid("s")
TALK = (about("s", "call_started"), about("s", "call_answered"))
ANSWER = Paid(ref("request"), ref("answer"))
USED = Used(ref("use"), ref("3"))


def after(*events: Event) -> tuple[tuple[Paid, ...], Tools | None]:
    found = state_of(plan(step("s")), *events).steps[S]
    return found.paid, found.tools


def test_what_a_lost_attempt_heard_is_there_for_the_next() -> None:
    kept = after(started("s"), *TALK, about("s", "tool_used"), lost("s"))
    assert kept == ((ANSWER,), Tools({USED.use: USED}))


def test_a_verdict_ends_it() -> None:
    for ending in (rejected("s"), failed("s")):
        assert after(started("s"), *TALK, about("s", "tool_used"), ending) == ((), None)


def test_a_tool_that_was_begun_and_not_heard_of_is_left_until_a_person_wants_it_again() -> None:
    story = (started("s"), *TALK, about("s", "tool_started"), lost("s"))
    assert after(*story)[1] == Tools(left=frozenset({USED.use}))
    again = (*story, about("s", "step_failed"), StepsReset((S,), "retried", (S,)))
    assert after(*again)[1] == Tools()


def test_what_an_earlier_run_left_counts_also_if_nothing_is_asked_here() -> None:
    kept = AnswersKept(S, (tuple(ANSWER),), (USED,), (ref("begun"),))  # type: ignore[arg-type]
    other = ToolStarted(S, 1, ref("other"), "add", ref("{}"))
    found = after(kept, started("s"), other, lost("s"))
    left = frozenset({ref("begun"), ref("other")})
    assert found == ((ANSWER,), Tools({USED.use: USED}, left=left))
    more = ToolUsed(S, 1, ref("other"), "add", ref("{}"), ref("4"), ok=False)
    ended = after(kept, started("s"), other, more, rejected("s"))
    assert ended == ((), None)


def test_equal_questions_keep_an_answer_each_in_their_order() -> None:
    def asked(attempt: int, call: int, answer: str) -> tuple[Event, Event]:
        return (
            CallStarted(S, attempt, call, "p:m", ref("request"), 100, 50),
            CallAnswered(S, attempt, call, ref(answer), 10, 5, cost=20),
        )

    both = after(started("s"), *asked(1, 1, "first"), *asked(1, 2, "second"), lost("s"))[0]
    assert both == (Paid(ref("request"), ref("first")), Paid(ref("request"), ref("second")))
    kept = AnswersKept(S, ((ref("request"), ref("first")),))
    more = after(kept, started("s"), *asked(1, 1, "second"), lost("s"))[0]
    assert more == both


def test_uses_of_tools_alone_or_those_left_alone_are_kept_too() -> None:
    used = AnswersKept(S, (), (USED,))
    assert after(used, started("s"), lost("s")) == ((), Tools({USED.use: USED}))
    left = AnswersKept(S, (), (), (ref("begun"),))
    assert after(left, started("s"), lost("s")) == ((), Tools(left=frozenset({ref("begun")})))


def test_a_tool_that_is_under_way_is_not_begun_again() -> None:
    begun = (started("s"), about("s", "tool_started"))
    with pytest.raises(BugError, match="a use of 'add' of 's' is under way already"):
        after(*begun, about("s", "tool_started"))
    after(*begun, about("s", "tool_used"), about("s", "tool_started"))


def test_a_call_that_is_under_way_is_not_begun_again() -> None:
    with pytest.raises(BugError, match="call 1 of 's' is under way already"):
        after(started("s"), about("s", "call_started"), about("s", "call_started"))


def test_a_verdict_cuts_off_what_is_under_way() -> None:
    state = state_of(plan(step("s")), started("s"), about("s", "call_started"))
    assert (state.reserved, state.reserved_tokens) == (100, 50)
    follow(state, rejected("s"))
    assert (state.reserved, state.reserved_tokens) == (0, 0)
    spent = state.spent
    assert (spent.cost, spent.tokens, spent.interrupted, spent.cut) == (100, 50, 100, 1)
    assert spent.rejected == 0, "what was cut off is counted once"
