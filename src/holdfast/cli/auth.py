"""auth: keys of providers, in the keyring of the system; values are never shown."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

from holdfast import wire
from holdfast.cli.place import json_option, nearest
from holdfast.cli.say import out, out_json, talk
from holdfast.cli.view import view
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.provider import Provider

_MOST = 16_384  # characters of a key
_LONGEST_NAME = 16  # characters of what is taken for the name of a provider; a key is longer
_SCHEMA = "holdfast.auth/1"


@click.group(epilog="\b\nExample:\n  holdfast auth set anthropic\n  holdfast auth list")
def auth() -> None:
    """Keep the keys of providers in the keyring of the system.

    A variable of the provider (such as OPENAI_API_KEY) comes before it.
    """


@auth.command("set", context_settings={"allow_extra_args": True})
@click.argument("provider")
@json_option
@click.pass_context
def set_key(ctx: click.Context, provider: str, *, as_json: bool) -> int:
    """Store a key, asked for without showing it, or read from stdin."""
    if ctx.args:  # whatever it is, it may be the key
        raise UsageError(
            "a key is never given on the command line; it is read from the terminal or stdin",
            hint="holdfast auth set PROVIDER; a key that was typed into a shell stands in its history",
        )
    found = _provider(provider)
    if view().asks:
        key = str(click.prompt(f"key of {found.name}", hide_input=True, err=True))
    elif sys.stdin is None or sys.stdin.isatty():  # what is typed there would be shown
        key = ""
    else:
        key = sys.stdin.read(_MOST + 1)
    key = key.strip()
    if not key or len(key) > _MOST or not key.isprintable():
        raise UsageError(
            "that is not a key", hint=f"printf %s KEY | holdfast auth set {found.name}"
        )
    wire.market.keep_key(found, key)
    return _told(found, f"the key of '{found.name}' is in your keyring", as_json=as_json)


@auth.command("list")
@json_option
def list_keys(*, as_json: bool) -> int:
    """Show which providers have a key, and where it comes from."""
    rows = {p.name: wire.market.key_origin(p) for p in _known().values() if not p.is_free}
    if flaw := _flaw():
        talk(f"{flaw}\nhint: variables of providers count as ever")
    if as_json:
        listed: list[Json] = [
            {"provider": name, "key": origin or None} for name, origin in rows.items()
        ]
        out_json({"schema": _SCHEMA, "providers": listed})
        return 0
    width = max(map(len, rows))
    for name, origin in rows.items():
        out(f"{name:<{width}}  {origin or 'none'}")
    return 0


@auth.command("remove")
@click.argument("provider")
@json_option
def remove(provider: str, *, as_json: bool) -> int:
    """Remove a key from the keyring."""
    found = _provider(provider)
    if not wire.market.forget_key(found):
        raise UsageError(f"there is no key of '{found.name}' in your keyring")
    return _told(found, f"the key of '{found.name}' is removed", as_json=as_json)


def _told(provider: Provider, words: str, *, as_json: bool) -> int:
    """Say what was done, and where the key comes from now: a variable goes before the keyring."""
    origin = wire.market.key_origin(provider)
    if as_json:
        row: Json = {"provider": provider.name, "key": origin or None}
        out_json({"schema": _SCHEMA, "providers": [row]})
        return 0
    out(words)
    if origin.startswith("variable"):
        out(f"{origin} goes before it, as long as it is set")
    return 0


def _flaw() -> str:
    """Why the keyring cannot be used; nothing if it can, or if there is none."""
    if find_spec("keyring") is None:
        return ""
    from holdfast.config.keys import keyring_flaw

    return keyring_flaw()


def _known() -> dict[str, Provider]:
    return dict(wire.market.market(os.getcwd()).providers)


def _provider(name: str) -> Provider:
    known = _known()
    if name not in known:
        if len(name) > _LONGEST_NAME:  # perhaps a key in the wrong place: not repeated
            raise UsageError("there is no provider of that name", hint=f"known: {', '.join(known)}")
        raise UsageError(f"there is no provider '{name}'", hint=nearest(name, known))
    if known[name].is_free:
        raise UsageError(f"'{name}' needs no key")
    return known[name]
