"""Sizes, ages and moments as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

from holdfast.cli.view import view

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS = ("B", "KB", "MB", "GB", "TB")


class Duration(click.ParamType[int]):
    """90s, 5m, 2h, 7d or 4w; gives milliseconds."""

    name = "AGE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read an age; a number that was read already is taken as it is."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,9})([smhdw])", str(value).strip())
        if not found:
            self.fail(f"'{value}' is not an age: write 90s, 5m, 2h, 7d or 4w", param, ctx)
        return int(found[1]) * _SECONDS[found[2]] * 1000


class Size(click.ParamType[int]):
    """500MB, 5GB or a number of bytes."""

    name = "SIZE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read a size; a number that was read already is taken as it is."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,3})?)\s*([KMGT]?B?)", str(value).strip().upper())
        unit = found[2] if found else ""
        unit = f"{unit}B" if unit in {"K", "M", "G", "T"} else unit
        if not found or unit not in _BYTES:
            self.fail(f"'{value}' is not a size: write 500MB or 5GB", param, ctx)
        return int(float(found[1]) * _BYTES[unit])


def size_words(count: int) -> str:
    """Bytes with a unit and at most one digit after the point."""
    value = float(count)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:  # noqa: PLR2004 - the next unit
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"  # noqa: PLR2004
        value /= 1000
    return ""


def age_words(milliseconds: int) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = max(0, milliseconds) // 1000
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length * (2 if unit == "days" else 1):
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def moment(at: int) -> str:
    """A moment for people, in their own time zone."""
    local = datetime.fromtimestamp(at / 1000, UTC).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")


def count(number: int, noun: str) -> str:
    """'1 run', '2 runs'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def cut(text: str) -> str:
    """On a terminal a line stays a line; elsewhere nothing is cut."""
    width = view().width
    return text if not width or len(text) <= width else f"{text[: width - 1]}…"


def iso(ms: int) -> str:
    """A moment as formats write it: RFC 3339, UTC, milliseconds."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
