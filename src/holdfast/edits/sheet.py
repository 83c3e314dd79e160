"""The lines of a file to look things up in: the same lines compared exactly, without trailing space, bare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

Sense = Literal["exact", "trailing", "bare"]

_ALL = 2**62
_TRIES, _RARE = 4, 50

_KEY: dict[Sense, Callable[[str], str]] = {
    "exact": lambda line: line,
    "trailing": str.rstrip,
    "bare": str.strip,
}


def key_of(sense: Sense, line: str) -> str:
    return _KEY[sense](line)


class Sheet:
    """Keys made when first asked for. Looking is a scan for the longest key: quicker than an index."""

    __slots__ = ("_keys", "lines")

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self._keys: dict[Sense, list[str]] = {"exact": self.lines}

    def keys(self, sense: Sense) -> list[str]:
        if sense not in self._keys:
            self._keys[sense] = list(map(_KEY[sense], self.lines))
        return self._keys[sense]

    def places(self, sense: Sense, key: str, most: int = _ALL) -> list[int]:
        """The lines that have this key, in order; no more than `most`."""
        found: list[int] = []
        keys, at = self.keys(sense), 0
        with suppress(ValueError):
            while len(found) < most:
                at = keys.index(key, at) + 1
                found.append(at - 1)
        return found

    def find(self, sense: Sense, block: Sequence[str]) -> list[int]:
        """Where these keys stand one after the other; nowhere if there are none."""
        wanted = list(block)
        if not wanted or len(wanted) > len(self.lines):
            return []
        keys = self.keys(sense)
        pivot, places = self._pivot(sense, wanted)
        starts = [place - pivot for place in places if place >= pivot]
        return [start for start in starts if keys[start : start + len(wanted)] == wanted]

    def _pivot(self, sense: Sense, block: Sequence[str]) -> tuple[int, list[int]]:
        """A key of the block that is rare, and its places: of long keys the first that is rare enough."""
        order = sorted(range(len(block)), key=lambda at: -len(block[at]))
        best: tuple[int, list[int]] | None = None
        for at in order[:_TRIES]:
            places = self.places(sense, block[at])
            if best is None or len(places) < len(best[1]):
                best = at, places
            if len(places) <= _RARE:
                break
        assert best is not None  # a block has at least one key
        return best
