"""Texts that say the same in nearly the same words.

Two texts are one if nothing differs but what says nothing: capital letters, punctuation, words like `the` and
`in`, the `s` of a plural, "sample of the river" for "river sample". Capital letters of a unit say something,
and so do the `s` of an acronym or of a name inside a sentence, a sign before a number or between words of a
formula, and the brackets of a formula. Any other word that one of them has and the other has not makes two of
them, and so does another order: "5 of 7 failed" and "6 of 7 failed", "compression is on" and "compression is
off", "5 mW" and "5 MW", "wolves eat deer" and "deer eat wolves" are two each. So a line may stand twice that
a reader would have taken for one; hardly ever does a text stand for another that says something else.

The cost of a text does not depend on how many there are. How alike two are that are one is told by a measure
that is handed in. When a step ended plays no part: the order of the texts is that of the ledger, and a text
joins the first one before it that says the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple
from unicodedata import normalize

from holdfast.model.pattern import Pattern

LONG = 1_000  # letters that are compared; of longer texts words are counted
Alike = Callable[[str, str], float]  # from 0 to 1
_Kind = Literal["number", "capital", ""]  # a mere number, a word with capital letters, or any other

_BRACKETS = Pattern(r"([()\[\]{}])")
_COUNTED = Pattern(r"[\w)\]}]\s*(?:[+*/^×÷−=<>≤≥≠]|(?<=\s)-(?=\s))\s*[\w(\[{]")  # a formula
_COMPARED = Pattern(r"([=!<>]=|[<>=≤≥≠])")
_APOSTROPHE = Pattern(r"(?<=[^\W\d_])['\N{RIGHT SINGLE QUOTATION MARK}](?=[^\W\d_])")
_OWNER = Pattern(r"(?<=\w)['\N{RIGHT SINGLE QUOTATION MARK}]s\b")
_NUMBER = Pattern(r"([^\w.]*)(\.?[0-9](?:[0-9.,]*[0-9])?)(.*)", re.DOTALL)
_CURLED = "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"
_BEFORE = f"\"'`*([{{«„“”…{_CURLED}"  # what may stand before and behind a word and is no part of it
_BEHIND = ".,;:!?…)]}»“”*`"
_QUOTES = f"\"'{_CURLED}"
_BETWEEN_LETTERS = Pattern(r"(?<=[^\W\d_])[-_/.,:;](?=\w)")
_WITHOUT_BLANKS = Pattern(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)  # Thai, Lao, Tibetan, Burmese, Khmer, Japanese and Chinese
_STOPS = Pattern(
    "[\u3001\u3002\u3008-\u3011\u3014-\u301f\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f]"
)
_SIGNS = frozenset("<>=≤≥≠≈~!±+-×÷*/^%‰°")  # of a formula
_DASHES = frozenset("-–—−*•/|&,.;:")
_OF = "of"
_MINUS = {"–": "-", "—": "-", "−": "-"}
_BEFORE_NUMBER = frozenset("-–—−/*:")  # a sign of its own, if a number follows
_BETWEEN_WORDS = frozenset("*/|&−")  # and one of its own, if it has words on both sides
_ALONE = _BEFORE_NUMBER | _BETWEEN_WORDS
_UNIT = 3  # letters at the most of a word behind a number that is its unit
_WRITTEN_UNIT = 5  # and of one with a capital letter
_BEFORE_UNIT = frozenset({"in", "per"})
_EXTENTS = frozenset({"wide", "long", "deep", "high", "thick", "tall", "across"})  # told in inches
_STOPS_BEFORE = (".", "!", "?", ":", ";")  # a capital letter behind them makes no name
_NOTHING_WORDS = "a an the in at is are be it its this that there as also do does"
_SAYS_NOTHING = frozenset(_NOTHING_WORDS.split())
_NAME_WORDS = "us who may no or so to up me on am"  # in capital letters: the country, not we
_SHOUTED = _SAYS_NOTHING | frozenset(_NAME_WORDS.split())
_VOWELS = frozenset("aeiouy")
_NO_PLURALS = frozenset({"news", "goods", "customs"})
_EMPTY_WORDS = """
    about also because been both could does each from have into just made many most much only other
    over said same should some such than that their them then there these they this those through
    very were what when where which while will with would your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_TOPIC = Pattern(r"[^\W\d_]{4,}")  # a word that says what a text is about


def equal(one: str, other: str) -> float:
    """The measure that knows only equal texts."""
    return float(one == other)


class Same(NamedTuple):
    """The place of the text that another one joins, and how alike the two are."""

    head: int
    alike: float


