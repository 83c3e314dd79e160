"""Reader of search/replace blocks: a path, then the lines to find and the lines to put there.

    path/of/file
    <<<<<<< SEARCH
    lines as they are
    =======
    lines as they shall be
    >>>>>>> REPLACE

A fence may stand around a block. A block without a path is for the file of the one before. Whoever writes
about lines that look like the markers makes the markers longer, all three alike. Where the divider is still
not clear, every way to read the block is kept, and the file decides. Nothing to find makes a new file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from holdfast.edits.compare import spans
from holdfast.edits.wanted import Hunk, Row, Wanted, rows_of
from holdfast.errors import EditError

_BEGIN = re.compile(r"(<{5,})\s*SEARCH>?\s*$")
_END = re.compile(r"(>{5,})\s*REPLACE\s*$")
_DIVIDER = re.compile(r"(={5,})\s*$")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*[\w.+-]*$")
_QUOTED = re.compile(r"(`+|[\"'])([^`\"']+)\1$")
_SUFFIX = re.compile(r"[^.]\.\w+$|^\.\w+$")
_MOST_READINGS = 8

Exists = Callable[[str], bool]


def is_blocks(lines: Sequence[str]) -> bool:
    return any(_BEGIN.match(line) for line in lines)


def read_blocks(lines: Sequence[str], exists: Exists) -> Iterator[Wanted]:
    """Each block as an edit of its own; the caller joins those of one file. `exists` knows the files."""
    path, number, at = "", 0, 0
    while at < len(lines):
        begin = _BEGIN.match(lines[at])
        if begin is None:
            at += 1
            continue
        number += 1
        path = _path_above(lines, at, exists) or path
        if not path:
            raise EditError(
                f"search/replace block {number}, line {at + 1}, names no file",
                hint="write the path on the line above '<<<<<<< SEARCH'",
            )
        end = _end_of(lines, at + 1, len(begin[1]))
        if end is None:
            raise EditError(
                f"search/replace block {number}, line {at + 1}, has no end",
                hint="end it with '>>>>>>> REPLACE'",
            )
        yield _block(path, lines[at + 1 : end], len(begin[1]), number)
        at = end + 1


def _end_of(lines: Sequence[str], start: int, length: int) -> int | None:
    """The line that ends the block: markers as long as its first, or, failing that, of any length."""
    loose = None
    for at in range(start, len(lines)):
        found = _END.match(lines[at])
        if found and len(found[1]) == length:
            return at
        if found and loose is None:
            loose = at
        if _BEGIN.match(lines[at]) and loose is not None:
            break
    return loose


def _path_above(lines: Sequence[str], at: int, exists: Exists) -> str:
    """The nearest line above that is neither empty nor a fence, within three, if it can be a path.

    One word without a colon is one even if nothing has that name: it is not for the file of the block before.
    """
    for line in reversed(lines[max(at - 3, 0) : at]):
        if _END.match(line):
            return ""
        if line.strip() and not fence_of(line):
            is_word = len(line.split()) == 1 and not line.rstrip().endswith(":")
            return path_in(line, exists) or (_bare(line) if is_word else "")
    return ""


def fence_of(line: str) -> str:
    """The signs that open or close a fence, if the line is one; a language may follow them."""
    found = _FENCE.match(line.strip())
    return found[1] if found else ""


def path_in(line: str, exists: Exists) -> str:
    """The path that a line is, as people write it: quoted, with a colon after it, as a heading.

    Empty if it is prose: a path names a file that is there, or is one word with a directory or a suffix,
    or quoted. EditError if the line is neither, but speaks of a path.
    """
    path = _bare(line)
    if not path or exists(path):
        return path
    words = path.split()
    is_quoted = _QUOTED.match(line.strip().lstrip("#").strip().rstrip(":").strip("* ")) is not None
    if len(words) == 1:
        return path if is_quoted or _is_like_path(path) else ""
    if is_quoted and _is_like_path(path):
        return path
    if any(_is_like_path(word.strip("*`\"'(),:;")) for word in words):
        raise EditError(
            f"'{path[:80]}' stands where a path should, and is more than that",
            hint="write the path alone on its line; in `backquotes` if it has blanks",
        )
    return ""


def _is_like_path(word: str) -> bool:
    return "/" in word or _SUFFIX.search(word) is not None


def _bare(line: str) -> str:
    """A line without what people put around a path. Empty if it cannot be one."""
    bare = line.strip().lstrip("#").strip().rstrip(":").strip("*`\"' \t").rstrip(":")
    return bare if bare and len(bare) < 1024 and not bare.endswith((".", "?", "!")) else ""  # noqa: PLR2004


def _block(path: str, lines: Sequence[str], length: int, number: int) -> Wanted:
    dividers = _dividers(lines, length)
    if not dividers:
        raise EditError(
            f"search/replace block {number} for '{path}' has no divider",
            hint=f"put '{'=' * length}' between what to find and what to put there",
        )
    if len(dividers) > _MOST_READINGS:
        raise EditError(
            f"search/replace block {number} for '{path}' has {len(dividers)} dividers",
            hint="make the three markers of the block longer than those in its text",
        )
    readings = [replacement(lines[:at], lines[at + 1 :]) for at in dividers]
    if not any(row.kind != "+" for row in readings[0].rows) and len(readings) == 1:
        text = "".join(f"{line}\n" for line in lines[dividers[0] + 1 :])
        return Wanted(path, "create", content=text.encode("utf-8", "surrogateescape"))
    if len(readings) == 1:
        return Wanted(path, hunks=(readings[0],), builds=True)
    return Wanted(path, hunks=(Hunk((), readings=tuple(readings)),), builds=True)


def _dividers(lines: Sequence[str], length: int) -> list[int]:
    """Where the divider may be: outside of conflicts that are part of the text, if there is such a line."""
    found = [(at, hit) for at, line in enumerate(lines) if (hit := _DIVIDER.match(line))]
    same = {at for at, hit in found if len(hit[1]) == length} or {at for at, _ in found}
    depth, outside = 0, []
    for at, line in enumerate(lines):
        if re.match(r"<{7} ", line):
            depth += 1
        elif re.match(r">{7} ", line):
            depth = max(depth - 1, 0)
        elif depth == 0 and at in same:
            outside.append(at)
    return outside or sorted(same)


def replacement(old: Sequence[str], new: Sequence[str]) -> Hunk:
    """The hunk that finds some lines and puts others there: what both have stays untouched."""
    before, after = rows_of(old, "-"), rows_of(new, "+")
    rows: list[Row] = []
    done = 0
    for a, b, c, d in spans([row.text for row in before], [row.text for row in after]):
        rows += [Row(" ", row.text, row.ending) for row in before[done:a]]
        rows += [*before[a:b], *after[c:d]]
        done = b
    rows += [Row(" ", row.text, row.ending) for row in before[done:]]
    return Hunk(tuple(rows))
