"""Models of Google."""

from __future__ import annotations

import httpx2
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> GoogleModel:
    """A model by its name."""
    provider = GoogleProvider(api_key=key, base_url=base_url or None, http_client=http)
    return GoogleModel(name, provider=provider)
