"""The tier that makes an artifact, by its place among those that it requires."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from holdfast.model.provider import TIERS

_FEW = 2  # as many others a model of medium size may read


def levels(requires: Mapping[str, Collection[str]]) -> dict[str, int]:
    """How many artifacts stand below each one, counted along the longest chain; 0 if it requires nothing.

    What is in a circle, or stands on one, has none. What is required and not there does not count.
    """
    above: dict[str, list[str]] = {}
    open_needs: dict[str, int] = {}
    for name, wanted in requires.items():
        needs = {need for need in wanted if need in requires}
        open_needs[name] = len(needs)
        for need in needs:
            above.setdefault(need, []).append(name)
    level = {name: 0 for name, count in open_needs.items() if not count}
    ready = list(level)
    for name in ready:  # grows on the way
        for other in above.get(name, ()):
            open_needs[other] -= 1
            if not open_needs[other]:
                level[other] = 1 + max(level[n] for n in requires[other] if n in level)
                ready.append(other)
    return level


def tiers_by_place(requires: Mapping[str, Collection[str]]) -> dict[str, str]:
    """What requires nothing is small, what requires only such, and at most two, medium, the rest large."""
    small, medium, large = TIERS
    level = levels(requires)
    found = dict.fromkeys(requires, large)
    for name, wanted in requires.items():
        if level.get(name) == 0:
            found[name] = small
        elif level.get(name) == 1 and len(wanted) <= _FEW:
            found[name] = medium
    return found
