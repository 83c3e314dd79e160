"""How differences are told: of plans, of values, of contents; the same lines wherever they are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.cli.again import again
from holdfast.cli.pieces import Piece
from holdfast.core.compare import PlanChange, ValueChange, text_change, value_changes
from holdfast.model.digest import Json
from holdfast.model.text import one_line

MOST_LINES = 40
WIDEST_VALUE = 60


class Told(NamedTuple):
    """A line of a difference; one that is an edit begins with what became of it."""

    margin: str
    text: str
    is_edit: bool = False


def plan_words(change: PlanChange) -> str:
    """How much of a plan differs."""
    if change.is_empty:
        return "equal"
    counts = [
        f"{len(names)} {word}"
        for names, word in (
            (change.added, "added"),
            (change.removed, "removed"),
            (change.changed, "changed"),
        )
        if names
    ]
    return ", ".join(counts) or "its head changed"


def value_lines(change: ValueChange, *, full: bool) -> Iterator[Told]:
    """Both values of a key: short ones on a line, long texts as a diff."""
    old, new = _words(change.before), _words(change.after)
    is_short = max(len(old), len(new)) <= WIDEST_VALUE and "\n" not in old + new
    if change.how == "changed" and is_short:
        yield Told("      ", f"{change.path}: {old} → {new}")
        return
    if not isinstance(change.before, str) and not isinstance(change.after, str):
        yield from _part_lines(change, full=full)
        return
    yield Told("      ", change.path)
    names = ("before", "after")
    lines = text_change(_lines(change.before), _lines(change.after), names)
    if lines is None:
        yield Told("        ", "too long to compare")
        return
    yield from _edit_lines(lines[3:], full=full, margin="        ")


def _part_lines(change: ValueChange, *, full: bool) -> Iterator[Told]:
    """The parts of a structured value that came, went or changed."""
    empty: Json = [] if isinstance(change.after or change.before, list) else {}
    old = empty if change.before is None else change.before
    new = empty if change.after is None else change.after
    for part in value_changes(old, new, change.path):
        yield Told("      ", _one_value(part, full=full))


def piece_lines(piece: Piece, *, full: bool) -> Iterator[Told]:
    """How one content differs: its lines, its values, or where to look at both."""
    if piece.how == "text":
        yield from _edit_lines(piece.lines, full=full)
    elif piece.how == "json":
        shown = piece.changes if full else piece.changes[:MOST_LINES]
        for change in shown:
            yield Told("      ", _one_value(change, full=full))
        if len(shown) < len(piece.changes):
            yield Told("      ", f"… {len(piece.changes) - len(shown)} more values, --full")
    elif piece.before and piece.after and piece.how != "mode":
        both = f"holdfast show {piece.before[:12]}    holdfast show {piece.after[:12]}"
        yield Told("      ", again(both))


def _one_value(change: ValueChange, *, full: bool) -> str:
    cut = one_line if full else _cut
    old, new = (cut(_words(value)) for value in (change.before, change.after))
    if change.how == "added":
        return f"+ {change.path}: {new}"
    if change.how == "removed":
        return f"- {change.path}: {old}"
    return f"~ {change.path}: {old} → {new}"


def _cut(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= WIDEST_VALUE else f"{line[: WIDEST_VALUE - 1]}…"


def _words(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)


def _edit_lines(lines: Sequence[str], *, full: bool, margin: str = "") -> Iterator[Told]:
    shown = lines if full else lines[:MOST_LINES]
    for line in shown:
        yield Told(margin, line, is_edit=True)
    if len(shown) < len(lines):
        yield Told(margin, f"… {len(lines) - len(shown)} more lines, --full")
