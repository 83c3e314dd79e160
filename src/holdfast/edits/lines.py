"""A file as lines that remember their endings, its encoding and its byte order mark; and back to bytes.

What is read is what is written: `encoded(decoded(data)) == data` for every file that is taken as text.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace

from holdfast.edits.effort import MOST_LINES
from holdfast.edits.outcome import Why

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
MARK = "\ufeff"
_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_DECLARED = re.compile(rb"coding[:=][ \t]*([-\w.]+)|<\?xml[^>]*\bencoding=[\"']([-\w.]+)")
_FIRST = 400  # bytes in which a file says how it is encoded
# These write each line by itself, and ASCII as it is; others (idna, hex) would change lines nobody named.
_PLAIN = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp(?:125\d|437|7\d\d|8[56]\d|874|9\d\d|1006|1125)|koi8-[rtu]|mac-\w+"
    r"|gb\w+|big5\w*|euc_\w+|shift_jis\w*|iso2022_jp\w*|johab|tis-620|kz1048|ptcp154|hp-roman8"
)
_UTF8 = "utf-8"


@dataclass(frozen=True, slots=True)
class Text:
    """Lines without their endings, and the endings; only the last may be empty.

    `is_mixed`: among UTF-8 are bytes that are none; each is kept as it is, as a lone surrogate.
    """

    lines: list[str]
    endings: list[str]
    encoding: str = _UTF8
    mark: bytes = b""
    is_mixed: bool = False

    @property
    def usual(self) -> str:
        """The ending that most lines have."""
        return max(("\n", "\r\n", "\r"), key=self.endings.count)


def unmarked(text: Text) -> Text:
    """The same file with its byte order mark as the first character of its first line: what diffs show."""
    if not text.mark:
        return text
    first, *others = text.lines or [""]
    return replace(text, lines=[MARK + first, *others], endings=text.endings or [""], mark=b"")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file is not taken as text, and what would help, if that is not the same for all."""

    why: Why
    message: str
    guidance: str = ""


def decoded(data: bytes, encoding: str = "") -> Text | Unreadable:
    """The lines of a file; `encoding` is what its user says, if the file does not say it itself."""
    if data.startswith(_WIDE):
        return Unreadable("undecodable", "is encoded in UTF-32, which is not read here")
    if max(data.count(b"\n"), data.count(b"\r")) > MOST_LINES:
        return Unreadable("too_large", f"has more than {MOST_LINES} lines")
    mark, name = next(((m, n) for m, n in _MARKS if data.startswith(m)), (b"", ""))
    body = data[len(mark) :]
    if b"\0" in body and not name.startswith("utf-16"):
        return Unreadable("binary", "is binary: it has a NUL byte")
    named = name or encoding or _declared(body)
    codec = name or _codec(named)
    if not codec:
        return Unreadable("undecodable", f"says it is encoded in '{named}', which is not read here")
    return _read(body, codec, mark)


def _codec(named: str) -> str:
    """How Python calls an encoding that is read; empty for any other."""
    try:
        codec = codecs.lookup(named).name if named else _UTF8
    except (LookupError, ValueError):
        return ""
    return codec if _PLAIN.fullmatch(codec) else ""


def _declared(body: bytes) -> str:
    """What the file says about itself, unless it has characters that are UTF-8 beyond doubt."""
    found = _DECLARED.search(body[:_FIRST])
    if found is None or (not body.isascii() and _is_utf8(body)):
        return ""
    return (found[1] or found[2]).decode("ascii")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode(_UTF8)
    except UnicodeDecodeError:
        return False
    return True


def _read(body: bytes, codec: str, mark: bytes) -> Text | Unreadable:
    try:
        text, is_mixed = body.decode(codec), False
        if codec != _UTF8 and text.encode(codec) != body:
            return Unreadable("undecodable", f"cannot be read as '{codec}' without a loss")
    except UnicodeError:
        if codec != _UTF8:
            return Unreadable("undecodable", f"is not encoded in '{codec}', as it should be")
        text = body.decode(_UTF8, "surrogateescape")
        is_mixed = not _is_of_single_bytes(text)
    lines, endings = split(text)
    return Text(lines, endings, codec, mark, is_mixed)


def split(text: str) -> tuple[list[str], list[str]]:
    """Lines and their endings; a file without any line feed may end its lines as old Macs did.

    It must have two of them: a carriage return at the end of one line tells nothing about endings.
    """
    if "\r" in text[:-1] and "\n" not in text:
        lines = text.split("\r")
        endings = ["\r"] * (len(lines) - 1)
    else:
        lines = text.split("\n")
        endings = ["\n"] * (len(lines) - 1)
        if "\r" in text:
            for at in range(len(endings)):
                if lines[at].endswith("\r"):
                    lines[at], endings[at] = lines[at][:-1], "\r\n"
    if lines[-1]:
        endings.append("")
    else:
        lines.pop()
    return lines, endings


def encoded(text: Text) -> bytes | Unreadable:
    """The bytes of a file."""
    parts = [""] * (2 * len(text.lines))
    parts[::2] = text.lines
    parts[1::2] = text.endings
    whole = "".join(parts)
    try:
        return text.mark + whole.encode(text.encoding)
    except UnicodeEncodeError as error:
        if text.encoding == _UTF8 and _may_mix(whole, text):
            return text.mark + whole.encode(_UTF8, "surrogateescape")
        if text.encoding == _UTF8:
            return _cannot_mix(whole)
        bad = whole[error.start : error.start + 1]
        return Unreadable("undecodable", f"cannot hold {bad!a} in its encoding '{text.encoding}'")


def _cannot_mix(whole: str) -> Unreadable:
    """What an edit brings to a file of single bytes that nobody says the encoding of."""
    bad = next((c for c in whole if not _is_of_single_bytes(c)), "")
    shown = f"'{bad}'" if bad.isprintable() else f"{bad!a}"
    return Unreadable(
        "undecodable",
        f"has bytes that are not UTF-8, and does not say its encoding: it cannot take {shown}",
        'say the encoding of the file, in the JSON form: "encoding": "latin-1"',
    )


def _may_mix(whole: str, text: Text) -> bool:
    """Single bytes may stay among UTF-8; where all else is ASCII, nothing but single bytes may come."""
    return text.is_mixed or _is_of_single_bytes(whole)


def _is_of_single_bytes(whole: str) -> bool:
    return all(c.isascii() or "\udc80" <= c <= "\udcff" for c in whole)
