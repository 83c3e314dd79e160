"""How a command shows things: drawn for a terminal, plain lines, one object, or for a voice."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Literal

import click

from holdfast.model.fixed import frozen

Mode = Literal["rich", "plain", "json", "jsonl", "a11y"]
MODES = ("auto", "rich", "plain", "json", "jsonl", "a11y")
# Programs that let a model type commands say so in the environment; each of these is in use.
AGENTS = (
    "AGENT",
    "AI_AGENT",
    "CLAUDECODE",
    "CLINE_ACTIVE",
    "CODEX_SANDBOX",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)


@frozen
class Asked:
    """What was asked for on the command line, before or after the name of the command."""

    output: str = "auto"
    colour: str = "auto"
    no_input: bool = False
    quiet: bool = False
    verbose: int = 0


@frozen
class View:
    """What was asked for, and what this terminal can do. `width` 0 means lines are never cut."""

    mode: Mode = "plain"
    colour: bool = False
    width: int = 0
    asks: bool = False  # somebody is there to answer
    quiet: bool = False
    verbose: int = 0
    live: bool = False  # a footer may be redrawn


def choose_view(asked: Asked) -> View:
    """Decide how to show things; `auto` is rich only where a person looks at a terminal."""
    env = os.environ
    terminal = _is_terminal(sys.stdout) and _is_terminal(sys.stderr)
    mode = automatic(env, terminal=terminal) if asked.output == "auto" else _mode(asked.output)
    obeys = _is_terminal(sys.stderr) and env.get("TERM") != "dumb"
    return View(
        mode=mode,
        colour=coloured(env, asked.colour, drawn=mode == "rich" and terminal and obeys),
        width=shutil.get_terminal_size().columns if mode == "rich" else 0,
        asks=not asked.no_input
        and mode not in {"json", "jsonl"}
        and _is_terminal(sys.stdin)
        and _is_terminal(sys.stderr),
        quiet=asked.quiet,
        verbose=asked.verbose,
        live=mode == "rich" and obeys,
    )


def automatic(env: Mapping[str, str], *, terminal: bool) -> Mode:
    """Rich where a person looks; plain in CI, for an agent, and on a terminal that only types."""
    if env.get("HOLDFAST_A11Y") == "1":
        return "a11y"
    watched = any(_is_set(env, name) for name in ("CI", *AGENTS))
    return "rich" if terminal and not watched and env.get("TERM") != "dumb" else "plain"


def coloured(env: Mapping[str, str], wish: str, *, drawn: bool) -> bool:
    """`--color` decides, then NO_COLOR, then FORCE_COLOR, then whether things are drawn at all."""
    if wish != "auto":
        return wish == "always"
    if env.get("NO_COLOR"):
        return False
    return drawn or _is_set(env, "FORCE_COLOR")


def _is_set(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "").lower() not in {"", "0", "false", "no"}


def _mode(word: str) -> Mode:
    for mode in ("rich", "plain", "json", "jsonl", "a11y"):
        if word == mode:
            return mode
    return "plain"


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    try:
        return bool(isatty and isatty())
    except ValueError:  # closed
        return False


def view() -> View:
    """The view of the command that runs now; plain outside of one."""
    context = click.get_current_context(silent=True)
    found = context.find_root().obj if context else None
    return found if isinstance(found, View) else View()


def width_now() -> int:
    """The width of the view; a terminal may have got another one since it was chosen."""
    return shutil.get_terminal_size().columns if view().width else 0
