"""Steps that models do: what is asked, what comes of every kind of answer, and what is never asked again."""

import gzip
import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from holdfast.testing.server import Asked, Fail, ModelServer, OpenAI, Raw, Reply, Say
from tests.cli.models import served, step
from tests.cli.project import Project

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def calls(project: Project, kind: str) -> list[dict[str, object]]:
    return [event for event in project.events() if event["event"] == kind]


@pytest.mark.req("R2", "R77")
def test_an_answer_is_the_artifact_and_the_prompt_has_its_parts_in_order(project: Project) -> None:
    project.write("prompts/b.md", "Use ${{ steps.a.output }} well.")
    project.plan(
        {
            "a": step("say a"),
            "b": step("prompts/b.md", produces="b.txt"),
            "c": step(
                needs=["b"],
                specification="the spec",
                contract="a word",
                constraints="be short",
                prompt={"role": "You are terse.", "constraints": "no lists", "task": "Do it."},
            ),
        }
    )
    with served(project, lambda asked: Say(f"answer {asked.number}")) as server:
        run = project.run("--yes")
    assert (run.code, set(run.states.values())) == (0, {"done"})
    assert project.read("b.txt") == "answer 2"
    assert project.shown("c") == b"answer 3"
    first, second, third = (asked.texts for asked in server.requests)
    assert first == ["# TASK\nsay a"]
    assert second == ["# TASK\nUse answer 1 well."]
    assert third == [
        "You are terse.",
        (
            "# CONSTRAINTS\nno lists\nbe short\n\n# SPECIFICATION\nthe spec\n\n# CONTRACT\na word\n\n"
            "# RESULT OF b\n```\nanswer 2\n```\n\n# TASK\nDo it."
        ),
    ]
    again = project.run("--yes")
    assert (again.code, set(again.states.values())) == (0, {"reused"})


@pytest.mark.req("R77")
def test_what_a_guard_says_goes_back_to_the_model(project: Project) -> None:
    project.plan({"a": step("say good", guards=[{"regex": {"pattern": "good"}}])})
    with served(project, [Say("bad"), Say("good")]) as server:
        assert project.run("--yes").code == 0
    assert (
        "# HISTORY\nAn earlier answer was refused by the guard 'regex':" in server.requests[1].last
    )
    answered = calls(project, "call_answered")
    assert [(one["input"], one["output"], one["cost"]) for one in answered] == [(10, 5, 20)] * 2
    assert answered[0]["id"] == "answer-1"


def test_a_model_reads_the_files_that_its_step_names(project: Project) -> None:
    project.write("notes/a.md", "the kelp\n```\nheld\n")
    project.write("notes/b.md", "the tide\n")
    project.write("notes/c.txt", "not this\n")
    project.plan({"a": step("say it", inputs="notes/*.md")})
    with served(project, "kelp") as server:
        assert project.run("--yes").code == 0
        project.write("notes/b.md", "the ebb\n")
        assert project.run("--yes").codes == {"a": "input_changed"}
    assert server.requests[0].last == (
        "# FILE notes/a.md\n````\nthe kelp\n```\nheld\n\n````\n\n"
        "# FILE notes/b.md\n```\nthe tide\n\n```\n\n# TASK\nsay it"
    )
    assert "the ebb" in server.requests[1].last


@pytest.mark.parametrize(
    "content, words", [(b"\xff\xd8", "is no text"), (b"x" * 5_000_000, "4 MB")]
)
def test_a_file_that_no_model_can_read_is_refused(
    project: Project, content: bytes, words: str
) -> None:
    (project.root / "picture.jpg").write_bytes(content)
    project.plan({"a": step("say it", inputs="picture.jpg")})
    with served(project, "kelp") as server:
        run = project.run("--yes")
    assert (run.code, run.codes["a"], server.requests) == (1, "call_refused", [])
    assert words in run.err


def test_structured_answers_are_asked_for_and_checked(project: Project) -> None:
    project.plan({"a": step("a number", schema=SCHEMA)})
    with served(project, [Say('{"n": "x"}'), Say("no json"), Say('{"n": 3}')]) as server:
        assert project.run("--yes").code == 0
    assert server.requests[0].body["response_format"]["type"] == "json_schema"  # type: ignore[index,call-overload]  # JSON
    assert json.loads(project.shown("a")) == {"n": 3}


CLOSED = {**SCHEMA, "additionalProperties": False}


