"""Who works on a ticket: a model, a script, or an agent of the command line that the person names."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import replace

import click

from holdfast.errors import UsageError
from holdfast.model.cliagent import ACP, PRESETS, read_cli_agent
from holdfast.worker.plan import Terms

HOUR = 3600.0


def agent_options(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options that name an agent."""
    for option in (
        click.option(
            "--agent-seconds",
            type=click.FloatRange(1),
            default=HOUR,
            metavar="N",
            help="That the agent may take for a cycle (3600).",
        ),
        click.option(
            "--agent",
            metavar="WORDS",
            help=f"Let a coding agent work: {', '.join(PRESETS)}, with options of its own; acp:COMMAND; "
            "or a command with {prompt} or {prompt_file}.",
        ),
    ):
        command = option(command)
    return command


def hired(terms: Terms, agent: str | None, seconds: float, secrets: tuple[str, ...]) -> Terms:
    """The terms with the agent that does the work; without one they stay as they are."""
    if agent is None:
        return replace(terms, secrets=secrets) if terms.agent and secrets else terms
    try:
        words = tuple(_whole_path(word) for word in shlex.split(agent))
    except ValueError as error:
        raise UsageError(f"the words of --agent cannot be told apart: {error}") from error
    read_cli_agent(words)
    bounds = replace(terms.bounds, agent=seconds)
    return replace(terms, model="", agent=words, secrets=secrets, bounds=bounds)


def _whole_path(word: str) -> str:
    """Files that the words name are the person's, wherever the agent works."""
    mark = ACP if word.startswith(ACP) else ""
    path = word.removeprefix(mark)
    return f"{mark}{os.path.abspath(path)}" if "/" in path and os.path.isfile(path) else word
