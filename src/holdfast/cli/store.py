"""store: make a store that many machines share, bring it up to date, see how it is."""

from __future__ import annotations

import os
from typing import cast

import click

from holdfast import wire
from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, talk_once
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.wire.shared import SCHEMES, make_shared, refuse_password
from holdfast.wire.stores import Standing, standing

_SCHEMA = "holdfast.store/1"
_ADDRESS = "postgresql://USER@HOST/DATABASE"


@click.group(
    epilog="\b\nExample:\n  holdfast store init postgresql://owner@db/team --role runner\n"
    "  export HOLDFAST_STORE=postgresql://runner@db/team\n  holdfast store status"
)
def store() -> None:
    """Make a store in PostgreSQL that many machines share, and look after it.

    A store in a directory needs none of this: it is made by the first run.
    """


@store.command("init")
@click.argument("url", metavar="URL")
@click.option(
    "--role", default="", metavar="NAME", help="Let this role of the server use the store."
)
@click.option(
    "--blobs", default="", metavar="URL", help="Keep large contents there: s3://BUCKET/PREFIX."
)
@json_option
def init_store(url: str, role: str, blobs: str, *, as_json: bool) -> int:
    """Make the tables of a store; done again it changes nothing."""
    return _made(url, role, blobs, as_json=as_json)


@store.command("migrate")
@click.argument("url", metavar="[URL]", required=False)
@click.option(
    "--role", default="", metavar="NAME", help="Let this role of the server use the store."
)
@json_option
def migrate_store(url: str | None, role: str, *, as_json: bool) -> int:
    """Bring the tables of a store to the format of this Holdfast."""
    return _made(url or _told(), role, "", as_json=as_json)


def _made(url: str, role: str, blobs: str, *, as_json: bool) -> int:
    _check(url)
    shown, was_made = make_shared(url, blobs=blobs, role=role)
    if as_json:
        out_json({"schema": _SCHEMA, "store": shown, "made": was_made})
        return 0
    out(f"{'made' if was_made else 'up to date'}: {shown}")
    if role:
        out(f"the role '{role}' may use it")
    return 0


@store.command("status")
@click.option("--store", metavar="DIR", help="Which one: a directory, or postgresql://…")
@json_option
def status_of_store(store: str | None, *, as_json: bool) -> int:
    """Show where the store is, how much it holds and who works with it."""
    refuse_password(store or "")
    found = standing(wire.store_location(os.getcwd(), store), talk_once)
    if as_json:
        out_json({"schema": _SCHEMA, **_json(found)})
        return 0
    out(f"store     {found.shown}")
    for name, value in found.facts.items():
        out(f"{name:<9} {value}")
    for line in found.holders:
        out(f"engine    {line}")
    return 0


def _json(found: Standing) -> dict[str, Json]:
    return {
        "store": found.shown,
        **cast("dict[str, Json]", dict(found.facts)),
        "engines": list(found.holders),
    }


def _told() -> str:
    if url := os.environ.get("HOLDFAST_STORE"):
        return url
    raise UsageError("which store?", hint=f"holdfast store migrate {_ADDRESS}")


def _check(url: str) -> None:
    if url != os.environ.get("HOLDFAST_STORE"):
        refuse_password(url)
    if url.partition("://")[0] not in SCHEMES:
        raise UsageError(
            f"'{url.partition('?')[0][:60]}' is no address of a shared store",
            hint=f"{_ADDRESS}; a store in a directory is made by the first run",
        )
