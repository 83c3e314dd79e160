"""Models, as the person's configuration and the project have them: who is asked, and what it costs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from holdfast.errors import CallError, UsageError
from holdfast.model.call import MICRO, Usage
from holdfast.model.plan import Plan, RunId, Step
from holdfast.model.provider import Known

if TYPE_CHECKING:
    from decimal import Decimal

    from holdfast.config.providers import Budgets, Market
    from holdfast.engine.aside import Desk
    from holdfast.engine.purse import Purse, Room
    from holdfast.generators.models import Source
    from holdfast.model.provider import Provider
    from holdfast.ports import ChatModel, Job, Store

_SHORTEST_KEY = 8  # characters; what stands there instead of a key is shorter, as 'none'
_OF_AMAZON = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")


@cache
def market(root: str) -> Market:
    """What holds for a project directory."""
    from holdfast.config.providers import read_market

    return read_market(root)


def known_models(root: str) -> Known:
    """What tiers and aliases stand for, and which providers there are: all, if none is really asked."""
    found = market(root)
    return Known(found.names, None if found.is_recorded else found.providers)


def known_names(root: str) -> Known:
    """What tiers and aliases stand for; who is asked is said later, when a program runs its plan."""
    return Known(market(root).names)


def rooms(root: str, plan: Plan) -> dict[str, int]:
    """How many calls each provider of a plan bears at once."""
    names = {step.model.partition(":")[0] for step in plan.steps.values() if step.asks_model}
    found = {name: market(root).provider(name) for name in names}
    return {name: provider.at_once for name, provider in found.items() if provider is not None}


# --- money -----------------------------------------------------------------------------------------


def is_paid(root: str, model: str) -> bool:
    """Whether somebody wants money for the answers of a model."""
    found = market(root)
    provider = found.provider(model.partition(":")[0])
    price = found.prices.get(model)
    is_gift = price is not None and price.input == price.output == 0
    return not is_gift and (provider is None or not provider.is_free)


def pays(root: str, step: Step, *, about_it: bool = False) -> bool:
    """Whether a step asks a model whose answers cost money; with `about_it` by its guards."""
    from holdfast.core.estimate import asked_models

    return any(is_paid(root, model) for model in asked_models(step, about_it=about_it))


def cost_bound(root: str, plan: Plan, given: int | None) -> int | None:
    """What a run may spend, in micro-dollars: the least of the flag, the plan and the person's budget.

    None if neither he nor the flag says anything; then the plan has the only word. A plan that asks no model
    may be given steps that do.
    """
    own, planned = micro(market(root).budgets.run), micro(plan.limits.usd)
    if given is None and own is None:
        return None
    return min(bound for bound in (given, own, planned) if bound is not None)


def micro(usd: float | None) -> int | None:
    """Dollars as micro-dollars."""
    return None if usd is None else int(usd * MICRO)


def budgets(root: str) -> Budgets:
    """What models may cost from a project directory: one run, one day, the whole project."""
    return market(root).budgets


def budget_file(root: str, name: str) -> str:
    """The file that says the budget of a run, a day or the project; nothing if none does."""
    return market(root).budget_files.get(name, "")


def price_of(root: str) -> Callable[[str, Usage], int | None]:
    """What so many tokens of a model cost in micro-dollars; None if nobody knows."""

    def cost(model: str, usage: Usage) -> int | None:
        if not is_paid(root, model):
            return 0
        name, _, bare = model.partition(":")
        provider = market(root).provider(name)
        return None if provider is None else _priced(market(root), provider, bare, usage)

    return cost


def _priced(found: Market, provider: Provider, model: str, usage: Usage) -> int | None:
    from holdfast.generators.prices import Prices

    return Prices(found.prices, _listed).cost(provider, model, usage)


def _listed(kind: str, model: str, usage: Usage) -> Decimal | None:
    """What a list of prices says, if there is one here."""
    if find_spec("genai_prices") is None:
        return None
    from holdfast.generators.pricelist import listed

    return listed(kind, model, usage)


def purse_for(root: str, project: str, location: str, store: Store) -> Purse | None:
    """The person's budgets of the day and the project; None if there are none."""
    found = budgets(root)
    if found.day is None and found.project is None:
        return None
    from holdfast.engine.purse import Purse
    from holdfast.store.host import budget_lock

    day, whole = micro(found.day), micro(found.project)
    lock, file_of = budget_lock(location) if location else None, partial(budget_file, root)
    return Purse(store, project, day, whole, day_began, lock, file_of)


def room_left(root: str, project: str, store: Store) -> Room | None:
    """What the budgets of the day and the project leave to a new run; None if there are none."""
    purse = purse_for(root, project, "", store)
    return None if purse is None else purse.room(RunId(""))


