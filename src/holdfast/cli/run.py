"""run: begin a run of a plan or of a goal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

import click

from holdfast import wire
from holdfast.cli.again import mend
from holdfast.cli.detach import detach as detached
from holdfast.cli.detach import is_told
from holdfast.cli.drive import manner_of, where_of
from holdfast.cli.driving import (
    WAITING,
    check_plan_secrets,
    check_trust,
    exclude,
    max_cost,
    run_options,
    start_new,
)
from holdfast.cli.earlier import leave_earlier, say_left_out
from holdfast.cli.foreign import trust_foreign
from holdfast.cli.goal import loaded_for, with_goal
from holdfast.cli.grown import forced_steps, resampled_steps
from holdfast.cli.measure import Duration
from holdfast.cli.place import (
    Place,
    place,
    place_options,
    refuse_planning,
)
from holdfast.cli.planning import Wanted, goal_options, taken
from holdfast.cli.prepared import before
from holdfast.cli.saved import Agreement, Asked, agree, consent, find_saved, held_to
from holdfast.cli.say import last_object, talk
from holdfast.cli.selection import select_options, selected_steps
from holdfast.cli.tidy import removed_option
from holdfast.cli.watch import Spending, watch
from holdfast.core.changes import asking_for_nothing
from holdfast.errors import StaleError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Digest
from holdfast.model.event import Agreed, Drift, Options, Shown
from holdfast.model.plan import StepId


@click.command(
    epilog="\b\nExample:\n  holdfast run -j 4\n  holdfast run plan.yaml --force-node build --json\n"
    "  holdfast run review.plan.json"
)
@click.argument("plan", metavar="[PLAN|GOAL]", required=False)
@place_options
@run_options
@select_options
@click.option("--force", is_flag=True, help="Run every step, whatever stands.")
@click.option(
    "--force-node",
    "forced",
    multiple=True,
    metavar="STEP",
    help="Run this step, whatever stands; may be repeated.",
)
@click.option(
    "--resample",
    "resampled",
    multiple=True,
    metavar="STEP",
    help="Make one more artifact of this step alone; the best score stands, else the newest.",
)
@click.option(
    "--cutoff",
    is_flag=True,
    help="Reuse a step whose content inputs are the same, though steps above it ran.",
)
@click.option(
    "--on-drift",
    type=click.Choice(["adopt", "regenerate", "fail"]),
    default="adopt",
    help="What to do with outputs changed by hand.",
)
@click.option(
    "--time",
    "max_ms",
    type=Duration(),
    help="What the run may take; starts nothing more then (exit 5). Resume starts the time anew.",
)
@click.option("--join", is_flag=True, help="Run beside an engine that holds this line.")
@click.option("--fail-fast", is_flag=True, help="Start nothing more after a failure.")
@click.option(
    "--keep-going", is_flag=True, help="Go on with other branches after a failure (the default)."
)
@click.option("--barrier", is_flag=True, help="Start a wave only when the one before is settled.")
@click.option("-i", "--incremental", is_flag=True, help="Reuse what stands (the default).")
@click.option("--watch", "watching", is_flag=True, help="Run again whenever an input changes.")
@click.option("--detach", is_flag=True, help="Go on in the background; see attach, status, stop.")
@click.option("--key", default="", metavar="TEXT", help="Begin at most one run under this key.")
@removed_option
@click.option(
    "--show-plan", is_flag=True, help="Show the preview first, wave by wave; on a terminal, ask."
)
@click.option("--dry-run", is_flag=True, help="Only show the preview, as 'holdfast plan' does.")
@click.option("--diff-plan", is_flag=True, help="Only show how the plan differs from the last one.")
@click.option(
    "--preview", metavar="DIGEST", help="Run only if this is still what 'holdfast plan' foresees."
)
@click.option(
    "--trust", metavar="DIGEST", help="Approve the plan of a file that comes from elsewhere."
)
@click.option(
    "--on-failure",
    type=click.Choice(["escalate", "regenerate", "hybrid"]),
    help="If the plan for a goal fails: leave it to you (default), plan again, or plan again only where "
    "what was made was refused.",
)
@click.option(
    "--agreed", "told", type=click.Choice(["nothing", "shown", "anything"]), hidden=True
)  # what whoever began this in the background agreed to pay for
@click.option("--shown", nargs=2, multiple=True, hidden=True)  # and what he saw come of it
@goal_options
def run(
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    *,
    force: bool,
    forced: tuple[str, ...],
    resampled: tuple[str, ...],
    cutoff: bool,
    on_drift: Drift,
    max_ms: int | None,
    join: bool,
    fail_fast: bool,
    keep_going: bool,
    barrier: bool,
    incremental: bool,
    watching: bool,
    detach: bool,
    key: str,
    removed: str,
    show_plan: bool,
    dry_run: bool,
    diff_plan: bool,
    preview: str | None,
    trust: str | None,
    on_failure: str | None,
    told: Agreed | None,
    shown: tuple[tuple[str, str], ...],
    **manner: object,
) -> int:
    """Run a plan: reuse what stands, run what changed, and say why.

    PLAN may be a preview that 'holdfast plan -o' saved: then exactly that is run, or nothing. It may be a
    goal in words: then a model plans for it, once, and the plan runs after you approved it.
    """
    wanted = taken(manner)
    exclude(fail_fast, keep_going, "--fail-fast and --keep-going")
    exclude(force, incremental, "--force and --incremental")
    if watching and (detach or key or manner["as_json"]):
        raise UsageError("--watch goes with none of --detach, --key and --json")
    refuse_planning(plan_id)
    saved = find_saved(plan)
    asked = Asked(saved, preview, show_plan, dry_run, diff_plan)
    if (watching and asked != Asked()) or (detach and (show_plan or dry_run or diff_plan)):
        raise UsageError("a preview holds for one run that somebody waits for")
    file, line = (saved.file, saved.line) if saved else (plan, plan_id)
    where = place(file, store, line, whole=not (dry_run or diff_plan))
    where = with_goal(where, wanted)
    loaded = _loaded(where, wanted, manner, asked)
    if loaded is None:
        return 0
    if detach and key and is_told(where, loaded.plan, key, as_json=bool(manner["as_json"])):
        return 0
    exclude(bool(resampled), bool(selected or excluded), "--resample and a selection")
    more = resampled_steps(where, loaded, resampled)
    options = Options(
        force=force,
        force_steps=forced_steps(where, loaded, forced),
        cutoff=cutoff,
        on_drift=on_drift,
        joined=join or wire.is_shared(where.location),
        fail_fast=fail_fast,
        barrier=barrier,
        select=more or selected_steps(where, loaded, selected, excluded),
        resample=more,
        max_ms=max_ms,
        executor=where_of(manner),
    )
    yes = bool(manner["yes"]) or saved is not None
    held = None if diff_plan else held_to(where, loaded, options, asked)
    seen = None
    if not (show_plan or dry_run or diff_plan):
        seen = check_trust(where, loaded, options, trust, manner)
    manner["incremental"] = incremental and not watching
    if (given := agree(where, loaded, options, asked, manner, seen, held)) is None:
        return 0
    if show_plan and (loaded.foreign or trust is not None):  # who said yes saw this very plan
        trust_foreign(where, loaded, options, trust, lambda: True)
    held_one = before(where, loaded, options)
    if key:
        say_left_out(where, loaded.plan, key)
    elif held_one.taken_by is None:
        leave_earlier(where, loaded.plan, yes=yes or held_one.goes_over)
    if detach:
        check_plan_secrets(loaded.plan, manner_of(manner).secrets)
        return detached(where, loaded.plan, key, given, as_json=bool(manner["as_json"]))
    bound = replace(given.options, max_cost=max_cost(where, loaded.plan, manner))
    if told:
        bound = replace(bound, shown=tuple(Shown(StepId(s), Digest(d)) for s, d in shown))
    given = replace(given, options=bound, agreed=told or given.agreed)
    if watching:
        return _watched(where, given, manner, removed)
    if not where.goal:
        return start_new(where, loaded.plan, given, manner, key, removed, held_one.taken_by)
    from holdfast.cli.regenerate import regenerated

    later = replace(given, options=asking_for_nothing(given.options))
    start = partial(_start_planned, where, later, manner, removed)
    with last_object():
        code = start_new(where, loaded.plan, given, manner, key, removed)
        return regenerated(where, code, wanted, manner, on_failure, start)


def _loaded(where: Place, wanted: Wanted, manner: dict[str, object], asked: Asked) -> Loaded | None:
    """The plan to be run; None if another one for the goal was only to be looked at."""
    saved = asked.saved
    if not where.goal:
        return where.load(saved.params if saved else None)
    if saved is not None and where.planned() is None:
        raise StaleError(
            f"'{saved.name}' is stale: the plan for its goal is gone", hint="holdfast plan"
        )
    return loaded_for(where, wanted, manner, takes=not asked.diff_plan)


def _start_planned(
    where: Place, given: Agreement, manner: dict[str, object], removed: str, loaded: Loaded
) -> int:
    """Run another plan that a model made, if somebody is there to approve it."""
    try:
        check_trust(where, loaded, given.options, None, manner)
    except UsageError as error:
        mend(error)
        talk(str(error))
        return WAITING
    except click.exceptions.Exit:  # he said no, and may say yes later
        return WAITING
    bound = replace(given.options, max_cost=max_cost(where, loaded.plan, manner))
    given = replace(given, options=bound)
    return start_new(where, loaded.plan, given, manner, "", removed)


def _watched(where: Place, given: Agreement, manner: dict[str, object], removed: str) -> int:
    """Run now as asked, and then again as things change; what was forced is forced once.

    Somebody is asked again about what he did not see as it is now, unless a yes holds for all.
    """
    later, rounds = asking_for_nothing(given.options), iter([given])
    seen = dict(given.seen)
    spending = Spending(where, cast("int | None", manner["max_cost"]))

    def again() -> int:
        loaded = where.load()
        if (now := next(rounds, None)) is None:
            check_trust(where, loaded, later, None, manner)
            say_left_out(where, loaded.plan)
            now = consent(where, loaded, later, manner, seen)
            seen.update(now.seen)
        bound = max_cost(where, loaded.plan, {"max_cost": spending.left_to(loaded.plan.name)})
        now = replace(now, options=replace(now.options, max_cost=bound))
        return start_new(where, loaded.plan, now, manner, "", removed)

    return watch(where, later, again, spending)
