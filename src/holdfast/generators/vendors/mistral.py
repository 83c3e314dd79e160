"""Models of Mistral."""

from __future__ import annotations

import httpx2
from pydantic_ai.models.mistral import MistralModel
from pydantic_ai.providers.mistral import MistralProvider


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> MistralModel:
    """A model by its name."""
    provider = MistralProvider(api_key=key, base_url=base_url or None, http_client=http)
    return MistralModel(name, provider=provider)
