"""Which lines two contents differ in: counted, and as a unified diff.

Lines that both have exactly once are matched first, then what lies between them, so that large files
cost little: a plain comparison takes time with the square of the length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

CONTEXT = 3
_SMALL = 250_000  # lines times lines that are compared the plain way
_DEEPEST = 12
_NO_END = b"\n\\ No newline at end of file\n"


class Block(NamedTuple):
    """Lines `old_start` to `old_end` became lines `new_start` to `new_end`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split_lines(content: bytes) -> list[bytes]:
    """The lines with their ends; only a line feed ends one."""
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def blocks(old: Sequence[bytes], new: Sequence[bytes]) -> list[Block]:
    """Where the lines differ, in order."""
    found: list[Block] = []
    pending = [(Block(0, len(old), 0, len(new)), 0)]
    while pending:
        part, depth = pending.pop()
        part = _trimmed(old, new, part)
        if part.old_start == part.old_end or part.new_start == part.new_end:
            if part.old_start != part.old_end or part.new_start != part.new_end:
                found.append(part)
            continue
        anchors = _anchors(old, new, part) if depth < _DEEPEST else []
        if anchors:
            pending += [(gap, depth + 1) for gap in _gaps(part, anchors)]
        else:
            found += _compared(old, new, part)
    return sorted(found)


def _trimmed(old: Sequence[bytes], new: Sequence[bytes], part: Block) -> Block:
    a, a_end, b, b_end = part
    while a < a_end and b < b_end and old[a] == new[b]:
        a, b = a + 1, b + 1
    while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
        a_end, b_end = a_end - 1, b_end - 1
    return Block(a, a_end, b, b_end)


def _anchors(old: Sequence[bytes], new: Sequence[bytes], part: Block) -> list[tuple[int, int]]:
    """Lines that both sides have once, as many as stand in the same order in both."""
    a, a_end, b, b_end = part
    once = {line for line, count in Counter(old[a:a_end]).items() if count == 1}
    twin = {line for line, count in Counter(new[b:b_end]).items() if count == 1}
    place = {new[n]: n for n in range(b, b_end) if new[n] in twin}
    pairs = [(n, place[old[n]]) for n in range(a, a_end) if old[n] in once and old[n] in place]
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


def _gaps(part: Block, anchors: Sequence[tuple[int, int]]) -> Iterator[Block]:
    a, b = part.old_start, part.new_start
    for old, new in anchors:
        yield Block(a, old, b, new)
        a, b = old + 1, new + 1
    yield Block(a, part.old_end, b, part.new_end)


def _compared(old: Sequence[bytes], new: Sequence[bytes], part: Block) -> Iterator[Block]:
    a, a_end, b, b_end = part
    if (a_end - a) * (b_end - b) > _SMALL:
        yield part
        return
    matcher = SequenceMatcher(None, old[a:a_end], new[b:b_end], autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            yield Block(a + i, a + i_end, b + j, b + j_end)


class Stat(NamedTuple):
    """How many lines an edit adds to a file and takes from it."""

    added: int
    removed: int


def count_lines(old: bytes | None, new: bytes | None) -> Stat:
    """What changes between two contents; None is a file that is not there."""
    found = blocks(split_lines(old or b""), split_lines(new or b""))
    return Stat(
        sum(block.new_end - block.new_start for block in found),
        sum(block.old_end - block.old_start for block in found),
    )


def unified(
    path: str,
    old: bytes | None,
    new: bytes | None,
    modes: tuple[int, int] = (0o644, 0o644),
    source: str | None = None,
) -> str:
    """The change of one file as git writes it; None is a file that is not there.

    With a `source`, `old` is what stood there, and the file was moved from there.
    """
    came_from = path if source is None else source
    head = [f"diff --git a/{came_from} b/{path}"]
    if old is None:
        head.append(f"new file mode 100{modes[1]:o}")
    elif new is None:
        head.append(f"deleted file mode 100{modes[0]:o}")
    elif modes[0] != modes[1]:
        head += [f"old mode 100{modes[0]:o}", f"new mode 100{modes[1]:o}"]
    if source is not None:
        head += [f"rename from {source}", f"rename to {path}"]
    if old is not None and new is not None and old == new:
        return "\n".join(head) + "\n"
    names = [
        "/dev/null" if content is None else f"{side}/{name}" + ("\t" if " " in name else "")
        for side, name, content in (("a", came_from, old), ("b", path, new))
    ]
    if b"\0" in (old or b"") or b"\0" in (new or b""):
        return "\n".join([*head, f"Binary files {names[0]} and {names[1]} differ"]) + "\n"
    body = b"".join(_hunks(split_lines(old or b""), split_lines(new or b"")))
    if body:
        head += [f"--- {names[0]}", f"+++ {names[1]}"]
    return "\n".join(head) + "\n" + body.decode(errors="replace")


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    for group in _groups(blocks(old, new)):
        start = max(0, group[0].old_start - CONTEXT)
        end = min(len(old), group[-1].old_end + CONTEXT)
        shift = group[0].new_start - group[0].old_start
        new_end = group[-1].new_end + end - group[-1].old_end
        yield f"@@ -{_range(start, end)} +{_range(start + shift, new_end)} @@\n".encode()
        at = start
        for block in group:
            yield from (_line(b" ", line) for line in old[at : block.old_start])
            yield from (_line(b"-", line) for line in old[block.old_start : block.old_end])
            yield from (_line(b"+", line) for line in new[block.new_start : block.new_end])
            at = block.old_end
        yield from (_line(b" ", line) for line in old[at:end])


def _groups(found: Sequence[Block]) -> Iterator[list[Block]]:
    group: list[Block] = []
    for block in found:
        if group and block.old_start - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _range(start: int, end: int) -> str:
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + (line if line.endswith(b"\n") else line + _NO_END)