@pytest.mark.parametrize(
    "schema, strict",
    [
        (CLOSED, True),
        ({"type": "array", "items": CLOSED}, True),
        (SCHEMA, False),
        ({"type": "array", "items": {"type": "object", "required": ["n"]}}, False),
        ({**CLOSED, "required": []}, False),
        ({"type": "array", "items": CLOSED, "uniqueItems": True}, False),
    ],
)
def test_a_schema_is_strict_only_if_it_was_written_so(
    project: Project, schema: dict[str, Any], strict: bool
) -> None:
    project.plan({"a": step("a number", schema=schema)})
    is_list = schema["type"] == "array"
    said = '{ "answer": [ {"n": 3e0} ] }' if is_list else '{"n": 3e0}'
    with served(project, [Say(said)]) as server:
        run = project.run("--yes")
    assert run.code == 0, run.err
    assert project.shown("a") == (b'[ {"n": 3e0} ]' if is_list else b'{"n": 3e0}')
    wanted: Any = server.requests[0].body["response_format"]
    assert wanted["json_schema"]["strict"] is strict
    sent = wanted["json_schema"]["schema"]
    meant = {"properties": {}, **schema["items"]} if is_list else schema
    assert (sent["properties"]["answer"]["items"] if is_list else sent) == meant


@pytest.mark.parametrize(
    "schema, words",
    [
        ({"type": "array", "items": CLOSED}, "got 'type: \"array\"'"),
        ({"type": "object", "anyOf": [CLOSED]}, "at the top level"),
        (SCHEMA, "'additionalProperties' is required to be supplied and to be false"),
        ({**CLOSED, "required": []}, "'required' is required"),
        ({**CLOSED, "default": {}}, "'default' is not permitted"),
    ],
)
def test_the_server_refuses_the_schemas_that_openai_refuses(
    schema: dict[str, Any], words: str
) -> None:
    given = {"name": "x", "strict": True, "schema": schema}
    body = {"response_format": {"type": "json_schema", "json_schema": given}}
    with ModelServer("ok") as server:
        asked = Request(f"{server.url}/chat/completions", json.dumps(body).encode())
        with pytest.raises(HTTPError) as refused:
            urlopen(asked)
    with refused.value as response:
        assert (response.code, words in json.load(response)["error"]["message"]) == (400, True)


OUTCOMES: dict[str, tuple[list[Reply], int, str, int]] = {
    # what the server does, exit code, reason of the step, requests
    "too often": ([Fail(429, headers={"retry-after": "0.01"}), Say("ok")], 0, "never_ran", 2),
    "server error": ([Fail(500), Say("ok")], 0, "never_ran", 2),
    "cut stream": ([Say("a long answer that is cut", cut=3), Say("ok")], 0, "never_ran", 2),
    "cut before a word": ([Say("", cut=1), Say("ok")], 0, "never_ran", 2),
    "nothing said and nothing counted": (
        [Say("", input=0, output=0), Say("ok")],
        0,
        "never_ran",
        2,
    ),
    "malformed": ([Raw(b"<html>"), Say("ok")], 0, "never_ran", 2),
    **{
        f"odd stream {odd}": (
            [Raw(f"data: {odd}\n\n".encode(), "text/event-stream"), Say("ok")],
            0,
            "never_ran",
            2,
        )
        for odd in ("[1, 2]", "null", "5", '{"choices": [5]}')
    },
    "malformed stream": (
        [Raw(b"data: {nonsense\n\n", "text/event-stream"), Say("ok")],
        0,
        "never_ran",
        2,
    ),
    "refused by the model": ([Say(refusal="I will not")], 1, "model_refused", 1),
    "filtered": ([Say("", finish="content_filter")], 1, "model_refused", 1),
    "wrong key": ([Fail(401)], 4, "credentials_missing", 1),
    "no such model": ([Fail(404)], 1, "call_refused", 1),
    "bad request": ([Fail(400, "what is this")], 1, "call_refused", 1),
    "cut at its limit": ([Say("half", finish="length")] * 3, 1, "answer_cut", 3),
}


@pytest.mark.parametrize("what", OUTCOMES)
def test_every_failure_has_its_own_outcome(project: Project, what: str) -> None:
    replies, code, reason, requests = OUTCOMES[what]
    project.plan({"a": step()})
    with served(project, replies) as server:
        run = project.run("--yes")
    assert (run.code, run.codes["a"], len(server.requests)) == (code, reason, requests), run.err
    started = calls(project, "call_started")
    ended = calls(project, "call_answered") + calls(project, "call_failed")
    assert len(started) == len(ended) == requests
    project.ok("verify")


def test_an_empty_answer_is_paid_for_stored_and_tried_again(project: Project) -> None:
    project.plan({"a": step(schema=SCHEMA), "b": step(guards=[{"regex": {"pattern": "ok"}}])})
    with served(project, lambda _: Say("")) as server:
        run = project.run("--yes")
    assert run.codes == {"a": "answer_empty", "b": "answer_empty"}
    assert len(server.requests) == 6, "as often as retries allow"
    assert [one["cost"] for one in calls(project, "call_answered")] == [20] * 6
    assert calls(project, "call_failed") == []


