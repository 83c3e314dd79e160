"""Places where only part of the kept lines is left: those kept lines that are there have the vote.

Each run of removed and added rows looks for its own place. Its removed lines must stand there together. Where
nothing is removed, one of the two lines between which rows come must stand there, and lines on both sides
must have voted for it. The place with most votes of the lines around it is taken if it leads by a whole line
and has at least half of all votes.

A vote counts less with each line that came between. One of the two lines next to the run must be next to the
place, too; and the runs of a hunk stay about as far from each other as they were.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from holdfast.edits.fit import Fit, Group, Splice, groups
from holdfast.edits.sheet import Sense, Sheet, key_of
from holdfast.edits.wanted import Hunk, Row

_AROUND = 8  # kept rows that have a vote on each side
_SLACK = 6  # lines of the file that may have come between them
_MOST = 200  # places worth a count
_BETWEEN = 0.2  # of a vote, for each line that came between
_LEAD = 1.0
_SHARE = 0.5  # of all votes
_ENOUGH = 0.5  # of a vote, on a side that has lines of words
_SENSES: tuple[Sense, ...] = ("exact", "trailing")


@dataclass(frozen=True, slots=True)
class _Voters:
    """A group with the kept rows around it, nearest first."""

    group: Group
    above: tuple[str, ...]
    below: tuple[str, ...]


def voted_fit(hunk: Hunk, sheet: Sheet) -> Fit | None:
    """The one place that the votes leave, or None."""
    for sense in _SENSES:
        splices: list[Splice] = []
        pairs: list[tuple[Row, int]] = []
        done = 0
        for group in groups(hunk):
            place = _elected(_voters(hunk, group, sense), sheet, sense)
            if place is None or (splices and not _follows(splices[-1].end, place, group, done)):
                break
            done = group.end
            splices.append(Splice(place, len(group.removed), group.added))
            pairs += zip(group.removed, range(place, place + len(group.removed)), strict=True)
        else:
            if splices:
                return Fit("voted", splices[0].start, splices[-1].end, tuple(splices), tuple(pairs))
    return None


def _follows(end: int, place: int, group: Group, done: int) -> bool:
    """Whether a group stands below the one before, about as far as in the hunk."""
    return place > end and abs(place - end - (group.start - done)) <= _SLACK


def _voters(hunk: Hunk, group: Group, sense: Sense) -> _Voters:
    above = _nearest(hunk, range(group.start - 1, -1, -1), sense)
    return _Voters(group, above, _nearest(hunk, range(group.end, len(hunk.rows)), sense))


def _nearest(hunk: Hunk, order: range, sense: Sense) -> tuple[str, ...]:
    rows = (hunk.rows[at] for at in order)
    old = (key_of(sense, row.text) for row in rows if row.kind != "+")
    return tuple(itertools.islice(old, _AROUND))


def _elected(voters: _Voters, sheet: Sheet, sense: Sense) -> int | None:
    places = _places(voters, sheet, sense)
    if not places or len(places) > _MOST:
        return None
    sheet.effort.spend(100 * len(places))
    keys = sheet.keys(sense)
    total = sum(map(_weight, (*voters.above, *voters.below)))
    counted = sorted(((*_votes(voters, keys, place), place) for place in places), reverse=True)
    best, is_between, place = counted[0]
    second = counted[1][0] if len(counted) > 1 else -_LEAD
    wins = best >= max(total * _SHARE, _LEAD) and best - second >= _LEAD
    is_there = (is_between or voters.group.removed) and _is_beside(voters, keys, place)
    return place if wins and is_there else None


def _is_beside(voters: _Voters, keys: Sequence[str], place: int) -> bool:
    """Whether a line next to the group is next to the place; if only blank lines go, both must be."""
    after = place + len(voters.group.removed)
    above = place > 0 and voters.above[:1] == (keys[place - 1],)
    below = after < len(keys) and voters.below[:1] == (keys[after],)
    if voters.group.removed and not any(row.text.strip() for row in voters.group.removed):
        return above and below
    return above or below


def _places(voters: _Voters, sheet: Sheet, sense: Sense) -> Collection[int]:
    """Where the removed lines stand; where nothing is removed, next to one of the two lines around."""
    removed = [key_of(sense, row.text) for row in voters.group.removed]
    if removed:
        return sheet.find(sense, removed)
    above, below = voters.above[:2], voters.below[:2]
    found: set[int] = set()
    if above and below:  # one side alone does not say what follows it
        for block in (above[:1], above[:2]):
            if any(_weight(key) == 1 for key in block):
                found.update(at + len(block) for at in sheet.find(sense, block[::-1]))
                break
        for block in (below[:1], below[:2]):
            if any(_weight(key) == 1 for key in block):
                found.update(sheet.find(sense, block))
                break
        found.update(at + 1 for at in sheet.find(sense, [above[0], below[0]]))
    return found


def _weight(key: str) -> float:
    """A line of words has a vote; one of brackets or nothing a small part of it."""
    if any(c.isalnum() for c in key):
        return 1.0
    return 0.25 if key.strip() else 0.1


def _votes(voters: _Voters, keys: Sequence[str], place: int) -> tuple[float, bool]:
    """The votes for a place, and whether lines of words above it and below it are among them."""
    after = place + len(voters.group.removed)
    reach = len(voters.above) + _SLACK
    above = _common(voters.above, keys[max(place - reach, 0) : place][::-1])
    below = _common(voters.below, keys[after : after + len(voters.below) + _SLACK])
    is_between = _has_voted(above, voters.above) and _has_voted(below, voters.below)
    return above + below, is_between


def _has_voted(votes: float, side: Sequence[str]) -> bool:
    """Whether a line of words has voted, of a side that has any; else whether any line has."""
    return votes >= _ENOUGH if any(_weight(key) == 1 for key in side) else votes > 0 or not side


def _common(rows: Sequence[str], lines: Sequence[str]) -> float:
    """The weight of what both have, in one order, nearest first; lines that lie between take some away."""
    last = [-_BETWEEN * at for at in range(len(lines) + 1)]
    most = 0.0
    for row in rows:
        weight = _weight(row)
        best = [0.0]
        for at, line in enumerate(lines):
            taken = last[at] + weight if line == row else -1.0
            best.append(max(taken, last[at + 1], best[at] - _BETWEEN))
        last = best
        most = max(most, *best)
    return most
