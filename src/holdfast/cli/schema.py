"""schema: the shapes of the plan file and of what commands print, as JSON Schema."""

from __future__ import annotations

import json

import click

from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, talk
from holdfast.errors import ELSEWHERE, UsageError
from holdfast.model.digest import Json

SHAPES = ("plan", "preview", "run", "events", "handoff", "ledger")


@click.command(
    epilog="\b\nExample:\n  holdfast schema plan -o plan.schema.json\n"
    "  # first line of plan.yaml: # yaml-language-server: $schema=plan.schema.json"
)
@click.argument("shape", type=click.Choice(SHAPES))
@click.option("-o", "--out", "file", metavar="FILE", help="Write it to a file instead of stdout.")
@json_option
def schema(shape: str, file: str | None, *, as_json: bool) -> int:
    """Print a JSON Schema: of plan files (for completion in an editor), or of what --json prints.

    plan is the plan file, preview what 'plan --json' prints, run what 'run', 'resume', 'retry' and
    'status' print, events one line of 'trace --json', ledger what 'ledger --json' prints, handoff what
    a step writes to HOLDFAST_HANDOFF.
    """
    text = json.dumps(shape_schema(shape), ensure_ascii=False, indent=2)
    if file is None:
        out(text)
        return 0
    try:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "no usable name"
        raise UsageError(f"cannot write '{file}': {reason.lower()}", hint=ELSEWHERE) from error
    if as_json:
        out_json({"schema": "holdfast.schema/1", "shape": shape, "file": file})
        return 0
    talk(f"wrote {file}")
    if shape == "plan":
        talk(f"next: put '# yaml-language-server: $schema={file}' on the first line of the plan")
    return 0


def shape_schema(shape: str) -> Json:
    """One of SHAPES."""
    if shape == "plan":
        from holdfast.formats.grammar import plan_schema

        return plan_schema()
    from holdfast.cli import answers, learned

    makers = {
        "handoff": learned.handoff_schema,
        "ledger": learned.ledger_schema,
        "preview": answers.preview_schema,
        "run": answers.run_schema,
        "events": answers.events_schema,
    }
    return makers[shape]()
