"""Reads tide tables: one tide on each line."""

import re
from datetime import date, time

from tidebook.tides import Tide

LINE = re.compile(r"(\d{4})-(\d{2})-(\d{2})\s+(\d{2}):(\d{2})\s+(high|low)\s+(\d+\.\d+)")


class TableError(ValueError):
    """A line that is no tide."""

    def __init__(self, number, line):
        super().__init__(f"line {number} is no tide: {line}")
        self.number = number


def read_table(text):
    """The tides in a text, in their order. Empty lines are skipped."""
    tides = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = LINE.fullmatch(line.strip())
        if found is None:
            raise TableError(number, line)
        year, month, day, hour, minute, kind, height = found.groups()
        tides.append(
            Tide(
                day=date(int(year), int(month), int(day)),
                time=time(int(hour), int(minute)),
                kind=kind,
                height=float(height),
            )
        )
    return tides
