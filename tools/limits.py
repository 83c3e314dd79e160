"""The walls of Holdfast as a page, each number taken from the code that keeps it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.measure import size_words
from holdfast.config.walls import SIZES
from holdfast.edits import effort, scope, tree
from holdfast.edits.beneath import MOST_BYTES as MOST_EDITED
from holdfast.formats import soundness, subplans
from holdfast.formats.nodes import BOUNDS
from holdfast.generators.chat import MOST_BYTES as MOST_ANSWERED
from holdfast.generators.llm import MOST_FILES
from holdfast.guards.content import MAX_DEPTH
from holdfast.mcp import frames
from holdfast.mcp.pipe import MOST_OPEN
from holdfast.model import handoff
from holdfast.model.walls import WALLS, key_of
from holdfast.store.allowance import MAX_BYTES, MAX_RATIO
from holdfast.web.door import MOST_SESSIONS

LIMITS = """What is larger is refused with a typed error that names the thing and, where there is one, the
key. A key stands in your own `config.toml`, as in `[limits]` `plan_size = "200 MB"`; `holdfast.toml` of a
project may lower it, never raise it. A worker on another machine goes by its own. Limits of commands
(processes, memory, files, time) are `[sandbox]`: [what commands may touch](../howto/sandbox.md). Money,
tokens, attempts and time of a run are `limits` and `budget` of [the plan file](../plan-file.md).

A hostile plan is stopped by its bytes, depth, aliases and time, not by its number of steps: only lists
(`for_each`) make many steps of few bytes, so they have a lower wall of their own. Events hold ids and
digests, and contents are stored beside them, so events need no wall. The log of an attempt is one content;
what came before its end is not kept. Past the last connection to the page, one that asks for nothing ends
first."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What is bounded, by how much, under which key, and what says no."""
    yield from movable()
    for what, most, by in fixed():
        yield what, most, "", by


def movable() -> Iterator[tuple[str, str, str, str]]:
    """What has a key."""

    def row(what: str, name: str, by: str, *, lead: str = "") -> tuple[str, str, str, str]:
        value = getattr(WALLS, name)
        most = size_words(value) if name in SIZES else f"{value:,}"
        return what, f"{lead}{most}", f"`{key_of(name)}`", by

    yield row("plan file", "plan_size", "`P011`")
    yield row("steps of a plan, those of lists and other plans too", "plan_steps", "`P011`, `P096`")
    yield row("lists and mappings inside each other, in a plan file", "plan_depth", "`P019`")
    yield row("aliases in a plan file", "plan_aliases", "`P018`")
    yield row("items of all lists that a plan file knows", "plan_items", "`P011`")
    yield row("items of one `for_each`", "items", "`P092`, or the step fails")
    yield row("artifact", "artifact", "the attempt fails, `amend` exits with 2")
    yield row("log of an attempt that is kept", "log", "the rest is not kept", lead="its last ")
    yield row("body of a request to the page", "body", "413")
    yield row("connections to the page", "connections", "503")
    yield row("frame of the MCP server", "frame", "-32600")
    yield row("ticket", "ticket", "exit 2")


def fixed() -> Iterator[tuple[str, str, str]]:
    """What has none."""
    yield "values that aliases of a plan file stand for", f"{BOUNDS.expanded:,}", "`P018`"
    yield "processor time to read a plan", f"{soundness.MOST_SECONDS:g} s beyond its size", "`P011`"
    yield "plans inside plans", f"{subplans.DEEPEST} deep", "`P096`"
    yield "files in one prompt", size_words(MOST_FILES), "the attempt fails"
    yield "answer of a model", size_words(MOST_ANSWERED), "the attempt fails"
    yield "depth of JSON that a guard reads", f"{MAX_DEPTH:,}", "the guard rejects"
    yield "handoff", size_words(handoff.MOST_TOLD), "the guard rejects"
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
        "frame of the MCP server, besides its size",
        f"{frames.MOST_DEPTH} deep, {frames.MOST_TOKENS:,} strings, brackets and commas",
        "-32600",
    )
    yield "open requests of the MCP server", f"{MOST_OPEN}", "they wait"
    yield "sessions of the page", f"{MOST_SESSIONS}", "the oldest ends"
