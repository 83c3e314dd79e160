"""Words for people: whole lines, nothing that a terminal would obey, in what the stream can show."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import field
from functools import cache
from typing import TextIO

import click

from holdfast.cli.view import View, view
from holdfast.errors import StoreError
from holdfast.model.digest import Json
from holdfast.model.fixed import frozen
from holdfast.model.items import spelled_out
from holdfast.model.pattern import Pattern
from holdfast.model.text import clean, escaped, one_line

SIGNS = {
    "pending": "·",
    "running": "▸",
    "waiting": "⏸",
    "done": "✓",
    "reused": "=",
    "failed": "✗",
    "skipped": "–",
}
UNWRITTEN = "the result cannot be written"
_WORDS = {sign: word for word, sign in SIGNS.items()}
ASCII = str.maketrans(
    {"·": ".", "▸": ">", "⏸": "!", "✓": "+", "✗": "x", "–": "-", "─": "-", "│": "|"}
    | {"…": "...", "×": "x", "−": "-", "→": "->", "←": "<-", "⚡": "||", "≤": "<=", "µ": "u"}
)
_PAINT = {
    "▸": "36",
    "⏸": "33",
    "✓": "32",
    "✗": "31",
    "=": "2",
    "–": "2",
    "·": "2",
    "error": "1;31",
    "hint": "36",
    "help": "36",
    "next": "36",
}
_TOLD = "holdfast.told"
_HELD: ContextVar[list[Mapping[str, Json]] | None] = ContextVar("held", default=None)


@frozen
class Heard:
    """What was said to a listener: lines of the result, lines beside it, objects for programs."""

    lines: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    objects: list[Mapping[str, Json]] = field(default_factory=list)


_LISTENER: ContextVar[Heard | None] = ContextVar("listener", default=None)
_EDITS = {"+": "32", "-": "31", "@": "36"}
_SIGN = Pattern(r"^( *)([·▸⏸✓=✗–])(?= )", re.MULTILINE)
_OBEYED = Pattern(r"^(\s*)::", re.MULTILINE)
_HEAD = Pattern(r"^(error(?:\[\w+\])?|hint|help|next)(?=:)", re.MULTILINE)


@contextlib.contextmanager
def heard() -> Iterator[Heard]:
    """Listen to all that is said in here, by this thread alone: nothing of it is printed."""
    listener = Heard()
    token = _LISTENER.set(listener)
    try:
        yield listener
    finally:
        _LISTENER.reset(token)


def out(text: str = "", *, raw: bool = False) -> None:
    """A line of the result, or several. `raw`: words of others, not to be read as ours."""
    if (listener := _LISTENER.get()) is not None:
        listener.lines.extend(plain(text, raw=raw).split("\n"))
    elif sys.stdout is not None:
        write(shown(text, sys.stdout, raw=raw) + "\n")


def write(text: str, *, now: bool = False) -> None:
    """Put text on stdout as it is. A terminal that went away is no error; a full disk is one."""
    try:
        sys.stdout.write(text)
        if now:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno != errno.EIO:  # what was done is done: only these words are lost
            raise StoreError(f"{UNWRITTEN}: {error.strerror}") from error
        into_the_void(sys.stdout)


def out_command(line: str) -> None:
    """A line that whoever reads stdout is to obey: spelled by its maker, in what the stream can show."""
    if sys.stdout is not None:
        encoding = sys.stdout.encoding or "utf-8"
        write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def into_the_void(stream: TextIO) -> None:
    """From now on nobody listens, or the exit would fail over it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def out_edit(text: str, margin: str = "") -> None:
    """A line of a text diff: words of others, painted by the sign that it begins with."""
    if (listener := _LISTENER.get()) is not None:
        listener.lines.append(f"{margin}{plain(text, raw=True)}")
        return
    if sys.stdout is None:
        return
    line = shown(text, sys.stdout, raw=True)
    if view().colour and line[:1] in _EDITS:
        line = f"\x1b[{_EDITS[line[0]]}m{line}\x1b[0m"
    write(f"{margin}{line}\n")


