"""What an edit comes to before a byte is written: the files as they would be, or why not.

Reading a format and finding the places is one half of an edit, writing all files or none is the other.
This is what the first hands to the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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


_USUAL: Mapping[Why, str] = {
    "missing": "look which files there are; a new file is created, or given whole",
    "exists": "change the file that is there, or choose another name",
    "stale": "read the file again, and make the edit for what it is now",
    "binary": "only text is edited; put the whole file there another way",
    "undecodable": "say the encoding of the file, in the JSON form; UTF-32 is not edited",
    "overlapping": "say in one place what shall become of a file",
    "malformed": "write it as search/replace blocks, unified diff, V4A patch, whole files or JSON",
    "special": "name a regular file that has one name and is no link; others are left to a person",
}


def helped(refusal: Refusal) -> Refusal:
    """A refusal with what usually helps, if nothing more exact is known."""
    usual = _USUAL.get(refusal.why, "")
    return refusal if refusal.guidance or not usual else replace(refusal, guidance=usual)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All files of an edit as they would be. With a refusal nothing is written at all.

    `skipped` are hunks that change nothing, as (path, hunk).
    """

    files: tuple[Planned, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
