"""Places of a hunk whose blank lines are not those of the file: some were dropped there, or here."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.edits.fit import Fit, Group, Splice, groups, shifted_rows
from holdfast.edits.indent import shift_between
from holdfast.edits.sheet import Sheet
from holdfast.edits.wanted import Hunk, Row


def fits_without_blanks(hunk: Hunk, sheet: Sheet) -> list[Fit]:
    """Places where all old lines but blank ones stand one after the other."""
    solid = [(at, row) for at, row in enumerate(hunk.rows) if row.kind != "+" and row.text.strip()]
    if len(solid) < 2:  # noqa: PLR2004 - one line alone says nothing about its surroundings
        return []
    inner, where = sheet.solid
    found = []
    for start in inner.find("bare", [row.text.strip() for _, row in solid]):
        sheet.effort.spend(20 + 10 * len(hunk.rows))
        fit = _fit(hunk, sheet, solid, where[start : start + len(solid)])
        if fit is not None:
            found.append(fit)
    return found


def _fit(
    hunk: Hunk, sheet: Sheet, solid: Sequence[tuple[int, Row]], lines: Sequence[int]
) -> Fit | None:
    """The hunk at lines with other blank lines between them; None where that leaves a doubt."""
    pairs = [(row, line) for (_, row), line in zip(solid, lines, strict=True)]
    added = [row.text for row in hunk.rows if row.kind == "+"]
    shift = shift_between([(r.text, sheet.lines[at]) for r, at in pairs], added, sheet.lines)
    if shift is None:
        return None
    where = dict(zip((at for at, _ in solid), lines, strict=True))
    splices: list[Splice] = []
    for group in groups(hunk):
        rows = shifted_rows(group.added, shift)
        place = _replaced(hunk, sheet, where, group) if group.removed else _gap(hunk, where, group)
        if rows is None or place is None:
            return None
        splices.append(Splice(place, len(group.removed), rows))
    return Fit("voted", lines[0], lines[-1] + 1, tuple(splices), tuple(pairs))


def _replaced(hunk: Hunk, sheet: Sheet, where: dict[int, int], group: Group) -> int | None:
    """Where the removed rows begin: they stand together, and their blank lines are there."""
    removed = [at for at in range(group.start, group.end) if hunk.rows[at].kind == "-"]
    known = next((at for at in removed if at in where), None)
    if known is None:
        return None
    first = where[known] - removed.index(known)
    if first < 0 or first + len(removed) > len(sheet.lines):
        return None
    for line, row in enumerate(group.removed, start=first):
        if sheet.lines[line].strip() != row.text.strip():
            return None
    return first


def _gap(hunk: Hunk, where: dict[int, int], group: Group) -> int | None:
    """Where rows are only added: between two lines, if the blank lines there leave one way."""
    above, below = range(group.start - 1, -1, -1), range(group.end, len(hunk.rows))
    before = next((where[at] for at in above if at in where), None)
    after = next((where[at] for at in below if at in where), None)
    if before is None or after is None:
        return None
    blank_above, blank_below = _blanks(hunk, above), _blanks(hunk, below)
    there = after - before - 1
    if there in {0, blank_above + blank_below}:
        return before + 1 + min(there, blank_above)
    if bool(blank_above) == bool(blank_below):
        return None
    return after if blank_above else before + 1


def _blanks(hunk: Hunk, order: range) -> int:
    """Blank kept rows next to a group."""
    count = 0
    for at in order:
        if hunk.rows[at].kind != "+":
            if hunk.rows[at].text.strip():
                break
            count += 1
    return count
