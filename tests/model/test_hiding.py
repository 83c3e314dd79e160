"""Calls without secrets."""

from dataclasses import replace

import pytest

from holdfast.model.call import (
    Answer,
    Message,
    Offer,
    Request,
    ToolUse,
    answer_bytes,
    request_bytes,
)
from holdfast.model.hiding import answered_without, asked_without

KEY = "sk-canary-0123456789"
PLAIN = Request("p:m", (Message("user", "hello"),))
PLACES = [
    replace(PLAIN, messages=(Message("user", KEY),)),
    replace(PLAIN, messages=(Message("assistant", "", (ToolUse(KEY, "t", "{}"),)),)),
    replace(PLAIN, messages=(Message("tool", "x", answers=KEY, tool=KEY),)),
    replace(PLAIN, parameters={"stop": ["a", f"x{KEY}"]}),
    replace(PLAIN, schema={"properties": {KEY: {"const": KEY, "enum": [1, None, KEY]}}}),
    replace(PLAIN, offers=(Offer("t", f"use {KEY}", {"description": KEY}),)),
]


@pytest.mark.req("R168")
@pytest.mark.parametrize("request_", PLACES)
def test_no_part_of_a_request_holds_a_secret(request_: Request) -> None:
    assert KEY.encode() in request_bytes(request_)
    left = request_bytes(asked_without(request_, (KEY,)))
    assert KEY.encode() not in left
    assert b"[secret]" in left


@pytest.mark.req("R168")
def test_an_answer_whose_id_is_a_secret_has_none() -> None:
    said = Answer("hello", id=f"chatcmpl-{KEY}")
    assert answered_without(said, (KEY,)) == Answer("hello")
    assert KEY.encode() not in answer_bytes(answered_without(said, (KEY,)))


def test_a_use_and_its_answer_keep_the_same_id() -> None:
    asked = replace(
        PLAIN,
        messages=(
            Message("assistant", "", (ToolUse(KEY, "t", "{}"),)),
            Message("tool", "x", answers=KEY, tool="t"),
        ),
    )
    used, answered = asked_without(asked, (KEY,)).messages
    assert used.uses[0].id == answered.answers


def test_what_holds_no_secret_stays_the_same_object() -> None:
    asked = replace(PLAIN, parameters={"temperature": 0.5}, schema={"type": "object"})
    said = Answer("hello", id="chatcmpl-1")
    assert asked_without(asked, (KEY,)) is asked
    assert answered_without(said, (KEY,)) is said
