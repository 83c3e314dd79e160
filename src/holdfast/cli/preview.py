"""plan: what a run would do, and for which reasons."""

from __future__ import annotations

import click

from holdfast.cli.again import again
from holdfast.cli.ahead import Ahead, look_ahead, survey_of
from holdfast.cli.course import looked
from holdfast.cli.grown import forced_steps, resampled_steps
from holdfast.cli.money import Dollars
from holdfast.cli.outlook import print_lines, table
from holdfast.cli.place import Place, json_option, place, place_options, refuse_planning
from holdfast.cli.planning import Wanted, goal_options, taken
from holdfast.cli.recording import recording_options, with_options
from holdfast.cli.say import named, out_json
from holdfast.cli.selection import select_options, selected_steps
from holdfast.cli.view import view
from holdfast.cli.waves import waves
from holdfast.errors import UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.event import Drift, Options

__all__ = ["look_ahead", "plan", "survey_of"]


@click.command(
    "plan",
    epilog="\b\nExample:\n  holdfast plan\n  holdfast plan -o review.plan.json\n"
    "  holdfast plan --against main --json --detailed-exitcode",
)
@click.argument("plan_file", metavar="[PLAN|GOAL]", required=False)
@place_options
@with_options(recording_options)
@json_option
@select_options
@click.option("--force", is_flag=True, help="As if every step were forced.")
@click.option(
    "--force-node", "forced", multiple=True, metavar="STEP", help="As if this step were forced."
)
@click.option(
    "--resample", "resampled", multiple=True, metavar="STEP", help="As with run --resample."
)
@click.option("--cutoff", is_flag=True, help="As with run --cutoff.")
@click.option(
    "--on-drift",
    type=click.Choice(["adopt", "regenerate", "fail"]),
    default="adopt",
    help="As with run --on-drift.",
)
@click.option(
    "--against",
    metavar="RUN|GITREF",
    help="Compare the plan with that of a run, or of a git revision (default: the last run).",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Steps at once on this machine, for the estimate (default: processors).",
)
@click.option(
    "-o",
    "--out",
    "file",
    metavar="FILE",
    help="Save the preview; 'holdfast run FILE' does exactly that, or refuses.",
)
@click.option(
    "-v", "verbose", count=True, help="List every step; twice also config refs and digests."
)
@click.option(
    "--waves",
    "by_wave",
    is_flag=True,
    help="Wave by wave: who does each step, then what all takes.",
)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit 10 if there is work to do, or a run would wait for a person.",
)
@click.option(
    "--yes", is_flag=True, help="Do not ask before a model plans, or a new plan is taken."
)
@click.option("--max-cost", type=Dollars(), help="What planning may spend on models in all.")
@goal_options
def plan(
    plan_file: str | None,
    store: str | None,
    plan_id: str | None,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    *,
    as_json: bool,
    force: bool,
    forced: tuple[str, ...],
    resampled: tuple[str, ...],
    cutoff: bool,
    on_drift: Drift,
    against: str | None,
    jobs: int | None,
    file: str | None,
    verbose: int,
    by_wave: bool,
    detailed_exitcode: bool,
    **manner: object,
) -> int:
    """Show what a run would do, and why; nothing is run, created or written.

    PLAN may be a goal in words: then a model plans for it first, unless it did before, and the plan is kept.
    """
    refuse_planning(plan_id)
    manner["as_json"] = as_json
    where, loaded = _loaded(place(plan_file, store, plan_id), manner)
    if loaded is None:
        return 0
    steps = forced_steps(where, loaded, forced)
    if resampled and (selected or excluded):
        raise UsageError("--resample and a selection contradict each other")
    more = resampled_steps(where, loaded, resampled)
    options = Options(
        force=force,
        force_steps=steps,
        cutoff=cutoff,
        on_drift=on_drift,
        select=more or selected_steps(where, loaded, selected, excluded),
        resample=more,
    )
    seen = looked(
        where,
        loaded,
        options,
        against=against,
        parallel=jobs or 0,
        follows=file is None,  # a saved preview is of the plan that a run begins with
    )
    ahead = seen.ahead
    if file is not None:
        from holdfast.cli.saved import save

        save(ahead, file)
    if as_json:
        out_json(seen.json())
    else:
        asked = [*(w for name in selected for w in ("-s", name)), *_asked(options)]
        asked += [word for name in excluded for word in ("-x", name)]
        commands = [_command("run", file)] if file else seen.way.commands
        if not commands:
            replaces = seen.way.held is not None and _wants_yes(where, loaded, options)
            commands = _next(ahead, asked, ["--yes"] if replaces else [])
        screen = waves if by_wave else table
        lines = screen(ahead, view(), verbose=verbose, commands=commands)
        print_lines([*seen.lines(view().width), *lines])
    return 10 if detailed_exitcode and (ahead.is_work or ahead.is_held) else 0


def _loaded(where: Place, manner: dict[str, object]) -> tuple[Place, Loaded | None]:
    """The plan of a place; for a goal, the one that a model made or makes."""
    wanted = taken(manner)
    asks = manner["yes"] or manner["max_cost"] is not None or manner["record"] is not None
    if where.file is not None and wanted == Wanted() and not asks:
        return where, where.load()
    from holdfast.cli.goal import loaded_for, refuse_idle, with_goal  # brings an engine

    where = with_goal(where, wanted)
    if where.goal:
        return where, loaded_for(where, wanted, manner)
    refuse_idle(manner)
    return where, where.load()


def _asked(options: Options) -> list[str]:
    """The options as a person would type them again."""
    words = ["--force"] if options.force else []
    words += [word for step in options.force_steps for word in ("--force-node", step)]
    words += [word for step in options.resample for word in ("--resample", step)]
    words += ["--cutoff"] if options.cutoff else []
    return words + (["--on-drift", options.on_drift] if options.on_drift != "adopt" else [])


def _command(*words: str) -> str:
    return again(" ".join(["holdfast", *(named(word) for word in words)]))


def _wants_yes(where: Place, loaded: Loaded, options: Options) -> bool:
    """Whether a run takes the place of one that is held only after a yes, and nobody can be asked."""
    from holdfast.cli.earlier import waits_before  # these bring what drives runs
    from holdfast.cli.prepared import before

    if view().asks or not waits_before(where, loaded.plan):
        return False
    found = before(where, loaded, options)
    return found.taken_by is None and not found.goes_over


def _next(ahead: Ahead, asked: list[str], yes: list[str]) -> list[str]:
    """The commands that follow from what was shown; `yes` has the word that a run wants, if any."""
    if not ahead.is_work and ahead.is_held:
        return [_command("run", *asked, *yes), _command("ledger")]
    if not ahead.is_work:
        return [_command("status")]
    first = next((s for s, o in ahead.outlooks.items() if o.decision != "reuse"), None)
    ask = [_command("why", first)] if first is not None else []
    if not any(o.is_work and o.decision != "wait" for o in ahead.outlooks.values()):
        waits = any(o.reason.code == "awaiting_approval" for o in ahead.outlooks.values())
        return [*ask, _command("approvals")] if waits else ask
    save = _command("plan", *asked, "-o", "review.plan.json")
    return [_command("run", *asked, *yes), *ask, save]
