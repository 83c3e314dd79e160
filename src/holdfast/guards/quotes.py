"""Quotes and where they come from: found exactly but for blanks and the form of letters, or nearly.

Text is compared word by word in Unicode's composed form, so that line breaks and indents do not matter and
everything else does. The nearest fragment is looked for among windows of as many words as the quote has:
those that share most words with it are compared letter by letter. That takes a time that the bounds below
keep, whatever the texts are.
"""

from __future__ import annotations

import heapq
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

_MOST_WORDS = 100_000  # that are looked through for something near
_MOST_LETTERS = 600  # of which two texts are compared
_MOST_WINDOWS = 12
_LEAST = 0.4  # less alike is nothing like it


class Near(NamedTuple):
    """Something like a quote: the fragment, where it stands, how much alike it is."""

    fragment: str
    place: str
    alike: float


class Source:
    """A text that may be quoted; `name` is how people find it."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._lines = text.splitlines()

    @cached_property
    def words(self) -> list[tuple[str, int]]:
        """Every word with the number of its line."""
        return [
            (word, number)
            for number, line in enumerate(self._lines, 1)
            for word in _composed(line).split()
        ]

    @cached_property
    def _joined(self) -> str:
        return " ".join(word for word, _ in self.words)

    def holds(self, quote: str) -> bool:
        """Whether the quote stands there."""
        return plain(quote) in self._joined

    def windows(self, words: Sequence[str]) -> Iterable[tuple[int, int]]:
        """Places where as many words begin, each with how many of the quote's words stand there."""
        wanted, size = Counter(words), len(words)
        here: Counter[str] = Counter()
        shared, first = 0, 0
        offsets = {word: at for at, word in reversed(list(enumerate(words)))}
        known = self.words[:_MOST_WORDS]
        hits = [(at, word) for at, (word, _) in enumerate(known) if word in wanted]
        for at, found in hits:
            here[found] += 1
            shared += here[found] <= wanted[found]
            while hits[first][0] <= at - size:
                gone = hits[first][1]
                shared -= here[gone] <= wanted[gone]
                here[gone] -= 1
                first += 1
            begin, word = hits[first]
            yield shared, max(0, min(begin - offsets[word], len(self.words) - size))

    def fragment(self, at: int, size: int) -> tuple[str, int]:
        """So many words from a place, and the line of the first one."""
        part = self.words[at : at + size]
        return " ".join(word for word, _ in part), part[0][1]


def plain(text: str) -> str:
    """Text with every run of blanks as one, letters composed."""
    return " ".join(_composed(text).split())


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def nearest(sources: Sequence[Source], quote: str) -> Near | None:
    """What is most like a quote that stands nowhere; None if nothing is."""
    words = plain(quote).split()
    best: Near | None = None
    said = " ".join(words)[:_MOST_LETTERS]
    for source in sources:
        for shared, at in heapq.nlargest(_MOST_WINDOWS, source.windows(words), key=_first):
            if not shared:
                break
            fragment, line = source.fragment(at, len(words))
            alike = SequenceMatcher(None, said, fragment[:_MOST_LETTERS], autojunk=False).ratio()
            if alike >= _LEAST and (best is None or alike > best.alike):
                best = Near(fragment, f"{source.name}:{line}", alike)
    return best


def _first(pair: tuple[int, int]) -> int:
    return pair[0]
