"""Write a change of one file as a unified diff, as search/replace blocks, as V4A."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from holdfast.edits.compare import Span, grouped, spans
from holdfast.edits.lines import Text
from holdfast.edits.sheet import Sheet
from holdfast.edits.wanted import Hunk, Row

_AROUND = 3
_MARKERS = 7  # characters of a marker, if the text has none like it


Lines = Sequence[tuple[str, str]]  # with their endings


def hunks_between(old: Text, new: Text, *, unique: bool = False) -> list[Hunk]:
    """The hunks that make one text the other; lines that end differently are different.

    `unique`: each has as much context as it takes to stand once in the old text.
    """
    before, after = _paired(old), _paired(new)
    return hunks_of(before, after, spans(before, after), unique=unique)


def _paired(text: Text) -> list[tuple[str, str]]:
    return list(zip(text.lines, text.endings, strict=True))


def hunks_of(
    before: Lines, after: Lines, found: Sequence[Span], *, unique: bool = False
) -> list[Hunk]:
    """The same where it is known which lines differ."""
    parts = [(group, _AROUND) for group in grouped(found, _AROUND)]
    if not unique:
        return [_hunk(before, after, group, width) for group, width in parts]
    sheet = Sheet([text for text, _ in before])
    done: list[Hunk] = []
    while parts:
        group, width = parts.pop(0)
        hunk = _hunk(before, after, group, width)
        if parts and group[-1][1] + width > parts[0][0][0][0] - width:
            other, theirs = parts.pop(0)
            parts.insert(0, ([*group, *other], max(width, theirs)))
        elif width < len(before) and len(sheet.find("exact", [row.text for row in hunk.old])) > 1:
            parts.insert(0, (group, width + 1))
        else:
            done.append(hunk)
    return done


def _hunk(before: Lines, after: Lines, group: Sequence[Span], around: int) -> Hunk:
    start = max(group[0][0] - around, 0)
    end = min(group[-1][1] + around, len(before))
    rows: list[Row] = []
    done = start
    for a, b, c, d in group:
        rows += [Row(" ", *line) for line in before[done:a]]
        rows += [Row("-", *line) for line in before[a:b]]
        rows += [Row("+", *line) for line in after[c:d]]
        done = b
    rows += [Row(" ", *line) for line in before[done:end]]
    return Hunk(tuple(rows), line=start + 1)


def unified(path: str, hunks: Sequence[Hunk], *, new_path: str | None = None) -> str:
    """A unified diff with the headers that every reader knows."""
    return f"--- a/{path}\n+++ b/{new_path or path}\n{numbered(hunks)}"


def numbered(hunks: Sequence[Hunk]) -> str:
    """Hunks with the lines at which they stand in both texts."""
    parts = []
    grown = 0
    for hunk in hunks:
        old, new = len(hunk.old), len(hunk.new)
        first = hunk.line if old else hunk.line - 1
        second = hunk.line + grown if new else hunk.line + grown - 1
        parts.append(f"@@ -{first},{old} +{second},{new} @@\n")
        parts += [_line(row) for row in hunk.rows]
        grown += new - old
    return "".join(parts)


def _line(row: Row) -> str:
    if row.ending == "":
        return f"{row.kind}{row.text}\n\\ No newline at end of file\n"
    return row.kind + _plain(row)


def search_replace(path: str, hunks: Sequence[Hunk]) -> str:
    """Search/replace blocks; their markers are as long as none in the text."""
    texts = [row.text for hunk in hunks for row in hunk.rows]
    runs = {len(m[0]) for text in texts if (m := re.match(r"<{5,}|={5,}|>{5,}", text))}
    size = next(length for length in count(_MARKERS) if length not in runs)
    parts = []
    for hunk in hunks:
        old, new = ("".join(_plain(row) for row in rows) for rows in (hunk.old, hunk.new))
        parts.append(f"{path}\n{'<' * size} SEARCH\n{old}{'=' * size}\n{new}{'>' * size} REPLACE\n")
    return "\n".join(parts)


def v4a(*sections: str) -> str:
    """A V4A patch of one section for each file."""
    return f"*** Begin Patch\n{''.join(sections)}*** End Patch\n"


def updated(path: str, hunks: Sequence[Hunk], new_path: str | None = None) -> str:
    """The section of a file that changes, and may move."""
    move = f"*** Move to: {new_path}\n" if new_path else ""
    body = "".join(
        "@@\n" + "".join(f"{row.kind}{_plain(row)}" for row in hunk.rows) for hunk in hunks
    )
    return f"*** Update File: {path}\n{move}{body}"


def added(path: str, rows: Sequence[Row]) -> str:
    """The section of a file that is new."""
    return f"*** Add File: {path}\n" + "".join(f"+{_plain(row)}" for row in rows)


def deleted(path: str) -> str:
    """The section of a file that goes."""
    return f"*** Delete File: {path}\n"


def _plain(row: Row) -> str:
    return row.text + ("\r\n" if row.ending == "\r\n" else "\n")
