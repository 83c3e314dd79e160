"""The steps by which a hunk finds its place, the surest first; a step with two answers is no answer.

    exact      its old lines stand there, once
    hinted     they stand there more than once, and what is known about lines elsewhere leaves one place
    trailing   the same but for blanks at the ends of lines
    indented   the same but for one indentation of all lines; what is added is indented in that way, too
    voted      blank lines apart they stand there; or the removed lines do, and more of the kept lines
               around them than anywhere else

Lines under which a hunk says that it stands are part of every step: elsewhere is no place.

Only the removed lines go and only the added ones come: what is kept is never written. How alike lines are
plays no part: a removed line is there, or the hunk has no place.
"""

from __future__ import annotations

from holdfast.edits.anchors import is_anchored
from holdfast.edits.fit import Fit, Splice, groups, shifted_rows
from holdfast.edits.indent import Shift, shift_between
from holdfast.edits.outcome import Level
from holdfast.edits.sheet import Sense, Sheet, key_of
from holdfast.edits.wanted import Hunk

MOST_PLACES = 1_000  # that are told apart; of more, only a line number says which is meant
_STEPS: dict[Level, Sense] = {"exact": "exact", "trailing": "trailing", "indented": "bare"}


def fits(hunk: Hunk, sheet: Sheet) -> list[Fit]:
    """All places at the first step that has any, of those that compare whole blocks."""
    for level in _STEPS:
        found = fits_at(hunk, sheet, level)
        if found:
            return found
    return []


def fits_at(hunk: Hunk, sheet: Sheet, level: Level) -> list[Fit]:
    """All places at one of these steps; those of surer steps are among them.

    Of more than `MOST_PLACES` only some are told, the one at the hunk's own line number among them.
    """
    sense, old = _STEPS[level], hunk.old
    starts = sheet.find(sense, [key_of(sense, row.text) for row in old])
    last = len(sheet.lines) - len(old)
    if hunk.at_end and last in starts and (fit := _fit_at(hunk, sheet, level, last)):
        return [fit]
    if len(starts) > MOST_PLACES:
        own = {hunk.line - 1} & {*starts[MOST_PLACES + 1 :]}
        starts = [*starts[: MOST_PLACES + 1], *own]
    found = (_fit_at(hunk, sheet, level, start) for start in starts)
    return [fit for fit in found if fit is not None]


def _fit_at(hunk: Hunk, sheet: Sheet, level: Level, start: int) -> Fit | None:
    sheet.effort.spend(10 + 2 * len(hunk.rows))
    shift = _shift(hunk, sheet, start) if level == "indented" else None
    if level == "indented" and shift is None:
        return None
    fit = _fit(hunk, level, start, shift)
    return fit if fit is not None and is_anchored(hunk, sheet, fit) else None


def _shift(hunk: Hunk, sheet: Sheet, start: int) -> Shift | None:
    pairs = [(row.text, sheet.lines[at]) for at, row in enumerate(hunk.old, start)]
    added = [row.text for row in hunk.rows if row.kind == "+"]
    return shift_between(pairs, added, sheet.lines)


def _fit(hunk: Hunk, level: Level, start: int, shift: Shift | None) -> Fit | None:
    """The hunk with its old rows at the lines from `start` on."""
    splices: list[Splice] = []
    at, done = start, 0
    for group in groups(hunk):
        at += group.start - done
        added = group.added if shift is None else shifted_rows(group.added, shift)
        if added is None:
            return None
        splices.append(Splice(at, len(group.removed), added))
        at, done = at + len(group.removed), group.end
    old = hunk.old
    pairs = tuple(zip(old, range(start, start + len(old)), strict=True))
    return Fit(level, start, start + len(old), tuple(splices), pairs)
