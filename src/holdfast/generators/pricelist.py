"""The prices that genai-prices knows; loading them takes a while, so only who has no other asks here."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import genai_prices

from holdfast.model.call import Usage

_NAMES = {"google": "google", "bedrock": "aws", "mistral": "mistral"}  # as the table has them


@cache
def listed(kind: str, model: str, usage: Usage) -> Decimal | None:
    """Dollars for so many tokens of a model; None if the list does not have it."""
    tokens = genai_prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.stored,
    )
    try:
        return genai_prices.calc_price(
            tokens, model, provider_id=_NAMES.get(kind, kind)
        ).total_price
    except (LookupError, ValueError):
        return None
