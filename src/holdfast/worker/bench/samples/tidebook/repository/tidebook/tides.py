"""The nouns: a tide is a moment of high or low water."""

from dataclasses import dataclass
from datetime import date, time


@dataclass(frozen=True)
class Tide:
    """High or low water: when, and how high above chart datum, in metres."""

    day: date
    time: time
    kind: str  # "high" or "low"
    height: float

    @property
    def minutes(self) -> int:
        """Minutes since midnight."""
        return self.time.hour * 60 + self.time.minute


def by_day(tides):
    """The tides of each day, in the order of the table."""
    days = {}
    for tide in tides:
        days.setdefault(tide.day, []).append(tide)
    return days
