"""Prompts: how an agent writes a plan, looks a run over, and closes gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mcp.types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from holdfast.errors import UsageError

_AUTHOR = """\
Write a Holdfast plan for this goal: {goal}

1. A plan is a YAML file with `name` and `steps`. A step says what makes its artifact (`run` for a command \
as a list, `shell` for one shell line, `prompt` for a model, `uses: human` for a person), what it `needs`, \
which files it reads (`inputs`) and writes (`produces`), and what `guards` it.
2. Give every step a guard that would catch a wrong result: `command`, `json-schema`, `regex`, `file`.
3. Put `effects: external` and `approve: always` on whatever touches the outside world.
4. Send the text to plan_preview. Mend what it refuses: it names the line and says how.
5. Show the preview to the user. A plan that you send runs only after a person approved it."""

_REVIEW = """\
Look over the run {run} of Holdfast.

1. run_status says how it stands. For every failed step read step_read with part "guards", then "logs".
2. For every step that ran although nothing seemed to change, ask why.
3. Compare with the run before: diff with a "@-1" and b "@", what "outputs".
4. Tell the user: what was made, what failed and why, what it cost, what waits for them, and what you would \
do next. Quote guards and reasons as they are."""

_GAPS = """\
Close the gaps of this Holdfast project.

1. ledger_query with kind "gaps" and open_only lists them; with kind "uncertain" the open questions.
2. For each: say which step could close it, or what evidence is missing. Look for that evidence.
3. Add what you find with ledger_add, kind "evidence", with refs that say where it is from. You cannot \
settle anything: people and guards do.
4. Tell the user which gaps remain, and propose steps for them as a plan fragment."""


class Page(NamedTuple):
    """A prompt: what it is for, what it takes, and its words."""

    description: str
    takes: Mapping[str, tuple[str, bool]]
    words: str


PAGES: Mapping[str, Page] = {
    "author_plan": Page(
        "Write a plan for a goal.", {"goal": ("What is to be made.", True)}, _AUTHOR
    ),
    "review_run": Page(
        "Look a run over and tell what matters.",
        {"run": ("Which run (default: the last).", False)},
        _REVIEW,
    ),
    "close_gaps": Page("Find what is missing, and add evidence.", {}, _GAPS),
}


def prompts() -> list[Prompt]:
    """All of them."""
    return [
        Prompt(
            name=name,
            description=page.description,
            arguments=[
                PromptArgument(name=key, description=words, required=required)
                for key, (words, required) in page.takes.items()
            ],
        )
        for name, page in PAGES.items()
    ]


def prompt(name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """One of them, filled in; UsageError if there is none of this name, or if it lacks something."""
    if (page := PAGES.get(name)) is None:
        raise UsageError(f"there is no prompt '{name:.80}', only {', '.join(PAGES)}")
    if unknown := arguments.keys() - page.takes.keys():
        raise UsageError(f"{name} takes no '{min(unknown):.80}'")
    for key, (_, required) in page.takes.items():
        if required and not arguments.get(key, "").strip():
            raise UsageError(f"{name} needs '{key}'")
    filled = page.words.format_map({"run": "@", **arguments})
    message = PromptMessage(role="user", content=TextContent(type="text", text=filled))
    return GetPromptResult(description=page.description, messages=[message])
