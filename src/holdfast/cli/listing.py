"""ls: names, one a line, for people and for other programs."""

from __future__ import annotations

from collections.abc import Mapping

import click

from holdfast.cli.grown import grown
from holdfast.cli.measure import cut
from holdfast.cli.place import Place, json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.cli.selection import select_options, selected_steps
from holdfast.errors import UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Json
from holdfast.model.plan import Plan, Step, StepId


@click.command(
    epilog="\b\nExample:\n  holdfast ls\n  holdfast ls --long -s build+\n  holdfast ls --paths | xargs wc -c"
)
@click.option("--long", "long_", is_flag=True, help="With what generates it and its description.")
@click.option("--paths", is_flag=True, help="The paths that steps produce, instead of their names.")
@click.option("--keys", is_flag=True, help="With the config ref of the newest artifact.")
@click.option("--runs", is_flag=True, help="The ids of the runs of this line, newest first.")
@click.option(
    "--output-format",
    type=click.Choice(["name", "path", "json"]),
    default="name",
    help="Names, produced paths, or one JSON object.",
)
@click.argument("plan", required=False)
@select_options
@place_options
@json_option
def ls(
    plan: str | None,
    output_format: str,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    store: str | None,
    plan_id: str | None,
    *,
    long_: bool,
    paths: bool,
    keys: bool,
    runs: bool,
    as_json: bool,
) -> int:
    """List names, one a line: steps of the plan, what they produce, or runs."""
    where = place(plan, store, plan_id)
    if runs:
        return _ls_runs(where, as_json=as_json or output_format == "json")
    found = where.load()
    loaded = found.plan
    chosen = selected_steps(where, found, selected, excluded)
    known = grown(where, found).plan.steps if chosen else loaded.steps
    steps = [known[step] for step in chosen or known]
    as_json = as_json or output_format == "json"
    newest = _newest(where, loaded) if keys or as_json else {}
    if as_json:
        shown: list[Json] = [_step_json(step, newest.get(step.id)) for step in steps]
        out_json({"schema": "holdfast.ls/1", "steps": shown})
        return 0
    for step in steps:
        if paths or output_format == "path":
            for path in step.produces:
                out(path)
        else:
            line = _named(step, newest.get(step.id), long_=long_, keys=keys)
            out(cut(line) if long_ else line)
    return 0


def _named(step: Step, newest: Artifact | None, *, long_: bool, keys: bool) -> str:
    words: list[str] = [step.id]
    if keys:
        words.append(newest.config_ref if newest else "-")
    if long_:
        words.append(step.uses)
        words += [f"needs {','.join(need.step for need in step.needs)}"] if step.needs else []
        words += [f"makes {','.join(step.produces)}"] if step.produces else []
        words += [step.description.partition("\n")[0]] if step.description else []
    return "  ".join(words)


def _newest(where: Place, plan: Plan) -> Mapping[StepId, Artifact]:
    if not where.exists():
        return {}
    store = where.open(readonly=True)
    try:
        return store.newest_of_all(plan.project, plan.name)
    finally:
        store.close()


def _step_json(step: Step, newest: Artifact | None) -> dict[str, Json]:
    return {
        "id": step.id,
        "uses": step.uses,
        "needs": [need.step for need in step.needs],
        "produces": list(step.produces),
        "description": step.description,
        "config_ref": newest.config_ref if newest else None,
        "digest": newest.digest if newest else None,
    }


def _ls_runs(where: Place, *, as_json: bool) -> int:
    if not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    store = where.open(readonly=True)
    try:
        rows = store.runs(where.line(), imported=True)
    finally:
        store.close()
    if as_json:
        out_json({"schema": "holdfast.ls/1", "runs": [row.run for row in reversed(rows)]})
        return 0
    for row in reversed(rows):
        out(row.run)
    return 0
