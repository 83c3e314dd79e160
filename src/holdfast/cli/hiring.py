"""Who works on a ticket: a model, a script, or an agent of the command line that the person names."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import replace

import click

from holdfast.cli.measure import Duration
from holdfast.errors import UsageError
from holdfast.model.cliagent import ACP, PRESETS, read_cli_agent
from holdfast.model.text import one_line
from holdfast.process.lookup import find
from holdfast.worker.plan import Terms


def agent_options(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options that name an agent."""
    for option in (
        click.option(
            "--agent-time",
            type=Duration(),
            default="1h",
            help="How long the agent may take for a cycle (1h).",
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


def hired(terms: Terms, agent: str | None, most: int, secrets: tuple[str, ...]) -> Terms:
    """The terms with the agent that works, for at most so many milliseconds; without one, as they are."""
    if agent is None:
        return replace(terms, secrets=secrets) if terms.agent and secrets else terms
    words = agent_words(agent)
    bounds = replace(terms.bounds, agent=most / 1000)
    return replace(terms, model="", agent=words, secrets=secrets, bounds=bounds)


def agent_words(agent: str) -> tuple[str, ...]:
    """The words of an agent, with whole paths; UsageError if nobody could start it."""
    try:
        words = tuple(_whole_path(word) for word in shlex.split(agent))
    except ValueError as error:
        raise UsageError(f"the words of --agent cannot be told apart: {error}") from error
    program = read_cli_agent(words).argv[0]
    refusal = find(program, os.getcwd(), os.environ).refusal
    if refusal is not None:
        why = "was not found" if refusal == "not_found" else "cannot be executed"
        raise UsageError(
            f"the agent '{one_line(program)}' {why}", hint="install it, or name it by its path"
        )
    return words


def _whole_path(word: str) -> str:
    """Files that the words name are the person's, wherever the agent works."""
    mark = ACP if word.startswith(ACP) else ""
    path = word.removeprefix(mark)
    return f"{mark}{os.path.abspath(path)}" if "/" in path and os.path.isfile(path) else word
