"""Recordings as files: what a request is found by, and what is written when."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import CallError
from holdfast.generators.recorded import Recorded, Recorder, key_of
from holdfast.model.call import Answer, Cap, Message, Offer, Request, ToolUse, Usage

ASKED = Request("maker:m", (Message("user", "how deep is the sea"),))


def ask(folder: Path, *requests: Request) -> list[Answer]:
    """What one command gets for its requests, in their order."""
    source = Recorded(str(folder))

    async def all_of_them() -> list[Answer]:
        return [await source.ask(request, lambda _: None, lambda: None) for request in requests]

    return asyncio.run(all_of_them())


def keep(folder: Path, *answers: Answer, request: Request = ASKED) -> None:
    recorder = Recorder(str(folder), pytest.fail)
    for answer in answers:
        recorder.keep(request, answer)


def test_a_request_is_found_whoever_is_asked_and_whatever_is_left_to_pay() -> None:
    assert key_of(replace(ASKED, model="other:m")) == key_of(ASKED)
    assert key_of(replace(ASKED, enough=16, cap=Cap(16, "at 16 tokens"))) == key_of(ASKED)


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, model="maker:n"),
        replace(ASKED, messages=(Message("user", "how deep"),)),
        replace(ASKED, parameters={"seed": 1}),
        replace(ASKED, schema={"type": "string"}),
        replace(ASKED, offers=(Offer("look", "", {}),)),
    ],
)
def test_whatever_decides_an_answer_makes_another_request(other: Request) -> None:
    assert key_of(other) != key_of(ASKED)


def test_an_answer_comes_back_whole(tmp_path: Path) -> None:
    uses = (ToolUse("u1", "look", '{"at": "sea"}'),)
    answer = Answer("deep – tief", uses, "tools", Usage(9, 3, 2, 1), "id-7")
    keep(tmp_path, answer)
    assert ask(tmp_path, ASKED) == [answer]


def test_answers_have_an_order_and_the_last_one_stays(tmp_path: Path) -> None:
    keep(tmp_path, Answer("a"), Answer("b"))
    assert [answer.text for answer in ask(tmp_path, ASKED, ASKED, ASKED)] == ["a", "b", "b"]
    assert [answer.text for answer in ask(tmp_path, ASKED)] == ["a"]


def test_a_later_recording_replaces_an_earlier_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    keep(tmp_path, Answer("a"), Answer("b"))
    keep(tmp_path, Answer("c"))
    assert [answer.text for answer in ask(tmp_path, ASKED, ASKED)] == ["c", "c"]
    assert [path.name for path in tmp_path.iterdir()] == [f"{key_of(ASKED)}.json"]


def test_a_disk_that_refuses_is_told_of_and_loses_no_answer(tmp_path: Path) -> None:
    said: list[str] = []
    Recorder(str(tmp_path / "gone"), said.append).keep(ASKED, Answer("a"))
    assert "could not be recorded" in said[0]


def test_nothing_is_waited_for_where_a_recording_should_be(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{key_of(ASKED)}.json")
    with pytest.raises(CallError, match="not a recording"):
        ask(tmp_path, ASKED)


def test_only_a_recording_of_the_same_model_that_is_alike_is_called_near(tmp_path: Path) -> None:
    keep(tmp_path, Answer("a"))
    keep(tmp_path, Answer("a"), request=replace(ASKED, model="maker:n"))
    (tmp_path / "note.json").write_text(json.dumps(["no", "recording"]))
    with pytest.raises(CallError) as far:
        ask(tmp_path, replace(ASKED, messages=(Message("user", "where do otters sleep at all"),)))
    assert "is near" not in far.value.message
    with pytest.raises(CallError) as near:
        ask(tmp_path, replace(ASKED, messages=(Message("user", "how deep is the lake"),)))
    assert f"{key_of(ASKED)[:12]} is near" in near.value.message
    assert "'sea'" in near.value.message
    assert "'lake'" in near.value.message
    assert near.value.reason == "not_recorded"
    assert not near.value.again
