"""Which files a text is about: a bug report, a task, a commit message.

Three kinds of evidence, each between 0 and 1, are added up with the weights below. They were chosen on
histories of some public repositories and measured on others (docs/finding-files.md).

- words: BM25 over the path, the symbols and the text of each file, weighted, identifiers taken apart; words
  that stand together count once more where they stand together.
- commits: earlier commits whose messages have these words speak for the files they changed, late ones more.
- habit: what was changed in the last few commits is changed again.

At the end files that used to be changed together with the best ones gain a little. The import graph is not
used here: as evidence it makes the order worse. It is for going on from the hits (`impact`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.codebase.facts import Ranked
from holdfast.codebase.index import Index
from holdfast.codebase.words import asked_phrases, asked_words

COLUMNS = (8.0, 4.0, 1.0)  # path, symbols, text
COMMITS, HABIT, TOGETHER = 0.8, 0.4, 0.3  # beside 1 for the words
_MOST_WORDS = 60
_CANDIDATES = 1_000
_ALIKE = 100  # commits that are heard
_AGE = 1_000.0  # commits after which one counts a third
_RECENT = 10.0  # the same for habit
_LEADERS = 3  # files whose companions gain
_COMPANY = 15  # files of a commit that says which belong together
_FEW = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """Files, the likeliest first, and the words that were looked for."""

    files: tuple[Ranked, ...]
    words: tuple[str, ...]


def relevant(index: Index, text: str, limit: int = 10) -> Answer:
    """The files that a text is likely about; the best has the score 1, others a part of it."""
    words = asked_words(text)[:_MOST_WORDS]
    terms = [*words, *asked_phrases(text, words)]
    spoken = _scaled(by_words(index, terms, COLUMNS))
    told = _scaled(by_commits(index, terms))
    habits = _scaled({path: math.log1p(v) for path, v in by_habit(index, _RECENT).items()})
    numbers = _numbers(index)
    total = {
        path: spoken.get(path, 0.0) + COMMITS * told.get(path, 0.0) + HABIT * habits.get(path, 0.0)
        for path in sorted(spoken.keys() | told.keys())
        if path in numbers
    }
    company = _company(index, _first(total, _LEADERS))
    for path, (gain, _) in company.items():
        if path in numbers:
            total[path] = total.get(path, 0.0) + TOGETHER * gain
    best = _first(total, limit)
    most = next(iter(best.values()), 0.0) or 1.0
    files = []
    for path, score in best.items():
        reasons = _words_in(index, words, numbers[path])
        if told.get(path, 0.0) > (0.1 if reasons else 0.0):  # little is not worth a word
            reasons.append("changed by commits with such words")
        if habits.get(path, 0.0) > 0.5:  # noqa: PLR2004 - among the last
            reasons.append("changed lately")
        gain, leader = company.get(path, (0.0, ""))
        if leader and (not reasons or gain > 0.5):  # noqa: PLR2004 - more often than not
            reasons.append(f"changed together with {leader}")
        files.append(Ranked(path, round(score / most, 4), tuple(reasons)))
    return Answer(tuple(files), tuple(words))


def by_words(
    index: Index, terms: Sequence[str], columns: tuple[float, float, float]
) -> dict[str, float]:
    """BM25 of the files that have any of the terms, weighted by path, symbols and text."""
    if not terms:
        return {}
    found = index.database.rows(
        "SELECT file.path, bm25(words, ?, ?, ?) AS rank_ FROM words"
        " JOIN file ON file.id = words.rowid WHERE words MATCH ? ORDER BY rank_ LIMIT ?",
        (*columns, _any_of(terms), _CANDIDATES),
    )
    return {os.fsdecode(_bytes(path)): -_number(rank) for path, rank in found}


def by_commits(index: Index, terms: Sequence[str]) -> dict[str, float]:
    """How much earlier commits with these terms speak for the files they changed."""
    if not terms:
        return {}
    found = index.database.rows(
        "SELECT said.rowid, bm25(said) AS rank_, place FROM said"
        " JOIN placed ON placed.id = said.rowid"
        " WHERE said MATCH ? ORDER BY rank_, place LIMIT ?",
        (_any_of(terms), _ALIKE),
    )
    scores: dict[str, float] = {}
    for commit, rank, place in found:
        paths = index.database.rows("SELECT path FROM change WHERE commit_ = ?", (commit,))
        weight = _number(rank) ** 2 * math.exp(-_number(place) / _AGE)
        for (path,) in paths:
            name = os.fsdecode(_bytes(path))
            scores[name] = scores.get(name, 0.0) + weight / math.sqrt(len(paths))
    return scores


def by_habit(index: Index, age: float) -> dict[str, float]:
    """How often each file was changed; a change counts a third after `age` commits."""
    scores: dict[str, float] = {}
    found = index.database.rows(
        "SELECT path, place FROM change JOIN placed ON placed.id = commit_"
        " WHERE place <= ? ORDER BY place, path",
        (20 * age,),
    )
    for path, place in found:
        name = os.fsdecode(_bytes(path))
        scores[name] = scores.get(name, 0.0) + math.exp(-_number(place) / age)
    return scores


def _company(index: Index, leaders: Mapping[str, float]) -> dict[str, tuple[float, str]]:
    """Files that used to be changed with others: how often, times the score of the other, and which."""
    gains: dict[str, tuple[float, str]] = {}
    for leader, score in leaders.items():
        found = index.database.rows(
            "SELECT commit_, path FROM change WHERE commit_ IN"
            " (SELECT commit_ FROM change WHERE path = ?) ORDER BY commit_, path",
            (os.fsencode(leader),),
        )
        commits: dict[int, list[str]] = {}
        for commit, path in found:
            commits.setdefault(int(_number(commit)), []).append(os.fsdecode(_bytes(path)))
        shared = [paths for paths in commits.values() if 1 < len(paths) <= _COMPANY]
        counts: dict[str, int] = {}
        for paths in shared:
            for path in paths:
                counts[path] = counts.get(path, 0) + (path != leader)
        for path, count in counts.items():
            gain = score * count / (len(shared) + 3)
            if count > 1 and gain > gains.get(path, (0.0, ""))[0]:
                gains[path] = (gain, leader)
    return gains


def _first(scores: Mapping[str, float], many: int) -> dict[str, float]:
    best = sorted(scores.items(), key=lambda item: (-item[1], os.fsencode(item[0])))
    return dict(best[:many])


def _any_of(terms: Iterable[str]) -> str:
    """A question to FTS5: any of these, none of them read as an operator."""
    return " OR ".join(f'"{term}"' for term in terms)


def _numbers(index: Index) -> dict[str, int]:
    found = index.database.rows("SELECT path, id FROM file")
    return {os.fsdecode(_bytes(path)): int(_number(number)) for path, number in found}


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    most = max(scores.values(), default=0.0)
    return {path: score / most for path, score in scores.items()} if most > 0 else {}


def _words_in(index: Index, words: Sequence[str], number: int) -> list[str]:
    having = [
        word
        for word in words
        if index.database.rows(
            "SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?", (f'"{word}"', number)
        )
    ]
    more = " …" if len(having) > _FEW else ""
    return [f"has {', '.join(having[:_FEW])}{more}"] if having else []


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return value
