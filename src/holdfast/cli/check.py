"""check: everything that is wrong with a plan file, at once."""

from __future__ import annotations

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.confined import sandbox_options
from holdfast.cli.place import Place, json_option, place, place_options
from holdfast.cli.say import out, out_json, talk
from holdfast.cli.titles import plan_title
from holdfast.cli.view import view
from holdfast.core.waves import Graph, graph_of
from holdfast.errors import PlanError, Problem, UsageError
from holdfast.formats.heading import python_part
from holdfast.formats.planfile import Loaded, read_file
from holdfast.model.digest import Json


@click.command(
    epilog="\b\nExample:\n  holdfast check plan.yaml\n  holdfast check --json\n"
    "  holdfast check --trace build"
)
@click.argument("plan", required=False)
@click.option(
    "--trace",
    "step",
    metavar="STEP",
    help="Run this command in a copy; list the project files it opened that its inputs do not name.",
)
@sandbox_options
@place_options
@json_option
def check(
    plan: str | None,
    step: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    network: bool,
    no_sandbox: bool,
    as_json: bool,
) -> int:
    """Check a plan file: everything that is wrong with it, at once.

    Every problem is shown with its file, line and column, and with what to do about it. Nothing is
    run or written. Exit 0 if nothing is wrong (there may be warnings), else 2.

    With --trace one step is run in a copy of the project and watched, in the sandbox that a run would give
    it; nothing is recorded. Exit 1 if it failed, or opened files of the project that its inputs do not name.
    """
    if step is None and (network or no_sandbox):
        raise UsageError("--network and --no-sandbox are for --trace; nothing else is run here")
    where = place(plan, store, plan_id)
    if step is not None:
        from holdfast.cli.tracing import trace

        wishes = wire.Wishes(network=network, sandbox=not no_sandbox)
        return trace(where, step, wishes, as_json=as_json)
    try:
        loaded = where.load(held=is_held)
        graph = graph_of(loaded.plan)
    except PlanError as error:
        if not as_json:
            raise
        problems = [problem_json(problem) for problem in error.problems]
        out_json({"schema": "holdfast.check/1", "ok": False, "problems": problems, "warnings": []})
        return 2
    if as_json:
        out_json(
            {
                "schema": "holdfast.check/1",
                "ok": True,
                "problems": [],
                "warnings": [problem_json(warning) for warning in loaded.warnings],
                "steps": len(graph.order),
            }
        )
        return 0
    _say_warnings(where, loaded)
    out(check_words(where, loaded, graph))
    out_next("holdfast plan")
    return 0


def check_words(where: Place, loaded: Loaded, graph: Graph) -> str:
    """What was found in a plan that can be read."""
    steps, waves = len(graph.order), len(graph.waves())
    found = _counted(len(loaded.warnings), "warning") if loaded.warnings else "nothing wrong"
    what = where.file or plan_title(loaded.plan)
    return f"{what}: {_counted(steps, 'step')} in {_counted(waves, 'wave')}, {found}"


def is_held(name: str) -> bool:
    """Whether anybody holds a name, as the person's own configuration says."""
    from holdfast.config.settings import read_people

    return bool(read_people().get(name))


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _say_warnings(where: Place, loaded: Loaded) -> None:
    if not loaded.warnings or where.file is None:
        return
    from holdfast.formats.render import render

    source, _ = read_file(python_part(where.file)[0] or where.file, walls=wire.walls_at(where.root))
    for line in render(loaded.warnings, source, width=view().width).splitlines():
        talk(line)


def problem_json(problem: Problem) -> dict[str, Json]:
    """A problem as programs read it; lines and columns count from 1, 0 means the whole file."""
    return {
        "code": problem.code,
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "note": problem.note,
        "hint": problem.hint,
    }