def desk_for(
    root: str,
    location: str,
    store: Store,
    plan: Plan,
    most: int | None,
    say: Callable[[str], None],
) -> Desk:
    """Where the guards of a step ask models when no run does: under the budgets of the person."""
    from holdfast.engine.aside import Desk
    from holdfast.engine.lines import line_journal

    vault = vault_for(root, store, plan.project, plan.name, lambda: [plan])
    return Desk(
        store=store,
        journal=line_journal(plan.project, plan.name),
        models=models_for(root, vault),
        purse=purse_for(root, plan.project, location, store),
        most=cost_bound(root, plan, most),
        hidden=vault.values,
        clock=lambda: time.time_ns() // 1_000_000,
        monotonic=time.monotonic,
        say=say,
    )


def day_began() -> int:
    """When this day began where the person is, in milliseconds since 1970."""
    from datetime import UTC, datetime

    today = datetime.now(UTC).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return int(today.timestamp() * 1000)


# --- what it takes ---------------------------------------------------------------------------------


_LIBRARIES = {
    "openai": "openai",
    "ollama": "openai",
    "anthropic": "anthropic",
    "google": "google.genai",
    "mistral": "mistralai",
    "bedrock": "boto3",
}


def may_lack(root: str, model: str, *, bounded: bool) -> bool:
    """Whether it is worth a closer look if a model can be asked; that look may take a while.

    With `bounded` its price must be known, too.
    """
    found = market(root)
    provider = found.provider(model.partition(":")[0])
    if provider is None:
        return False
    has_key = provider.is_free or bool(os.environ.get(provider.api_key_env or " "))
    has_own_price = not is_paid(root, model) or model in found.prices
    return not has_key or bool(extra_lacking(root, model)) or (bounded and not has_own_price)


def extra_lacking(root: str, model: str) -> str:
    """The extra of this package that it takes to ask a model and that is not installed, if any."""
    provider = market(root).provider(model.partition(":")[0])
    library = _LIBRARIES.get(provider.kind) if provider is not None else None
    if provider is None or library is None:
        return ""
    if all(map(_is_there, ("pydantic_ai", library))):
        return ""
    return "llm" if library == "openai" else provider.kind


