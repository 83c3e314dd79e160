"""What an edit comes to before a byte is written: the files as they would be, or why not.

Reading a format and finding the places is one half of an edit, writing all files or none is the other.
This is what the first hands to the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal[
    "exact", "hinted", "trailing", "indented", "voted", "merged", "whole", "created", "deleted"
]
Why = Literal[
    "not_found",
    "ambiguous",
    "already_applied",
    "stale",
    "missing",
    "exists",
    "undecodable",
    "binary",
    "overlapping",
    "malformed",
    "out_of_scope",
    "protected",
    "too_large",
    "repeated",
    "syntax",
    "special",
]


@dataclass(frozen=True, slots=True)
class Planned:
    """One file: the digest of what stands there (None: nothing may), and its content afterwards.

    `after=None` deletes it. `mode=None` keeps the mode it has, or that of the file at `moved_from`, whose
    content this is; a new file gets the usual one. `levels` says by which step of the ladder each of its
    hunks found its place.
    """

    path: str
    before: str | None
    after: bytes | None
    mode: int | None = None
    levels: tuple[Level, ...] = ()
    moved_from: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an edit cannot be made as asked, and what would help. `hunk` counts from 1; 0: the whole file.

    `guidance` is for whoever wrote the edit: the nearest lines with their numbers, the places that fit, a
    line that would tell them apart.
    """

    path: str
    why: Why
    message: str
    hunk: int = 0
    line: int = 0
    guidance: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """All files of an edit as they would be. With a refusal nothing is written at all.

    `skipped` are hunks that change nothing, as (path, hunk).
    """

    files: tuple[Planned, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
