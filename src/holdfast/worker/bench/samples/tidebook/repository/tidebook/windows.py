"""When there is enough water: windows of a day, found minute by minute."""

from dataclasses import dataclass

from tidebook.heights import height_at

LAST = 24 * 60 - 1  # minute of a day


@dataclass(frozen=True)
class Window:
    """From the first to the last minute, both with enough water."""

    first: int
    last: int

    @property
    def minutes(self) -> int:
        return self.last - self.first + 1


def windows_above(tides, day, least):
    """The windows of a day in which the water is at least so high."""
    found = []
    first = None
    for minute in range(LAST + 1):
        height = height_at(tides, day, minute)
        enough = height is not None and height >= least
        if enough and first is None:
            first = minute
        if not enough and first is not None:
            found.append(Window(first, minute - 1))
            first = None
    return found
