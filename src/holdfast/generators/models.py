"""Every model that can be asked: by provider, with its price, and from recordings if that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from holdfast.errors import CallError
from holdfast.model.call import Answer, Request, Usage
from holdfast.model.provider import Provider
from holdfast.ports import Rates


class Source(Protocol):
    """Where answers come from."""

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        """One call, as ChatModel has it."""

    async def close(self) -> None:
        """End what is kept between calls."""


Priced = Callable[[Provider, str, Usage], int | None]


class Models:
    """Finds who answers. `open_source` makes the source of a provider when it is first asked.

    `find` knows a provider by its name, `keep` is told what was answered by those that are not recorded
    themselves, unless a cap cut it: without that the same request has another answer.
    """

    def __init__(
        self,
        find: Callable[[str], Provider | None],
        open_source: Callable[[Provider], Source],
        price: Priced,
        keep: Callable[[Request, Answer], None] | None = None,
        known: Iterable[str] = (),
    ) -> None:
        self._find = find
        self._open = open_source
        self._price = price
        self._keep = keep
        self._known = known
        self._sources: dict[str, Source] = {}

    def cost(self, model: str, usage: Usage) -> int | None:
        provider = self._provider(model.partition(":")[0])
        if provider.is_free:
            return 0
        return self._price(provider, model.partition(":")[2], usage)

    def room(self, provider: str) -> Rates:
        found = self._provider(provider)
        return Rates(found.at_once, found.per_minute)

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        provider = self._provider(request.provider)
        answer = await self._source(provider).ask(request, listen, leaves)
        if self._keep is not None and provider.kind != "recorded" and not answer.cut:
            self._keep(request, answer)
        return answer

    def load(self, provider: str) -> None:
        found = self._provider(provider)
        self._source(found)
        if not found.is_free:
            self._price(found, "", Usage())  # its list is as large as a library

    def _source(self, provider: Provider) -> Source:
        if provider.name not in self._sources:
            self._sources[provider.name] = self._open(provider)
        return self._sources[provider.name]

    def _provider(self, name: str) -> Provider:
        found = self._find(name)
        if found is None:
            known = ", ".join(sorted(self._known))
            raise CallError(
                f"there is no provider '{name}'", reason="call_refused", hint=f"known: {known}"
            )
        return found

    async def close(self) -> None:
        for source in self._sources.values():
            await source.close()
