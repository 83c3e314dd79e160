"""Carry out splices on the lines of a file: every line keeps its ending, the file its final newline."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from holdfast.edits.fit import Fit, Splice
from holdfast.edits.lines import Text
from holdfast.edits.wanted import Row


def overlap(fits: Sequence[Fit]) -> tuple[int, int] | None:
    """Two fits (by their numbers) that change the same lines, or add at the same place; None if none do."""
    work = sorted(
        (splice.start, splice.end, number)
        for number, fit in enumerate(fits)
        for splice in fit.splices
    )
    for (start, end, number), (following, following_end, other) in itertools.pairwise(work):
        touches = (
            following < end or (start == end == following) or (following == following_end == start)
        )
        if number != other and touches:
            return min(number, other), max(number, other)
    return None


def spliced(text: Text, fits: Sequence[Fit]) -> Text:
    """The file after what the fits do; they do not overlap."""
    usual = text.usual
    lines: list[str] = []
    endings: list[str] = []
    done = 0
    known = [(fit, knows_endings(text, fit)) for fit in fits]
    work = [(splice, knows) for fit, knows in known for splice in fit.splices]
    for splice, knows in sorted(work, key=lambda one: (one[0].start, one[0].end)):
        lines += text.lines[done : splice.start]
        endings += text.endings[done : splice.start]
        lines += [row.text for row in splice.rows]
        endings += _endings(text, splice, usual, knows=knows)
        done = splice.end
    lines += text.lines[done:]
    endings += text.endings[done:]
    said = [_said(fit.splices[-1], fit, text) for fit in fits if fit.splices]
    return replace(text, lines=lines, endings=_closed(endings, text, usual, said))


def knows_endings(text: Text, fit: Fit) -> bool:
    """Whether the author says how lines end: all old rows say what is there, or there is none yet."""
    if not any(text.endings):
        return True
    said = [
        row.ending == text.endings[at]
        for row, at in fit.pairs
        if row.ending and text.endings[at]  # what a last line without an ending says is said apart
    ]
    return bool(said) and all(said)


def _endings(text: Text, splice: Splice, usual: str, *, knows: bool) -> list[str]:
    """An added line ends as its author says, else as the line it replaces, else as the one above."""
    above = text.endings[splice.start - 1] if splice.start else ""
    below = text.endings[splice.start] if splice.start < len(text.endings) else ""
    found: list[str] = []
    for number, row in enumerate(splice.rows):
        replaced = text.endings[splice.start + number] if number < splice.count else ""
        near = replaced or (found[-1] if found else "") or above or below or usual
        found.append(row.ending if knows and row.ending else near)
    return found


def _said(splice: Splice, fit: Fit, text: Text) -> bool | None:
    """Whether the hunk makes (True) or takes away (False) the final newline; None if it says nothing."""
    if splice.end != len(text.lines):
        return None
    old = any(row.ending == "" for row, _ in fit.pairs)
    new = any(row.ending == "" for row in splice.rows)
    return None if old == new else old


def _closed(endings: list[str], text: Text, usual: str, said: Sequence[bool | None]) -> list[str]:
    """Only the last line may lack its ending, and does if the file lacked it and nobody said otherwise."""
    has = not text.lines or bool(text.endings[-1])
    for word in said:
        has = has if word is None else word
    for at, ending in enumerate(endings):
        if not ending and at < len(endings) - 1:
            endings[at] = usual
    if endings:
        endings[-1] = (endings[-1] or usual) if has else ""
    return endings


def rewritten(text: Text, new: Text, spans: Sequence[tuple[int, int, int, int]]) -> Text:
    """The file with the lines of another in its own way: of those that differ only."""
    splices = tuple(
        Splice(a, b - a, tuple(Row("+", line) for line in new.lines[c:d])) for a, b, c, d in spans
    )
    return spliced(text, [Fit("whole", 0, len(text.lines), splices)])
