"""How much work one edit may be, whatever it says: a number of hunks, of lines, and of steps to place them.

A step is about a microsecond. Each is counted before it is taken, so that nothing depends on a clock: the
same edit of the same files is refused everywhere, or nowhere.
"""

from __future__ import annotations

from holdfast.errors import EditError

MOST_HUNKS = 5_000
MOST_SAID = 500_000  # lines of the edit itself
MOST_LINES = 2_000_000  # of a file that is edited
MOST_STEPS = 8_000_000


class TooMuchError(EditError):
    """An edit that is more work than one edit may be."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="make it in smaller edits")


class Effort:
    """The steps that are left to an edit."""

    __slots__ = ("_left",)

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._left = most

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuchError(
                "the edit takes too many comparisons: its lines stand at many places"
            )


def check_hunks(count: int) -> None:
    if count > MOST_HUNKS:
        raise TooMuchError(f"the edit has more than {MOST_HUNKS} hunks")


def check_said(count: int) -> None:
    if count > MOST_SAID:
        raise TooMuchError(f"the edit has {count} lines, and may have {MOST_SAID}")