def groups(
    texts: Sequence[str], alike: Alike, apart: Collection[frozenset[int]] = ()
) -> list[Same]:
    """For each text the first that says the same: itself, if none before it does.

    `apart` are pairs of places that somebody keeps apart.
    """
    before: dict[int, set[int]] = {}  # a text -> those before it, kept apart from it
    for pair in apart:
        if max(pair) != min(pair):
            before.setdefault(max(pair), set()).add(min(pair))
    keys = {text: _key(text) for text in dict.fromkeys(texts)}
    heads: dict[tuple[str, ...], list[int]] = {}
    found: list[Same] = []
    for place, text in enumerate(texts):
        mine = heads.setdefault(keys[text], [])
        others = {found[one].head for one in before[place]} if place in before else ()
        head = next((one for one in mine if one not in others), place)
        if head == place:
            mine.append(place)
        found.append(Same(head, _likeness(texts[head], text, alike)))
    return found


def _likeness(one: str, other: str, alike: Alike) -> float:
    if one == other:
        return 1.0
    here, there = (sorted(map(_bare, text.casefold().split())) for text in (one, other))
    if max(len(one), len(other)) <= LONG:
        return alike(" ".join(here), " ".join(there))
    return 2 * (Counter(here) & Counter(there)).total() / (len(here) + len(there))


def fits(text: str, others: Sequence[str]) -> bool:
    """Whether a text says the same as one of the others."""
    return text in others or _key(text) in map(_key, others)


def nearest(text: str, others: Sequence[str], most: int) -> list[str]:
    """Those of the others that share the most words with a text; of equally near ones the later first."""
    words = {*_words(text)} - {_OF}
    share = {one: len(words.intersection(_words(one))) for one in reversed(others)}
    return sorted(share, key=lambda one: -share[one])[:most]


class Spelled(NamedTuple):
    """Every word of a text as it is compared, and the places where a new one begins behind a blank."""

    words: tuple[str, ...]
    begins: tuple[int, ...]


@lru_cache(maxsize=4_096)
def spelled(text: str) -> Spelled:
    """A text to be found in others: signs, numbers and units as `groups` reads them, and no word left out.

    In a script without blanks each letter is a word. A hyphen or a stop between letters parts two.
    """
    text = _WITHOUT_BLANKS.sub(r" \g<0> ", _STOPS.sub(" ", _composed(text).replace("−", "-")))
    said: list[str] = []
    begins: list[int] = []
    for words, word in _chunks(_BETWEEN_LETTERS.sub(" ", text)):
        begins.append(len(said))
        said += words or (() if _DASHES.issuperset(word) else (word.casefold(),))
    return Spelled(tuple(said), (*begins, len(said)))


def holds(text: str, other: Spelled) -> bool:
    """Whether a text has the words of another one in it; as a part of a formula they are something else."""
    words, begins = spelled(text)
    size, ends = len(other.words), {*begins}
    return size > 0 and any(
        words[at : at + size] == other.words
        and at + size in ends
        and not _SIGNS.issuperset("".join(words[max(at - 1, 0) : at]) or " ")
        and not _SIGNS.issuperset("".join(words[at + size : at + size + 1]) or " ")
        for at in begins
        if words[at : at + 1] == other.words[:1]
    )


def topics(texts: Sequence[str], most: int) -> list[str]:
    """The words that most of these texts hold, those with no meaning of their own apart."""
    held = (dict.fromkeys(_TOPIC.findall(text.casefold())) for text in texts)
    often = Counter(chain.from_iterable(held))
    words = [word for word in often if word not in _EMPTY]
    return sorted(words, key=lambda word: (-often[word], -len(word), word))[:most]


@lru_cache(maxsize=65_536)  # what a run told is folded again for each step that is told of it
def _key(text: str) -> tuple[str, ...]:
    """The same for texts that say the same."""
    words = _words(text)
    if _OF in words:
        for place in range(1, len(words) - 1):
            if words[place] == _OF:  # sample of the river, river sample
                words[place - 1], words[place + 1] = words[place + 1], words[place - 1]
        words = [word for word in words if word != _OF]
    return (*words, *_bracketed(text)) or (text,)


def _bracketed(text: str) -> Iterator[str]:
    """Where the brackets of a formula stand: (a + b) / c, a + b / c. Of any other text they say nothing."""
    pieces = _BRACKETS.split(text)
    if len(pieces) == 1 or _COUNTED.search(text) is None:
        return
    before = 0
    for piece, bracket in zip(pieces[::2], pieces[1::2], strict=False):
        before += len(piece.split())
        yield f"{bracket}{before}"


