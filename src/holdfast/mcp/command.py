"""mcp: serve agents over the Model Context Protocol."""

from __future__ import annotations

import asyncio

import click

from holdfast.cli.place import PARAMS, file_option, place, place_options
from holdfast.errors import UsageError

try:
    from holdfast.mcp.desk import Desk
    from holdfast.mcp.pipe import serve
    from holdfast.mcp.server import build
except ModuleNotFoundError as error:
    raise UsageError(
        f"the MCP server needs '{error.name}', which is not installed",
        hint="pip install 'holdfast[mcp]'",
    ) from error


@click.command(
    epilog="\b\nExample:\n  holdfast mcp\n  holdfast mcp --read-only -f release.yaml\n"
    "  claude mcp add holdfast -- holdfast mcp"
)
@click.option("--read-only", is_flag=True, help="Only tools that look: nothing can be run.")
@file_option
@place_options
def mcp(plan: str | None, store: str | None, plan_id: str | None, *, read_only: bool) -> int:
    """Serve agents over the Model Context Protocol: preview, run, explain.

    An agent starts this itself and speaks with it over stdin and stdout. No call of it decides what waits
    for a person.
    """
    place(plan, store, plan_id)  # what is wrong with it is said now
    params = click.get_current_context().meta.get(PARAMS, {})
    server = build(Desk(plan, store, plan_id, params, read_only=read_only))
    asyncio.run(serve(server))
    return 0
