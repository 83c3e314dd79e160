"""Models of Anthropic."""

from __future__ import annotations

import httpx2
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> AnthropicModel:
    """A model by its name."""
    provider = AnthropicProvider(api_key=key, base_url=base_url or None, http_client=http)
    return AnthropicModel(name, provider=provider)
