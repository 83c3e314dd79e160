"""How sure several pieces of evidence make one: a rule that counts no source twice.

Evidence that names other evidence as its source is derived: it says nothing that was not said, so only what
it stands on counts. What is not derived counts once for each source: of several findings from one source
the surest. Sources are independent, so together they fail only if each of them does:

    1 - (1 - c1) * (1 - c2) * ...        one factor for each source

So the result lies between the surest finding and 1, never falls when evidence is added or grows surer, and
does not depend on any order. Evidence without a number counts as `UNSAID`; contested evidence counts
nothing. What a synthesis claims is bounded by what it stands on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

UNSAID = 0.5


class Weight(NamedTuple):
    """What counts of a piece of evidence: where it comes from, how sure it is, what it stands on."""

    source: str
    confidence: float | None
    stands_on: tuple[str, ...] = ()  # ids of evidence


def together(ids: Iterable[str], known: Mapping[str, Weight]) -> float | None:
    """How sure these make one; None if nothing of it counts. `known` has no contested evidence."""
    surest: dict[str, float] = {}
    for one in roots(ids, known):
        source, sure, _ = known[one]
        sure = UNSAID if sure is None else sure
        if sure >= surest.get(source, 0.0):
            surest[source] = sure
    if not surest:
        return None
    doubt = prod(sorted(1 - sure for sure in surest.values()))
    return max(1 - doubt, *surest.values())


def bounded(one: str, known: Mapping[str, Weight]) -> float | None:
    """How sure a piece of evidence is: as it claims, but derived evidence not more than what it stands on."""
    weight = known[one]
    if not weight.stands_on:
        return weight.confidence
    most = together(weight.stands_on, known)
    if most is None:
        return 0.0
    return most if weight.confidence is None else min(weight.confidence, most)


def roots(ids: Iterable[str], known: Mapping[str, Weight]) -> set[str]:
    """What evidence stands on in the end, each once; what is not known is left out."""
    seen: set[str] = set()
    found: set[str] = set()
    queue = list(ids)
    while queue:
        one = queue.pop()
        if one in seen or one not in known:
            continue
        seen.add(one)
        if known[one].stands_on:
            queue.extend(known[one].stands_on)
        else:
            found.add(one)
    return found
