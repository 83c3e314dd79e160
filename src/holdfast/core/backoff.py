"""How long to wait before a provider is asked again: longer each time, and never sooner than it wants."""

from __future__ import annotations

from typing import Final

MOST_TRIES: Final = 6
FIRST: Final = 1.0  # seconds
PATIENCE: Final = 600.0  # a provider that wants more than this is given up for now


def wait_before(tries: int, after: float | None, spread: int = 0) -> float | None:
    """Seconds until the next try, after `tries` that failed; None if there is to be none.

    `after` is what the provider asked for. `spread` is a number of the caller's own, by which calls that
    failed together come back one after the other.
    """
    if tries >= MOST_TRIES or (after is not None and after > PATIENCE):
        return None
    grown = FIRST * 2.0 ** (tries - 1) * (0.5 + (spread % 64) / 64)
    return max(grown, after or 0.0)
