"""Texts that say the same in nearly the same words.

Two texts are one if their words are alike to at least `LEAST`, as a measure of letters says that is handed
in, and if they hold the same deciding words: numbers with their units, in the order in which they stand;
signs of comparison and money, denials, words that have an opposite, names in capital letters. "5 of 7 failed"
and "6 of 7 failed" are two findings, and so are "p < 0.05" and "p > 0.05", "gauge A" and "gauge B", "enabled"
and "disabled", however alike their letters are. The order of the other words plays no part, unless the text
compares: "tides outweigh storms more than winds" is not what it says when turned round. A text joins the
first one before it that says the same.

Not every text is compared with every other, so that ten thousand texts cost ten thousand times the same:

    equal texts            are found first, by their words alone
    the rarest words       two others are compared only if they have the same deciding words and share two
                           of the rarest words of each: those that the fewest texts hold
    at most so many        of those that share such a pair the last `_LATEST`, rarest pair first, and of
                           all pairs together `_CANDIDATES`
    long texts             beyond `LONG` letters words are counted instead of letters

Each of these looks at the texts and at their order alone, and the order is that of the ledger: when a step
ended plays no part. Two texts that are not compared stay two, and nothing is lost but a line saved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

LEAST = 0.9
LONG = 1_000  # letters
Alike = Callable[[str, str], float]  # from 0 to 1

_WORD = re.compile(
    r"[^\W_]+(?:[.,][0-9]+)*|[<>]=?|[=!]=|[≤≥≠$€£¥%°]|(?<![\w.])[-+\N{MINUS SIGN}](?=\.?[0-9])"
)
_NAME = re.compile(r"\b[A-Z][A-Z0-9]+\b|(?<=.)\b[A-HJ-Z]\b")  # a letter only if it begins no text
_UNIT = 3  # letters at the most of a word behind a number that is its unit
_SIGNS = "< > <= >= == != ≤ ≥ ≠ $ € £ ¥ % ° - + \N{MINUS SIGN}"
_DENIALS = """
    no not never none nobody nothing neither nor without cannot fails failed lacks unable
    cant dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt hasnt havent hadnt
"""
_OPPOSITES = """
    more less fewer greater higher lower larger smaller longer shorter faster slower stronger weaker
    better worse best worst above below over under before after up down first last
    rise rises rose rising fall falls fell falling grow grows grew growing shrink shrinks shrank
    increase increases increased increasing decrease decreases decreased decreasing
    gain gains gained loss loses lost minimum maximum positive negative true false
    supports supported refutes refuted passes passed accepted rejected
"""
_TURNING_WORDS = """
    < > <= >= ≤ ≥ than more less fewer greater higher lower larger smaller longer shorter faster slower
    stronger weaker better worse above below over under before after from causes caused precedes follows
"""
_TURNING = frozenset(_TURNING_WORDS.split())  # what stands before one is not what stands behind it
_DENYING = ("dis", "un", "in", "im", "non", "de", "ir", "a")
_DECIDING = frozenset(f"{_SIGNS} {_DENIALS} {_OPPOSITES}".split())
_SMALL_WORDS = """
    a an and are as at be but by can did do for had has he her his if in is it its may of on or our out per
    she so the to via was we who you
"""
_SMALL = frozenset(_SMALL_WORDS.split())
_EMPTY_WORDS = """
    about also because been both could does each from have into just made many most much only other
    over said same should some such than that their them then there these they this those through
    very were what when where which while will with would your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_MEANING = 4  # letters of a word that says what a text is about
_RAREST = 4  # words of which pairs are made
_LATEST = 4  # that share a pair
_CANDIDATES = 8  # for one text, and a list more
_BOTH = [list(combinations(range(words), 2)) for words in range(_RAREST + 1)]
_SHARED = 0.6  # of the words of both, before letters are compared


def equal(one: str, other: str) -> float:
    """The measure that knows only equal texts."""
    return float(one == other)


class Same(NamedTuple):
    """The place of the text that another one joins, and how alike the two are."""

    head: int
    alike: float


class _Words(NamedTuple):
    plain: str  # all words in order of the alphabet
    deciding: str  # those that must be equal
    free: frozenset[str]  # the others


def groups(
    texts: Sequence[str], alike: Alike, apart: Collection[frozenset[int]] = ()
) -> list[Same]:
    """For each text the first that says the same: itself, if none before it does.

    `apart` are pairs of places that somebody keeps apart.
    """
    read = {text: _read(text) for text in dict.fromkeys(texts)}
    different = {one.plain: one for one in read.values()}
    heads = _Heads(_pairs(different), alike, apart)
    return [heads.joined(place, read[text]) for place, text in enumerate(texts)]


def _pairs(different: Mapping[str, _Words]) -> dict[str, tuple[int, ...]]:
    """For each text the pairs of rare words by which others are found, the rarest first.

    A word or a pair that one text alone holds finds nothing, and is left out.
    """
    often = Counter(chain.from_iterable([one.free for one in different.values()]))
    shared = sorted([word for word, times in often.items() if times > 1])
    shared.sort(key=often.__getitem__)
    size = len(shared)
    rank = dict.fromkeys(often, size)
    rank.update(zip(shared, range(size), strict=True))
    sides: dict[str, int] = {}
    pairs: dict[str, list[int]] = {}
    for plain, deciding, free in different.values():
        rarest = sorted([rank[word] for word in free])[:_RAREST]
        side = sides.setdefault(deciding, len(sides)) * size
        firsts = [(side + one) * size for one in rarest]
        pairs[plain] = [firsts[a] + rarest[b] for a, b in _BOTH[len(rarest)] if rarest[b] < size]
    held = Counter(chain.from_iterable(pairs.values()))
    found = {pair for pair, times in held.items() if times > 1}
    return {plain: tuple([n for n in mine if n in found]) for plain, mine in pairs.items()}


