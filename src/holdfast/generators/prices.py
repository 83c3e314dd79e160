"""Prices: the person's own, else those that genai-prices knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import cache

import genai_prices

from holdfast.model.call import MICRO, Usage
from holdfast.model.provider import Price, Provider

_NAMES = {"google": "google", "bedrock": "aws", "mistral": "mistral"}  # as the table has them


class Prices:
    """What tokens cost, in micro-dollars; rounded up, so that a budget is never overrun by crumbs."""

    def __init__(self, own: Mapping[str, Price]) -> None:
        self._own = own

    def cost(self, provider: Provider, model: str, usage: Usage) -> int | None:
        """None if nobody knows the price."""
        own = self._own.get(f"{provider.name}:{model}") or self._own.get(model)
        if own is not None:
            return _of(own, usage)
        if provider.base_url:  # somebody else's address: its prices are not those of the name
            return None
        found = _known(
            model,
            _NAMES.get(provider.kind, provider.kind),
            (usage.input, usage.output, usage.cached, usage.stored),
        )
        return None if found is None else math.ceil(found * MICRO)


def _of(price: Price, usage: Usage) -> int:
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input - usage.cached
    return math.ceil(fresh * price.input + usage.cached * cached + usage.output * price.output)


@cache
def _known(model: str, provider: str, usage: tuple[int, int, int, int]) -> Decimal | None:
    tokens = genai_prices.Usage(
        input_tokens=usage[0],
        output_tokens=usage[1],
        cache_read_tokens=usage[2],
        cache_write_tokens=usage[3],
    )
    try:
        return genai_prices.calc_price(tokens, model, provider_id=provider).total_price
    except LookupError:
        return None
