"""Where the lines that an author saw are now: a place that a hunk finds must not be another one.

The base and the file are compared without blank lines, and blanks around lines apart. What both have is
followed from one to the other; what was removed, changed or moved is not. Lines that stand where the author
saw others are no place, however alike they are.

A hunk whose lines all stand together may follow them to where somebody moved them, if they came with lines
around them: none may have stayed behind, and none may have been another's. Where only some are left, those
that go must be followed themselves, and what is added must lie between the lines that it was put between.
Such a place is known without looking for it: it is next to a line that is followed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from holdfast.edits.compare import spans
from holdfast.edits.fit import Fit, Splice
from holdfast.edits.sheet import Sheet
from holdfast.edits.wanted import Row

_TOGETHER = 3  # lines that nobody writes anew in the same order
_FAR = 200  # lines above and below that a change is tried at


class Trail:
    """The lines of the base with their lines in the file, as far as they have one.

    Both are counted without blank lines.
    """

    __slots__ = ("_ahead", "_back", "_base", "_effort", "_file", "_lines", "_seen", "_sure")

    def __init__(self, base: Sheet, sheet: Sheet) -> None:
        self._base, self._file, self._effort = base.solid, sheet.solid, sheet.effort
        self._seen, self._lines = base.keys("trailing"), sheet.keys("trailing")
        self._ahead = dict(self._common(1))
        self._back = {there: at for at, there in self._ahead.items()}
        self._sure: dict[int, int] | None = None

    def _common(self, step: Literal[1, -1]) -> Iterator[tuple[int, int]]:
        """The lines that both have, with their numbers, compared from the start or from the end."""
        old, new = (one.sheet.keys("bare")[::step] for one in (self._base, self._file))
        self._effort.spend((len(old) + len(new)) // 2)
        at, there = 0, 0
        for a, b, c, d in [*spans(old, new), (len(old), len(old), len(new), len(new))]:
            yield from zip(range(at, a), range(there, c), strict=True)
            at, there = b, d

    def leads(self, seen: Fit, fit: Fit) -> bool:
        """Whether a hunk that stood at one place of the base stands at this one now."""
        self._effort.spend(10 + len(fit.pairs))
        lines = self._telling(seen, fit)
        if any(self._is_other(at, there) for at, there in lines):
            return False
        if fit.level in {"voted", "merged"} or not lines:
            both = zip(seen.splices, fit.splices, strict=True)
            return all(self._is_between(one, other) for one, other in both)
        return any(at in self._ahead for at, _ in lines) or self._came_along(lines)

    def _telling(self, seen: Fit, fit: Fit) -> list[tuple[int, int]]:
        """The lines that tell a place, there and here; none unless both are places of all the old lines."""
        old, new = (
            [one for one in each.pairs if _says_something(one[0].text)] for each in (seen, fit)
        )
        if [row for row, _ in old] != [row for row, _ in new]:
            return []
        return [
            (bisect_left(self._base.where, line), bisect_left(self._file.where, place))
            for (_, line), (_, place) in zip(old, new, strict=True)
        ]

    def _is_other(self, at: int, there: int) -> bool:
        """Whether a line of the base is known to be at another place, or this place to be another line's."""
        return self._ahead.get(at, there) != there or self._back.get(there, at) != at

    def _came_along(self, lines: Sequence[tuple[int, int]]) -> bool:
        """Whether lines that are not followed were moved: with those around them, enough are the same."""
        (first, there), (last, below) = lines[0], lines[-1]
        around = [(first - n, there - n) for n in (1, 2)] + [(last + n, below + n) for n in (1, 2)]
        return len(lines) + sum(self._are_alike(*pair) for pair in around) >= _TOGETHER

    def _are_alike(self, at: int, there: int) -> bool:
        old, new = self._base.sheet.keys("bare"), self._file.sheet.keys("bare")
        is_there = 0 <= at < len(old) and 0 <= there < len(new) and old[at] == new[there]
        return is_there and _says_something(old[at])

    def _is_between(self, seen: Splice, splice: Splice) -> bool:
        """Whether what goes is followed, and all lies between lines that are.

        What could as well be put, or removed, some lines higher or lower has one place only if nothing came
        between those lines.
        """
        start, end = (bisect_left(self._base.where, line) for line in (seen.start, seen.end))
        first, last = (bisect_left(self._file.where, line) for line in (splice.start, splice.end))
        up, down = _slack(self._base.sheet.keys("bare"), start, end, seen)
        sure, offset = self._followed_both_ways(), first - start
        if any(at not in sure for at in range(start, end)) or any(
            sure.get(at, at + offset) != at + offset for at in range(start - up, end + down)
        ):
            return False
        above = self._nearest(range(start - 1, -1, -1), -1)
        below = self._nearest(range(end, len(self._base.where)), last)
        return above < first and last <= below

    def carried(self, seen: Fit) -> Fit | None:
        """The place that a hunk has now by the lines that go, or by those that it adds some between."""
        splices: list[Splice] = []
        pairs: list[tuple[Row, int]] = []
        for one in seen.splices:
            start = self._removed_at(one) if one.count else self._gap(one.start)
            if start is None or (splices and start < splices[-1].end):
                return None
            splices.append(replace(one, start=start))
            moved = start - one.start
            pairs += [(row, at + moved) for row, at in seen.pairs if one.start <= at < one.end]
        return Fit("merged", splices[0].start, splices[-1].end, tuple(splices), tuple(pairs))

    def _removed_at(self, one: Splice) -> int | None:
        """Where lines that go stand now, all of them and the blank ones among them."""
        at = bisect_left(self._base.where, one.start)
        line = self._line(at) if at < bisect_left(self._base.where, one.end) else None
        if line is None:
            return None
        start = one.start + line - self._base.where[at]
        there = self._lines[start : start + one.count]
        return start if there == self._seen[one.start : one.end] else None

    def _gap(self, start: int) -> int | None:
        """Where the two lines meet that stood above and below, or the ends of the file; one may be gone."""
        at, end = bisect_left(self._base.where, start), len(self._lines) - len(self._seen) + start
        above = self._beside(at - 1, start) if at else start
        below = self._beside(at, start) if at < len(self._base.where) else end
        place = below if above is None else above
        return place if place in range(len(self._lines) + 1) and below in {place, None} else None

    def _beside(self, at: int, start: int) -> int | None:
        """The place as far from a line as `start` is, if only blank lines lie between them."""
        line = self._line(at)
        if line is None:
            return None
        place = start + line - self._base.where[at]
        between = (
            self._lines[line + 1 : place] if line < place else self._lines[max(place, 0) : line]
        )
        return None if any(between) else place

    def _line(self, at: int) -> int | None:
        """Where a line of the base is now, if that is sure and it is indented as it was."""
        there = self._followed_both_ways().get(at)
        if there is None:
            return None
        line = self._file.where[there]
        return line if self._lines[line] == self._seen[self._base.where[at]] else None

    def _nearest(self, order: range, default: int) -> int:
        """Where the first of these lines is that is followed."""
        for at in order:
            self._effort.spend(1)
            if at in self._followed_both_ways():
                return self._followed_both_ways()[at]
        return default

    def _followed_both_ways(self) -> dict[int, int]:
        """Lines that lead to the same when followed from the end: where lines repeat, two ways may do."""
        if self._sure is None:
            ends = len(self._base.where) - 1, len(self._file.where) - 1
            upwards = {(ends[0] - at, ends[1] - there) for at, there in self._common(-1)}
            self._sure = dict(self._ahead.items() & upwards)
        return self._sure


def _says_something(line: str) -> bool:
    """Brackets and blank lines are alike everywhere."""
    return any(c.isalnum() for c in line)


def _slack(keys: Sequence[str], start: int, end: int, seen: Splice) -> tuple[int, int]:
    """How many lines higher, and lower, a change of the lines from `start` to `end` comes to the same."""
    added = [row.text.strip() for row in seen.rows if row.text.strip()]
    if bool(added) == (start != end):
        return 0, 0
    above = min(start, _FAR)
    text = [*keys[start - above : start], *added, *keys[start : end + _FAR]]
    first, last = above, above + (len(added) or end - start)
    up = down = 0
    while up < first and text[first - up - 1] == text[last - up - 1]:
        up += 1
    while last + down < len(text) and text[first + down] == text[last + down]:
        down += 1
    return up, down