def _words(text: str) -> list[str]:
    """What a text says: its words, without those that say nothing."""
    return [word for words, _ in _chunks(_composed(text)) for word in words]


def _composed(text: str) -> str:
    """A text in which each letter is one, with its marks."""
    return text if text.isascii() else normalize("NFC", text)


def _chunks(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """What stands together in a text: the words that it says, and the whole without the marks around it."""
    is_formula = _COMPARED.search(text) is not None
    if is_formula:
        text = _COMPARED.sub(r" \1 ", text)
    if "'" in text or _CURLED[1] in text:
        text = _APOSTROPHE.sub("", _OWNER.sub("", text))
    if text.startswith("A "):  # anywhere else a name: gauge A
        text = f"a {text[2:]}"
    is_behind_number = False
    chunks = text.split()
    for place, chunk in enumerate(chunks):
        words, word, kind = _read(chunk)
        if is_behind_number and _is_unit(words, word, chunks[place + 1 : place + 2]):
            words = (word,)  # capital letters of a unit say something: mW, MW
        elif kind == "capital":
            words = _capital(
                words, word, chunks[place - 1] if place and not is_behind_number else ""
            )
        elif not words and chunk in _ALONE:
            words = _sign(chunks, place, is_formula=is_formula)
        yield words, word
        is_behind_number = kind == "number"


def _is_unit(words: tuple[str, ...], word: str, behind: Sequence[str]) -> bool:
    """Whether a word behind a number is its unit; `in` is inches where nothing follows, or how wide it is."""
    if not word.isalpha():
        return False
    if not words:
        return not behind or _read(behind[0])[1] in _EXTENTS
    return len(word) <= (_UNIT if word.islower() else _WRITTEN_UNIT)


def _capital(words: tuple[str, ...], word: str, before: str) -> tuple[str, ...]:
    """A word with a capital letter: behind `in` perhaps a unit, inside a sentence a name; no plural."""
    if _bare(before).lower() in _BEFORE_UNIT and len(word) <= _WRITTEN_UNIT:
        return (word,)
    is_inside = before and not before.endswith(_STOPS_BEFORE)
    return (word.lower(),) if is_inside and word[1:].islower() else words


def _sign(chunks: Sequence[str], place: int, *, is_formula: bool) -> tuple[str, ...]:
    """A sign that stands alone; at either end it says nothing, as in a list, but before a number it does."""
    chunk, behind = chunks[place], chunks[place + 1 : place + 2]
    if not behind:
        return ()
    is_between = place > 0 and (chunk in _BETWEEN_WORDS or (is_formula and chunk == "-"))
    is_before = chunk in _BEFORE_NUMBER and _read(behind[0])[2] == "number"
    return (_MINUS.get(chunk, chunk),) if is_between or is_before else ()


@lru_cache(maxsize=65_536)
def _read(chunk: str) -> tuple[tuple[str, ...], str, _Kind]:
    """The words that stand together, without the marks around them; and what kind of word it is."""
    word = _bare(chunk)
    found = _NUMBER.fullmatch(word)
    if found is not None:
        return tuple(filter(None, found.groups())), word, "" if found[3] else "number"
    if _DASHES.issuperset(word):
        return (), word, ""
    plain = word.lower()  # not casefold: Maße are not Masse
    if word.isupper():
        if len(word) == 1 or plain in _SHOUTED:
            return (word,), word, ""
        return (plain,), word, "capital"  # the S of HTTPS is no plural
    if plain != word and (word[0].islower() or "/" in word):
        return (word,), word, ""  # mW, kWh, Mb/s: capital letters that say something
    if plain in _SAYS_NOTHING:
        return (), word, ""
    return (_singular(plain),), word, "capital" if plain != word and word.isalpha() else ""


def _bare(chunk: str) -> str:
    word = chunk.lstrip(_BEFORE).rstrip(_BEHIND)
    if "!" in chunk and word[-1:].isdigit() and chunk.rstrip(".").endswith(f"{word}!"):
        return f"{word}!"  # 5! is 120
    if word[-1:] in _QUOTES and not word[-2:-1].isdigit():  # 5' and 5" are lengths
        word = word.rstrip(_QUOTES).rstrip(_BEHIND)
    return word


def _singular(word: str) -> str:
    """A word without the `s` of a plural; names with signs or digits in them have none, nor has https."""
    if len(word) <= 3 or word[-1] != "s" or not word.isalpha():  # noqa: PLR2004 - as in gas
        return word
    if word in _NO_PLURALS:
        return word
    if word.endswith(("ss", "us", "is")) or (word.isascii() and _VOWELS.isdisjoint(word)):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "sses", "xes")) else word[:-1]
