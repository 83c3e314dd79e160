"""Tables and windows as text."""

from tidebook.tides import by_day


def clock(minute):
    """A minute of a day as people write it."""
    return f"{minute // 60:02}:{minute % 60:02}"


def table(tides):
    """One line for each day, its tides side by side."""
    lines = []
    for day, of_day in by_day(tides).items():
        cells = [f"{tide.time:%H:%M} {tide.kind:<4} {tide.height:5.2f}" for tide in of_day]
        lines.append(f"{day}  " + "  ".join(cells))
    return "\n".join(lines)


def windows(day, found):
    """The windows of a day on one line."""
    spans = ", ".join(f"{clock(one.first)}-{clock(one.last)}" for one in found)
    return f"{day}  {spans or 'none'}"
