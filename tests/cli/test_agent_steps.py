"""Steps that a model does with tools: used, stored, and taken from the store after a kill."""

from typing import Any

import pytest

from holdfast.testing.server import Asked, Reply, Say
from tests.cli.project import Project, kill, until
from tests.cli.served import MODEL, of_kind, offers, served, tool_answers

TOOLS = '''
"""Tools."""
import os
from typing import Literal


def add(a: int, b: int = 1, how: Literal["plus", "minus"] = "plus") -> int:
    """Add two numbers."""
    with open(os.environ["HOLDFAST_ROOT"] + "/../ran.txt", "a") as file:
        file.write("add\\n")
    return a + b if how == "plus" else a - b


def fail(why: str) -> str:
    raise RuntimeError(why)


def long() -> str:
    return "x" * 100_000
'''


def agent(**more: Any) -> dict[str, Any]:
    return {
        "uses": "agent",
        "prompt": "what is 2 + 3?",
        "model": MODEL,
        "tools": ["work:add", "work:fail", "work:long"],
        **more,
    }


@pytest.fixture
def tools(project: Project) -> Project:
    project.write("work.py", TOOLS)
    return project


def test_an_agent_uses_tools_until_it_answers(tools: Project) -> None:
    tools.plan({"sum": agent()})
    with served(
        tools, [Say("let me see", tools=[("add", {"a": 2, "b": 3})]), Say("it is 5")]
    ) as server:
        run = tools.run("--yes")
        assert run.states == {"sum": "done"}, run
        first, second = server.requests
    assert tools.shown("sum") == b"it is 5"
    about = offers(first)["add"]
    assert about["description"] == "Add two numbers."
    assert about["parameters"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer", "default": 1},
            "how": {"enum": ["plus", "minus"], "default": "plus"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert tool_answers(second) == ["5"]
    (used,) = of_kind(tools, "tool_used")
    assert used["name"] == "add"
    assert tools.shown(used["answer"]) == b"5"
    assert len(of_kind(tools, "call_answered")) == 2
    assert tools.run("--yes").states == {"sum": "reused"}


def test_what_the_model_does_wrong_it_is_told_as_the_answer_of_the_tool(tools: Project) -> None:
    wrong: list[tuple[str, Any]] = [
        ("rm", {}),
        ("add", [1]),
        ("add", {"a": "2"}),
        ("add", {"a": 1, "c": 2}),
        ("add", {"a": 1, "how": "times"}),
        ("add", {}),
        ("fail", {"why": "no luck"}),
        ("long", {}),
    ]
    tools.plan({"sum": agent()})
    with served(tools, [Say(tools=wrong), Say("done")]) as server:
        assert tools.run("--yes").states == {"sum": "done"}
        told = tool_answers(server.requests[1])
    assert told[:6] == [
        "there is no tool 'rm'; tools: add, fail, long",
        "the arguments are not a JSON object",
        "'a' must be of type integer",
        "there is no argument 'c'; there are: a, b, how",
        '\'how\' must be one of ["plus", "minus"]',
        "'a' is missing",
    ]
    assert "no luck" in told[6]
    assert told[7].endswith("[cut: the first 65536 of 100000 bytes]")
    assert [event.get("ok", True) for event in of_kind(tools, "tool_used")] == [
        *[False] * 7,
        True,
    ]
    assert tools.ran() == []


def test_turns_are_bounded_and_say_so(tools: Project) -> None:
    tools.plan({"sum": agent(turns=3, retries=0)})

    def script(_: Asked) -> Reply:
        return Say(tools=[("add", {"a": 1})])

    with served(tools, script) as server:
        run = tools.run("--yes")
        assert len(server.requests) == 3
    assert run.code == 1
    assert run.codes == {"sum": "turns_spent"}
    assert "after 3 turns" in tools.ok("logs", "sum").out or "3 turns" in str(run.data)


def test_other_turns_change_nothing_and_another_source_of_a_tool_does(tools: Project) -> None:
    tools.plan({"sum": agent()})
    with served(tools, "5") as server:
        tools.run("--yes")
        tools.plan({"sum": agent(turns=7)})
        assert tools.run("--yes").states == {"sum": "reused"}
        tools.write("work.py", TOOLS + "\nNEW = 1\n")
        assert tools.run("--yes").states == {"sum": "done"}
        tools.plan({"sum": agent(tools=["work:add"])})
        later = tools.run("--yes")
        assert later.codes == {"sum": "generator_changed"}
        assert len(server.requests) == 3


def test_after_a_kill_nothing_that_was_answered_is_asked_or_done_again(tools: Project) -> None:
    gate = tools.gates / "go"
    tools.write(
        "slow.py",
        f"""
import os, time
def wait() -> str:
    with open({str(tools.log)!r}, "a") as file:
        file.write("wait\\n")
    while not os.path.exists({str(gate)!r}):
        time.sleep(0.02)
    return "waited"
""",
    )
    tools.plan({"sum": agent(tools=["work:add", "slow:wait"])})
    script = [
        Say(tools=[("add", {"a": 2}), ("add", {"a": 3})]),
        Say(tools=[("wait", {})]),
        Say("all done"),
    ]
    with served(tools, script) as server:
        engine = tools.start("run", "--yes")
        until(lambda: "wait" in tools.begun(), "the second turn uses its tool")
        kill(engine)
        gate.touch()
        run = tools.resume("--yes")
        assert run.states == {"sum": "done"}, run
        assert len(server.requests) == 3
        assert tool_answers(server.requests[2]) == ["3", "4", "waited"]
    tools.ok("verify")
    assert tools.begun() == ["add", "add", "wait", "wait"]  # of `wait` nobody heard an answer


def test_a_tool_that_changes_things_is_not_begun_twice_unasked(tools: Project) -> None:
    gate = tools.gates / "go"
    tools.write(
        "slow.py",
        f"""
import os, time
def send() -> str:
    with open({str(tools.log)!r}, "a") as file:
        file.write("send\\n")
    while not os.path.exists({str(gate)!r}):
        time.sleep(0.02)
    return "sent"
""",
    )
    tools.plan({"mail": agent(tools=["slow:send"], effects="workspace", workspace="shared")})
    with served(tools, [Say(tools=[("send", {})]), Say("done")]) as server:
        engine = tools.start("run", "--yes")
        until(lambda: "send" in tools.begun(), "the tool is used")
        kill(engine)
        gate.touch()
        run = tools.resume("--yes")
        assert run.codes == {"mail": "tool_unconfirmed"}
        assert tools.begun() == ["send"]
        assert [event["name"] for event in of_kind(tools, "tool_started")] == ["send"]
        assert tools.run("--yes").codes == {"mail": "tool_unconfirmed"}  # a person must look first
        assert tools.begun() == ["send"]
        assert len(server.requests) == 1
        assert tools.retry("mail", "--yes").states == {"mail": "done"}
        assert tools.begun() == ["send", "send"]
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (agent(tools=["read"]), "P031"),
        (agent(tools=["add"]), "P041"),
        (agent(tools=["work:nothing"]), "P065"),
        (agent(tools=["nowhere:add"]), "P065"),
        (agent(tools=["work:add", "other:add"]), "P038"),
        (agent(turns=0), "P037"),
        ({"prompt": "hello", "model": MODEL, "tools": ["work:add"]}, "P035"),
        ({"shell": "true", "turns": 3}, "P035"),
    ],
)
def test_a_plan_with_tools_that_cannot_be_is_refused(
    tools: Project, step: dict[str, Any], told: str
) -> None:
    tools.write("other.py", TOOLS)
    tools.plan({"a": step})
    assert told in tools.refused(2, "check")
