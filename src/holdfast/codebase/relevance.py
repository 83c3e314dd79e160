"""Which files a text is about: a bug report, a task, a commit message.

Three kinds of evidence, each between 0 and 1, are added up with the weights below; what each is worth was
measured on histories of public repositories (docs/benchmarks.md).

- words: BM25 over the path, the symbols and the text of each file, weighted, identifiers taken apart.
- commits: earlier commits whose messages have the words of the text speak for the files they changed.
- habit: files that are changed often and lately are changed again.

The import graph is not used here: as evidence it makes the order worse. It is for going on from the hits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.codebase.facts import Ranked
from holdfast.codebase.index import Index
from holdfast.codebase.words import asked_words

COLUMNS = (8.0, 4.0, 1.0)  # path, symbols, text
WORDS, COMMITS, HABIT = 1.0, 0.6, 0.3
_MOST_WORDS = 60
_CANDIDATES = 1_000
_ALIKE = 50  # commits
_HALF = 500.0  # commits after which a change counts a third
_FEW = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """Files, the likeliest first, and the words that were looked for."""

    files: tuple[Ranked, ...]
    words: tuple[str, ...]


def relevant(index: Index, text: str, limit: int = 10) -> Answer:
    """The files that a text is likely about; the best has the score 1, others a part of it."""
    words = asked_words(text)[:_MOST_WORDS]
    names = _names(index)
    spoken = _scaled(by_words(index, words, COLUMNS))
    told = _scaled(by_commits(index, words))
    habits = _scaled({path: math.log1p(v) for path, v in by_habit(index).items()})
    known = set(names.values())
    total = {
        path: WORDS * spoken.get(path, 0.0)
        + COMMITS * told.get(path, 0.0)
        + HABIT * habits.get(path, 0.0)
        for path in (spoken.keys() | told.keys()) & known
    }
    best = sorted(total.items(), key=lambda item: (-item[1], os.fsencode(item[0])))[:limit]
    numbers = {path: number for number, path in names.items()}
    files = tuple(
        Ranked(
            path,
            round(score / best[0][1], 4) if best[0][1] else 0.0,
            _reasons(index, words, numbers[path], path, told, habits),
        )
        for path, score in best
    )
    return Answer(files, tuple(words))


def matching(words: Iterable[str]) -> str:
    """A question to FTS5: any of these words, none of them read as an operator."""
    return " OR ".join(f'"{word}"' for word in words)


def by_words(
    index: Index, words: list[str], columns: tuple[float, float, float]
) -> dict[str, float]:
    """BM25 of the files that have any of the words."""
    if not words:
        return {}
    found = index.database.rows(
        "SELECT file.path, bm25(words, ?, ?, ?) AS rank_ FROM words"
        " JOIN file ON file.id = words.rowid WHERE words MATCH ? ORDER BY rank_ LIMIT ?",
        (*columns, matching(words), _CANDIDATES),
    )
    return {os.fsdecode(_bytes(path)): -_number(rank) for path, rank in found}


def by_commits(index: Index, words: list[str]) -> dict[str, float]:
    """How much earlier commits with these words speak for the files they changed."""
    if not words:
        return {}
    found = index.database.rows(
        "SELECT rowid, bm25(said) AS rank_ FROM said WHERE said MATCH ? ORDER BY rank_ LIMIT ?",
        (matching(words), _ALIKE),
    )
    scores: dict[str, float] = {}
    for commit, rank in found:
        paths = index.database.rows("SELECT path FROM change WHERE commit_ = ?", (commit,))
        for (path,) in paths:
            name = os.fsdecode(_bytes(path))
            scores[name] = scores.get(name, 0.0) + _number(rank) ** 2 / math.sqrt(len(paths))
    return scores


def by_habit(index: Index) -> dict[str, float]:
    """How often each file was changed, late changes counting more."""
    scores: dict[str, float] = {}
    found = index.database.rows(
        "SELECT path, place FROM change JOIN"
        " (SELECT id, row_number() OVER (ORDER BY at DESC, name) AS place FROM commit_) AS placed"
        " ON placed.id = commit_"
    )
    for path, place in found:
        name = os.fsdecode(_bytes(path))
        scores[name] = scores.get(name, 0.0) + math.exp(-_number(place) / _HALF)
    return scores


def _names(index: Index) -> dict[int, str]:
    found = index.database.rows("SELECT id, path FROM file")
    return {int(_number(number)): os.fsdecode(_bytes(path)) for number, path in found}


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    most = max(scores.values(), default=0.0)
    return {path: score / most for path, score in scores.items()} if most > 0 else {}


def _reasons(
    index: Index,
    words: list[str],
    number: int,
    path: str,
    told: Mapping[str, float],
    habits: Mapping[str, float],
) -> tuple[str, ...]:
    having = [
        word
        for word in words
        if index.database.rows(
            "SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?", (f'"{word}"', number)
        )
    ]
    reasons = []
    if having:
        more = " …" if len(having) > _FEW else ""
        reasons.append(f"has {', '.join(having[:_FEW])}{more}")
    if told.get(path, 0.0) > 0.1:  # noqa: PLR2004 - less is not worth a word
        reasons.append("changed by commits with such words")
    if habits.get(path, 0.0) > 0.5:  # noqa: PLR2004 - among those changed most
        reasons.append("often changed")
    return tuple(reasons)


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return value