def talk(text: str) -> None:
    """A line beside the result. Nobody listening is no reason to stop."""
    if (listener := _LISTENER.get()) is not None:
        listener.beside.extend(plain(text).split("\n"))
        return
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(shown(text, sys.stderr) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        into_the_void(sys.stderr)


def talk_once(text: str) -> None:
    """A line beside the result, if this command has not said it: it may open a store several times."""
    context = click.get_current_context(silent=True)
    told: set[str] = set() if context is None else context.meta.setdefault(_TOLD, set())
    if text not in told:
        told.add(text)
        talk(text)


def plain(text: str, *, raw: bool = False) -> str:
    """Text with nothing in it that a terminal would obey; of our own, keys of items as they are."""
    return clean(text if raw else spelled_out(text))


def shown(text: str, stream: TextIO, *, raw: bool = False) -> str:
    """Text as it may be written to a stream: safe, and in signs that it has."""
    text = plain(text, raw=raw)
    if not raw:
        text = dressed(text, view())
    text = defused(text)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if not _has_our_signs(encoding):
        text = text.translate(ASCII)
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = text.encode("ascii", "backslashreplace").decode("ascii")
    return text


def defused(text: str) -> str:
    """Text of which a CI obeys nothing. GitHub reads what is printed, and does what some lines say."""
    if "::" not in text and "##[" not in text:
        return text
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    return _OBEYED.sub(r"\1: :", text).replace("##[", "## [")


@cache
def _has_our_signs(encoding: str) -> bool:
    try:
        "".join(SIGNS.values()).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def dressed(text: str, how: View) -> str:
    """Our own lines for a view: for a voice the word of a state in place of its sign, or in colour."""
    if how.mode == "a11y":
        text = _SIGN.sub(lambda found: f"{found[1]}{_WORDS[found[2]]}:", text)
        return text.replace(" · ", ", ")
    if how.colour:
        text = _SIGN.sub(lambda found: found[1] + _painted(found[2], found[2]), text)
        return _HEAD.sub(lambda found: _painted(found[1], found[1].partition("[")[0]), text)
    return text


def _painted(text: str, kind: str) -> str:
    return f"\x1b[{_PAINT[kind]}m{text}\x1b[0m"


@contextlib.contextmanager
def last_object() -> Iterator[None]:
    """Of several objects that would be printed in here, print the last one: a reader expects one."""
    held: list[Mapping[str, Json]] = []
    token = _HELD.set(held)
    try:
        yield
    finally:
        _HELD.reset(token)
        for value in held:
            out_json(value)


def out_json(value: Mapping[str, Json]) -> None:
    """One object on stdout; on one line where objects are lines."""
    if (held := _HELD.get()) is not None:
        held[:] = [value]
        return
    if (listener := _LISTENER.get()) is not None:
        listener.objects.append(value)
        return
    if sys.stdout is None:
        return
    indent = None if view().mode == "jsonl" else 2
    write(_json_text(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")


def out_line(value: Mapping[str, Json]) -> None:
    """One object as one line on stdout, now."""
    if (listener := _LISTENER.get()) is not None:
        listener.objects.append(value)
    elif sys.stdout is not None:
        write(_json_text(json.dumps(value, ensure_ascii=False)) + "\n", now=True)


def _json_text(text: str) -> str:
    """JSON that says the same and that neither a terminal nor a CI obeys."""
    return escaped(text).replace("##[", "#\\u0023[")


def short(run: str) -> str:
    """A run as people name it; `--json` has the whole id."""
    return run[:10]


def named(step: str) -> str:
    """A step in a command that a person may copy."""
    if re.fullmatch(r"[\w.-]+", step, re.ASCII):
        return step
    return "'" + one_line(step).replace("'", "'\"'\"'") + "'"


def seconds(milliseconds: int) -> str:
    """A duration as people write it."""
    if milliseconds < 60_000:  # noqa: PLR2004 - a minute
        return f"{milliseconds / 1000:.1f} s"
    minutes, rest = divmod(milliseconds // 1000, 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def clock(milliseconds: int) -> str:
    """A duration as a clock shows it, for lines that are drawn again and again."""
    minutes, rest = divmod(max(0, milliseconds) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
