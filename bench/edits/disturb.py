"""What may happen to a file between reading it and editing it, and to the edit on its way.

Each disturbance is a rule over the lines that a commit keeps, removes and adds. The truth is the same rule
applied to the file after the commit. Where a rule would leave more than one right answer, or none, the case
is one that must be refused, or the rule does not apply; that is decided here, before anything is measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.edits.commits import Change, spans_of
from holdfast.edits.render import hunks_of
from holdfast.edits.wanted import Hunk, Row

AROUND = 3
Entries = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Case:
    """A target and what it shall become; None: it must be refused. Hunks with numbers, and unique ones."""

    change: Change
    kind: str
    target: bytes
    truth: bytes | None
    numbered: tuple[Hunk, ...]
    unique: tuple[Hunk, ...]

    @property
    def name(self) -> str:
        return f"{self.kind} {self.change.name}"


def cases(change: Change) -> list[Case]:
    """All disturbances that apply to a change."""
    before = [(line, "\n") for line in change.before.decode().split("\n")[:-1]]
    after = [(line, "\n") for line in change.after.decode().split("\n")[:-1]]
    spans = spans_of(change.entries)
    numbered = tuple(hunks_of(before, after, spans))
    unique = tuple(hunks_of(before, after, spans, unique=True))
    found = []
    for kind, rule in {**OF_TARGET, **REFUSED}.items():
        made = rule(list(change.entries), random.Random(f"{kind} {change.commit}"))
        if made is not None:
            target, truth = made
            if kind in REFUSED or truth != target:
                wanted = None if kind in REFUSED else truth
                found.append(Case(change, kind, target, wanted, numbered, unique))
    beside = _copied_beside(change.before, unique[0])
    found.append(Case(change, "copied beside", beside, None, numbered, unique))
    for kind, bend in OF_EDIT.items():
        both = [bend(part, random.Random(f"{kind} {change.commit}")) for part in (numbered, unique)]
        if both[0] is not None and both[1] is not None:
            found.append(Case(change, kind, change.before, change.after, both[0], both[1]))
    return found


# The target.


def _bytes(entries: Entries, ending: str = "\n") -> tuple[bytes, bytes]:
    before = "".join(f"{line}{ending}" for kind, line in entries if kind != "+")
    after = "".join(f"{line}{ending}" for kind, line in entries if kind != "-")
    return before.encode(), after.encode()


def _zone(entries: Entries, around: int = AROUND) -> set[int]:
    """The kept lines near changed ones."""
    changed = [at for at, (kind, _) in enumerate(entries) if kind != " "]
    near: set[int] = set()
    for at in changed:
        for step in (-1, 1):
            there, left = at + step, around
            while 0 <= there < len(entries) and left and entries[there][0] == " ":
                near.add(there)
                there, left = there + step, left - 1
    return near


def _at_distance(entries: Entries, distance: int) -> list[int]:
    """Kept lines just so far from the nearest changed one."""
    return sorted(_zone(entries, distance) - _zone(entries, distance - 1))


def _as_it_is(entries: Entries, _: random.Random) -> tuple[bytes, bytes]:
    return _bytes(entries)


def _lines_above(entries: Entries, rng: random.Random) -> tuple[bytes, bytes]:
    new = [(" ", f"inserted line {rng.randrange(10**9)}") for _ in range(rng.randint(1, 20))]
    return _bytes(new + entries)


def _lines_between(entries: Entries, rng: random.Random) -> tuple[bytes, bytes] | None:
    """Other people's lines somewhere away from the changed ones."""
    zone = _zone(entries)
    free = [
        at
        for at in range(1, len(entries))
        if all(entries[n][0] == " " and n not in zone for n in (at - 1, at))
    ]
    if not free:
        return None
    for at in sorted(rng.sample(free, min(3, len(free))), reverse=True):
        new = [(" ", f"inserted line {rng.randrange(10**9)}") for _ in range(rng.randint(1, 6))]
        entries[at:at] = new
    return _bytes(entries)


