"""Asking a person, reading what he hands over, and who he is."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from typing import BinaryIO

import click

from holdfast.cli.say import talk
from holdfast.cli.view import view
from holdfast.errors import UsageError

_DECLINED = 130
_NAMED = 5
_PIECE = 1 << 20


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


def consent_to(
    steps: Sequence[str],
    *,
    yes: bool,
    look: str = "look at 'holdfast plan'",
    paid: Sequence[str] = (),
    price: str = "",
    bounds: bool = True,
    first: str = "",
) -> None:
    """Ask before these steps touch the outside world or cost money; `look` says where they can be seen.

    `first` says what they come with, if nobody named them. `price` says what the `paid` ones may cost,
    `bounds` that a limit is an answer too.
    """
    if not (steps or paid) or yes:
        return
    parts = [f"these steps touch the outside world: {_few(steps)}"] if steps else []
    if paid:
        parts.append(f"these steps cost money: {_few(paid)}{f' ({price})' if price else ''}")
    what = f"{first}, and " * bool(first) + "; ".join(parts)
    if not view().asks:
        say = "say --yes, or --max-cost USD" if bounds and not steps else "say --yes"
        raise UsageError(what, hint=f"{look}, then {say}" if look else say)
    go_on(f"{what}. Proceed?", default=False)


def _few(steps: Sequence[str]) -> str:
    rest = len(steps) - _NAMED
    return ", ".join(steps[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def stdin_bytes(most: int | None = None) -> bytes:
    """Everything on stdin, as far as `read_most` goes; an error if it is closed."""
    if sys.stdin is None:
        raise UsageError("stdin is closed", hint="name a file")
    stream = sys.stdin.buffer
    return stream.read() if most is None else read_most(stream, most)


def read_most(stream: BinaryIO, most: int) -> bytes:
    """What a stream gives; of one that gives more than so many bytes, a little more than these."""
    pieces: list[bytes] = []
    size = 0
    while size <= most and (piece := stream.read(_PIECE)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def who() -> str:
    """The person at this machine, as facts name him."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this user id
        return "unknown"
