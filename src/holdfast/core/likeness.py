"""Texts that say the same in nearly the same words.

Two texts are one if their words in order of the alphabet are alike to at least `LEAST`, as a measure of
letters says that is handed in, and if they hold the same numbers and the same words of denial: "5 of 7
failed" and "6 of 7 failed" are two findings, however alike their letters are. A text joins the first one
before it that says the same. What is compared with what is decided by the rarest words that two texts
share, and of those by a bounded number, so that ten thousand texts cost ten thousand times the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

LEAST = 0.9
Alike = Callable[[str, str], float]  # from 0 to 1

_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*")
_DIGIT = re.compile(r"\d")
_DENIAL = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|without|cannot|fails|failed|lacks|unable"
    r"|(?:ca|do|does|did|is|are|was|were|wo|would|should|could|has|have|had)nt)\b"
)
_RAREST = 3  # words by which others are found
_CANDIDATES = 8  # that are compared for each of them
_SHARED = 0.6  # of the words of both, before letters are compared


def equal(one: str, other: str) -> float:
    """The measure that knows only equal texts."""
    return float(one == other)


class Same(NamedTuple):
    """The place of the text that another one joins, and how alike the two are."""

    head: int
    alike: float


class _Words(NamedTuple):
    plain: str  # the words in order of the alphabet
    words: frozenset[str]
    bound: tuple[tuple[str, ...], frozenset[str]]  # numbers and denials: what must be equal


def groups(
    texts: Sequence[str], alike: Alike, apart: Collection[frozenset[int]] = ()
) -> list[Same]:
    """For each text the first that says the same: itself, if none before it does.

    `apart` are pairs of places that somebody keeps apart.
    """
    read = [_read(text) for text in texts]
    often = Counter(word for one in read for word in one.words)
    heads = _Heads(often, alike, apart)
    return [heads.joined(place, one) for place, one in enumerate(read)]


class _Heads:
    """The texts so far that say what none before them says."""

    def __init__(
        self, often: Counter[str], alike: Alike, apart: Collection[frozenset[int]]
    ) -> None:
        self._often = often
        self._alike = alike
        self._apart = apart
        self._read: dict[int, _Words] = {}
        self._exact: dict[_Words, int] = {}
        self._index: dict[str, list[int]] = {}

    def joined(self, place: int, one: _Words) -> Same:
        """The head that a text joins; it becomes one if there is none."""
        rarest = sorted(one.words, key=lambda word: (self._often[word], -len(word), word))[:_RAREST]
        twin = self._exact.get(one)
        if twin is not None and frozenset({twin, place}) not in self._apart:
            return Same(twin, 1.0)
        near = {n for word in rarest for n in self._index.get(word, ())[-_CANDIDATES:]}
        for other in sorted(near):
            head = self._read[other]
            shared = 2 * len(head.words & one.words)
            if shared < _SHARED * (len(head.words) + len(one.words)) or head.bound != one.bound:
                continue
            if frozenset({other, place}) in self._apart:
                continue
            if (share := self._alike(head.plain, one.plain)) >= LEAST:
                return Same(other, share)
        self._read[place] = one
        self._exact.setdefault(one, place)
        for word in rarest:
            self._index.setdefault(word, []).append(place)
        return Same(place, 1.0)


def _read(text: str) -> _Words:
    plain = text.casefold().replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    words = sorted(_WORD.findall(plain))
    plain = " ".join(words)
    numbers = tuple(word for word in words if _DIGIT.search(word)) if _DIGIT.search(plain) else ()
    denials = frozenset(_DENIAL.findall(plain))
    return _Words(plain, frozenset(words), (numbers, denials))
