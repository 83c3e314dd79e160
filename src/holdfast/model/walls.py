"""Walls: how large may be what comes from outside, each under the key by which a person moves it."""

from __future__ import annotations

from dataclasses import dataclass

TABLE = "limits"
_UNITS = ("B", "KB", "MB", "GB")
_STEP = 1000


@dataclass(frozen=True, slots=True)
class Walls:
    """The most of everything; sizes are in bytes."""

    plan_size: int = 64_000_000
    plan_steps: int = 1_000_000  # of a plan, with those of its lists and of other plans
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


def moved_by(name: str) -> str:
    """What a person can do who means it: a hint."""
    return f"'{key_of(name)}' in your config.toml moves this limit"


def size_of(count: int) -> str:
    """Bytes in the largest unit that spells them exactly."""
    unit = 0
    while unit < len(_UNITS) - 1 and count and count % _STEP == 0:
        count //= _STEP
        unit += 1
    return f"{count:,} {_UNITS[unit]}"