class _Heads:
    """The texts so far that say what none before them says."""

    def __init__(
        self, pairs: Mapping[str, Sequence[int]], alike: Alike, apart: Collection[frozenset[int]]
    ) -> None:
        self._pairs = pairs
        self._alike = alike
        self._apart: dict[int, set[int]] = {}  # a text -> those before it, kept apart from it
        for pair in apart:
            if max(pair) != min(pair):
                self._apart.setdefault(max(pair), set()).add(min(pair))
        self._head: dict[int, int] = {}  # of those, the head that each joined
        self._read: dict[int, _Words] = {}
        self._known: dict[str, Same] = {}  # what equal words joined before
        self._holding: dict[int, list[int]] = {}  # a pair -> the heads that hold it

    def joined(self, place: int, one: _Words) -> Same:
        """The head that a text joins; it becomes one if there is none."""
        found = self._found(place, one)
        if self._apart:
            self._head[place] = found.head
        return found

    def _found(self, place: int, one: _Words) -> Same:
        known = self._known.get(one.plain)
        if known is not None and not self._are_apart(known.head, place):
            return known
        pairs = self._pairs[one.plain]
        found = self._first(place, one, pairs) if pairs else None
        if found is None:
            found = Same(place, 1.0)
            self._read[place] = one
            for pair in pairs:
                self._holding.setdefault(pair, []).append(place)
        self._known.setdefault(one.plain, found)
        return found

    def _first(self, place: int, one: _Words, pairs: Iterable[int]) -> Same | None:
        plain, _, free = one
        for other in sorted(self._near(pairs)):
            said, _, words = self._read[other]
            shared = 2 * len(free & words) / (len(free) + len(words))
            if shared < _SHARED or self._are_apart(other, place):
                continue
            is_long = max(len(said), len(plain)) > LONG
            share = shared if is_long else self._alike(said, plain)
            if share >= LEAST and not _deny(free - words, words - free):
                return Same(other, share)
        return None

    def _near(self, pairs: Iterable[int]) -> set[int]:
        """The heads that a text is compared with."""
        near: set[int] = set()
        for pair in pairs:
            if (holding := self._holding.get(pair)) is not None:
                near.update(holding[-_LATEST:])
                if len(near) >= _CANDIDATES:
                    break
        return near

    def _are_apart(self, head: int, place: int) -> bool:
        """Whether a text is kept apart from a head, or from one that joined it."""
        if place not in self._apart:
            return False
        return any(self._head[one] == head for one in self._apart[place])


def fits(text: str, others: Sequence[str], alike: Alike) -> bool:
    """Whether a text says the same as one of the others."""
    return text in others or groups([*others, text], alike)[-1].head < len(others)


def nearest(text: str, others: Sequence[str], most: int) -> list[str]:
    """Those of the others that share the most words with a text; of equally near ones the later first."""
    words = {*_read(text).plain.split()}
    share = {one: len(words & {*_read(one).plain.split()}) for one in reversed(others)}
    return sorted(share, key=lambda one: -share[one])[:most]


def topics(texts: Sequence[str], most: int) -> list[str]:
    """The words that most of these texts hold, those with no meaning of their own apart."""
    often = Counter(chain.from_iterable(_read(text).free for text in texts))
    words = [word for word in often if len(word) >= _MEANING and word not in _EMPTY]
    return sorted(words, key=lambda word: (-often[word], -len(word), word))[:most]


def _read(text: str) -> _Words:
    plain = text.casefold()
    if "'" in plain or "\N{RIGHT SINGLE QUOTATION MARK}" in plain:
        plain = plain.replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    words = _WORD.findall(plain)
    stated = [] if "".join(words).isalpha() else _numbers(words)
    free = frozenset(words)
    if len(stated) <= 1 and _TURNING.isdisjoint(free):
        words.sort()
    if plain != text:
        stated += sorted(_NAME.findall(text))
    deciding = [] if _DECIDING.isdisjoint(free) else sorted(_DECIDING & free)
    if deciding or stated:
        stated = [*deciding, *stated]
        free = free.difference([word.casefold() for word in stated])
    return _Words(" ".join(words), " ".join(stated), free)


def _numbers(words: Sequence[str]) -> list[str]:
    """The numbers of a text in their order, each with its unit."""
    found = []
    for place, word in enumerate(words):
        if word.isalpha() or not word[0].isalnum():
            continue
        found.append(word)
        behind = words[place + 1] if place + 1 < len(words) else ""
        if behind.isalpha() and len(behind) <= _UNIT and behind not in _SMALL:
            found.append(behind)
    return found


def _deny(here: Collection[str], there: Collection[str]) -> bool:
    """Whether a word of one side is the denial of a word of the other: enabled, disabled."""
    return any(
        word.endswith(rest) and word != denied
        for mine, words in ((here, there), (there, here))
        for denied in words
        if denied.startswith(_DENYING)
        for denying in _DENYING
        if denied.startswith(denying) and len(rest := denied[len(denying) :]) >= _MEANING
        for word in mine
    )
