"""Whether a place lies under the lines that a hunk names: what they open, or simply below them.

A line opens what is indented deeper below it, down to the first line of words that is not. One that opens
nothing, as a heading or an import, has all below it.

A line is named whole, blanks around it apart. Its beginning will do if no line is named whole and only one
begins so: up to the end of a word, or long, as git cuts it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.edits.fit import Fit
from holdfast.edits.indent import indent_of
from holdfast.edits.sheet import Sheet
from holdfast.edits.wanted import Hunk

_IN_A_WORD = re.compile(r"\w\w")
_OF_WORDS = frozenset("_@$\"'")  # signs that lines of words begin with
_LONG = 60  # characters that are no other line's by accident


def is_anchored(hunk: Hunk, sheet: Sheet, fit: Fit) -> bool:
    """Whether a place lies under the hunk's anchors: its first line or its first change.

    The last anchor may be one of its own lines. Lines below its first one may lead out of what is above it.
    """
    anchors = hunk.anchors
    if anchors and anchors[-1] in {row.text.strip() for row in hunk.old}:
        anchors = anchors[:-1]
    starts = {fit.start, fit.splices[0].start}
    return any(lies_under(sheet, start, anchors) for start in starts)


def lies_under(sheet: Sheet, start: int, anchors: Sequence[str]) -> bool:
    """Whether the line `start` lies under the last of the anchors, and that under the one before."""
    at: int | None = start
    for anchor in reversed(anchors):
        at = None if at is None else _above(sheet, at, named(sheet, anchor))
    return at is not None


def named(sheet: Sheet, anchor: str) -> Sequence[int]:
    """The lines that an anchor names."""
    whole = sheet.places("bare", anchor)
    if whole:
        return whole
    sheet.effort.spend(len(sheet.lines) // 8)
    found = [at for at, key in enumerate(sheet.keys("bare")) if _begins(key, anchor)]
    return found if len(found) == 1 else []


def _begins(line: str, anchor: str) -> bool:
    if not line.startswith(anchor):
        return False
    return len(anchor) >= _LONG or not _IN_A_WORD.match(line, len(anchor) - 1)


def _above(sheet: Sheet, start: int, lines: Sequence[int]) -> int | None:
    """The nearest of these lines above `start` under which that lies."""
    wanted = set(lines)
    depth: int | None = None
    for at in range(start - 1, min(lines, default=start) - 1, -1):
        sheet.effort.spend(1)
        width = len(indent_of(sheet.lines[at]))
        if at in wanted and (depth is None or width < depth or not _opens(sheet, at)):
            return at
        if _is_of_words(sheet.lines[at]):
            depth = width if depth is None else min(depth, width)
    return None


def _opens(sheet: Sheet, at: int) -> bool:
    """Whether the next line of words is indented deeper."""
    for below in range(at + 1, len(sheet.lines)):
        sheet.effort.spend(1)
        if _is_of_words(sheet.lines[below]):
            return len(indent_of(sheet.lines[below])) > len(indent_of(sheet.lines[at]))
    return False


def _is_of_words(line: str) -> bool:
    """Brackets, comments and directives say nothing about depth."""
    first = line.lstrip()[:1]
    return first.isalnum() or first in _OF_WORDS
