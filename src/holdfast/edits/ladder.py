"""The steps by which a hunk finds its place, the surest first; a step with two answers is no answer.

    exact      its old lines stand there, once
    hinted     they stand there more than once, and what is known about lines elsewhere leaves one place
    trailing   the same but for blanks at the ends of lines
    indented   the same but for one indentation of all lines; what is added is indented in that way, too
    voted      blank lines apart they stand there; or the removed lines do, and more of the kept lines
               around them than anywhere else

Only the removed lines go and only the added ones come: what is kept is never written. How alike lines are
plays no part: a removed line is there, or the hunk has no place.
"""

from __future__ import annotations

from holdfast.edits.fit import Fit, Splice, shifted_rows
from holdfast.edits.indent import Shift, shift_between
from holdfast.edits.outcome import Level
from holdfast.edits.sheet import Sense, Sheet, key_of
from holdfast.edits.wanted import Hunk, Row

_STEPS: dict[Level, Sense] = {"exact": "exact", "trailing": "trailing", "indented": "bare"}


def fits(hunk: Hunk, sheet: Sheet) -> list[Fit]:
    """All places at the first step that has any, of those that compare whole blocks."""
    for level in _STEPS:
        found = fits_at(hunk, sheet, level)
        if found:
            return found
    return []


def fits_at(hunk: Hunk, sheet: Sheet, level: Level) -> list[Fit]:
    """All places at one of these steps; those of surer steps are among them."""
    sense, old = _STEPS[level], hunk.old
    found = []
    for start in sheet.find(sense, [key_of(sense, row.text) for row in old]):
        shift = _shift(hunk, sheet, start) if level == "indented" else None
        fit = _fit(hunk, level, start, shift) if shift or level != "indented" else None
        if fit is not None:
            found.append(fit)
    if hunk.at_end and any(fit.end == len(sheet.lines) for fit in found):
        return [fit for fit in found if fit.end == len(sheet.lines)]
    return found


def _shift(hunk: Hunk, sheet: Sheet, start: int) -> Shift | None:
    pairs = [(row.text, sheet.lines[at]) for at, row in enumerate(hunk.old, start)]
    added = [row.text for row in hunk.rows if row.kind == "+"]
    return shift_between(pairs, added, sheet.lines)


def _fit(hunk: Hunk, level: Level, start: int, shift: Shift | None) -> Fit | None:
    """The hunk with its old rows at the lines from `start` on."""
    splices: list[Splice] = []
    pairs: list[tuple[Row, int]] = []
    at = start
    for row in hunk.rows:
        if row.kind != " ":
            if not splices or splices[-1].end != at:
                splices.append(Splice(at, 0, ()))
            last = splices[-1]
            count, rows = last.count + (row.kind == "-"), last.rows
            splices[-1] = Splice(last.start, count, (*rows, row) if row.kind == "+" else rows)
        if row.kind != "+":
            pairs.append((row, at))
            at += 1
    if shift is not None:
        for number, splice in enumerate(splices):
            rows_there = shifted_rows(splice.rows, shift)
            if rows_there is None:
                return None
            splices[number] = Splice(splice.start, splice.count, rows_there)
    return Fit(level, start, at, tuple(splices), tuple(pairs))
