"""A place where a hunk fits: which lines go there, and which come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.edits.indent import Shift
from holdfast.edits.outcome import Level
from holdfast.edits.wanted import Hunk, Row


@dataclass(frozen=True, slots=True)
class Splice:
    """At one place of a file: how many lines go, and which rows come."""

    start: int
    count: int
    rows: tuple[Row, ...]

    @property
    def end(self) -> int:
        return self.start + self.count


@dataclass(frozen=True, slots=True)
class Fit:
    """What a hunk does at one place, and the lines from `start` to `end` that it looked at.

    `pairs` are its old rows and their lines, as far as each has one.
    """

    level: Level
    start: int
    end: int
    splices: tuple[Splice, ...]
    pairs: tuple[tuple[Row, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """One run of removed and added rows of a hunk, from `start` to `end`."""

    start: int
    end: int
    removed: tuple[Row, ...]
    added: tuple[Row, ...]


def groups(hunk: Hunk) -> list[Group]:
    bounds: list[tuple[int, int]] = []
    for at, row in enumerate(hunk.rows):
        if row.kind == " ":
            continue
        if bounds and bounds[-1][1] == at:
            bounds[-1] = (bounds[-1][0], at + 1)
        else:
            bounds.append((at, at + 1))
    return [_group(hunk.rows, start, end) for start, end in bounds]


def _group(rows: Sequence[Row], start: int, end: int) -> Group:
    part = rows[start:end]
    return Group(
        start,
        end,
        tuple(row for row in part if row.kind == "-"),
        tuple(row for row in part if row.kind == "+"),
    )


def shifted_rows(rows: Sequence[Row], shift: Shift) -> tuple[Row, ...] | None:
    """Added rows indented as the file is; None if one of them cannot be."""
    found = []
    for row in rows:
        text = shift(row.text)
        if text is None:
            return None
        found.append(Row(row.kind, text, row.ending))
    return tuple(found)
