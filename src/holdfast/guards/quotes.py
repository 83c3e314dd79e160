"""Quotes and where they come from: found exactly but for blanks and the form of letters, or nearly.

Text is compared word by word in Unicode's composed form, so that line breaks and indents do not matter and
everything else does. The nearest fragment is looked for among windows of as many words as the quote has,
over all sources together: the few that share most words with it are compared letter by letter. That takes a
time that the bounds below keep, whatever the texts are and however many.
"""

from __future__ import annotations

import heapq
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

_MOST_WORDS = 100_000  # of all sources that are looked through for something near
_MOST_LETTERS = 300  # of which two texts are compared
_MOST_WINDOWS = 12  # that are compared
_LEAST = 0.4  # less alike is nothing like it


class Near(NamedTuple):
    """Something like a quote: the fragment, where it stands, how much alike it is."""

    fragment: str
    place: str
    alike: float


class _Wanted(NamedTuple):
    """The words of a quote: how many of each there are, and where each one stands first."""

    words: Sequence[str]
    counts: Counter[str]
    places: dict[str, int]


class _Window(NamedTuple):
    """A place in a source, and how many words of the quote stand there."""

    shared: int
    source: Source
    at: int


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
    def joined(self) -> str:
        """The words, with one blank between them."""
        return " ".join(word for word, _ in self.words)

    def holds(self, quote: str) -> bool:
        """Whether the quote stands there."""
        return plain(quote) in self.joined

    def windows(self, wanted: _Wanted, most: int) -> Iterator[_Window]:
        """Places among the first words where as many words as the quote has share some with it."""
        counts, size = wanted.counts, len(wanted.words)
        here: Counter[str] = Counter()
        shared, first = 0, 0
        best: dict[int, int] = {}
        hits = [(at, word) for at, (word, _) in enumerate(self.words[:most]) if word in counts]
        for at, found in hits:
            here[found] += 1
            shared += here[found] <= counts[found]
            while hits[first][0] <= at - size:
                gone = hits[first][1]
                shared -= here[gone] <= counts[gone]
                here[gone] -= 1
                first += 1
            begin, word = hits[first]
            place = max(0, min(begin - wanted.places[word], len(self.words) - size))
            best[place] = max(shared, best.get(place, 0))
        for place, count in best.items():
            yield _Window(count, self, place)

    def fragment(self, at: int, size: int) -> tuple[str, int]:
        """So many words from a place, and the line of the first one."""
        part = self.words[at : at + size]
        return " ".join(word for word, _ in part), part[0][1]


def plain(text: str) -> str:
    """Text with every run of blanks as one, letters composed."""
    return " ".join(_composed(text).split())


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def missing(
    sources: Sequence[Source], quotes: Sequence[str], over: Callable[[], bool]
) -> list[str]:
    """The quotes that stand in no source; those that were looked for before it was over."""
    whole = "\n".join(source.joined for source in sources)  # no quote reaches over a line break
    return [quote for quote in quotes if not over() and plain(quote) not in whole]


def nearest(sources: Sequence[Source], quote: str) -> Near | None:
    """What is most like a quote that stands nowhere; None if nothing is."""
    words = plain(quote).split()
    places = {word: at for at, word in reversed(list(enumerate(words)))}
    best: Near | None = None
    said = SequenceMatcher(None, "", " ".join(words)[:_MOST_LETTERS], autojunk=False)
    windows = _windows(sources, _Wanted(words, Counter(words), places))
    known: set[str] = set()
    for window in heapq.nlargest(_MOST_WINDOWS, windows, key=lambda window: window.shared):
        fragment, line = window.source.fragment(window.at, len(words))
        if fragment[:_MOST_LETTERS] in known:
            continue
        known.add(fragment[:_MOST_LETTERS])
        said.set_seq1(fragment[:_MOST_LETTERS])
        least = _LEAST if best is None else best.alike
        if said.real_quick_ratio() < least or said.quick_ratio() < least:
            continue
        alike = said.ratio()
        if alike >= _LEAST and (best is None or alike > best.alike):
            best = Near(fragment, f"{window.source.name}:{line}", alike)
    return best


def _windows(sources: Sequence[Source], wanted: _Wanted) -> Iterator[_Window]:
    """The windows of all sources, as long as there are not too many words."""
    left = _MOST_WORDS
    for source in sources:
        yield from source.windows(wanted, left)
        left -= len(source.words)
        if left <= 0:
            return
