"""Place all hunks of one file: each on its own first, then with what the others and the base tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.edits import choice
from holdfast.edits.anchors import is_anchored
from holdfast.edits.blanks import fits_without_blanks
from holdfast.edits.fit import Fit, Splice
from holdfast.edits.following import Trail
from holdfast.edits.ladder import MOST_PLACES, fits, fits_at
from holdfast.edits.outcome import Why
from holdfast.edits.sheet import Sheet
from holdfast.edits.splice import overlap
from holdfast.edits.votes import voted_fit
from holdfast.edits.wanted import Hunk


@dataclass(frozen=True, slots=True)
class Trouble:
    """A hunk without a place: why, the places that fit, and the other hunk if two do not go together."""

    hunk: int
    why: Why
    starts: tuple[int, ...] = ()
    other: int = 0


@dataclass(slots=True)
class Board:
    """The hunks of a file and where they are so far.

    `is_base`: the file is what the author saw. `base`: the same hunks in what the author saw, if that is
    another and known, with the trail from there.
    """

    hunks: Sequence[Hunk]
    sheet: Sheet
    is_base: bool = False
    base: Board | None = None
    trail: Trail | None = None
    twins: Mapping[int, Sequence[int]] = field(default_factory=dict)
    placed: dict[int, Fit] = field(default_factory=dict)
    open: dict[int, list[Fit]] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)


def place_all(board: Board) -> None:
    """Fill the board: every hunk is placed, or has its trouble."""
    _read_all(board)
    board.twins = choice.twins(board.hunks)
    if board.base is not None:
        board.trail = Trail(board.base.sheet, board.sheet)
    for number, hunk in enumerate(board.hunks):
        found = fits(hunk, board.sheet)
        if len(found) == 1:
            board.placed[number] = found[0]
        else:
            board.open[number] = found
    for number in [number for number, found in board.open.items() if found]:
        _choose(board, number)
    for number, found in sorted(board.open.items()):
        if not found:
            _look_further(board, number)
    for number, fit in list(board.placed.items()):
        if board.base is not None and not _is_held(board, board.base, number, fit):
            del board.placed[number]
            board.troubles.append(Trouble(number, "not_found", (fit.start,)))
        elif is_done(board, number, fit):
            del board.placed[number]
            board.troubles.append(Trouble(number, "already_applied", (fit.start,)))
    clash = overlap([board.placed[number] for number in sorted(board.placed)])
    if clash is not None:
        one, other = (sorted(board.placed)[number] for number in clash)
        board.troubles.append(Trouble(other, "overlapping", (board.placed[other].start,), one))


def _read_all(board: Board) -> None:
    """A block that can be read in more than one way is read in the one that the file has.

    Where it has more than one, both sides of the right one have as many lines that look like dividers.
    """
    hunks = list(board.hunks)
    for number, hunk in enumerate(hunks):
        if not hunk.readings:
            continue
        there = [reading for reading in hunk.readings if fits_at(reading, board.sheet, "exact")]
        middle = hunk.readings[len(hunk.readings) // 2] if len(hunk.readings) % 2 else None
        if len(there) == 1 or middle in there:
            hunks[number] = middle if middle in there and middle is not None else there[0]
        else:
            hunks[number] = replace(hunk, rows=hunk.readings[0].rows)
            board.troubles.append(Trouble(number, "malformed"))
    board.hunks = hunks


def _is_held(board: Board, base: Board, number: int, fit: Fit) -> bool:
    """Whether a place is the one that the author saw.

    Where the author could not have meant one place either, none is; lines that the author did not see at all
    have one if all of them are there.
    """
    seen = _seen(board, number)
    if seen is None or board.trail is None:
        return fit.level != "voted" and not base.open.get(number)
    return board.trail.leads(seen, fit)


def _seen(board: Board, number: int) -> Fit | None:
    """Where the author saw a hunk, if that is known and it reads the same there."""
    if board.base is None or board.base.hunks[number] != board.hunks[number]:
        return None
    return board.base.placed.get(number)


def _choose(board: Board, number: int) -> None:
    """One of several places, if there is a reason; else the hunk stays open, and is in trouble."""
    hunk, found = board.hunks[number], board.open[number]
    board.sheet.effort.spend(len(board.placed) + len(found))
    chosen: Fit | Why | None = choice.by_line(hunk, found) if board.is_base else None
    if chosen is None and len(found) <= MOST_PLACES:
        chosen = _by_what_is_known(board, number, found)
    if isinstance(chosen, Fit):
        board.placed[number] = replace(chosen, level="hinted")
        del board.open[number]
    else:
        starts = tuple(fit.start for fit in found)
        board.troubles.append(Trouble(number, chosen or "ambiguous", starts))


def _by_what_is_known(board: Board, number: int, found: Sequence[Fit]) -> Fit | Why | None:
    """What the base, the neighbours, the heading and the twins of a hunk leave of its places."""
    hunk = board.hunks[number]
    chosen = None
    if board.base is not None and not _are_copies(board.base, number, found):
        left = [fit for fit in found if _is_held(board, board.base, number, fit)]
        return left[0] if len(left) == 1 else "not_found"
    if board.base is None and not board.is_base:
        chosen = choice.by_neighbours(hunk, found, board.placed, board.hunks)
    if chosen is None:
        chosen = choice.by_heading(hunk, found, board.sheet)
    if chosen is None:
        alike = board.twins[number]
        if len(alike) == len(found) and len(alike) > 1:
            chosen = found[alike.index(number)]
    return chosen


def _are_copies(base: Board, number: int, found: Sequence[Fit]) -> bool:
    """Whether there are more such places than the author saw, or the author could not tell them apart.

    Of copies nobody can say which one is the one that was meant.
    """
    if number not in base.placed:
        return True
    return len(fits_at(base.hunks[number], base.sheet, found[0].level)) < len(found)


def _look_further(board: Board, number: int) -> None:
    """No place has all the old lines: blank lines apart, or by the votes of some; or it is done already."""
    hunk = board.hunks[number]
    if not hunk.old and not board.sheet.lines:
        board.placed[number] = _all_new(hunk, 0)
        return
    if not hunk.old:
        if hunk.at_end:
            board.placed[number] = _all_new(hunk, len(board.sheet.lines))
        else:
            board.troubles.append(Trouble(number, "malformed"))
        return
    done = _done_at(hunk, board.sheet)
    if done:
        board.troubles.append(Trouble(number, "already_applied", tuple(done)))
        return
    found = [
        fit for fit in fits_without_blanks(hunk, board.sheet) if is_anchored(hunk, board.sheet, fit)
    ]
    if len(found) > 1:
        board.troubles.append(Trouble(number, "ambiguous", tuple(fit.start for fit in found)))
        return
    voted = found[0] if found else _carried_or_voted(board, number)
    if voted is None or not is_anchored(hunk, board.sheet, voted):
        board.troubles.append(Trouble(number, "not_found"))
    else:
        board.placed[number] = voted


def _carried_or_voted(board: Board, number: int) -> Fit | None:
    """Where lines went that the author saw is known; only of others the lines around have to say it."""
    seen = _seen(board, number)
    if seen is None or board.trail is None:
        return voted_fit(board.hunks[number], board.sheet)
    return board.trail.carried(seen)


def _all_new(hunk: Hunk, at: int) -> Fit:
    return Fit("exact", at, at, (Splice(at, 0, hunk.rows),))


def _done_at(hunk: Hunk, sheet: Sheet) -> list[int]:
    """Where the lines stand that the hunk would leave: it was applied before."""
    keys = [row.text.rstrip() for row in hunk.new]
    says_enough = any(row.kind == "+" for row in hunk.rows) or len(keys) > 1
    return sheet.find("trailing", keys) if says_enough and any(keys) else []


def is_done(board: Board, number: int, fit: Fit) -> bool:
    """Whether a hunk that only adds finds its lines added already, at the place itself."""
    hunk = board.hunks[number]
    if board.is_base or any(row.kind == "-" for row in hunk.rows) or not hunk.old:
        return False
    new = [row.text for row in hunk.new]
    starts = board.sheet.find("exact", new)
    return fit.start in starts or fit.end - len(new) in starts
