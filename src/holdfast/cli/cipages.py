"""The summary of a run in Markdown, as GitHub and GitLab show it.

Whatever comes from a plan, a model or a guard is text: every letter that Markdown or HTML gives a meaning to
is written as its number, and longer words stand in a fence that they do not contain.
"""

from __future__ import annotations

import re

from holdfast.cli.cireport import Report
from holdfast.cli.outlook import Row
from holdfast.model.text import clean, fenced, one_line

MOST_BYTES = 900_000  # GitHub shows a megabyte and nothing of what is larger
_MEANT = re.compile(
    r"[^\w\s.,;:()/'\"+=%$?–−·…→✓✗▸⏸-]|_|(?<=[A-Za-z]):(?=//)|(?<=\bwww)\.", re.ASCII
)
_LONGEST_FENCE = 1000
_HEAD = "| | step | why | cost | time |\n|---|---|---|---:|---:|\n"


def text_of(words: str) -> str:
    """Words from elsewhere, as one line of text that Markdown leaves as it is."""
    return _MEANT.sub(_number, one_line(words))


def _number(found: re.Match[str]) -> str:
    letter = found.group()
    return letter if ord(letter) > 127 else f"&#{ord(letter)};"  # noqa: PLR2004 - ASCII


def page(report: Report) -> str:
    """The whole summary."""
    parts = [
        f"### {report.sign} {text_of(report.title)}: {report.status}",
        f"**{text_of(report.change.words)}**",
        text_of(report.headline),
        _table(report),
    ]
    if report.failures:
        parts += ["#### What failed", fenced(clean("\n".join(report.failures)))]
    if report.ledger:
        lines = "\n".join(f"- {text_of(line)}" for line in report.ledger)
        parts += ["#### Learned since the last run", lines]
    parts += [f"```mermaid\n{report.drawing}\n```"]
    parts += [f"next: {text_of(report.following)}"]
    return "\n\n".join(parts) + "\n"


def _table(report: Report) -> str:
    rows = "".join(_row(row) for row in report.rows)
    more = f"| | {report.more_rows} more | | | |\n" if report.more_rows else ""
    return f"{_HEAD}{rows}{more}".rstrip("\n")


def _row(row: Row) -> str:
    cells = (row.sign, row.name, row.why, row.cost, row.time)
    return f"| {' | '.join(text_of(cell) for cell in cells)} |\n"


def fitting(text: str, room: int, pointer: str) -> str:
    """At most so many bytes of a page, whole lines, with a word where the rest is to be found."""
    content = text.encode()
    if len(content) <= room:
        return text
    note = f"\n\nThis summary is cut here; the whole of it is in {text_of(pointer)}\n"
    most = max(0, room - len(note.encode()) - _LONGEST_FENCE)
    kept = content[:most].decode("utf-8", "ignore")
    kept = kept[: kept.rfind("\n") + 1]
    return f"{kept}{_open_fence(kept)}{note}"


def _open_fence(text: str) -> str:
    """The fence that a text ends inside of; nothing if it does not."""
    opened = ""
    for line in text.split("\n"):
        found = re.match(r"`{3,}", line)
        if found and not opened:
            opened = found.group()
        elif found and line.strip() == opened:
            opened = ""
    return opened
