"""Models of OpenAI, and of every server that speaks its chat language."""

from __future__ import annotations

import httpx2
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

_PROFILE = OpenAIModelProfile(
    openai_chat_streaming_requires_finish_reason=True,  # else a stream that was cut looks whole
    supports_json_schema_output=True,
)


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> OpenAIChatModel:
    """A model by its name."""
    provider = OpenAIProvider(base_url=base_url or None, api_key=key, http_client=http)
    return OpenAIChatModel(name, provider=provider, profile=_PROFILE)
