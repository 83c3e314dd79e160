"""Projects whose models are a scripted server on loopback."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.testing.server import Asked, ModelServer, Reply
from tests.cli.project import Project

MODEL = "fake:m"


@contextmanager
def served(
    project: Project, script: Callable[[Asked], Reply] | Sequence[Reply] | str
) -> Iterator[ModelServer]:
    """A server that the person's configuration names as the provider 'fake'."""
    with ModelServer(script) as server:
        config = project.home / ".config" / "holdfast"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(
            f'[providers.fake]\nkind = "openai"\nbase_url = "{server.url}"\n'
            '[prices."fake:m"]\ninput = 1\noutput = 2\n[tiers]\nsmall = "fake:m"\n'
        )
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
