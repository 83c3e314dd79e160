"""Problems as a person reads them: what, where, the line with a mark under it, and what to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from holdfast.errors import Problem
from holdfast.formats.problems import shown

MOST_SHOWN = 50
_WIDTH = 100
_LONGEST_MESSAGE = 1000
_BREAK = re.compile(r"\r\n|\n|\r")
_MARKED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,:\[\]{}]+")


def render(problems: Sequence[Problem], source: bytes | str) -> str:
    """All problems with the lines they are about; control characters of the source are escaped."""
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    first = problems[:MOST_SHOWN]
    last = max((problem.line for problem in first), default=0)
    lines = _BREAK.split(text.removeprefix("\ufeff"), last) if last else []
    blocks = [_block(problem, lines) for problem in first]
    if len(problems) > MOST_SHOWN:
        blocks.append(f"and {len(problems) - MOST_SHOWN:,} more")
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _block(problem: Problem, lines: Sequence[str]) -> str:
    kind = "warning" if problem.code.startswith("P9") else "error"
    rows = [f"{kind}[{problem.code}]: {_cut(_safe(problem.message))}"]
    if problem.line:
        rows.append(f"  {_safe(problem.file)}:{problem.line}:{problem.column}")
        rows.extend(_excerpt(problem, lines))
    elif problem.file:
        rows.append(f"  {_safe(problem.file)}")
    if problem.hint:
        rows.append(f"  help: {_safe(problem.hint)}")
    return "\n".join(rows)


def _excerpt(problem: Problem, lines: Sequence[str]) -> list[str]:
    """The line before, the line itself, and a mark under the value."""
    index = problem.line - 1
    if index >= len(lines):
        return []
    start = max(0, problem.column - 1 - _WIDTH // 2)
    gutter = len(str(problem.line)) + 2
    rows = []
    if index and lines[index - 1].strip() and not start:
        rows.append(f"{problem.line - 1:>{gutter}} │ {_window(lines[index - 1], 0)}")
    line = lines[index]
    rows.append(f"{problem.line:>{gutter}} │ {_window(line, start)}")
    blank = " " * (_columns(line[start : problem.column - 1]) + (start > 0))
    found = _MARKED.match(line, problem.column - 1, start + _WIDTH)
    mark = "^" * max(1, _columns(found.group()) if found else 1)
    rows.append(f"{'':>{gutter}} │ {blank}{mark}")
    return rows


def _window(line: str, start: int) -> str:
    part = _safe(line[start : start + _WIDTH]).rstrip()
    return ("…" if start else "") + part + ("…" if len(line) > start + _WIDTH else "")


def _columns(text: str) -> int:
    """Terminal columns of a text as it is shown."""
    wide = sum(unicodedata.east_asian_width(char) in {"W", "F"} for char in text)
    return len(_safe(text)) + wide


def _safe(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(" " if char == "\t" else shown(char) for char in text)


def _cut(message: str) -> str:
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[: _LONGEST_MESSAGE // 2]} … {message[-_LONGEST_MESSAGE // 2 :]}"
