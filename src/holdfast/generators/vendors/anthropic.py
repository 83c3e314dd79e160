"""Models of Anthropic. Parameters go out also where the model is known to refuse them."""

from __future__ import annotations

from typing import cast

import httpx2
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles.anthropic import AnthropicModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

from holdfast.generators.vendors.schemas import CLOSES_OBJECTS

_PROFILE = cast(
    "AnthropicModelProfile",
    {CLOSES_OBJECTS: True, "anthropic_disallows_sampling_settings": False},
)


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> AnthropicModel:
    """A model by its name."""
    provider = AnthropicProvider(api_key=key, base_url=base_url or None, http_client=http)
    return AnthropicModel(name, provider=provider, profile=_PROFILE)
