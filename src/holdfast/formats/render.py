"""Problems as a person reads them: what, where, the line with a mark under it, and what to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from holdfast.errors import Problem
from holdfast.formats.problems import MOST_PROBLEMS, shown

MOST_SHOWN = 50
_ROOM = 100  # columns for a line of the source where nothing says how many there are
_LEAST = 20
_LONGEST_MESSAGE = 1000
_BREAK = re.compile(r"\r\n|\n|\r")
_MARKED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,:\[\]{}]+")


def render(problems: Sequence[Problem], source: bytes | str, *, width: int = 0) -> str:
    """All problems with the lines they are about; control characters of the source are escaped.

    With a width, lines of the source are cut around the place and messages go on below; without
    one, messages stay on one line.
    """
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    first = problems[:MOST_SHOWN]
    last = max((problem.line for problem in first), default=0)
    lines = _BREAK.split(text.removeprefix("\ufeff"), last) if last else []
    blocks = [_block(problem, lines, width) for problem in first]
    if len(problems) > MOST_SHOWN:
        stopped = "at least " if len(problems) >= MOST_PROBLEMS else ""
        blocks.append(f"and {stopped}{len(problems) - MOST_SHOWN:,} more")
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _block(problem: Problem, lines: Sequence[str], width: int) -> str:
    kind = "warning" if problem.code.startswith("P9") else "error"
    rows = _wrapped(f"{kind}[{problem.code}]: {_cut(_safe(problem.message))}", width, "  ")
    if problem.line:
        rows.append(f"  {_safe(problem.file)}:{problem.line}:{problem.column}")
        rows.extend(_excerpt(problem, lines, width))
    elif problem.file:
        rows.append(f"  {_safe(problem.file)}")
    if problem.note:
        rows.extend(_wrapped(f"  {_cut(_safe(problem.note))}", width, "    "))
    if problem.hint:
        rows.extend(_wrapped(f"  help: {_safe(problem.hint)}", width, "        "))
    return "\n".join(rows)


def _excerpt(problem: Problem, lines: Sequence[str], width: int) -> list[str]:
    """The line before, the line itself, and a mark under the value."""
    index = problem.line - 1
    if index >= len(lines):
        return []
    gutter = len(str(problem.line)) + 2
    room = max(_LEAST, width - gutter - len(" │ ")) if width else _ROOM
    line, at = lines[index], problem.column - 1
    start = _start(line, at, room)
    rows = []
    if index and lines[index - 1].strip() and not start:
        rows.append(f"{problem.line - 1:>{gutter}} │ {_window(lines[index - 1], 0, room)}")
    rows.append(f"{problem.line:>{gutter}} │ {_window(line, start, room)}")
    before = _columns(line[start:at]) + (start > 0)
    mark = _mark(problem, line[at : at + room], room - before)
    rows.append(f"{'':>{gutter}} │ {' ' * before}{mark}")
    if problem.mark:
        said = _safe(problem.mark)
        if before + len(mark) + 1 + _columns(said) <= room:
            rows[-1] += f" {said}"
        else:
            rows.append(
                f"{'':>{gutter}} │ {' ' * max(0, min(before, room - _columns(said)))}{said}"
            )
    return rows


def _start(line: str, at: int, room: int) -> int:
    """Where the shown part of a line begins: at its beginning if the place is well within sight."""
    is_whole = len(line) <= room and _columns(line) <= room
    if is_whole or (at <= room and _columns(line[:at]) <= room * 2 // 3):
        return 0
    start, left = at, room // 2
    while start and left > 0:
        start -= 1
        left -= _columns(line[start])
    return start


def _mark(problem: Problem, rest: str, room: int) -> str:
    if problem.width:
        wide = _columns(rest[: problem.width])
    else:
        found = _MARKED.match(rest)
        wide = _columns(found.group()) if found else 1
    return "^" * max(1, min(wide, room - 1))


def _window(line: str, start: int, room: int) -> str:
    """The part of a line that fits; what is left out at an end is an ellipsis."""
    left = room - (start > 0)
    end, used = start, 0
    while end < len(line):
        columns = _columns(line[end])
        more = 1 if end + 1 < len(line) else 0  # the ellipsis
        if used + columns + more > left:
            break
        used += columns
        end += 1
    part = _safe(line[start:end])
    cut = bool(line[end : end + _LONGEST_MESSAGE].strip())
    return ("…" if start else "") + (part + "…" if cut else part.rstrip())


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """The text in rows of a width, broken at blanks; a longer word has a row of its own."""
    if not width or _columns(text) <= width:
        return [text]
    lead = text[: len(text) - len(text.lstrip())]
    rows, row = [], lead
    for word in text.split():
        if row.strip() and _columns(row) + _columns(word) > width:
            rows.append(row.rstrip())
            row = indent
        row += word + " "
    return [*rows, row.rstrip()]


def _columns(text: str) -> int:
    """Terminal columns of a text as it is shown."""
    if text.isascii() and text.isprintable():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in {"W", "F"} for char in text)
    thin = sum(unicodedata.combining(char) > 0 for char in text)
    return len(_safe(text)) + wide - thin


def _safe(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(" " if char == "\t" else shown(char) for char in text)


def _cut(message: str) -> str:
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[: _LONGEST_MESSAGE // 2]} … {message[-_LONGEST_MESSAGE // 2 :]}"
