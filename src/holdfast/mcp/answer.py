"""What a tool answers: bounded text for a model, an object for its program, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from mcp.types import CallToolResult, TextContent

from holdfast.cli.report import error_json
from holdfast.cli.say import plain
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.digest import Json
from holdfast.model.text import is_count

MOST_TEXT = 6_000  # characters: about 1,500 tokens
MOST_ROWS = 40  # entries of a list that one answer holds
WIDEST = 400  # characters of a line
_NEXT = "next: "


class Next(NamedTuple):
    """A tool that fits what was answered, with its arguments."""

    tool: str
    arguments: Mapping[str, Json] = {}

    def words(self) -> str:
        """As a call is written."""
        said = (f"{name}={json.dumps(value)}" for name, value in self.arguments.items())
        return f"{self.tool}({', '.join(said)})"

    def json(self) -> dict[str, Json]:
        """For programs."""
        return {"tool": self.tool, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class Answer:
    """Lines as the command says them, data, and what follows: tools for the model, commands for a person."""

    lines: Sequence[str]
    data: Mapping[str, Json] = field(default_factory=dict)
    next: Sequence[Next] = ()
    commands: Sequence[str] = ()  # as a person types them
    is_error: bool = False

    def result(self, known: Iterable[str]) -> CallToolResult:
        """As it goes to a client that has these tools."""
        names = frozenset(known)
        offers = [one for one in self.next if one.tool in names]
        tail = ["commands: " + "    ".join(self.commands)] if self.commands else []
        tail += [_NEXT + "    ".join(one.words() for one in offers)] if offers else []
        text = "\n".join([*bounded(self.lines, MOST_TEXT - sum(map(len, tail))), *tail])
        data: dict[str, Json] = {
            **cast("Mapping[str, Json]", small(dict(self.data))),
            "next": [one.json() for one in offers],
            "commands": list(self.commands),
        }
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content=data,
            is_error=self.is_error,
        )


def bounded(lines: Sequence[str], room: int) -> list[str]:
    """Lines that fit; what is left out is counted."""
    shown: list[str] = []
    for number, line in enumerate(lines):
        short = line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…"
        room -= len(short) + 1
        if room < len("… 100000 more lines"):
            return [*shown, f"… {len(lines) - number} more lines"]
        shown.append(short)
    return shown


def small(value: Json, most: int = MOST_ROWS) -> Json:
    """A value with long texts cut and long lists ended, and nothing in it that a screen would obey."""
    if isinstance(value, str):
        return plain(value if len(value) <= MOST_TEXT else f"{value[: MOST_TEXT - 1]}…", raw=True)
    if isinstance(value, Mapping):
        return {key: small(item, most) for key, item in [*value.items()][:most]}
    if isinstance(value, Sequence):
        return [small(item, most) for item in value[:most]]
    return value


def without_next(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines of a screen, and the commands that it ends with."""
    commands: list[str] = []
    kept: list[str] = []
    for line in lines:
        if line.startswith(_NEXT):
            commands += line.removeprefix(_NEXT).split("    ")
        elif commands and line.startswith(" " * len(_NEXT) + "holdfast "):
            commands.append(line.strip())
        else:
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept, [command.strip() for command in commands]


class Page(NamedTuple):
    """A part of a list: from where, and where the next one begins."""

    rows: Sequence[Json]
    cursor: str | None


def page(rows: Sequence[Json], cursor: str | None, most: int = MOST_ROWS) -> Page:
    """The rows from a cursor on, so many at once."""
    start = offset(cursor)
    end = start + most
    return Page(rows[start:end], str(end) if end < len(rows) else None)


def offset(cursor: str | None) -> int:
    """Where a cursor points to; UsageError if it is none of ours."""
    if cursor is None:
        return 0
    if not is_count(cursor):
        raise UsageError(f"'{cursor:.40}' is no cursor", hint="give one that an answer had")
    return int(cursor)


def failed(error: HoldfastError, following: Sequence[Next] = ()) -> Answer:
    """An error as the command says it."""
    told: dict[str, Json] = json.loads(json.dumps(error_json(error)))
    lines = [f"error[{error.code}]: {error.message}"]
    lines += [f"hint: {error.hint}"] if error.hint else []
    told["exit_code"] = error.exit_code
    return Answer(
        [piece for line in lines for piece in line.split("\n")],
        {"error": told},
        following,
        is_error=True,
    )


def with_next(answer: Answer, *more: Next) -> Answer:
    """The same answer with further things to do."""
    return replace(answer, next=(*answer.next, *more))
