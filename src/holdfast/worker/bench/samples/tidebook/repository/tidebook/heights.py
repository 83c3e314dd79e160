"""How high the water is between two tides: it follows half a cosine from one to the other."""

import math


def height_at(tides, day, minute):
    """The height at a minute of a day; None before the first tide of the table and after the last."""
    for before, after in zip(tides, tides[1:]):
        if before.day == day and before.minutes <= minute <= after.minutes:
            return between(before, after, minute)
    return None


def between(before, after, minute):
    """The height at a minute between two tides of one day."""
    share = (minute - before.minutes) / (after.minutes - before.minutes)
    swing = (before.height - after.height) / 2
    middle = (before.height + after.height) / 2
    return middle + swing * math.cos(math.pi * share)
