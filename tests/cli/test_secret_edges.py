"""Keys where something is cut short, or said by a library and not by us."""

import json
from urllib.parse import quote

import pytest

from holdfast.testing.server import Fail, Raw, Say
from tests.cli.models import served
from tests.cli.project import Answer, Project
from tests.cli.served import MODEL

KEY = "sk-SeCrEt/Key+9f8e7d6c5b4a3210ZZ"
PART = KEY[:-1]
ENV = {"FAKE_CREDS": KEY}
PROVIDER = 'api_key_env = "FAKE_CREDS"'
LONGEST = 64 * 1024


def left(project: Project, *answers: Answer, of: str) -> list[str]:
    """Where some text is in the store, among recordings, or in what commands said."""
    files = [place for place in project.root.rglob("*") if place.is_file()]
    said = [text for answer in answers for text in (answer.out, answer.err)]
    found = [str(place) for place in files if of.encode() in place.read_bytes()]
    return found + [text for text in said if of in text]


@pytest.mark.req("I13", "D39")
def test_a_key_in_a_count_of_tokens_is_shown_by_no_library(project: Project) -> None:
    usage = {"prompt_tokens": KEY, "completion_tokens": 3, "total_tokens": 4}
    choice = {"index": 0, "delta": {"content": "said"}, "finish_reason": "stop"}
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    told = json.dumps({**head, "choices": [choice], "usage": usage})
    reply = Raw(f"data: {told}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")
    project.plan({"a": {"prompt": "say it", "model": MODEL}})
    with served(project, lambda _: reply, provider=PROVIDER):
        run = project.call("run", "--yes", "--json", env=ENV)
    assert left(project, run, of=PART) == []


@pytest.mark.req("I13", "D39")
def test_a_secret_where_the_answer_of_a_tool_is_cut_is_struck_out(project: Project) -> None:
    text = f"'x' * {LONGEST - len(PART)} + os.environ['WORD'] + 'zzz'"
    project.write("work.py", f"import os\ndef tell() -> str:\n    return {text}\n")
    agent = {"uses": "agent", "prompt": "use it", "model": MODEL, "tools": ["work:tell"]}
    project.plan({"a": {**agent, "secrets": ["WORD"]}})
    words = ("run", "--yes", "--secret", "WORD", "--record", "recorded")
    with served(project, [Say(tools=[("tell", {})]), Say("done")]):
        run = project.call(*words, env={"WORD": KEY})
    assert run.code == 0, run
    assert left(project, run, of=PART[:-4]) == []


@pytest.mark.req("I13", "D39")
@pytest.mark.parametrize("form", [KEY.encode().hex(), quote(KEY, safe="")])
@pytest.mark.parametrize("length", [299, 300, 400, 430])
def test_a_key_where_an_error_is_cut_is_struck_out(
    project: Project, form: str, length: int
) -> None:
    message = "e" * (length - len(form) + 1) + form + " tail"
    project.plan({"a": {"prompt": "say it", "model": MODEL}})
    with served(project, lambda _: Fail(400, message), provider=PROVIDER):
        run = project.call("run", "--yes", env=ENV)
    assert run.code == 1
    assert left(project, run, of=form[:-8]) == []
