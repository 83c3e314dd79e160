"""What helps whoever wrote an edit that found no place: the nearest lines, the places that fit, what differs.

Likeness is used here and nowhere else: it never decides where a hunk goes.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from difflib import unified_diff

from rapidfuzz import fuzz, process

from holdfast.edits.anchors import named
from holdfast.edits.ladder import MOST_PLACES, fits
from holdfast.edits.lines import Unreadable, decoded
from holdfast.edits.outcome import Refusal
from holdfast.edits.placing import Board, Trouble
from holdfast.edits.sheet import Sheet
from holdfast.edits.wanted import Hunk, Wanted

_FEW = 5
_LINES = 40  # of a block that is shown
_COMPARED = 400  # of a block that is compared
_WIDTH = 200  # characters of a line that is shown
_LIKE = 60.0  # of 100
_MOST = 20_000  # lines that are compared by likeness
_OTHERS = 50  # files that are searched
_LARGEST = 1 << 20  # bytes of one of them

Read = Callable[[str], bytes | None]


def mentioned(path: str, trouble: Trouble, board: Board, numbers: Sequence[int]) -> Refusal:
    """The trouble of one hunk in words; `numbers` are what its author calls the hunks."""
    number = numbers[trouble.hunk]
    match trouble.why:
        case "ambiguous":
            count = len(trouble.starts)
            shown = f"more than {MOST_PLACES}" if count > MOST_PLACES else str(count)
            message = f"hunk {number} fits at {shown} places"
        case "already_applied":
            message = f"hunk {number} is already applied"
        case "overlapping":
            message = f"hunks {numbers[trouble.other]} and {number} change the same lines"
        case "malformed" if board.hunks[trouble.hunk].readings:
            message = f"hunk {number} can be read in more than one way"
        case "malformed":
            message = f"hunk {number} does not say where its lines go"
        case _ if trouble.starts:
            message = f"hunk {number} was not found where its author saw it"
        case _:
            message = f"hunk {number} was not found"
    line = trouble.starts[0] + 1 if trouble.starts else 0
    return Refusal(path, trouble.why, message, number, line)


def explained(
    refusal: Refusal, trouble: Trouble, board: Board, read: Read, others: Collection[str]
) -> Refusal:
    """The same with what would help."""
    hunk, line = board.hunks[trouble.hunk], refusal.line
    match trouble.why:
        case "ambiguous":
            guidance = _places(board.sheet, hunk, trouble.starts)
        case "already_applied":
            where = f"its new lines stand at line {line}"
            guidance = where if line else "nothing is left to change"
        case "overlapping":
            guidance = f"make them one hunk; they meet at line {line}"
        case "malformed" if hunk.readings:
            guidance = "make its three markers longer than those in its text"
        case "malformed":
            guidance = "add a line of the file above them, and one below"
        case _ if trouble.starts:
            guidance = (
                f"such lines stand at line {_listed(trouble.starts)}, but they are others than those that"
                " its author saw; read the file again"
            )
        case _:
            line, nearest = _nearest(board.sheet, hunk)
            elsewhere = _elsewhere(refusal.path, hunk, read, others)
            parts = (_unanchored(board.sheet, hunk), nearest, elsewhere)
            guidance = "\n".join(part for part in parts if part)
    return replace(refusal, line=line, guidance=guidance)


def reason(wanted: Wanted, read: Read, others: Collection[str]) -> str:
    """Where the lines of an edit are, if its file is missing."""
    for hunk in wanted.hunks[:1]:
        return _elsewhere(wanted.path, hunk, read, others)
    return ""


# Several places.


def _places(sheet: Sheet, hunk: Hunk, starts: Sequence[int]) -> str:
    said = [f"it fits at the lines {_listed(starts)}"]
    for start in starts[:_FEW]:
        telling = _telling(sheet, hunk, start, starts)
        if telling is not None:
            said.append(
                f"for the place at line {start + 1}, add line {telling + 1}: {_cut(sheet.lines[telling])}"
            )
    return "\n".join(said)


def _listed(starts: Sequence[int]) -> str:
    shown = ", ".join(str(start + 1) for start in starts[:_FEW])
    return f"{shown} and {len(starts) - _FEW} more" if len(starts) > _FEW else shown


def _telling(sheet: Sheet, hunk: Hunk, start: int, starts: Sequence[int]) -> int | None:
    """The nearest line around a place that the other places do not have there."""
    length = len(hunk.old)
    for distance in range(1, 30):
        for offset in (-distance, length - 1 + distance):
            at = start + offset
            if not 0 <= at < len(sheet.lines) or not sheet.lines[at].strip():
                continue
            theirs = [other + offset for other in starts if other != start]
            if all(
                not 0 <= there < len(sheet.lines) or sheet.lines[there] != sheet.lines[at]
                for there in theirs
            ):
                return at
    return None


# No place.


def _unanchored(sheet: Sheet, hunk: Hunk) -> str:
    """Which anchor of a hunk is not there, or where its lines stand that are not under it."""
    missing = next((anchor for anchor in hunk.anchors if not named(sheet, anchor)), None)
    if missing is not None:
        return f"no line of the file is its anchor '{_cut(missing)}'; name a line whole, or none"
    found = fits(replace(hunk, anchors=()), sheet) if hunk.anchors else []
    if not found:
        return ""
    places = _listed([fit.start for fit in found])
    return f"its lines stand at line {places}, which is not under '{_cut(hunk.anchors[-1])}'"


def _nearest(sheet: Sheet, hunk: Hunk) -> tuple[int, str]:
    """The block that is most like what the hunk looks for, from its first line, as a diff."""
    old = [row.text for row in hunk.old[:_COMPARED]]
    start = _by_shared_lines(sheet, old)
    if start is None:
        start = _by_likeness(sheet, old)
    if start is None:
        return 0, "no line of the file is like those that it looks for"
    start = max(min(start, len(sheet.lines) - 1), 0)
    there = list(sheet.lines[start : start + len(old)])
    numbered = [f"{start + 1 + at:>5}  {_cut(line)}" for at, line in enumerate(there[:_LINES])]
    lines = ["the nearest lines are:", *numbered]
    marks = [
        _special(at, a, b) for at, (a, b) in enumerate(zip(old, there, strict=False), start + 1)
    ]
    diff = list(
        unified_diff([*map(_cut, old)], [*map(_cut, there)], "edit", "file", lineterm="", n=1)
    )
    if diff:
        lines += ["what differs:", *diff[2 : _LINES + 2]]
    return start + 1, "\n".join([*lines, *(mark for mark in marks if mark)])


def _by_shared_lines(sheet: Sheet, old: Sequence[str]) -> int | None:
    votes: Counter[int] = Counter()
    for at, line in enumerate(old):
        if any(c.isalnum() for c in line):
            votes.update(place - at for place in sheet.places("bare", line.strip(), _LINES))
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _by_likeness(sheet: Sheet, old: Sequence[str]) -> int | None:
    at = max(range(len(old)), key=lambda n: len(old[n].strip()), default=None)
    if at is None or not old[at].strip():
        return None
    found = process.extractOne(
        old[at].strip()[:_WIDTH],
        [line[:_WIDTH] for line in sheet.keys("bare")[:_MOST]],
        scorer=fuzz.ratio,
        score_cutoff=_LIKE,
    )
    return None if found is None else found[2] - at


def _special(number: int, edit: str, file: str) -> str:
    """Characters that look alike and are not: they explain what nobody can see."""
    if edit == file or unicodedata.normalize("NFKC", edit) != unicodedata.normalize("NFKC", file):
        return ""
    odd = next((c for c in file if not c.isascii() and c not in edit), "")
    if not odd:
        return f"line {number} differs only in how its characters are composed"
    name = unicodedata.name(odd, f"U+{ord(odd):04X}").lower()
    return f"line {number} of the file has a {name} (U+{ord(odd):04X})"


def _elsewhere(path: str, hunk: Hunk, read: Read, others: Collection[str]) -> str:
    """Another file that has the lines."""
    keys = [row.text.rstrip() for row in hunk.old]
    for other in [one for one in others if one != path][:_OTHERS]:
        content = read(other)
        if content is None or len(content) > _LARGEST or not any(keys):
            continue
        text = decoded(content)
        if isinstance(text, Unreadable):
            continue
        found = Sheet(text.lines).find("trailing", keys)
        if found:
            return f"'{other}' has these lines, at line {found[0] + 1}"
    return ""


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"
