"""Steps that a coding agent of the command line does: its words are in `run`, the task is in `prompt`."""

from __future__ import annotations

from collections.abc import Mapping as Table
from typing import cast

from holdfast.errors import UsageError
from holdfast.formats.grammar import MODEL_RETRIES
from holdfast.formats.nodes import Mapping, Node
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.shapes import command
from holdfast.model.cliagent import read_cli_agent
from holdfast.model.plan import COPIES


def take_cli_agent(
    reading: Reading, node: Mapping, given: dict[str, object], run: Node | None
) -> None:
    """Read which agent does a step; it works in a copy, and its version decides the result."""
    problems, step = reading.problems, quoted(reading.step)
    for key, hint in (("shell", "name it in 'run'"), ("model", "say it in 'run', as it wants it")):
        if key in node.pairs:
            message = f"step {step} is done by a coding agent and cannot have '{key}'"
            problems.add("P035", node.pairs[key][0], message, hint)
    if "prompt" not in node.pairs:
        message = f"step {step} is done by a coding agent and has no 'prompt'"
        problems.add("P042", _first(node), message, "say what to do in 'prompt'")
    if run is None:
        message = f"step {step} does not say which coding agent does it"
        problems.add("P042", _first(node), message, "say run: aider, or run: acp:COMMAND")
        return
    words = command(reading, "run", run)
    if words is None:
        return
    given["run"] = words
    given.setdefault("workspace", "worktree" if given.get("effects") == "workspace" else "scratch")
    given.setdefault("retries", MODEL_RETRIES)
    if given["workspace"] not in COPIES:
        message = f"the coding agent of {step} works in a copy of the project"
        problems.add("P035", node.pairs["workspace"][0], message, "say scratch or worktree")
    try:
        agent = read_cli_agent(words)
    except UsageError as error:
        problems.add("P042", run, error.message, error.hint or "")
        return
    if agent.version:
        known = cast("Table[str, tuple[str, ...]]", given.get("tool_versions", {}))
        given["tool_versions"] = {agent.name: agent.version, **known}


def _first(node: Mapping) -> Placed:
    return next((key for key, _ in node.pairs.values()), node)
