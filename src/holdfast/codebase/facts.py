"""What is known about a code base: files, symbols, imports, commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

KINDS = (
    "class",
    "constant",
    "enum",
    "field",
    "function",
    "interface",
    "macro",
    "method",
    "module",
    "struct",
    "trait",
    "type",
)


class Symbol(NamedTuple):
    """A name that a source defines; lines count from 1, `scope` names what it is defined in."""

    name: str
    kind: str
    line: int
    end: int
    scope: str
    signature: str


class Import(NamedTuple):
    """What a source asks for, as its language writes it; `item` is the name taken from it, if one is."""

    name: str
    line: int
    item: str = ""


@dataclass(frozen=True, slots=True)
class Outline:
    """What a parser found in one source; `flaws` counts the places it could not parse."""

    symbols: tuple[Symbol, ...] = ()
    imports: tuple[Import, ...] = ()
    flaws: int = 0


@dataclass(frozen=True, slots=True)
class File:
    """A file of the code base as it is indexed; `state` says why there is nothing but its name."""

    path: str
    language: str
    key: str
    size: int
    lines: int
    parsed: bool
    flaws: int
    state: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """A file with a score, 1 for the best, and why it is there."""

    path: str
    score: float
    reasons: tuple[str, ...]
