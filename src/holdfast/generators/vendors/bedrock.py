"""Models of Amazon Bedrock; keys and region come from where its own library looks for them."""

from __future__ import annotations

import httpx2
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.providers.bedrock import BedrockProvider


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> BedrockConverseModel:
    """A model by its name."""
    del http, key
    return BedrockConverseModel(name, provider=BedrockProvider(base_url=base_url or None))
