"""Where two sequences of lines differ: few changes, found in a time that grows with the lines alone.

Lines that both have exactly once are matched first, in one order: they mean the same. What lies between them
is compared by the greedy way of Myers, which finds the fewest changes. It is given up after so many of them,
and all that lies there counts as changed: no two texts take more than a few hundred steps a line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

Span = tuple[int, int, int, int]  # from and to in the old lines, from and to in the new ones

_DEEPEST = 12  # matches within matches
_MOST = 200  # changes between two matched lines, fewer where much lies there
_STEPS = 2_000_000
_Ids = Sequence[int]


def spans(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Span]:
    """Where they differ, in order: what is cut from the old ones and what stands there in the new."""
    numbers: dict[Hashable, int] = {}
    before = [numbers.setdefault(line, len(numbers)) for line in old]
    after = [numbers.setdefault(line, len(numbers)) for line in new]
    found: list[Span] = []
    pending = [((0, len(before), 0, len(after)), 0)]
    while pending:
        span, depth = pending.pop()
        a, b, c, d = span = _trimmed(before, after, span)
        if a == b or c == d:
            found += [span] if a != b or c != d else []
            continue
        matched = _matched(before, after, span) if depth < _DEEPEST else []
        if matched:
            pending += [(gap, depth + 1) for gap in _gaps(span, matched)]
        else:
            found += _fewest(before, after, span)
    return _lowered(before, after, sorted(found))


def _trimmed(old: _Ids, new: _Ids, span: Span) -> Span:
    """Without what both have at the start, and of the rest at the end."""
    a, b, c, d = span
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    return a, b, c, d


def _matched(old: _Ids, new: _Ids, span: Span) -> list[tuple[int, int]]:
    """Lines that both sides have once, as many as stand in the same order in both."""
    a, b, c, d = span
    once = {line for line, count in Counter(old[a:b]).items() if count == 1}
    once &= {line for line, count in Counter(new[c:d]).items() if count == 1}
    place = {new[at]: at for at in range(c, d) if new[at] in once}
    pairs = [(at, place[old[at]]) for at in range(a, b) if old[at] in once]
    ends: list[int] = []  # of the best rising row of each length
    last: list[int] = []  # which pair that end is
    before: list[int] = []
    for number, (_, other) in enumerate(pairs):
        length = bisect_left(ends, other)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [other]
        last[length : length + 1] = [number]
    chain: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _gaps(span: Span, matched: Sequence[tuple[int, int]]) -> Iterator[Span]:
    a, b, c, d = span
    for old, new in matched:
        yield a, old, c, new
        a, c = old + 1, new + 1
    yield a, b, c, d


def _fewest(old: _Ids, new: _Ids, span: Span) -> Iterator[Span]:
    """The fewest changes; all of it if they are too many. Lines that one side lacks can only be changes."""
    a, b, c, d = span
    both = {*old[a:b]} & {*new[c:d]}
    rows = [at for at in range(a, b) if old[at] in both]
    columns = [at for at in range(c, d) if new[at] in both]
    matched = _matches([old[at] for at in rows], [new[at] for at in columns])
    pairs = [(rows[x], columns[y]) for x, y in matched or ()]
    for gap in _gaps(span, pairs):
        if gap[0] != gap[1] or gap[2] != gap[3]:
            yield gap


def _matches(old: _Ids, new: _Ids) -> list[tuple[int, int]] | None:
    """As many lines as can be matched in one order, after Myers; None if that takes too long.

    `reached[k]` is the furthest old line on the diagonal k (old minus new) after so many changes.
    """
    most = min(_MOST, 16 + _STEPS // (len(old) + len(new) + 1))
    reached = {1: 0}
    history: list[dict[int, int]] = []
    for count in range(most + 1):
        history.append(dict(reached))
        for k in range(-count, count + 1, 2):
            x = reached[k + 1] if _is_down(reached, k, count) else reached[k - 1] + 1
            y = x - k
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            reached[k] = x
            if x >= len(old) and y >= len(new):
                return _walked_back(history, x, y)
    return None


def _is_down(reached: Mapping[int, int], k: int, count: int) -> bool:
    """Whether the way to a diagonal comes from the one above: a new line, not an old one."""
    return k == -count or (k != count and reached[k - 1] < reached[k + 1])


def _walked_back(history: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for count in range(len(history) - 1, -1, -1):
        reached, k = history[count], x - y
        is_down = _is_down(reached, k, count)
        from_x = (reached[k + 1] if is_down else reached[k - 1] + 1) if count else 0
        while x > from_x:
            x, y = x - 1, y - 1
            found.append((x, y))
        x, y = (x, y - 1) if is_down else (x - 1, y)
    return found[::-1]


def _lowered(old: _Ids, new: _Ids, found: list[Span]) -> list[Span]:
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
