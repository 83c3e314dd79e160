"""Walls: how large may be what comes from outside, each under the key by which a person moves it."""

from __future__ import annotations

from typing import Self

from holdfast.model.fixed import frozen

TABLE = "limits"
_UNITS = ("B", "KB", "MB", "GB")
_STEP = 1000


class Lowered(int):
    """A wall that a project lowered; it knows in which file, wherever it goes."""

    place: str

    def __new__(cls, most: int, place: str) -> Self:
        """So many, and where that was said."""
        made = super().__new__(cls, most)
        made.place = place
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[int, str]]:
        """What it is made again from, in another process."""
        return type(self), (int(self), self.place)


@frozen
class Walls:
    """The most of everything; sizes are in bytes."""

    plan_size: int = 64_000_000
    plan_steps: int = 2_000_000  # of a plan, with those of its lists and of other plans
    plan_depth: int = 64
    plan_aliases: int = 100
    plan_items: int = 100_000  # of all lists of a plan that are known when it is read
    items: int = 20_000  # of one 'for_each'
    log: int = 16_000_000  # the end of what an attempt prints
    artifact: int = 1_000_000_000
    body: int = 10_000_000  # of a request to the page
    connections: int = 64  # to the page, at one time
    frame: int = 10 << 20  # of the MCP server
    ticket: int = 1 << 20


WALLS = Walls()


def key_of(name: str) -> str:
    """The key of a wall in the configuration."""
    return f"{TABLE}.{name}"


def moved_by(name: str, most: int) -> str:
    """What a person can do who means it: a hint that names the file in which the wall `most` was set."""
    place = most.place if isinstance(most, Lowered) else "your config.toml"
    return f"'{key_of(name)}' in {place} moves this limit"


def size_of(count: int) -> str:
    """Bytes in the largest unit that spells them exactly."""
    unit = 0
    while unit < len(_UNITS) - 1 and count and count % _STEP == 0:
        count //= _STEP
        unit += 1
    return f"{count:,} {_UNITS[unit]}"
