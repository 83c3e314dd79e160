"""A coding agent that others wrote, against a scripted model on loopback."""

import os
from pathlib import Path
from typing import Any

import pytest

from bench.envs import MissingError
from holdfast.testing.server import Asked, ModelServer, Say
from tests.cli.coders import CHECK, FILES, MEAN, WANTED
from tests.cli.project import Project
from tests.cli.tickets import at, git, repository, ticket
from tools import agents

ENDS = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo the mean is there"


@pytest.fixture
def mini() -> str:
    """The program, in an environment of its own that `make test` makes first."""
    try:
        program = agents.found().python
    except MissingError as error:
        if os.environ.get("HOLDFAST_REQUIRE_PARTS") == "1":
            pytest.fail(f"{agents.AGENT.name} {error}")
        pytest.skip(f"{agents.AGENT.name} {error}")
    return str(Path(program).parent / "mini")


def plays(asked: Asked) -> Say:
    """A model that writes the function, looks at it, and ends."""
    messages: Any = asked.body["messages"]
    number = sum(1 for message in messages if message["role"] == "tool")
    writes = f"cat >> tides.py <<'EOF'\n{MEAN}EOF\ngit diff --stat; git log --oneline"
    command = (writes, "python3 check.py", ENDS)[min(number, 2)]
    return Say("I do it.", tools=[("bash", {"command": command})], finish="tool_calls")


@pytest.mark.req("R184")
def test_mini_swe_agent_delivers_a_change_on_a_branch(project: Project, mini: str) -> None:
    repository(project, FILES)
    with ModelServer(plays) as server:
        env = {
            "OPENAI_API_KEY": "sk-scripted-0123456789",
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_BASE": server.url,
            "MSWEA_COST_TRACKING": "ignore_errors",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        words = ("--agent", f"{mini} --model openai/scripted", "--network", "--quiet")
        secret = ("--secret", "OPENAI_API_KEY")
        answer = project.call("work", ticket(project, WANTED), *words, *CHECK, *secret, env=env)
        assert answer.code == 0, (answer.out, answer.err)
        keys = [asked.headers.get("Authorization") for asked in server.requests]
    assert keys == ["Bearer sk-scripted-0123456789"] * 3
    assert at(project, "holdfast/mean", "tides.py") == FILES["tides.py"] + MEAN
    assert git(project, "status", "--porcelain") == ""
    told = project.ok("logs", "cycle-1").out
    assert "tides.py | " in told  # git can look at the history
    assert "the mean is there" in told
    assert env["OPENAI_API_KEY"] not in told