def _is_there(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ImportError:  # what it is a part of is not there
        return False


def key_lacking(root: str, model: str) -> str:
    """What to do about a key that it takes to ask a model and that is nowhere; nothing if it is there."""
    provider = market(root).provider(model.partition(":")[0])
    if provider is None or provider.is_free:
        return ""
    try:
        key_of(provider)
    except CallError as error:
        return error.hint or error.message
    return ""


def has_price(root: str, model: str) -> bool:
    """Whether anybody knows what a model costs."""
    return price_of(root)(model, Usage(input=1000, output=1000)) is not None


# --- answers ---------------------------------------------------------------------------------------


def models_for(
    root: str,
    vault: Vault,
    record: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    recorded: str | None = None,
) -> ChatModel:
    """Whoever can be asked from a project directory. With `record`, answers are written there too.

    With `recorded` nobody is asked: all answers come from recordings in that directory.
    """
    from holdfast.generators.models import Models
    from holdfast.generators.recorded import Recorder

    found = market(root)
    if recorded is not None:
        found = replace(found, is_recorded=True, recordings=recorded)
    return Models(
        found.provider,
        partial(_source, found, vault),
        partial(_priced, found),
        Recorder(record, say, vault.values).keep if record else None,
        found.providers,
    )


def is_recorded(root: str, model: str) -> bool:
    """Whether the answers of a model come from recordings."""
    provider = market(root).provider(model.partition(":")[0])
    return provider is not None and provider.kind == "recorded"


def has_recording(root: str, job: Job, find: Callable[[str, str], list[str]]) -> bool:
    """Whether the question of an attempt has an answer among the recordings."""
    from holdfast.generators.llm import request_of
    from holdfast.generators.recorded import is_recorded as has_answer

    return has_answer(market(root).recordings, request_of(job, find))


def _source(found: Market, vault: Vault, provider: Provider) -> Source:
    if provider.kind == "recorded":
        from holdfast.generators.recorded import Recorded

        return Recorded(found.recordings)
    if provider.kind == "local":
        from holdfast.generators.local import Local

        return Local(provider, _chat)
    key = key_of(provider)
    vault.learn(key)
    return _chat(provider, key)


def _chat(provider: Provider, key: str) -> Source:
    """Whoever speaks over HTTP; CallError if what it takes is not installed."""
    speaks = "openai" if provider.kind in {"ollama", "local"} else provider.kind
    try:
        from holdfast.generators.chat import Chat

        vendor = import_module(f"holdfast.generators.vendors.{speaks}")
    except ImportError as error:
        extra = "llm" if speaks == "openai" else speaks
        raise CallError(
            f"'{provider.name}' needs a library that is not installed",
            reason="call_refused",
            hint=f"pip install 'holdfast[{extra}]'",
        ) from error
    chat = Chat(
        lambda name, http: vendor.build(name, http, provider.base_url, key),
        getattr(vendor, "FAULTS", None),
    )
    if not getattr(vendor, "WAITS_IN_THREADS", False):
        return chat
    from holdfast.generators.aside import Aside

    return Aside(chat)


def key_of(provider: Provider) -> str:
    """The key of a provider: its variable, else the keyring; CallError if there is none."""
    found = os.environ.get(provider.api_key_env, "") if provider.api_key_env else ""
    if not found and not provider.is_free:
        found = _stored_key(provider) or ""
    if found:
        return found
    if (
        provider.kind == "bedrock" and not provider.api_key_env
    ):  # its own library knows where to look
        return ""
    if provider.is_free or (provider.base_url and not provider.api_key_env):
        return "none"
    raise CallError(
        f"there is no key for '{provider.name}'",
        reason="credentials_missing",
        hint=f"set {provider.api_key_env or 'api_key_env of the provider'},"
        f" or holdfast auth set {provider.name}",
    )


def key_origin(provider: Provider) -> str:
    """Where the key of a provider comes from; nothing if there is none."""
    if provider.api_key_env and os.environ.get(provider.api_key_env):
        return f"variable {provider.api_key_env}"
    return "keyring" if _stored_key(provider) else ""


def _stored_key(provider: Provider) -> str | None:
    if find_spec("keyring") is None:
        return None
    from holdfast.config.keys import stored_key

    return stored_key(provider.name)


def keep_key(provider: Provider, key: str) -> None:
    """Put the key of a provider into the keyring."""
    if find_spec("keyring") is None:
        raise UsageError("the keyring needs a library", hint="pip install 'holdfast[keyring]'")
    from holdfast.config import keys

    keys.keep_key(provider.name, key, provider.api_key_env)


def forget_key(provider: Provider) -> bool:
    """Remove the key of a provider from the keyring; false if there was none."""
    if find_spec("keyring") is None:
        return False
    from holdfast.config import keys

    return keys.forget_key(provider.name)


class Vault:
    """The keys and secrets that a command knows: never to be written down, sent or shown.

    Keys stand in the variables of all providers, and in the keyring; from there they are known when they
    were first read. `names` gives the variables that steps may see as secrets.
    """

    def __init__(self, root: str, names: Callable[[], Iterable[str]] = tuple) -> None:
        self._root = root
        self._names = names
        self._known: tuple[str, ...] | None = None

    def learn(self, key: str) -> None:
        """One more key was read."""
        if key not in self.values() and len(key) >= _SHORTEST_KEY:
            self._known = (*self.values(), key)

    def values(self) -> tuple[str, ...]:
        """All of them; the same object until something was learnt."""
        if self._known is None:
            own = (os.environ.get(name, "") for name in sorted(self._names()))
            keys = (os.environ.get(name, "") for name in sorted(_key_names(self._root)))
            told = [*own, *(key for key in keys if len(key) >= _SHORTEST_KEY)]
            self._known = tuple(dict.fromkeys(filter(None, told)))
        return self._known


def vault_for(
    root: str,
    store: Store,
    project: str,
    line: str,
    plans: Callable[[], Iterable[Plan]] = tuple,
) -> Vault:
    """The keys and secrets that nothing may hold which is said, given or asked on a line.

    Secrets are those that steps name: of its runs, as far as they may go on, and of `plans`.
    """

    def names() -> set[str]:
        from holdfast.engine.declared import declared_secrets, secret_names

        return declared_secrets(store, project, line) | secret_names(plans())

    return Vault(root, names)


def _key_names(root: str) -> set[str]:
    """The variables that hold keys; where the configuration cannot be read, those that everybody knows."""
    from holdfast.model.provider import usual_providers

    try:
        providers = market(root).providers
    except UsageError:  # said by whoever needs it
        providers = usual_providers()
    return {*_OF_AMAZON, *(each.api_key_env for each in providers.values() if each.api_key_env)}


def check_local(model: str) -> None:
    """See that a model of this machine can be asked; UsageError says what to install."""
    from holdfast.generators.local import weights_of

    try:
        weights_of(model.partition(":")[2], market(os.getcwd()).providers["local"])
    except CallError as error:
        raise UsageError(error.message, hint=error.hint) from error


def record_into(root: str, folder: str) -> str:
    """Make the directory of recordings; UsageError if it cannot be, or if nothing real is asked."""
    if market(root).is_recorded:
        raise UsageError(
            "with --provider recorded no model is asked, so there is nothing to record"
        )
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"'{folder}' cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"'{folder}' cannot be written to")
    return os.path.abspath(folder)
