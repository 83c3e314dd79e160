"""Asking a person, reading what he hands over, and who he is."""

from __future__ import annotations

import getpass
import sys

import click

from holdfast.cli.say import talk
from holdfast.cli.view import view
from holdfast.errors import UsageError

_DECLINED = 130


def ask(question: str, *, default: bool) -> bool:
    """One question to somebody who is there; the end of input is an interruption, on a line of its own."""
    try:
        return click.confirm(question, default=default, err=True)
    except click.Abort:
        talk("")
        raise


def go_on(question: str, *, default: bool) -> None:
    """Ask, and end here if the answer is no."""
    if not ask(question, default=default):
        talk("nothing was begun")
        raise click.exceptions.Exit(_DECLINED)


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if somebody says so: on a terminal, or by --yes."""
    if yes:
        return
    if not view().asks:
        raise UsageError("this needs a yes, and nobody is there to ask", hint="say --yes")
    go_on(question, default=False)


def consent_to(steps: list[str], *, yes: bool, look: str = "look at 'holdfast plan'") -> None:
    """Ask before these steps touch the outside world; `look` says where they can be seen."""
    if not steps or yes:
        return
    names = ", ".join(steps[:5]) + (f" and {len(steps) - 5} more" if len(steps) > 5 else "")  # noqa: PLR2004 - a few names
    if not view().asks:
        raise UsageError(
            f"these steps touch the outside world: {names}",
            hint=f"{look}, then say --yes" if look else "say --yes",
        )
    go_on(f"these steps touch the outside world: {names}. Proceed?", default=False)


def stdin_bytes() -> bytes:
    """Everything on stdin; an error if it is closed."""
    if sys.stdin is None:
        raise UsageError("stdin is closed", hint="name a file")
    return sys.stdin.buffer.read()


def who() -> str:
    """The person at this machine, as facts name him."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this user id
        return "unknown"
