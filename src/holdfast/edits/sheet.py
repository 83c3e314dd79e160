"""The lines of a file to look things up in: the same lines compared exactly, without trailing space, bare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from holdfast.edits.effort import Effort

Sense = Literal["exact", "trailing", "bare"]

_ALL = 2**62
_TRIES, _RARE = 4, 50
_SCANS = 12  # looks at all lines that are quicker than making an index

_KEY: dict[Sense, Callable[[str], str]] = {
    "exact": lambda line: line,
    "trailing": str.rstrip,
    "bare": str.strip,
}


def key_of(sense: Sense, line: str) -> str:
    return _KEY[sense](line)


class Solid(NamedTuple):
    """The lines that are not blank, and where each of them stands."""

    sheet: Sheet
    where: Sequence[int]


class Sheet:
    """Keys made when first asked for. Looking is a scan for the longest key; many looks make an index."""

    __slots__ = ("_index", "_keys", "_looks", "_solid", "effort", "lines")

    def __init__(self, lines: Sequence[str], effort: Effort | None = None) -> None:
        self.lines = list(lines)
        self.effort = effort or Effort()
        self._keys: dict[Sense, list[str]] = {"exact": self.lines}
        self._index: dict[Sense, dict[str, list[int]]] = {}
        self._looks: dict[Sense, int] = {}
        self._solid: Solid | None = None

    def keys(self, sense: Sense) -> list[str]:
        if sense not in self._keys:
            self.effort.spend(len(self.lines) // 16)
            self._keys[sense] = list(map(_KEY[sense], self.lines))
        return self._keys[sense]

    @property
    def solid(self) -> Solid:
        if self._solid is None:
            self.effort.spend(len(self.lines) // 8)
            where = [at for at, key in enumerate(self.keys("bare")) if key]
            self._solid = Solid(Sheet([self.lines[at] for at in where], self.effort), where)
        return self._solid

    def places(self, sense: Sense, key: str, most: int = _ALL) -> Sequence[int]:
        """The lines that have this key, in order; no more than `most`."""
        self._looks[sense] = self._looks.get(sense, 0) + 1
        if self._looks[sense] > _SCANS:
            found = self._indexed(sense).get(key, ())
            return found if len(found) <= most else found[:most]
        return self._scanned(sense, key, most)

    def _scanned(self, sense: Sense, key: str, most: int) -> list[int]:
        found: list[int] = []
        keys, at = self.keys(sense), 0
        self.effort.spend(len(keys) // 40 + 1)
        with suppress(ValueError):
            while len(found) < most:
                at = keys.index(key, at) + 1
                found.append(at - 1)
        return found

    def _indexed(self, sense: Sense) -> dict[str, list[int]]:
        if sense not in self._index:
            index: dict[str, list[int]] = {}
            self.effort.spend(len(self.lines) // 3)
            for at, key in enumerate(self.keys(sense)):
                index.setdefault(key, []).append(at)
            self._index[sense] = index
        return self._index[sense]

    def find(self, sense: Sense, block: Sequence[str]) -> list[int]:
        """Where these keys stand one after the other; nowhere if there are none."""
        wanted = list(block)
        if not wanted or len(wanted) > len(self.lines):
            return []
        keys = self.keys(sense)
        pivot, places = self._pivot(sense, wanted)
        self.effort.spend(len(places) * (20 + len(wanted)) // 80)
        starts = [place - pivot for place in places if place >= pivot]
        return [start for start in starts if keys[start : start + len(wanted)] == wanted]

    def _pivot(self, sense: Sense, block: Sequence[str]) -> tuple[int, Sequence[int]]:
        """A key of the block that is rare, and its places: of long keys the first that is rare enough."""
        order = sorted(range(len(block)), key=lambda at: -len(block[at]))
        best: tuple[int, Sequence[int]] | None = None
        for at in order[:_TRIES]:
            places = self.places(sense, block[at])
            if best is None or len(places) < len(best[1]):
                best = at, places
            if len(places) <= _RARE:
                break
        assert best is not None  # a block has at least one key
        return best