def test_who_gives_up_says_why_how_often_it_was_tried_and_what_to_do(project: Project) -> None:
    project.plan({"a": step(), "b": {"shell": "echo b"}})
    busy = Fail(429, headers={"retry-after": "700"})
    with served(project, lambda _: busy) as server:
        run = project.run("--yes")
        assert (run.code, run.codes["a"], len(server.requests)) == (1, "call_failed", 2)
        told = project.ok("status").out
    assert (
        "asked once in vain, the last time: 'fake' wants to be asked less often; it wants" in told
    )
    assert "it wants to be left alone for 700 s; 'holdfast resume' asks again" in told


def test_an_enormous_answer_is_broken_off(project: Project) -> None:
    """In few pieces: the library copies all that it has with each of them."""
    project.plan({"a": step()})
    piece = {"index": 0, "delta": {"content": "x" * (1 << 20)}}
    event = f"data: {json.dumps({'choices': [piece]})}\n\n".encode()
    with served(project, [Raw(event * 17, "text/event-stream")]):
        run = project.run("--yes")
    assert (run.code, run.codes["a"]) == (1, "answer_too_large")
    assert "longer than 16 MB" in run.err


@pytest.mark.parametrize(
    "reply", [Fail(400, "x" * (3 << 20)), Raw(b"data: " + b"x" * (70 << 20), "text/event-stream")]
)
def test_no_more_is_read_than_anybody_could_want(project: Project, reply: Reply) -> None:
    project.plan({"a": step(retries=0)})
    with served(project, [reply]) as server:
        run = project.run("--yes")
    assert (run.code, run.codes["a"], len(server.requests)) == (1, "answer_too_large", 1), run.err


def test_an_answer_whose_name_is_none_is_an_answer(project: Project) -> None:
    project.plan({"a": step()})

    def script(asked: Asked) -> Reply:
        said = b"".join(OpenAI().events(asked, Say("kelp")))
        return Raw(said.replace(b'"answer-1"', b'"\\ud800"'), "text/event-stream")

    with served(project, script) as server:
        run = project.run("--yes", "--record", "rec")
    assert (run.states, len(server.requests)) == ({"a": "done"}, 1), run.err
    assert [one["id"] for one in calls(project, "call_answered")] == [""]
    again = project.run("--provider", "recorded", "--recorded", "rec", "--force")
    assert again.states == {"a": "done"}, again.err


def test_what_has_no_encoding_is_asked_for_again_and_not_recorded(project: Project) -> None:
    project.write("work.py", "def look() -> str:\n    return 'seen'\n")
    project.plan({"a": step(uses="agent", tools=["work:look"])})

    def script(asked: Asked) -> Reply:
        if asked.number > 1:
            return Say("kelp")
        said = b"".join(OpenAI().events(asked, Say(tools=[("look", {})])))
        return Raw(said.replace(b'"use-0"', b'"\\ud800"'), "text/event-stream")

    with served(project, script) as server:
        run = project.run("--yes", "--record", "rec")
    assert (run.states, len(server.requests)) == ({"a": "done"}, 2), run.err
    assert [one["code"] for one in calls(project, "call_failed")] == ["malformed"]
    again = project.run("--provider", "recorded", "--recorded", "rec", "--force")
    assert again.states == {"a": "done"}, again.err


def test_an_answer_that_comes_packed_is_read_all_the_same(project: Project) -> None:
    project.plan({"a": step()})
    asked = Asked(1, {"model": "m", "stream": True}, {})
    said = b"".join(OpenAI().events(asked, Say("kelp")))
    packed = Raw(gzip.compress(said), "text/event-stream", headers={"content-encoding": "gzip"})
    with served(project, [packed]):
        run = project.run("--yes")
    assert run.states == {"a": "done"}, run.err
    assert project.shown("a") == b"kelp"


def test_a_slow_answer_ends_with_the_time_of_the_step(project: Project) -> None:
    project.plan({"a": step(timeout="1s")})
    with served(project, lambda _: Say("late", delay=60)) as server:
        run = project.run("--yes")
    assert (run.code, run.codes["a"], len(server.requests)) == (1, "timed_out", 2)
    lost = run.data["steps"]["a"]
    assert lost["cost_usd"] > 0, "what was cut off may have cost all that was reserved"


@pytest.mark.req("R106")
def test_a_tier_is_resolved_when_the_plan_is_read(project: Project) -> None:
    project.plan({"a": {"prompt": "x", "model": "small"}})
    with served(project, "ok", '[tiers]\nsmall = "fake:m"\n'):
        assert project.run("--yes").code == 0
        assert calls(project, "call_started")[0]["model"] == "fake:m"
    with served(project, "ok"):
        said = project.refused(2, "plan")
    assert "nobody said which model 'small' is" in said
    assert "[tiers]" in said


@pytest.mark.req("R168")
def test_a_provider_is_asked_no_more_at_once_than_it_bears(project: Project) -> None:
    project.plan({f"s{n}": step(f"number {n}") for n in range(12)})
    with served(project, lambda _: Say("ok", delay=0.1), provider="at_once = 3") as server:
        assert project.run("--yes", "-j", "12").code == 0
    assert (len(server.requests), server.most) == (12, 3)
