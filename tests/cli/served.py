"""What tests of agents and judges ask a scripted server, and what it is asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.testing.server import Asked, ModelServer
from tests.cli import models
from tests.cli.models import Script
from tests.cli.project import Project

MODEL = "fake:m"


@contextmanager
def served(project: Project, script: Script) -> Iterator[ModelServer]:
    """A server that the person's configuration names as the provider `fake`, and as the tier `small`."""
    with models.served(project, script, '[tiers]\nsmall = "fake:m"\n') as server:
        yield server


def of_kind(project: Project, kind: str, run: str = "@") -> list[Any]:
    """The events of one kind, in their order."""
    return [event for event in project.events(run) if event["event"] == kind]


def tool_answers(asked: Asked) -> list[str]:
    """What tools said, as the model is told it."""
    messages: Any = asked.body["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def offers(asked: Asked) -> dict[str, Any]:
    """The tools that the model is told of, by name."""
    tools: Any = asked.body.get("tools", [])
    return {tool["function"]["name"]: tool["function"] for tool in tools}


def verdict(score: float, words: str = "", quote: str = "") -> str:
    """What a judge answers."""
    return json.dumps({"score": score, "verdict": words, "quote": quote})


def plan_quotes(project: Project) -> None:
    """A step that quotes what it needs, held to that and to a value made of it."""
    said = json.dumps([{"quote": "two"}])
    project.plan(
        {
            "up": {"shell": "printf 'one two'"},
            "a": {
                "shell": f"echo '{said}'",
                "needs": ["up"],
                "with": {"doc": "${{ steps.up.output }}"},
                "guards": [{"cites": {"in": "up"}}, {"cites": {"in": "with.doc"}}],
            },
        }
    )
