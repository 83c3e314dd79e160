"""What the author of an edit wants, whatever format it came in: operations on files, and hunks of lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal[" ", "-", "+"]
KINDS: Mapping[str, Kind] = {" ": " ", "-": "-", "+": "+"}
Operation = Literal["change", "create", "delete", "whole", "header"]


class Row(NamedTuple):
    """One line of a hunk: kept, removed or added. `ending` is None where the author could not say it."""

    kind: Kind
    text: str
    ending: str | None = None


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines kept, removed and added, in order, and what is said about their place.

    `line` is where the old lines were, from 1 (0: not said); `heading` a line somewhere above them, as diffs
    name it. `anchors` are lines that they must stand under, the outermost first. `at_end`: the old lines are
    the last of the file. `readings` are all ways to read a block whose divider is not clear.
    """

    rows: tuple[Row, ...]
    line: int = 0
    heading: str = ""
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    readings: tuple[Hunk, ...] = ()

    @property
    def old(self) -> list[Row]:
        return [row for row in self.rows if row.kind != "+"]

    @property
    def new(self) -> list[Row]:
        return [row for row in self.rows if row.kind != "-"]

    @property
    def changes(self) -> bool:
        """Whether anything is left to do when it was done."""
        if self.readings:
            return any(reading.changes for reading in self.readings)
        return any(row.kind != " " for row in self.rows) and [
            row[1:] for row in self.rows if row.kind != "+"
        ] != [row[1:] for row in self.rows if row.kind != "-"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file. `content` is the text of `create`, `whole` and `header` in UTF-8; `to` moves the file.

    `whole` gives the lines of a file, in the file's own way.
    `base` is the SHA-256 of what the author saw, `blob` how git names it, as far as either is known.
    `encoding` says how the file is encoded if it does not say so itself. `says_end`: the content says whether
    its last line ends with a newline; a fence cannot, so there the file's own way stays. `builds`: a hunk may
    be about lines that one before it adds; else all speak of the file as it was.
    """

    path: str
    operation: Operation = "change"
    hunks: tuple[Hunk, ...] = ()
    content: bytes = b""
    to: str | None = None
    mode: int | None = None
    base: str | None = None
    blob: str | None = None
    encoding: str = ""
    says_end: bool = True
    builds: bool = False


def rows_of(lines: Iterable[str], kind: Kind) -> tuple[Row, ...]:
    """Lines as an edit has them, all of one kind: a carriage return at the end is part of the ending."""
    return tuple(row_of(kind, line) for line in lines)


def row_of(kind: Kind, line: str) -> Row:
    return Row(kind, line[:-1], "\r\n") if line.endswith("\r") else Row(kind, line, "\n")
