"""One load under way: where files are, which values were given, what was found wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Literal, NamedTuple

from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Placed, Problems, Spot, quoted
from holdfast.model.digest import Json
from holdfast.model.expression import Reference
from holdfast.model.fixed import frozen, varying
from holdfast.model.provider import Known
from holdfast.model.walls import WALLS, Walls
from holdfast.ports import Flaw

_BREAK = re.compile(r"\r\n|\n|\r")
_SLACK = 8  # quotes, block marks and escapes that stand in the file and not in the value

ParamType = Literal["string", "int", "bool", "files", "list"]
Find = Callable[[str, str], list[str]]
Check = Callable[[str, Json], Flaw | None]
Named = Callable[[str], Known]  # project directory -> whom it can ask


@frozen
class Param:
    """A declared param: what was given for it, and what it stands for; nothing if that is wrong."""

    name: str
    key: Scalar
    type: ParamType
    given: Json = None
    value: Json = None

    @property
    def glob(self) -> str:
        """What a param of type `files` matches."""
        return str(self.given) if self.type == "files" and self.given is not None else ""


class Use(NamedTuple):
    """A reference in a step, and how to find each piece of it in the file."""

    reference: Reference
    spot: Callable[[int, int], Placed]

    def place(self, depth: int) -> Placed:
        """Where its name (0) or one of its fields (from 1) stands."""
        return self.spot(*self.reference.place(depth))


class Listed(NamedTuple):
    """The items of a step that are known when the plan is read; without values they are files."""

    values: Json
    node: Placed


@varying
class Reading:
    """The state of one load; `step` is the one being read, `uses` what it refers to."""

    problems: Problems
    root: Path
    step: str = ""
    contents: dict[str, Json] = field(default_factory=dict)
    source: bytes = b""
    params: dict[str, Param] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    lines: list[str] | None = None
    most: int = 0  # expressions that the plan may have: more for more steps
    expressions: int = 0
    expanded: int = 0  # characters that params were filled in with
    check: Check | None = None
    models: Named | None = None
    has_bad_model: bool = False  # the defaults name one that cannot be read, which is reported
    checked: set[str] = field(default_factory=set)  # values of guards that were looked at
    lacking: set[str] = field(default_factory=set)  # libraries that are not there, time that is up
    seconds: float = 0.0  # spent on checks
    prompts: str = ""  # a file with the prompts of a foreign workflow, if it was named
    walls: Walls = WALLS
    approvers: list[tuple[str, Placed]] = field(default_factory=list)  # names that people must hold
    has_items: bool = False  # the step being read runs once for each item
    from_step: Use | None = None  # where its items come from, if that is a step
    plans: dict[str, Node] = field(default_factory=dict)  # where steps name other plans
    conditions: list[Use] = field(default_factory=list)  # what its condition compares
    listed: Listed | None = None  # its items, if they are known
    lists: dict[str, Listed] = field(default_factory=dict)  # those of all steps

    def label(self, key: str) -> str:
        return f"'{key}' of {quoted(self.step)}" if self.step else f"'{key}'"

    def wrong_type(self, key: str, node: Node, wanted: str) -> None:
        hint = ""
        if isinstance(node, Scalar) and "text" in wanted and node.value is not None:
            hint = "put it in quotes"
        elif isinstance(node, Listing):
            hint = _instead_of_list(wanted)
        message = f"{self.label(key)} must be {wanted}, not {kind_of(node)}"
        self.problems.add("P032", node, message, hint)

    def spot(self, node: Placed, value: str, begin: int, start: int, length: int) -> Placed:
        """The place of a piece of a text; of the whole text if the file spells it differently.

        The piece is looked for with everything from `begin`, the expression it belongs to.
        """
        wanted = value[begin : start + length]
        before = value[:begin]
        again = before.count(wanted)
        left = len("".join(before.split())) + _SLACK
        for number, line in self._from(node):
            found = line.find(wanted, node.column - 1 if number == node.line else 0)
            while found >= 0 and again:
                again -= 1
                found = line.find(wanted, found + len(wanted))
            if found >= 0:
                return Spot(number, found + start - begin + 1, length)
            left -= len("".join(line.split()))
            if left < 0:
                break
        return node

    def _from(self, node: Placed) -> list[tuple[int, str]]:
        if self.lines is None:
            self.lines = _BREAK.split(self.source.decode("utf-8-sig", "replace"))
        return list(enumerate(self.lines[node.line - 1 :], node.line))


def _instead_of_list(wanted: str) -> str:
    if wanted.startswith("a mapping"):
        return "write lines of 'key: value', without '-'"
    is_one = wanted.startswith(("text", "a number", "a whole number", "true"))
    return "write one value, without '-' or brackets" if is_one else ""


def kind_of(node: Node) -> str:
    """What a node is, in words."""
    if isinstance(node, Listing):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    value = node.value
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "text"
    return f"the number {quoted(str(value))[1:-1]}"
