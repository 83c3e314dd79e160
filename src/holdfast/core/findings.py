"""Findings of several reviewers made one list: duplicates folded, the doubtful ones left out.

Two findings are one if they are about the same place (the same file, at most five lines apart; a finding
without a place is about any) and their words are more alike than the rules say: twice the words they
share, by all words they have. Which findings are compared is decided by their rarest words, so that ten
thousand different ones are not compared with each other; no pair that is alike is missed by that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from holdfast.core.conflict import as_severity, as_share
from holdfast.model.agent import Rules
from holdfast.model.conflict import SEVERITIES, Severity
from holdfast.model.digest import Json

NEAR = 5  # lines
_WORD = re.compile(r"\w+")
_LINE = re.compile(r":([0-9]{1,9})(?:[:-][0-9]{1,9})?\Z")
_TEXT = ("title", "description")
_CERTAIN = 2.0  # sorts before every confidence: nobody said how sure they are


class Place(NamedTuple):
    """A file and a line; an empty file is no place, line 0 is the whole file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding as a reviewer gave it. `confidence` is nothing if it was not said."""

    source: str
    given: Mapping[str, Json]
    words: frozenset[str]
    place: Place
    severity: Severity
    confidence: float | None

    @property
    def sure(self) -> float:
        """How sure, to be compared."""
        return _CERTAIN if self.confidence is None else self.confidence


@dataclass(frozen=True, slots=True)
class Merged:
    """A finding that stays, the others that say the same, and the best that any of them claims."""

    finding: Finding
    same: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """The gravest of all."""
        all_of = (self.finding, *self.same)
        return min((one.severity for one in all_of), key=SEVERITIES.index)

    @property
    def sources(self) -> tuple[str, ...]:
        """Who found it, each once."""
        return tuple(sorted({one.source for one in (self.finding, *self.same)}))


def finding_from(source: str, given: Mapping[str, Json]) -> Finding:
    """Read what a reviewer gave; confidence from 0 to 1 or in percent."""
    text = " ".join(str(given.get(key) or "") for key in _TEXT)
    said = given.get("confidence")
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    return Finding(
        source=str(given.get("agent") or source),
        given=given,
        words=frozenset(_WORD.findall(text.casefold())),
        place=_place(given.get("location")),
        severity=as_severity(given.get("severity")),
        confidence=as_share(said, 1.0) if is_number else None,
    )


def _place(location: Json) -> Place:
    text = location.strip() if isinstance(location, str) else ""
    found = _LINE.search(text)
    return Place(text[: found.start()], int(found[1])) if found else Place(text, 0)


def merge(findings: Iterable[Finding], rules: Rules) -> tuple[list[Merged], list[Merged]]:
    """The findings that stay and those that nobody is sure enough of; the surest first, then by place."""
    ordered = sorted(findings, key=_order)
    folded = _fold(ordered, rules.similarity)
    kept = [one for one in folded if one.finding.sure >= rules.confidence]
    left = [one for one in folded if one.finding.sure < rules.confidence]
    return kept, left


def _order(finding: Finding) -> tuple[float, int, Place, str, list[str]]:
    rank = SEVERITIES.index(finding.severity)
    return (-finding.sure, rank, finding.place, finding.source, sorted(finding.words))


def _fold(ordered: Sequence[Finding], similarity: float) -> list[Merged]:
    """Each finding joins the first before it that says the same; without one, it stays."""
    often = Counter(word for one in ordered for word in one.words)
    heads: list[Finding] = []
    same: list[list[Finding]] = []
    index: dict[str, list[int]] = {}
    for one in ordered:
        rare = sorted(one.words, key=lambda word: (often[word], word))
        prefix = rare[: _prefix(len(rare), similarity)] or [""]
        candidates = sorted({place for word in prefix for place in index.get(word, ())})
        home = next((n for n in candidates if _is_same(heads[n], one, similarity)), None)
        if home is not None:
            same[home].append(one)
            continue
        for word in prefix:
            index.setdefault(word, []).append(len(heads))
        heads.append(one)
        same.append([])
    return [Merged(head, tuple(more)) for head, more in zip(heads, same, strict=True)]


def _prefix(size: int, similarity: float) -> int:
    """How many of its rarest words a finding must share one of with anything that is alike."""
    least = ceil(similarity / (2 - similarity) * size - 1e-9)
    return size - max(least, 1) + 1


def _is_same(one: Finding, other: Finding, similarity: float) -> bool:
    return _is_near(one.place, other.place) and alike(one.words, other.words) > similarity


def _is_near(one: Place, other: Place) -> bool:
    if not one.file or not other.file:
        return True
    if one.file != other.file:
        return False
    return not one.line or not other.line or abs(one.line - other.line) <= NEAR


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """From 0 to 1: twice the words that both have, by all words of either; two without words are equal."""
    if not one and not other:
        return 1.0
    return 2 * len(one & other) / (len(one) + len(other))


def merged_json(merged: Merged) -> dict[str, Json]:
    """A merged finding: all that its surest reviewer said of it, and who else found it."""
    sources: list[Json] = [*merged.sources]
    return {
        **merged.finding.given,
        "severity": merged.severity.upper(),
        "confidence": merged.finding.confidence,
        "sources": sources,
        "duplicates": len(merged.same),
    }


def report(findings: Iterable[Finding], rules: Rules) -> dict[str, Json]:
    """What a step that merges findings gives: the list, and a summary of it."""
    given = list(findings)
    kept, left = merge(given, rules)
    grave = Counter(one.severity for one in kept)
    severities: dict[str, Json] = {word.upper(): grave[word] for word in SEVERITIES if grave[word]}
    return {
        "merged_findings": [merged_json(one) for one in kept],
        "summary": {
            "found": len(given),
            "kept": len(kept),
            "folded": sum(len(one.same) for one in (*kept, *left)),
            "dropped": len(left),
            "by_severity": severities,
        },
    }
