"""What the live view says about the calls of models, event by event."""

from dataclasses import replace

import pytest

from holdfast.cli.calls import ANSWER, Calls
from holdfast.model.digest import digest_bytes
from holdfast.model.event import CallAnswered, CallFailed, CallStarted, Recorded, RunEvent
from tests.core.builders import accepted, plan, sid, started, step

A, B = sid("a"), sid("b")
NOTHING = digest_bytes(b"")


def asking() -> Calls:
    of = plan(*(replace(step(name), uses="llm", model="openai:m") for name in "ab"), step("c"))
    return Calls(of.steps)


def tell(calls: Calls, *events: RunEvent, at: int = 0) -> None:
    for event in events:
        calls.take(Recorded(1, at, event))


@pytest.mark.req("R107")
def test_whom_a_step_waits_for_is_said_until_it_is_answered() -> None:
    calls = asking()
    tell(calls, started("a"), started("b"), started("c"))
    assert [calls.words(sid(name), 0) for name in "abc"] == [
        "waits for openai",
        "waits for openai",
        "",
    ]
    tell(calls, CallStarted(A, 1, 1, "openai:m", NOTHING))
    assert calls.words(A, 0) == "asked openai"
    tell(calls, CallFailed(A, 1, 1, "rate_limited", wait_ms=11_500), at=1000)
    assert calls.words(A, 1000) == "asks again in 12 s (rate limited)"
    assert calls.words(B, 9500) == "waits 3 s for openai (rate limited)"
    assert calls.words(B, 12_500) == calls.words(A, 12_500) == "waits for openai"
    tell(calls, CallStarted(A, 1, 2, "openai:m", NOTHING))
    calls.add(A, ANSWER, "für dich".encode())
    assert calls.words(A, 0) == "writing, 8 characters"
    tell(calls, CallAnswered(A, 1, 2, NOTHING, 1, 1))
    assert calls.words(A, 0) == ""
    tell(calls, accepted("a"))
    assert calls.words(A, 0) == ""


def test_what_broke_off_does_not_count() -> None:
    calls = asking()
    tell(calls, started("a"), CallStarted(A, 1, 1, "openai:m", NOTHING))
    calls.add(A, ANSWER, b"half an answer")
    tell(calls, CallFailed(A, 1, 1, "cut_off", wait_ms=2000))
    assert calls.words(A, 0) == "asks again in 2 s (its answer broke off)"
    tell(calls, CallStarted(A, 1, 2, "openai:m", NOTHING))
    assert calls.words(A, 0) == "asked openai"
    calls.add(A, "note", b"no words of a model")
    assert calls.words(A, 0) == "asked openai"


def test_a_long_answer_is_worth_a_line_each_time_it_has_doubled() -> None:
    calls = asking()
    told = [calls.add(A, ANSWER, b"0123456789" * 10) for _ in range(85)]
    assert [found.size for found in told if found] == [1000, 2000, 4000, 8000]
