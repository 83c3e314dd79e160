"""Ways to order files by a question: those of the literature, recomputed on the same index, and ours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from holdfast.codebase.index import Index
from holdfast.codebase.relevance import by_habit, by_words, relevant
from holdfast.codebase.words import asked_words

MOST = 10
Ranker = Callable[[Index, str], list[str]]
WEIGHTED = (8.0, 4.0, 1.0)


def term_count(index: Index, text: str) -> list[str]:
    """As one does with ripgrep: how many of the words a file has, then how often."""
    found: dict[str, list[int]] = {}
    words = [word for word in asked_words(text) if len(word) > 2]
    for read in index.source.read(index.entries_of([file.path for file in index.files()])):
        if read.content is None:
            continue
        low = read.content.lower()
        counts = [low.count(word.encode()) for word in words]
        found[read.entry.path] = [sum(1 for one in counts if one), sum(counts)]
    return sorted(found, key=lambda path: (*(-one for one in found[path]), path))[:MOST]


def content_bm25(index: Index, text: str) -> list[str]:
    """BM25 over the text alone, identifiers taken apart."""
    return _best(by_words(index, asked_words(text), (0.0, 0.0, 1.0)))


def weighted_bm25(index: Index, text: str) -> list[str]:
    """BM25 over path, symbols and text, weighted."""
    return _best(by_words(index, asked_words(text), WEIGHTED))


def with_prior(index: Index, text: str) -> list[str]:
    """The same plus how often and lately a file was changed."""
    scores = Counter(_scaled(by_words(index, asked_words(text), WEIGHTED)))
    habits = {path: math.log1p(value) for path, value in by_habit(index, 500.0).items()}
    for path, value in _scaled(habits).items():
        if path in scores:
            scores[path] += 0.3 * value  # type: ignore[assignment]  # a Counter of floats
    return _best(scores)


def ours(index: Index, text: str) -> list[str]:
    """What `holdfast code relevant` says."""
    return [one.path for one in relevant(index, text, MOST).files]


RANKERS: Mapping[str, Ranker] = {
    "ripgrep term count": term_count,
    "content BM25 with sub-words": content_bm25,
    "BM25 over content, path and symbols, weighted": weighted_bm25,
    "the same plus a git-history prior": with_prior,
    "holdfast code relevant": ours,
}


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    most = max(scores.values(), default=0.0)
    return {path: score / most for path, score in scores.items()} if most > 0 else {}


def _best(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda path: (-scores[path], path))[:MOST]
