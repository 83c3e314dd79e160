"""The lines of a file to look things up in: the same lines compared exactly, without trailing space, bare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

Sense = Literal["exact", "trailing", "bare"]

_KEY: dict[Sense, Callable[[str], str]] = {
    "exact": lambda line: line,
    "trailing": str.rstrip,
    "bare": str.strip,
}


def key_of(sense: Sense, line: str) -> str:
    return _KEY[sense](line)


class Sheet:
    """Keys and where each occurs, made when first asked for."""

    __slots__ = ("_keys", "_places", "lines")

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._keys: dict[Sense, Sequence[str]] = {"exact": lines}
        self._places: dict[Sense, dict[str, list[int]]] = {}

    def keys(self, sense: Sense) -> Sequence[str]:
        if sense not in self._keys:
            self._keys[sense] = [_KEY[sense](line) for line in self.lines]
        return self._keys[sense]

    def places(self, sense: Sense, key: str) -> Sequence[int]:
        """The lines that have this key, in order."""
        if sense not in self._places:
            found: dict[str, list[int]] = {}
            for at, one in enumerate(self.keys(sense)):
                found.setdefault(one, []).append(at)
            self._places[sense] = found
        return self._places[sense].get(key, ())

    def find(self, sense: Sense, block: Sequence[str]) -> list[int]:
        """Where these keys stand one after the other; nowhere if there are none."""
        if not block or len(block) > len(self.lines):
            return []
        rarest = min(range(len(block)), key=lambda at: len(self.places(sense, block[at])))
        keys, wanted = self.keys(sense), list(block)
        found = []
        for place in self.places(sense, block[rarest]):
            start = place - rarest
            if start >= 0 and list(keys[start : start + len(wanted)]) == wanted:
                found.append(start)
        return found
