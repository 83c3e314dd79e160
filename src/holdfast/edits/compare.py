"""Which lines two texts have in common: the rows of a change, with few lines of context or all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

Span = tuple[int, int, int, int]  # from and to in the old lines, from and to in the new ones
_MOST = 4_000_000  # pairs of lines worth comparing; beyond, all between the common ends counts as changed


def spans(old: Sequence[object], new: Sequence[object]) -> list[Span]:
    """Where they differ, in order: what is cut from the old ones and what stands there in the new."""
    start, end = common_ends(old, new)
    inner_old, inner_new = old[start : len(old) - end], new[start : len(new) - end]
    if not inner_old and not inner_new:
        return []
    if not inner_old or not inner_new or len(inner_old) * len(inner_new) > _MOST:
        return _lowered(old, new, [(start, len(old) - end, start, len(new) - end)])
    matcher = SequenceMatcher(None, inner_old, inner_new, autojunk=False)
    found = [
        (start + a, start + b, start + c, start + d)
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]
    return _lowered(old, new, found)


def _lowered(old: Sequence[object], new: Sequence[object], found: list[Span]) -> list[Span]:
    """Spans that may as well stand lower, as low as they can: so that comparisons agree, and git's too."""
    for at in range(len(found) - 1, -1, -1):
        a, b, c, d = found[at]
        end = found[at + 1][0] if at + 1 < len(found) else len(old)
        text, first, last = (new, c, d) if a == b else (old, a, b)
        if a != b and c != d:
            continue
        step = 0
        while b + step < end and text[first + step] == text[last + step]:
            step += 1
        if b + step == end and at + 1 < len(found):
            step = max(step - 1, 0)  # one line must stay between two spans
        found[at] = (a + step, b + step, c + step, d + step)
    return found


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many lines at the start, and of the others how many at the end, are the same."""
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def grouped(found: Sequence[Span], around: int) -> Iterator[list[Span]]:
    """Spans so near each other that their context would touch, together."""
    group: list[Span] = []
    for span in found:
        if group and span[0] - group[-1][1] > 2 * around:
            yield group
            group = []
        group.append(span)
    if group:
        yield group
