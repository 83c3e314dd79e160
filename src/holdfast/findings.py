"""A ready-made python step: `run: holdfast.findings:merge` makes one list of what reviewers found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from holdfast.core.findings import Finding, finding_from, report
from holdfast.model.agent import Rules
from holdfast.model.digest import Json


def merge(similarity: float = 0.8, confidence: float = 0.8, **reviews: Json) -> dict[str, Json]:
    """Merge the findings of all steps that this one needs, and of values that it is given.

    Each artifact is a JSON object with a list `findings`, or such a list. Findings that are more alike
    than `similarity` are folded into the surest of them; those of less than `confidence` (from 0 to 1, or
    in percent) are left out and counted.
    """
    least = confidence / 100 if confidence > 1 else confidence
    if not 0 < similarity <= 1 or not 0 <= least <= 1:
        raise ValueError("'similarity' and 'confidence' go from 0 to 1")
    found = [item for name in sorted(reviews) for item in _findings(name, reviews[name])]
    return report(found, Rules(similarity=similarity, confidence=least))


def _findings(source: str, review: Json) -> list[Finding]:
    try:
        data = json.loads(review) if isinstance(review, str) else review
    except ValueError as error:
        raise ValueError(f"the artifact of '{source}' is not JSON: {error}") from error
    listed = data.get("findings") if isinstance(data, Mapping) else data
    if not isinstance(listed, list) or not all(isinstance(item, Mapping) for item in listed):
        raise TypeError(f"the artifact of '{source}' has no list 'findings' of objects")
    return [finding_from(source, cast("Mapping[str, Json]", item)) for item in listed]