def _others_changed(entries: Entries, rng: random.Random) -> tuple[bytes, bytes] | None:
    """Other people's changes and deletions away from the changed lines."""
    zone = _zone(entries)
    free = [
        at
        for at, (kind, line) in enumerate(entries)
        if kind == " " and at not in zone and line.strip()
    ]
    if len(free) < 4:
        return None
    for number, at in enumerate(sorted(rng.sample(free, 4), reverse=True)):
        if number % 2:
            del entries[at]
        else:
            entries[at] = (" ", f"{entries[at][1]} changed")
    return _bytes(entries)


def _blanks_at_ends(entries: Entries, rng: random.Random) -> tuple[bytes, bytes]:
    return _bytes(
        [
            (k, line + "  " if k == " " and line and rng.random() < 0.5 else line)
            for k, line in entries
        ]
    )


def _blanks_at_all_ends(entries: Entries, _: random.Random) -> tuple[bytes, bytes]:
    """Also of the lines that go; those that come have none."""
    return _bytes([(k, line + " " if k != "+" and line.strip() else line) for k, line in entries])


def _reindented(entries: Entries, _: random.Random) -> tuple[bytes, bytes] | None:
    """Tabs for spaces or spaces for tabs; only where each indentation is a whole number of either.

    Not where a hunk adds indented lines and has no other: nothing in it tells how the file is indented.
    """
    if not _shows_indents(entries):
        return None
    found = []
    has_tabs = any(line.startswith("\t") for _, line in entries)
    for kind, line in entries:
        body = line.lstrip(" \t")
        indent = line[: len(line) - len(body)]
        if has_tabs and indent.strip("\t") == "":
            found.append((kind, "    " * len(indent) + body))
        elif not has_tabs and indent.strip(" ") == "" and len(indent) % 4 == 0:
            found.append((kind, "\t" * (len(indent) // 4) + body))
        else:
            return None
    if found == entries:
        return None
    return _bytes(found)


def _shows_indents(entries: Entries) -> bool:
    """Whether each hunk that adds an indented line has one that is kept or removed."""
    zone = _zone(entries)
    adds = shows = False
    for at, (kind, line) in enumerate([*entries, (" ", "")]):
        if kind == " " and at not in zone:
            if adds and not shows:
                return False
            adds = shows = False
        elif line.strip() and line[0] in " \t":
            adds, shows = adds or kind == "+", shows or kind != "+"
    return True


def _deeper(entries: Entries, _: random.Random) -> tuple[bytes, bytes]:
    """All of it inside something else."""
    return _bytes([(kind, f"    {line}" if line.strip() else line) for kind, line in entries])


def _crlf(entries: Entries, _: random.Random) -> tuple[bytes, bytes]:
    return _bytes(entries, "\r\n")


def _half_crlf(entries: Entries, rng: random.Random) -> tuple[bytes, bytes] | None:
    """The upper part with carriage returns; the border lies away from what is changed."""
    zone = _zone(entries)
    free = [at for at, (kind, _) in enumerate(entries) if kind == " " and at not in zone]
    if not free:
        return None
    border = rng.choice(free)
    upper, lower = _bytes(entries[:border], "\r\n"), _bytes(entries[border:])
    return upper[0] + lower[0], upper[1] + lower[1]


def _mark(entries: Entries, _: random.Random) -> tuple[bytes, bytes]:
    target, truth = _bytes(entries)
    return b"\xef\xbb\xbf" + target, b"\xef\xbb\xbf" + truth


def _no_final_newline(entries: Entries, _: random.Random) -> tuple[bytes, bytes]:
    target, truth = _bytes(entries)
    return target[:-1], truth[:-1]


def _stale(distance: int) -> Rule:
    """A kept line so far from the changed ones is another now."""

    def rule(entries: Entries, rng: random.Random) -> tuple[bytes, bytes] | None:
        near = [at for at in _at_distance(entries, distance) if entries[at][1].strip()]
        if not near:
            return None
        at = rng.choice(near)
        entries[at] = (" ", f"{entries[at][1]} changed")
        return _bytes(entries)

    return rule


def _line_in_context(entries: Entries, rng: random.Random) -> tuple[bytes, bytes] | None:
    """Somebody's new line between two kept lines near the changed ones."""
    zone = _zone(entries)
    pairs = [at for at in zone if at - 1 in zone]
    if not pairs:
        return None
    entries.insert(rng.choice(sorted(pairs)), (" ", f"inserted line {rng.randrange(10**9)}"))
    return _bytes(entries)


def _no_blank_lines(entries: Entries, _: random.Random) -> tuple[bytes, bytes] | None:
    """Blank kept lines near the changed ones are gone."""
    zone = _zone(entries)
    left = [e for at, e in enumerate(entries) if not (at in zone and not e[1].strip())]
    return _bytes(left) if len(left) != len(entries) else None


# What must be refused.


def _copied(entries: Entries, _: random.Random) -> tuple[bytes, bytes] | None:
    """Every place stands twice: the whole file is followed by a copy of itself."""
    target, truth = _bytes(entries)
    return target + target, truth


def _copied_beside(before: bytes, hunk: Hunk) -> bytes:
    """The old lines of a hunk stand twice, side by side: nobody can say which are meant."""
    lines = before.decode().split("\n")[:-1]
    start = hunk.line - 1
    lines[start:start] = [row.text for row in hunk.old]
    return "".join(f"{line}\n" for line in lines).encode()


def _applied(entries: Entries, _: random.Random) -> tuple[bytes, bytes] | None:
    truth = _bytes(entries)[1]
    return truth, truth


def _conflict(entries: Entries, rng: random.Random) -> tuple[bytes, bytes] | None:
    """A line that goes was changed by somebody else meanwhile."""
    removed = [at for at, (kind, line) in enumerate(entries) if kind == "-" and line.strip()]
    if not removed:
        return None
    at = rng.choice(removed)
    entries[at] = ("-", f"{entries[at][1]} changed")
    return _bytes(entries)


# The edit.


def _wrong_numbers(hunks: Sequence[Hunk], rng: random.Random) -> tuple[Hunk, ...] | None:
    """Line numbers as a model writes them: each somewhere else."""
    return tuple(
        replace(hunk, line=max(1, hunk.line + rng.choice((-1, 1)) * rng.randint(1, 60)))
        for hunk in hunks
    )


def _dedented(hunks: Sequence[Hunk], _: random.Random) -> tuple[Hunk, ...] | None:
    """Each hunk without the indentation that all its lines have; only where some hunk has any.

    Not where lines of nothing but blanks come or go: what they were is lost.
    """
    if any(
        row.kind != " " and row.text and not row.text.strip() for hunk in hunks for row in hunk.rows
    ):
        return None
    found = tuple(_shallow(hunk) for hunk in hunks)
    return found if found != tuple(hunks) else None


def _shallow(hunk: Hunk) -> Hunk:
    solid = [row.text for row in hunk.rows if row.text.strip()]
    depth = 0
    while solid and all(
        line[: depth + 1] == solid[0][: depth + 1] and line[depth] in " \t" for line in solid
    ):
        depth += 1
    rows = tuple(
        Row(row.kind, row.text[depth:] if row.text.strip() else "", row.ending) for row in hunk.rows
    )
    return replace(hunk, rows=rows) if depth else hunk


Rule = Callable[[Entries, random.Random], tuple[bytes, bytes] | None]
OF_TARGET: dict[str, Rule] = {
    "as it is": _as_it_is,
    "lines above": _lines_above,
    "lines between": _lines_between,
    "others changed": _others_changed,
    "blanks at line ends": _blanks_at_ends,
    "blanks at all line ends": _blanks_at_all_ends,
    "tabs for spaces": _reindented,
    "deeper": _deeper,
    "CRLF": _crlf,
    "half CRLF": _half_crlf,
    "byte order mark": _mark,
    "no final newline": _no_final_newline,
    "third line changed": _stale(3),
    "next line changed": _stale(1),
    "line in context": _line_in_context,
    "blank lines dropped": _no_blank_lines,
}
REFUSED: dict[str, Rule] = {
    "copied": _copied,
    "already applied": _applied,
    "conflict": _conflict,
}
OF_EDIT: dict[str, Callable[[Sequence[Hunk], random.Random], tuple[Hunk, ...] | None]] = {
    "wrong line numbers": _wrong_numbers,
    "dedented edit": _dedented,
}
