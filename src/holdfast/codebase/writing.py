"""Files written down in the index. What was found in a content is kept once, however many files have it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import apsw

from holdfast.codebase.languages import language_of
from holdfast.codebase.parsing import Parsed, Text, parsed
from holdfast.codebase.sources import Entry, Read
from holdfast.codebase.words import apart

_HEAD = 8_000  # bytes in which a NUL says that a file is no text
_MOST_TEXT = 256 << 10  # bytes of a file whose words are kept
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_KNOWN = "SELECT id, names FROM content WHERE key = ? AND language = ?"


class Row(NamedTuple):
    """A file as it is in the index: its number, its stamp and the key of its content."""

    number: int
    stamp: str
    key: str


class _Fresh(NamedTuple):
    """A file to be written down: its content as text, or why there is none, and what that is known by."""

    entry: Entry
    row: Row | None
    size: int
    text: bytes
    state: str
    content: tuple[str, str]  # its key and its language


def keep(cursor: apsw.Cursor, part: Sequence[Read], known: Mapping[str, Row]) -> int:
    """Write down some files; how many contents had to be parsed.

    First all are parsed and then all are written, because either way the caches of the machine fill.
    """
    fresh = []
    for read in part:
        one = _fresh(read, known.get(read.entry.path))
        if one.row is not None and one.row.key == one.content[0] and one.state != "unreadable":
            values = (one.entry.stamp, one.row.number)
            cursor.execute("UPDATE file SET stamp = ? WHERE id = ?", values)
        else:
            fresh.append(one)
    contents: dict[tuple[str, str], tuple[int, str]] = {}
    unknown: dict[tuple[str, str], _Fresh] = {}
    for one in fresh:
        if one.content not in contents and one.content not in unknown:
            for number, names in cursor.execute(_KNOWN, one.content):
                contents[one.content] = (number, names)
            if one.content not in contents:
                unknown[one.content] = one
    texts = [Text(b"" if one.state else one.text, one.content[1]) for one in unknown.values()]
    for one, found in zip(unknown.values(), list(parsed(texts)), strict=True):
        contents[one.content] = _add(cursor, one, found), found.names
    for one in fresh:
        _write(cursor, one, *contents[one.content])
    return len(unknown)


def _fresh(read: Read, row: Row | None) -> _Fresh:
    entry, content = read.entry, read.content
    language = language_of(entry.path)
    if content is None:
        state = "large" if read.why == "large" else "unreadable"
        key = entry.key or f"{state} {entry.size}"
        return _Fresh(entry, row, entry.size, b"", state, (key, language))
    text, state = _text(content)
    key = entry.key or _blob_name(content)
    return _Fresh(entry, row, len(content), text, state, (key, language))


def _text(content: bytes) -> tuple[bytes, str]:
    """The content as UTF-8, and what keeps it from being text."""
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                return content.decode(encoding).encode(), ""
            except UnicodeError:
                return b"", "undecodable"
    if b"\0" in content[:_HEAD]:
        return b"", "binary"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return content, "undecodable"
    return content.removeprefix(b"\xef\xbb\xbf"), ""


def _blob_name(content: bytes) -> str:
    """The name that git gives a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _add(cursor: apsw.Cursor, one: _Fresh, found: Parsed) -> int:
    """Write down what was found in a content; its number."""
    text = b"" if one.state else one.text
    lines = text.count(b"\n") + (not text.endswith(b"\n") if text else 0)
    *told, state = found
    cursor.execute(
        "INSERT INTO content (key, language, lines, parsed, flaws, symbols, imports, names, state)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*one.content, lines, *told, one.state or state),
    )
    return cursor.connection.last_insert_rowid()


def _write(cursor: apsw.Cursor, one: _Fresh, content: int, names: str) -> None:
    """Write down a file whose content is known."""
    path = os.fsencode(one.entry.path)
    stamp = "" if one.state == "unreadable" else one.entry.stamp
    if one.row is None:
        cursor.execute(
            "INSERT INTO file (stamp, size, content, path) VALUES (?, ?, ?, ?)",
            (stamp, one.size, content, path),
        )
        number = cursor.connection.last_insert_rowid()
    else:
        number = one.row.number
        cursor.execute(
            "UPDATE file SET stamp = ?, size = ?, content = ? WHERE id = ?",
            (stamp, one.size, content, number),
        )
        cursor.execute("DELETE FROM words WHERE rowid = ?", (number,))
    cursor.execute(
        "INSERT INTO words (rowid, path, symbols, text) VALUES (?, ?, ?, ?)",
        (number, apart(path), names, apart(one.text[:_MOST_TEXT])),
    )


def forget(cursor: apsw.Cursor, gone: Sequence[int]) -> None:
    """Let go of files that are not there any more, and of contents that no file has."""
    for number in gone:
        cursor.execute("DELETE FROM file WHERE id = ?", (number,))
        cursor.execute("DELETE FROM words WHERE rowid = ?", (number,))
    cursor.execute("DELETE FROM content WHERE id NOT IN (SELECT content FROM file)")
