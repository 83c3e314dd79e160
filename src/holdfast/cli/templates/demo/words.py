"""Counts words."""

import re
from collections import Counter

SMALL = {"a", "after", "at", "before", "can", "in", "is", "it", "of", "on", "that", "the", "to"}


def count(tides: str, storms: str, roots: str, otters: str, forests: str) -> dict[str, object]:
    """Say how many words there are, the longest, and the three most frequent."""
    text = f"{tides} {storms} {roots} {otters} {forests}"
    words = re.findall("[a-z]+", text.lower())
    often = Counter(word for word in words if word not in SMALL)
    return {
        "total": len(words),
        "longest": max(words, key=lambda word: (len(word), word)),
        "most": [word for word, _ in often.most_common(3)],
    }
