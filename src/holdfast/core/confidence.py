"""How sure several pieces of evidence make one: a rule that counts no source twice.

Evidence that names other evidence as its source is derived: it says nothing that was not said, so only what
it stands on counts, and of all that together no more than it claims itself. What is not derived counts once
for each source: of several findings from one source the surest. Sources are independent, so together they
fail only if each of them does:

    1 - (1 - c1) * (1 - c2) * ...        one factor for each source

A finding that names several sources rests on each of them alike: of n sources each has the share that n of
them together make what it claims. So two that name the same sources are worth no more than the surer one.

Claims are pipes: how sure some findings make one is what flows to them from the sources, and a claim lets
through as much as it says of all that it stands on. That is as much as the narrowest cut in between is worth:
its claims and its sources, taken together as above. So the result lies between the surest finding and 1,
never falls when evidence is added or grows surer, and does not depend on any order. Evidence without a number
counts as `UNSAID`; contested evidence counts nothing. What a synthesis claims is bounded by what it stands
on: by the sources in the end, and by every claim on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf, log1p, prod
from typing import NamedTuple

from holdfast.core.narrowest import Pipe, narrowest

UNSAID = 0.5
_CERTAIN = 1e6  # what certainty weighs; all that is less weighs less than forty
_FROM = "from "  # a source among ids


class Weight(NamedTuple):
    """What counts of a piece of evidence: where it comes from, how sure it is, what it stands on."""

    source: str
    confidence: float | None
    stands_on: tuple[str, ...] = ()  # ids of evidence
    others: tuple[str, ...] = ()  # further sources


def together(ids: Iterable[str], known: Mapping[str, Weight]) -> float | None:
    """How sure these make one; None if nothing of it counts. `known` has no contested evidence."""
    named = [one for one in ids if one in known]
    through = _let_through(named, known)
    if not through:
        return None
    most = _by_source(through, known)
    derived = sorted({one for one in named if known[one].stands_on})
    whole: Collection[float] = most.values()
    if derived and len(most) > 1:
        own = _by_source({one: through[one] for one in {*named}.difference(derived)}, known)
        if own != most:
            whole = _cut(derived, known, through, most, own)
    return max(_any_of(whole), *through.values())  # the parts of one claim may be rounded to less


def _by_source(shares: Mapping[str, float], known: Mapping[str, Weight]) -> dict[str, float]:
    """The surest of each source."""
    surest: dict[str, float] = {}
    for one, sure in shares.items():
        source, _, _, others = known[one]
        share = 1 - (1 - sure) ** (1 / (1 + len(others))) if others else sure
        for name in (source, *others):
            surest[name] = max(share, surest.get(name, 0.0))
    return surest


def _cut(
    derived: Sequence[str],
    known: Mapping[str, Weight],
    through: Mapping[str, float],
    most: Mapping[str, float],
    own: Mapping[str, float],
) -> list[float]:
    """What is named of the sources themselves, with the narrowest cut before what is derived from them.

    Shares of independent things add up by what they weigh: the logarithm of the doubt that they leave.
    """
    pipes: dict[str, Pipe] = {}
    shares: dict[str, float] = {}
    queue = [*derived]
    while queue:
        one = queue.pop()
        if one in pipes or one not in known:
            continue
        source, claimed, stands_on, others = known[one]
        if stands_on:
            bases = sorted(base for base in {*stands_on} if base in known)
            shares[one] = (1.0 if claimed is None else claimed) if bases else 0.0
            width = inf if claimed is None else _weighs(claimed)
            pipes[one] = Pipe(width if bases else 0.0, bases)
            queue += bases
        else:
            shares[one] = through[one]
            pipes[one] = Pipe(_weighs(through[one]), [_FROM + name for name in (source, *others)])
    for source, share in most.items():
        shares[_FROM + source] = share
        pipes[_FROM + source] = Pipe(max(0.0, _weighs(share) - _weighs(own.get(source, 0.0))))
    cut = narrowest({name: pipes[name] for name in sorted(pipes)}, derived)
    whole = {name.removeprefix(_FROM) for name in cut if name.startswith(_FROM)}
    rest = [share for source, share in own.items() if source not in whole]
    return [*(shares[name] for name in cut), *rest]


def _weighs(share: float) -> float:
    return -log1p(-share) if share < 1 else _CERTAIN


def _any_of(shares: Collection[float]) -> float:
    """How sure it is that at least one of them holds, if none depends on another."""
    return max([1 - prod(sorted(1 - share for share in shares)), *shares])


def _let_through(ids: Iterable[str], known: Mapping[str, Weight]) -> dict[str, float]:
    """What these stand on in the end, each with the most that a way to it lets through.

    A way lets through as much as the least sure claim on it; the widest is gone first, so each piece is
    looked at once. What is not known is left out.
    """
    named = [one for one in ids if one in known]
    found = {one: _said(known[one]) for one in named if not known[one].stands_on}
    ways = [(-1.0, one) for one in named if one not in found]
    heapify(ways)
    seen = {*found}
    while ways:
        width, one = heappop(ways)
        if one in seen or one not in known:
            continue
        seen.add(one)
        _, claimed, stands_on, _ = known[one]
        if not stands_on:
            found[one] = min(-width, _said(known[one]))
            continue
        narrow = width if claimed is None else max(width, -claimed)
        for base in stands_on:
            heappush(ways, (narrow, base))
    return found


def _said(one: Weight) -> float:
    return UNSAID if one.confidence is None else one.confidence


def bounded(one: str, known: Mapping[str, Weight]) -> float | None:
    """How sure a piece of evidence is: as it claims, but derived evidence not more than what it stands on."""
    return certainties(known)[one]


def certainties(known: Mapping[str, Weight]) -> dict[str, float | None]:
    """How sure every piece of evidence is, as `bounded` says, in the order given.

    What stands on one piece alone is as sure as that at the most, and what claims less than the surest it
    stands on is believed: only the others are looked into down to their sources. So a long chain of syntheses
    costs no more than its length.
    """
    found: dict[str, float | None] = {}
    most: dict[tuple[str, ...], float] = {}
    begun: set[str] = set()
    for name in known:
        queue = [name]
        while queue:
            one = queue[-1]
            below = [base for base in known[one].stands_on if base in known and base not in begun]
            begun.add(one)
            if below:  # first what it stands on; that a piece stands on itself is let pass
                queue += below
                continue
            queue.pop()
            if one not in found:
                found[one] = _bounded(known[one], known, found, most)
    return {name: found[name] for name in known}


def _bounded(
    one: Weight,
    known: Mapping[str, Weight],
    found: Mapping[str, float | None],
    most: dict[tuple[str, ...], float],
) -> float | None:
    _, claimed, stands_on, _ = one
    if not stands_on:
        return claimed
    bases = [
        UNSAID if (sure := found[base]) is None else sure for base in stands_on if base in found
    ]
    if len(bases) > 1 and claimed is not None and claimed <= max(bases):
        return claimed
    bound = bases[0] if len(bases) == 1 else 0.0
    if len(bases) > 1:
        if stands_on not in most:
            most[stands_on] = together(stands_on, known) or 0.0
        bound = most[stands_on]
    return bound if claimed is None else min(claimed, bound)
