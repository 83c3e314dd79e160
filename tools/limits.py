"""The walls of Holdfast as a page, each number taken from the code that keeps it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.measure import size_words
from holdfast.edits import effort, scope, tree
from holdfast.edits.beneath import MOST_BYTES as MOST_EDITED
from holdfast.formats import soundness, subplans
from holdfast.formats.nodes import BOUNDS
from holdfast.generators.chat import MOST_BYTES as MOST_ANSWERED
from holdfast.generators.llm import MOST_FILES
from holdfast.generators.shell import LOG_BYTES
from holdfast.guards.content import MAX_DEPTH
from holdfast.mcp import frames
from holdfast.mcp.pipe import MOST_OPEN
from holdfast.model import handoff, items
from holdfast.process.room import MAX_ARTIFACT_BYTES
from holdfast.store.allowance import MAX_BYTES, MAX_RATIO
from holdfast.web.door import MOST_BODY, MOST_SESSIONS
from holdfast.worker.ticket import MOST as MOST_TICKET

LIMITS = """What is larger is refused with a typed error that names the thing. Limits of commands
(processes, memory, files, time) are yours to set: [what commands may touch](../howto/sandbox.md). Money,
tokens, attempts and time of a run are `limits` and `budget` of [the plan file](../plan-file.md)."""


def rows() -> Iterator[tuple[str, str, str]]:
    """What is bounded, by how much, and what says no."""
    yield "plan file", size_words(BOUNDS.size), "`P011`"
    yield "lists and mappings inside each other, in a plan file", f"{BOUNDS.depth}", "`P019`"
    yield "aliases in a plan file", f"{BOUNDS.aliases}, {BOUNDS.expanded:,} nodes by them", "`P018`"
    yield "entries of a plan file", f"{BOUNDS.entries:,}", "`P011`"
    yield "processor time to read a plan", f"{soundness.MOST_SECONDS:g} s beyond its size", "`P011`"
    deep = f"{subplans.DEEPEST} deep, {subplans.MOST_STEPS:,} steps together"
    yield "plans inside plans", deep, "`P011` and their own problems"
    yield "items of one `for_each`", f"{items.MOST_ITEMS:,}", "the step fails"
    yield "artifact", size_words(MAX_ARTIFACT_BYTES), "the attempt fails"
    yield (
        "log of an attempt that is kept",
        f"its last {size_words(LOG_BYTES)}",
        "the rest is not kept",
    )
    yield "files in one prompt", size_words(MOST_FILES), "the attempt fails"
    yield "answer of a model", size_words(MOST_ANSWERED), "the attempt fails"
    yield "depth of JSON that a guard reads", f"{MAX_DEPTH:,}", "the guard rejects"
    yield "handoff", size_words(handoff.MOST_TOLD), "the guard rejects"
    yield "ticket", size_words(MOST_TICKET), "exit 2"
    yield (
        "edit",
        f"{scope.MOST_FILES} files, {scope.MOST_LINES:,} lines",
        "`--max-files`, `--max-lines`",
    )
    yield "hunks of an edit", f"{effort.MOST_HUNKS:,}", "the edit is refused"
    yield "file that is edited", size_words(MOST_EDITED), "the edit is refused"
    yield "path", f"{tree.MAX_PATH_BYTES} bytes, {tree.MAX_DEPTH} components", "refused"
    archive = f"{size_words(MAX_BYTES)} unpacked, {MAX_RATIO} times its size"
    yield "archive that is imported", archive, "`--max-size`"
    yield (
        "frame of the MCP server",
        f"{size_words(frames.MOST_BYTES)}, {frames.MOST_DEPTH} deep",
        "-32700 or -32600",
    )
    yield "open requests of the MCP server", f"{MOST_OPEN}", "they wait"
    yield "body of a request to the page", size_words(MOST_BODY), "the request ends"
    yield "sessions of the page", f"{MOST_SESSIONS}", "the oldest ends"
