"""The few lines below a run that is under way: what stands, what runs, what waits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.cli.money import cost_words
from holdfast.cli.say import SIGNS, clock, short
from holdfast.cli.tally import Tally, counted
from holdfast.core.reasons import sentence
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import cells, cut, last_line, one_line

MOST_LINES = 12
TAIL = 2000  # bytes of an attempt's output that are kept for its line
_COLOURS = re.compile("\x1b\\[[0-9;]*m")


class Size(NamedTuple):
    """Columns and rows of a terminal."""

    columns: int
    rows: int


def footer_lines(
    tally: Tally,
    said: Mapping[StepId, bytes],
    usual: Mapping[StepId, int],
    now: int,
    size: Size,
    hint: str,
) -> list[str]:
    """At most half the terminal and never more than a dozen lines, none wider than it."""
    width = max(1, size.columns - 1)  # a full last column would break the line on some terminals
    most = max(1, min(MOST_LINES, size.rows // 2))
    lines = [_head(tally, now)]
    tail = [f"  {hint}"] if hint and most > 2 else []  # noqa: PLR2004 - something must be left
    room = most - len(lines) - len(tail)
    running = sorted(tally.running, key=lambda step: tally.running[step].since)
    waiting = list(tally.waiting)
    kept = _share(len(running), len(waiting), room)
    names = [*running[: kept[0]], *waiting[: kept[1]]]
    column = min(max((cells(one_line(name)) for name in names), default=0), max(8, width // 3))
    lines += [
        _running(tally, step, column, said.get(step, b""), usual.get(step, 0), now)
        for step in running[: kept[0]]
    ]
    for step in waiting[: kept[1]]:
        why = sentence(tally.waiting[step])
        lines.append(f"{SIGNS['waiting']} {_padded(step, column)}  {why}")
    hidden = len(running) - kept[0] + len(waiting) - kept[1]
    if hidden and len(lines) + len(tail) < most:
        lines.append(f"  and {hidden} more")
    return [cut(line, width) for line in (*lines, *tail)]


def _share(running: int, waiting: int, room: int) -> tuple[int, int]:
    """How many of each are shown; one line is left to say how many are not."""
    if running + waiting <= room:
        return running, waiting
    room = max(0, room - 1)
    some = min(waiting, max(room // 3, room - running))
    return min(running, room - some), some


def _head(tally: Tally, now: int) -> str:
    parts = [short(tally.run), f"{tally.complete}/{tally.total}"]
    counts = counted(tally.counts)
    parts += [counts] if counts else []
    if tally.asked:
        most = f" of {dollars(tally.most)}" if tally.most is not None else ""
        parts.append(cost_words(tally.cost, tally.unpriced) + most)
    return "──── " + " ── ".join((*parts, clock(now - tally.since)))


def _running(tally: Tally, step: StepId, column: int, said: bytes, usual: int, now: int) -> str:
    running = tally.running[step]
    took = clock(now - running.since)
    words = [f"{took} of ~{clock(usual)}" if usual >= 1000 else took]  # noqa: PLR2004 - a second
    if running.attempt > 1:
        words.insert(0, f"attempt {running.attempt}")
    if running.guards_only:
        words.append("guarding what is there")
    if paid := tally.paid.get(step):
        words.append(dollars(paid))
    if asking := tally.calls.words(step, now):
        words.append(asking)
    text = _COLOURS.sub("", said.decode("utf-8", "replace")).replace("\r", "\n")
    words += [one_line(last_line(text))] if text else []
    return f"{SIGNS['running']} {_padded(step, column)}  {'  '.join(words)}"


def _padded(step: StepId, column: int) -> str:
    name = cut(one_line(step), column)
    return name + " " * (column - cells(name))
