"""check: everything that is wrong with a plan file, at once."""

from __future__ import annotations

import click

from holdfast.cli.place import json_option, place, place_options
from holdfast.cli.say import out, out_json, talk
from holdfast.core.waves import graph_of
from holdfast.errors import PlanError
from holdfast.model.digest import Json


@click.command(epilog="\b\nExample:\n  holdfast check plan.yaml")
@click.argument("plan", required=False)
@place_options
@json_option
def check(plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool) -> int:
    """Check a plan file: everything that is wrong with it, at once."""
    where = place(plan, store, plan_id)
    try:
        loaded = where.load()
        graph = graph_of(loaded.plan)
    except PlanError as error:
        if not as_json:
            raise
        problems: list[Json] = [
            {
                "code": p.code,
                "file": p.file,
                "line": p.line,
                "column": p.column,
                "message": p.message,
                "hint": p.hint,
            }
            for p in error.problems
        ]
        out_json({"schema": "holdfast.check/1", "ok": False, "problems": problems})
        return 2
    for warning in loaded.warnings:
        talk(str(warning))
    if as_json:
        out_json(
            {"schema": "holdfast.check/1", "ok": True, "problems": [], "steps": len(graph.order)}
        )
    else:
        out(f"{where.file}: {len(graph.order)} steps in {len(graph.waves())} waves, nothing wrong")
    return 0
