"""Text that is shown: nothing in it that a terminal would obey or hide, and how much room it takes."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from holdfast.model.pattern import Pattern

# C0 and C1 but tab and line feed, soft hyphen, marks and overrides of direction, zero width, separators
# that break lines, fillers without ink, annotations, tags, halves of surrogate pairs.
_UNSAFE: Final = Pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BREAKS: Final = Pattern("[\t\n]")
ELLIPSIS: Final = "…"
_MOST_DIGITS: Final = 12


def clean(text: str) -> str:
    """Text from outside, with everything spelled out that a terminal would obey or hide.

    Line feeds and tabs stay, and the line ending of other systems counts as a line feed; a carriage
    return alone would overwrite what stands before it, so it is spelled.
    """
    return _UNSAFE.sub(_spelled, text.replace("\r\n", "\n"))


def inked(text: str) -> str:
    """The same without what leaves nothing to be seen."""
    return _UNSAFE.sub("", text)


def escaped(json_text: str) -> str:
    """JSON that says the same and holds nothing that a terminal would obey or hide."""
    return _UNSAFE.sub(_json_escape, json_text)


def _json_escape(found: re.Match[str]) -> str:
    point = ord(found.group())
    if point <= 0xFFFF:  # noqa: PLR2004 - what one escape holds
        return f"\\u{point:04x}"
    high, low = divmod(point - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def one_line(text: str) -> str:
    """The same where one line is expected: a name, a path, a sentence. Nothing in it begins a new line."""
    return _BREAKS.sub(_spelled, clean(text))


def _spelled(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found.group()):x}}}"


def is_count(text: str) -> bool:
    """Whether a word is a number that one can count to: plain digits, and not too many of them."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def first_line(text: str) -> str:
    """The first line with something on it."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def last_line(text: str) -> str:
    """The last line with something on it."""
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


def cells(text: str) -> int:
    """How many columns of a terminal clean text takes."""
    if text.isascii():
        return len(text)
    return sum(_cell(letter) for letter in text)


def _cell(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1


def cut(text: str, width: int) -> str:
    """At most `width` columns of it; what is missing is marked."""
    if cells(text) <= width:
        return text
    kept: list[str] = []
    room = width - 1
    for letter in text:
        room -= _cell(letter)
        if room < 0:
            break
        kept.append(letter)
    return "".join(kept) + ELLIPSIS if width > 0 else ""


def wrap(line: str, width: int, *, indent: int = 4) -> list[str]:
    """One line as several, none wider than `width`, broken between words; 0 never breaks.

    Further lines are indented a little more than the first. A word that is wider than a line is broken
    where the line ends: nothing is left out.
    """
    if width <= 0 or cells(line) <= width:
        return [line]
    depth = len(line) - len(line.lstrip(" "))
    begin = " " * depth if depth < width // 2 else ""
    hang = begin + " " * indent if len(begin) + indent < width // 2 else ""
    lines: list[str] = []
    room = begin
    for word in re.findall(r" *[^ ]+", line[depth:]):
        if cells(room) + cells(word) <= width:
            room += word
            continue
        if room.strip():
            lines.append(room)
            room = hang
        rest = word.lstrip(" ")
        while cells(room) + cells(rest) > width:
            piece = _head(rest, width - cells(room))
            lines.append(room + piece)
            room, rest = hang, rest[len(piece) :]
        room += rest
    return [*lines, room]


def _head(text: str, width: int) -> str:
    room = width
    for at, letter in enumerate(text):
        room -= _cell(letter)
        if room < 0:
            return text[: max(1, at)]
    return text


def fenced(text: str) -> str:
    """Text between fences that it does not contain."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
