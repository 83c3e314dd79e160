"""Who answers calls: providers as the person's configuration names them, and what they charge."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from holdfast.model.fixed import fixed

KINDS = ("openai", "anthropic", "google", "mistral", "bedrock", "ollama", "local", "recorded")
FREE = frozenset({"ollama", "local", "recorded"})  # nobody is paid for their answers
TIERS = ("small", "medium", "large")


@fixed
class Provider:
    """One provider: its language, where it is, which variable holds its key, how fast it may be asked."""

    name: str
    kind: str
    base_url: str = ""
    api_key_env: str = ""
    at_once: int = 8
    per_minute: int = 0
    models: tuple[str, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether its answers cost nothing."""
        return self.kind in FREE


@fixed
class Price:
    """Dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None


class Known(NamedTuple):
    """Who can be asked by which names: tiers and aliases, and providers; None if any name will do."""

    names: Mapping[str, str]
    providers: Collection[str] | None = None


def usual_providers() -> dict[str, Provider]:
    """The providers that everybody knows, with the variables in which people keep their keys."""
    known = (
        Provider("openai", "openai", api_key_env="OPENAI_API_KEY"),
        Provider("anthropic", "anthropic", api_key_env="ANTHROPIC_API_KEY"),
        Provider("google", "google", api_key_env="GOOGLE_API_KEY"),
        Provider("mistral", "mistral", api_key_env="MISTRAL_API_KEY"),
        Provider("bedrock", "bedrock"),
        Provider("ollama", "ollama", base_url="http://127.0.0.1:11434/v1", at_once=2),
        Provider("local", "local", at_once=1),
        Provider("recorded", "recorded", at_once=64),
    )
    return {provider.name: provider for provider in known}
