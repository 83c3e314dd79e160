"""resolve: a person settles a conflict."""

from __future__ import annotations

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.place import file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.cli.view import view
from holdfast.engine.resolve import MINE, Desk, Open
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.line import ConflictDecided


@click.command(
    epilog="\b\nExample:\n  holdfast resolve c-1f3c --take tidy\n"
    "  holdfast resolve c-1f3c --take mine --because 'merged by hand'"
)
@click.argument("conflict")
@click.option(
    "--take",
    required=True,
    metavar="STEP|mine|theirs",
    help="Whose version stands: a step's, or what lies in the project (mine).",
)
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the decision.")
@file_option
@place_options
@json_option
def resolve(
    conflict: str,
    take: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
) -> int:
    """Settle a conflict: say whose version stands. The other one is kept and named."""
    where = place(plan, store, plan_id)
    if not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    opened = where.open()
    try:
        rows = opened.runs(where.line())
        if not rows:
            raise UsageError("there is no run yet", hint="holdfast run")
        person = wire.person(opened, where.location, terminal=view().asks)
        hidden = where.hidden(opened)
        desk = Desk(opened, rows[-1].project, rows[-1].line, wire.now_ms, hidden)
        found = desk.find(conflict)
        said = desk.decide(found, desk.meant(found, take), person, because)
    finally:
        opened.close()
    if as_json:
        out_json(_json(found, said))
        return 0
    for line in _lines(found, said):
        out(line)
    out_next("holdfast resume")
    return 0


def _lines(found: Open, said: ConflictDecided) -> list[str]:
    about = found.record.scope
    lines = [f"{said.conflict}: {_name(said.take)} stands ({about})"]
    for position in found.record.positions:
        if position.step != said.take and position.content is not None:
            content = position.content[:12]
            lines.append(f"  {_name(position.step)} is kept: holdfast show {content}")
    return lines


def _name(step: str) -> str:
    return f"the version of '{step}'" if step else "what lies in the project"


def _json(found: Open, said: ConflictDecided) -> dict[str, Json]:
    return {
        "schema": "holdfast.resolve/1",
        "conflict": said.conflict,
        "run": found.run,
        "kind": found.record.kind,
        "scope": found.record.scope,
        "paths": list(found.found.paths),
        "take": said.take or MINE,
        "by": said.by,
        "kept": [
            {"step": one.step or None, "content": one.content}
            for one in found.record.positions
            if one.step != said.take
        ],
    }
