"""How a command shows things: drawn for a terminal, plain lines, one object, or for a voice."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import Literal

import click

Mode = Literal["rich", "plain", "json", "jsonl", "a11y"]
MODES = ("auto", "rich", "plain", "json", "jsonl", "a11y")


@dataclass(frozen=True, slots=True)
class View:
    """What was asked for, and what this terminal can do. `width` 0 means lines are never cut."""

    mode: Mode = "plain"
    colour: bool = False
    width: int = 0
    asks: bool = False  # somebody is there to answer


def choose_view(output: str, colour: str, *, no_input: bool) -> View:
    """Decide how to show things; `auto` is rich only where a person looks at a terminal."""
    terminal = _is_terminal(sys.stdout) and _is_terminal(sys.stderr)
    mode = _automatic(terminal=terminal) if output == "auto" else _mode(output)
    width = shutil.get_terminal_size().columns if mode == "rich" else 0
    wanted = mode == "rich" and terminal and not os.environ.get("NO_COLOR")
    return View(
        mode=mode,
        colour=colour == "always" or (colour == "auto" and wanted),
        width=width,
        asks=not no_input and _is_terminal(sys.stdin) and _is_terminal(sys.stderr),
    )


def _automatic(*, terminal: bool) -> Mode:
    if os.environ.get("HOLDFAST_A11Y") == "1":
        return "a11y"
    drawn = terminal and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
    return "rich" if drawn else "plain"


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
