"""What parsers find in many sources, as the index keeps it.

They run in a process of their own: a grammar may take for ever, or all memory, over a source that is made
for it, and over some that are only broken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.codebase.facts import Import, Symbol
from holdfast.codebase.grammars import grammar_of
from holdfast.codebase.outline import outline_of
from holdfast.codebase.words import apart
from holdfast.process.bounded import Work, each

ENDLESS = "endless"  # the state of a source that took too much
_SECONDS, _SECONDS_PER_BYTE = 0.25, 4e-6  # of CPU; what people write takes a fortieth of it
_MEMORY = 512 << 20
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Text(NamedTuple):
    """A source in UTF-8 and the language that it is written in."""

    content: bytes
    language: str


class Parsed(NamedTuple):
    """What was found in a source.

    Symbols and imports are JSON: rows of a table would take most of the time that an index takes to write,
    and few questions are about few symbols. `names` are those of the symbols, taken apart into words.
    """

    is_parsed: bool = False
    flaws: int = 0
    symbols: str = "[]"
    imports: str = "[]"
    names: str = ""
    state: str = ""


def parsed(texts: Sequence[Text]) -> Iterator[Parsed]:
    """What there is in each source, in their order."""
    known = {language: grammar_of(language) for language in {text.language for text in texts}}
    work = Work(_answer, _seconds, _MEMORY)
    answers = each(work, [text for text in texts if known[text.language] is not None])
    for text in texts:
        if known[text.language] is None:
            yield Parsed()
            continue
        answer = next(answers)
        yield Parsed(state=ENDLESS) if answer is None else _told(answer)


def _seconds(text: Text) -> float:
    return _SECONDS + len(text.content) * _SECONDS_PER_BYTE


def _answer(text: Text) -> bytes:
    outline = outline_of(*text)
    assert outline is not None  # its grammar is there
    names = apart(" ".join([symbol.name for symbol in outline.symbols]).encode("utf-8", "replace"))
    told = (str(outline.flaws), _JSON.encode(outline.symbols), _JSON.encode(outline.imports), names)
    return "\n".join(told).encode()


def _told(answer: bytes) -> Parsed:
    flaws, *rest = answer.decode().split("\n", 3)
    return Parsed(True, int(flaws), *rest)


def symbols_in(text: str) -> Iterator[Symbol]:
    """The symbols that were kept as a text."""
    return (Symbol(*row) for row in json.loads(text))


def imports_in(text: str) -> Iterator[Import]:
    """The imports that were kept as a text."""
    return (Import(*row) for row in json.loads(text))


def beginning(name: str) -> str:
    """What a text of symbols has if the name of one begins so."""
    return _JSON.encode([name])[:-2]
