"""Prices: the person's own, else those of a list."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal

from holdfast.model.call import MICRO, Usage
from holdfast.model.provider import Price, Provider

Listed = Callable[[str, str, Usage], Decimal | None]  # kind of provider, model, tokens -> dollars


class Prices:
    """What tokens cost, in micro-dollars; rounded up, so that a budget is never overrun by crumbs."""

    def __init__(self, own: Mapping[str, Price], listed: Listed) -> None:
        self._own = own
        self._listed = listed

    def cost(self, provider: Provider, model: str, usage: Usage) -> int | None:
        """None if nobody knows the price."""
        own = self._own.get(f"{provider.name}:{model}") or self._own.get(model)
        if own is not None:
            return _of(own, usage)
        if provider.base_url:  # somebody else's address: its prices are not those of the name
            return None
        found = self._listed(provider.kind, model, usage)
        return None if found is None else math.ceil(found * MICRO)


def _of(price: Price, usage: Usage) -> int:
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input - usage.cached
    return math.ceil(fresh * price.input + usage.cached * cached + usage.output * price.output)
