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
    return _least(weight.confidence, 0.0 if most is None else most)


def certainties(known: Mapping[str, Weight]) -> dict[str, float | None]:
    """How sure every piece of evidence is, as `bounded` says, in the order given: sources come first.

    What a claim stands on is at least as sure as the surest of it, so a claim below that is not looked into
    any further; and evidence that stands on the same in the end is looked into once. So a long chain of
    syntheses costs no more than its length.
    """
    below: dict[str, tuple[str, ...]] = {}  # what a piece stands on, past what only repeats it
    least: dict[str, float] = {}  # the surest that a piece stands on in the end
    found: dict[str, float | None] = {}
    most: dict[tuple[str, ...], float | None] = {}
    for name, (_, claimed, stands_on) in known.items():
        if not stands_on:
            least[name] = UNSAID if claimed is None else claimed
            found[name] = claimed
            continue
        bases = {below.get(one, ()) for one in stands_on}
        below[name] = bases.pop() if len(bases) == 1 and () not in bases else stands_on
        least[name] = max((least[one] for one in stands_on if one in least), default=0.0)
        if claimed is not None and claimed <= least[name]:
            found[name] = claimed
            continue
        base = below[name]
        if base not in most:
            most[base] = together(base, known)
        bound = most[base]
        found[name] = _least(claimed, 0.0 if bound is None else bound)
    return found


def _least(claimed: float | None, bound: float) -> float:
    return bound if claimed is None else min(claimed, bound)


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
