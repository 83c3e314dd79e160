"""Providers, tiers, prices and budgets, as the person's own file, the environment and the project say.

A project may name tiers and aliases and lower budgets. Who is asked, where he is, and which variable
holds his key is the person's alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.config.settings import Files, read_files, section
from holdfast.errors import UsageError
from holdfast.model.provider import KINDS, TIERS, Price, Provider, usual_providers

_PROVIDER = ("kind", "base_url", "api_key_env", "models", "at_once", "per_minute")
_PRICE = ("input", "output", "cached")
_BUDGET = ("run", "day", "project")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_AT_ONCE = 1024
_MOST_DOLLARS = 1e9


@dataclass(frozen=True, slots=True)
class Budgets:
    """What models may cost, in dollars: one run, one day, the whole project; None is no bound."""

    run: float | None = None
    day: float | None = None
    project: float | None = None


@dataclass(frozen=True, slots=True)
class Market:
    """Who can be asked, under which names, and what it costs."""

    providers: Mapping[str, Provider] = field(default_factory=usual_providers)
    names: Mapping[str, str] = field(default_factory=dict)  # tier or alias -> provider:model
    prices: Mapping[str, Price] = field(default_factory=dict)
    budgets: Budgets = Budgets()
    budget_files: Mapping[str, str] = field(default_factory=dict)  # which one says each budget
    recordings: str = ""  # the directory of recorded answers
    is_recorded: bool = False  # whether all answers come from there, whoever is asked

    def provider(self, name: str) -> Provider | None:
        """Who answers under a name; None if nobody is known by it."""
        if self.is_recorded:
            return replace(usual_providers()["recorded"], name=name)
        return self.providers.get(name)


def read_market(root: str, env: Mapping[str, str] = os.environ) -> Market:
    """What holds for a project directory; UsageError names the file and the key that is wrong."""
    return market_in(read_files(root, env), root, env)


def market_in(files: Files, root: str, env: Mapping[str, str]) -> Market:
    own, place, project, there = files.own, files.personal, files.project, files.place
    mine, theirs = _budgets(own, place), _budgets(project, there)
    return Market(
        _providers(own, place, env),
        {**_names(project, there), **_names(own, place)},
        _prices(own, place),
        _smaller(mine, theirs),
        _files(_smaller(mine, theirs), theirs, place, there),
        os.path.abspath(env.get("HOLDFAST_RECORDED") or os.path.join(root, "recorded")),
        _is_recorded(env),
    )


def _is_recorded(env: Mapping[str, str]) -> bool:
    given = env.get("HOLDFAST_PROVIDER", "")
    if given not in {"", "recorded"}:
        raise UsageError(
            f"HOLDFAST_PROVIDER is '{given}'",
            hint="'recorded' answers every request from recordings; without it, the plan's models are asked",
        )
    return bool(given)


def _providers(
    own: Mapping[str, object], place: str, env: Mapping[str, str]
) -> dict[str, Provider]:
    found = usual_providers()
    for name, provider in found.items():
        base = env.get(f"{provider.kind.upper()}_BASE_URL", "")
        if base and provider.api_key_env:
            what = f"{provider.kind.upper()}_BASE_URL"
            found[name] = replace(provider, base_url=_checked(base, what))
    for name, given in _tables(own, "providers", place):
        what = f"providers.{name}"
        _only(given, _PROVIDER, what, place)
        known = found.get(name)
        kind = _text(given, "kind", what, place) or (known.kind if known else "")
        if kind not in KINDS:
            said = f"is '{kind}'" if kind else "is missing"
            raise UsageError(f"'{what}.kind' in '{place}' {said}", hint=", ".join(KINDS))
        usual = known or Provider(name, kind)
        models = given.get("models", [])
        if not isinstance(models, list) or not all(isinstance(m, str) for m in models):
            raise UsageError(f"'{what}.models' in '{place}' must be a list of names")
        found[name] = Provider(
            name,
            kind,
            _address(given, what, place) or usual.base_url,
            _variable(given, what, place) or usual.api_key_env,
            _count(given, "at_once", what, place) or usual.at_once,
            _count(given, "per_minute", what, place) or usual.per_minute,
            tuple(models),
        )
    return found


def _variable(given: Mapping[str, object], what: str, place: str) -> str:
    """The variable that holds a key; what is no name of one may be the key, so it is not repeated."""
    name = _text(given, "api_key_env", what, place)
    if name and not _VARIABLE.fullmatch(name):
        raise UsageError(
            f"'{what}.api_key_env' in '{place}' must be the name of a variable, not a key",
            hint="put the key into a variable such as OPENAI_API_KEY and name that:"
            " letters, digits and _, no digit first",
        )
    return name


def _address(given: Mapping[str, object], what: str, place: str) -> str:
    return _checked(_text(given, "base_url", what, place), f"'{what}.base_url' in '{place}'")


def _checked(address: str, what: str) -> str:
    """An address that can be shown: without a key in it."""
    if address and not address.startswith(("http://", "https://")):
        raise UsageError(f"{what} must begin with http:// or https://")
    if "@" in address.partition("//")[2].partition("/")[0]:
        raise UsageError(
            f"{what} holds a name or a key",
            hint="put the key into a variable and name that in 'api_key_env'",
        )
    return address


def _names(given: Mapping[str, object], place: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for part in ("aliases", "tiers"):
        for name, value in _section(given, part, place).items():
            if part == "tiers" and name not in TIERS:
                raise UsageError(f"'{place}' has the unknown tier '{name}'", hint=", ".join(TIERS))
            if not isinstance(value, str) or ":" not in value:
                raise UsageError(f"'{part}.{name}' in '{place}' must be provider:model")
            names[name] = value
    return names


def _prices(own: Mapping[str, object], place: str) -> dict[str, Price]:
    prices: dict[str, Price] = {}
    for name, given in _tables(own, "prices", place):
        what = f"prices.{name}"
        _only(given, _PRICE, what, place)
        amounts = {key: _amount(given, key, what, place) for key in _PRICE}
        if amounts["input"] is None or amounts["output"] is None:
            raise UsageError(
                f"'{what}' in '{place}' lacks 'input' or 'output'",
                hint="dollars for a million tokens",
            )
        prices[name] = Price(amounts["input"], amounts["output"], amounts["cached"])
    return prices


def _budgets(given: Mapping[str, object], place: str) -> Budgets:
    found = _section(given, "budgets", place)
    _only(found, _BUDGET, "budgets", place)
    return Budgets(*(_amount(found, key, "budgets", place) for key in _BUDGET))


def _smaller(one: Budgets, other: Budgets) -> Budgets:
    def least(a: float | None, b: float | None) -> float | None:
        return b if a is None else a if b is None else min(a, b)

    return Budgets(
        least(one.run, other.run), least(one.day, other.day), least(one.project, other.project)
    )


def _files(least: Budgets, theirs: Budgets, place: str, there: str) -> dict[str, str]:
    """The file that says each budget: the project's only where it is the smaller one."""
    return {
        name: there if bound is not None and bound == getattr(theirs, name) else place
        for name in _BUDGET
        if (bound := getattr(least, name)) is not None
    }


def _section(given: Mapping[str, object], name: str, place: str) -> Mapping[str, object]:
    return section(given, name, None, place)


def _tables(
    given: Mapping[str, object], name: str, place: str
) -> list[tuple[str, Mapping[str, object]]]:
    found = []
    for key, value in _section(given, name, place).items():
        if not isinstance(value, Mapping):
            raise UsageError(f"'{name}.{key}' in '{place}' must be a table")
        found.append((key, value))
    return found


def _only(given: Mapping[str, object], known: tuple[str, ...], what: str, place: str) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"'{place}' has the unknown key '{what}.{key}'", hint=", ".join(known))


def _text(given: Mapping[str, object], key: str, what: str, place: str) -> str:
    value = given.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"'{what}.{key}' in '{place}' must be text")
    return value


def _count(given: Mapping[str, object], key: str, what: str, place: str) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"'{what}.{key}' in '{place}' must be a whole number from 1")
    return min(value, _MOST_AT_ONCE) if key == "at_once" else value


def _amount(given: Mapping[str, object], key: str, what: str, place: str) -> float | None:
    value = given.get(key)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < _MOST_DOLLARS
    ):
        raise UsageError(f"'{what}.{key}' in '{place}' must be a number of dollars")
    return float(value)
