"""Models of OpenAI, and of every server that speaks its chat language.

Schemas go out as they were written, and strict only where strict mode takes them so. Parameters go out, too,
also where the model is known to refuse them: what the journal says was asked is what was asked.
"""

from __future__ import annotations

from typing import cast

import httpx2
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer, OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from holdfast.generators.vendors.schemas import is_strict
from holdfast.model.digest import Json


class _AsWritten(OpenAIJsonSchemaTransformer):
    """Changes only how a schema is spelled."""

    def __init__(self, schema: dict[str, object], *, strict: bool | None = None) -> None:
        del strict
        super().__init__(schema, strict=False)

    def walk(self) -> dict[str, object]:
        written = super().walk()
        self.is_strict_compatible = is_strict(cast("Json", written))
        return written


_PROFILE = OpenAIModelProfile(
    openai_chat_streaming_requires_finish_reason=True,  # else a stream that was cut looks whole
    openai_supports_reasoning=False,  # else temperature and its like are dropped without a word
    supports_json_schema_output=True,
    json_schema_transformer=_AsWritten,
)


def build(name: str, http: httpx2.AsyncClient, base_url: str, key: str) -> OpenAIChatModel:
    """A model by its name."""
    provider = OpenAIProvider(base_url=base_url or None, api_key=key, http_client=http)
    return OpenAIChatModel(name, provider=provider, profile=_PROFILE)
