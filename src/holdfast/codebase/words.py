"""Words of code and of people: identifiers taken apart, so that `parseHTTPHeader` has a header."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

_SMALL = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_CAPITAL = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CLASSES = bytes(97 if c in _SMALL else 65 if c in _CAPITAL else 32 for c in range(256))
# Where a word begins inside an identifier: after a small letter, or at the last of several capitals. Two
# fixed patterns are searched many times faster than one with a choice.
_HUMPS = re.compile(rb"aA")
_ENDS = re.compile(rb"AAa")
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"[^\W\d]\w*(?:[.:]+[^\W\d]\w*)*")
_MOST_NAMES = 20


def apart(content: bytes) -> str:
    """The text with identifiers taken apart: a space where a capital begins a word."""
    shape = content.translate(_CLASSES)
    cuts = [found.start() + 1 for found in _HUMPS.finditer(shape)]
    if b"AAa" in shape:
        cuts = sorted(cuts + [found.start() + 1 for found in _ENDS.finditer(shape)])
    if not cuts:
        return content.decode("utf-8", "replace")
    parts = [content[i:j] for i, j in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    return b" ".join(parts).decode("utf-8", "replace")


@cache
def _common() -> frozenset[str]:
    """Words of messages that say nothing about a place in the code."""
    return frozenset(
        """a about above add added adding adds after all allow allows also always an and any are as at be
        because been before being below better between both but by can cannot could did do does doing done
        don down during each few fix fixed fixes fixing for from further get had has have having he her here
        his how i if in into is issue it its itself just let ll like make makes making me more most must my
        need needs new no nor not now of off on once one only or other our out over own per pr properly s
        same see she should so some still such t than that the their them then there these they this those
        through to too under until up us use used uses using ve very was we were what when where which
        while who whom why will with would you your instead via""".split()  # noqa: SIM905 - to be read
    )


def asked_words(text: str) -> list[str]:
    """The words of a question that may say where to look, each once, in their order."""
    found = _WORD.findall(apart(text.encode("utf-8", "replace")).lower())
    return [word for word in dict.fromkeys(found) if len(word) > 1 and word not in _common()]


def asked_phrases(text: str, words: list[str]) -> list[str]:
    """Words that stand together: those of one identifier, and neighbours among the asked words."""
    found = []
    for name in _NAME.findall(text):
        for part in (name, *re.split(r"[.:]+", name)):
            inner = _WORD.findall(apart(part.encode("utf-8", "replace")).lower())
            if len(inner) > 1:
                found.append(" ".join(inner))
    found = found[:_MOST_NAMES] + [f"{one} {two}" for one, two in pairwise(words)]
    return list(dict.fromkeys(found))
