"""Which of several places a hunk means: what is known about its neighbours, its base and its heading.

A line number alone decides nothing: people and models write wrong ones, and other people's edits move
lines. It counts where the file is known to be the one that the author saw, and where hunks next to it, which
have one place only, were moved as far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.edits.anchors import lies_under
from holdfast.edits.fit import Fit
from holdfast.edits.sheet import Sheet
from holdfast.edits.wanted import Hunk

_BESIDE = 3  # lines between places that count as side by side


def by_line(hunk: Hunk, fits: Sequence[Fit]) -> Fit | None:
    """The place whose number the hunk has; only if the file is what the author saw."""
    return next((fit for fit in fits if hunk.line and fit.start == hunk.line - 1), None)


def by_neighbours(
    hunk: Hunk, fits: Sequence[Fit], placed: Mapping[int, Fit], hunks: Sequence[Hunk]
) -> Fit | None:
    """The one place that was moved as far as the hunks above and below, or between the two.

    Above the first one is the start of the file, which never moves. Of two places side by side, neither is
    taken: one is a copy, and nobody can say which.
    """
    known = [
        (hunks[n].line, fit.start - hunks[n].line + 1) for n, fit in placed.items() if hunks[n].line
    ]
    if not hunk.line or not known:
        return None
    above = max((one for one in known if one[0] < hunk.line), default=(0, 0))
    below = min((one for one in known if one[0] > hunk.line), default=above)
    low, high = sorted((above[1], below[1]))
    left = [fit for fit in fits if low <= fit.start - hunk.line + 1 <= high]
    if len(left) != 1:
        return None
    beside = len(hunk.old) + _BESIDE
    if any(0 < abs(fit.start - left[0].start) <= beside for fit in fits):
        return None
    return left[0]


def by_heading(hunk: Hunk, fits: Sequence[Fit], sheet: Sheet) -> Fit | None:
    """The one place that lies in what the hunk's heading opens."""
    left = [fit for fit in fits if hunk.heading and lies_under(sheet, fit.start, [hunk.heading])]
    return left[0] if len(left) == 1 else None


def twins(hunks: Sequence[Hunk]) -> dict[int, list[int]]:
    """For each hunk those that say the same as it does, itself among them."""
    alike: dict[object, list[int]] = {}
    for number, hunk in enumerate(hunks):
        alike.setdefault((hunk.rows, hunk.anchors, hunk.at_end), []).append(number)
    return {number: some for some in alike.values() for number in some}
