"""mcp: serve agents over the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import cast

import click

from holdfast import wire
from holdfast.cli.place import PARAMS, file_option, place, place_options
from holdfast.cli.say import talk
from holdfast.errors import UsageError
from holdfast.model.digest import Json

try:
    from holdfast.mcp import pipe
    from holdfast.mcp.desk import Desk
    from holdfast.mcp.server import build
except ModuleNotFoundError as error:
    raise UsageError(
        f"the MCP server needs '{error.name}', which is not installed",
        hint="pip install 'holdfast[mcp]'",
    ) from error

TOKEN = "mcp.token"  # noqa: S105 - the name of its file


@click.command(
    epilog="\b\nExample:\n  holdfast mcp --read-only -f release.yaml\n"
    "  holdfast mcp --http --port 8137\n  claude mcp add holdfast -- holdfast mcp"
)
@click.option("--read-only", is_flag=True, help="Only tools that look: nothing can be run.")
@click.option(
    "--http", "by_http", is_flag=True, help="Serve over HTTP on this machine, with a token."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="With --http, the port (default: any that is free).",
)
@click.option("--new-token", is_flag=True, help="With --http, make a new token: the old one ends.")
@file_option
@place_options
def mcp(
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    read_only: bool,
    by_http: bool,
    port: int,
    new_token: bool,
) -> int:
    """Serve agents over the Model Context Protocol: preview, run, explain.

    An agent starts this itself and speaks with it over stdin and stdout. Runs go on when it ends. What waits
    for a person is decided by a person: no call of an agent can do that.
    """
    where = place(plan, store, plan_id)  # what is wrong with it is said now
    if (port or new_token) and not by_http:
        raise UsageError("--port and --new-token go with --http")
    said = dict(click.get_current_context().meta)
    params = cast("Mapping[str, Json]", said.get(PARAMS, {}))
    server = build(Desk(plan, store, plan_id, params, said, read_only=read_only))
    most = wire.walls_at(where.root).frame
    if not by_http:
        asyncio.run(pipe.serve(server, most))
        return 0
    from holdfast.mcp import door  # noqa: PLC0415 - brings a web server

    file = os.path.join(where.location, TOKEN)  # no step sees what lies there
    listening = door.bound(port)
    token = door.token_in(file, fresh=new_token)
    talk(f"serving agents at http://{door.HERE}:{listening.getsockname()[1]}{door.PATH}")
    talk(f"they send 'Authorization: Bearer' with the token in {file}; Ctrl-C ends it")
    asyncio.run(door.serve(server, listening, token, most))
    return 0
