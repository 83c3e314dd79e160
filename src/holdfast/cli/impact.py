"""impact: what a change of a step or of a file would touch."""

from __future__ import annotations

import os

import click

from holdfast.cli.ahead import reading, survey_of
from holdfast.cli.cause import few
from holdfast.cli.grown import grown
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json, seconds
from holdfast.core.causes import files_in
from holdfast.core.waves import Graph, graph_of
from holdfast.engine.foresee import timings
from holdfast.errors import EditError, UsageError
from holdfast.model.condition import references
from holdfast.model.items import base_of, source_of, spelled_out, step_named
from holdfast.model.plan import Plan, StepId
from holdfast.model.text import cells
from holdfast.ports import Store


@click.command(
    epilog="\b\nExample:\n  holdfast impact build\n  holdfast impact src/words.py --json"
)
@click.argument("things", metavar="STEP|FILE…", nargs=-1, required=True)
@file_option
@place_options
@json_option
def impact(
    things: tuple[str, ...],
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
) -> int:
    """Show which steps would run again if these steps or files changed; nothing is run."""
    where = place(plan, store, plan_id)
    loaded = where.load()
    loaded = grown(where, loaded)
    graph = graph_of(loaded.plan)
    with reading(where) as opened:
        direct = _direct(where, loaded.plan, opened, things)
        known = timings(opened, loaded.plan, loaded.plan.name)
    sure, unsure = _reached(graph, direct)
    touched = sorted(sure | unsure, key=graph.rank.__getitem__)
    took = sum(known[step].p50 for step in sure if step in known)
    if as_json:
        out_json(
            {
                "schema": "holdfast.impact/1",
                "direct": [step for step in touched if step in direct],
                "steps": list(touched),
                "unsure": [step for step in touched if step in unsure],
                "total": len(graph.order),
                "duration_ms": took,
            }
        )
        return 0
    names = {step: spelled_out(step) for step in touched}
    width = max(map(cells, names.values()), default=0)
    for step in touched:
        room, sign = " " * (width - cells(names[step])), "?" if step in unsure else "~"
        out(f"{sign} {names[step]}{room}  {_why(graph, step, direct, set(touched))}")
    about = f" · about {seconds(took)} of work" if took else ""
    perhaps = f", perhaps {len(unsure)} more" if unsure else ""
    out(f"{len(sure)} of {len(graph.order)} steps{perhaps}{about}")
    return 0


def _why(graph: Graph, step: StepId, direct: dict[StepId, str], touched: set[StepId]) -> str:
    if step in direct:
        return f"reads {direct[step]}" if direct[step] else "the step itself"
    above = [need for need in graph.steps[step].data_needs if need in touched]
    if above:
        return f"needs {few(above)}"
    return f"depends on what {few([s for s in _decided_by(graph, step) if s in touched])} says"


def _direct(where: Place, plan: Plan, store: Store, things: tuple[str, ...]) -> dict[StepId, str]:
    """The steps that are named, or that read a file that is named; with the file."""
    meant = {thing: step_named(thing, plan.steps) for thing in things}
    found = {step: "" for step in meant.values() if step is not None}
    paths = {
        os.path.relpath(os.path.realpath(thing), os.path.realpath(where.root)): thing
        for thing in things
        if meant[thing] is None
    }
    if not paths:
        return found
    survey, used = survey_of(where, plan, store), set()
    for step in plan.steps.values():
        try:
            reads = {path for path, _ in files_in(survey.observe(step).parts)}
        except EditError:
            continue
        for path in reads & paths.keys():
            found.setdefault(step.id, path)
            used.add(path)
    for path in paths.keys() - used:
        if os.path.exists(os.path.join(where.root, path)):
            raise UsageError(f"no step reads '{paths[path]}'", hint="holdfast ls --paths")
        raise UsageError(f"'{paths[path]}' is neither a step nor a file", hint="holdfast ls")
    return found


def _reached(graph: Graph, direct: dict[StepId, str]) -> tuple[set[StepId], set[StepId]]:
    """The steps and all that read what they make, directly or not; and those that may run or not."""
    sure, unsure = set(direct), set[StepId]()
    for step in graph.order:
        above = graph.steps[step].data_needs
        if step in sure or any(need in sure for need in above):
            sure.add(step)
        elif any(need in unsure for need in above) or any(
            need in sure or need in unsure for need in _decided_by(graph, step)
        ):
            unsure.add(step)
    return sure, unsure


def _decided_by(graph: Graph, step_id: StepId) -> list[StepId]:
    """The steps whose artifacts say whether there is such a step, or whether it runs."""
    step = graph.steps[step_id]
    base = graph.steps.get(base_of(step_id) or step_id, step)
    source = source_of(base.for_each)
    found = [] if source is None else [source]
    return found + [StepId(part.name) for part in references(step.when or {})]
