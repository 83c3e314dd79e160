"""run, resume, retry, stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import click

from holdfast import wire
from holdfast.cli.additions import taken_up
from holdfast.cli.again import again
from holdfast.cli.ask import consent_to
from holdfast.cli.asking import How, ask_people, how_to, policy_of
from holdfast.cli.detach import detach as detached
from holdfast.cli.drive import Drive, once
from holdfast.cli.earlier import leave_earlier, say_left_out
from holdfast.cli.ending import conclude, run_told
from holdfast.cli.gates import is_paid, needs_consent
from holdfast.cli.grown import forced_steps, resampled_steps
from holdfast.cli.money import Dollars, exact
from holdfast.cli.notify import notify
from holdfast.cli.people import is_held
from holdfast.cli.place import (
    Place,
    file_option,
    find_run,
    json_option,
    keep_line,
    known_step,
    place,
    place_options,
)
from holdfast.cli.recording import record_folder, recording_options
from holdfast.cli.resume import resume_lines
from holdfast.cli.saved import Asked, agree, consent, find_saved
from holdfast.cli.say import short, talk
from holdfast.cli.selection import select_options, selected_steps
from holdfast.cli.show import load_state
from holdfast.cli.tidy import removed_option, tidy
from holdfast.cli.watch import watch
from holdfast.config.settings import read_settings
from holdfast.core.changes import asking_for_nothing
from holdfast.core.moves import LEFT_OUT
from holdfast.core.state import COMPLETE, State, StepState
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_state
from holdfast.engine.loop import Engine
from holdfast.engine.opened import is_left_rejected, left_alone
from holdfast.engine.repeat import Repeated
from holdfast.engine.requests import additions, check_secrets
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.world import World
from holdfast.errors import PlanError, UsageError
from holdfast.model.event import Drift, Options
from holdfast.model.items import base_of
from holdfast.model.money import dollars
from holdfast.model.plan import Plan, RunId, Step, StepId, plan_digest
from holdfast.ports import Store


@dataclass(frozen=True, slots=True)
class Manner:
    """How a command that runs things behaves."""

    as_json: bool
    quiet: bool
    parallel: int
    yes: bool
    secrets: tuple[str, ...]
    how: How
    waits: bool


def run_options(command: Callable[..., object]) -> Callable[..., object]:
    """Options of every command that runs things."""
    for option in (
        json_option,
        *recording_options,
        click.option("-q", "--quiet", is_flag=True, help="No lines while it runs."),
        click.option(
            "-j",
            "--jobs",
            type=click.IntRange(1, 1024),
            metavar="N",
            help="Steps that work on this machine at once (default: processors). Waiting for a model takes "
            "no place; with 1, one step follows the other.",
        ),
        click.option(
            "--yes", is_flag=True, help="Do not ask before steps that cost money or act outside."
        ),
        click.option(
            "--max-cost",
            type=Dollars(),
            help="What the run may spend on models in all; stops before it would be more (exit 5).",
        ),
        click.option(
            "--approve",
            type=click.Choice(["ask", "wait", "policy"]),
            help="How approvals are decided: ask here (default on a terminal), end and wait (default "
            "elsewhere), or by the rules of your own configuration.",
        ),
        click.option(
            "--wait", is_flag=True, help="Stay until what it waits for was decided elsewhere."
        ),
        click.option(
            "--secret",
            "secrets",
            multiple=True,
            metavar="NAME",
            help="Let steps that ask for it see this variable.",
        ),
        click.option(
            "--checkpoints",
            metavar="DIR",
            help="Write a checkpoint there whenever a wave is settled.",
        ),
        click.option("--beat", type=float, hidden=True, default=10.0),
        click.option("--poll", type=float, hidden=True, default=1.0),
        click.option("--lease", type=float, hidden=True, default=30.0),
    ):
        command = option(command)
    return command


@click.command(
    epilog="\b\nExample:\n  holdfast run -j 4\n  holdfast run plan.yaml --force-node build --json\n"
    "  holdfast run review.plan.json"
)
@click.argument("plan", required=False)
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
@click.option("--show-plan", is_flag=True, help="Show the preview first; on a terminal, ask.")
@click.option("--dry-run", is_flag=True, help="Only show the preview, as 'holdfast plan' does.")
@click.option("--diff-plan", is_flag=True, help="Only show how the plan differs from the last one.")
@click.option(
    "--preview", metavar="DIGEST", help="Run only if this is still what 'holdfast plan' foresees."
)
@click.option(
    "--trust", metavar="DIGEST", help="Approve the plan of a file that comes from elsewhere."
)
@click.option("--only-shown", is_flag=True, hidden=True)
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
    only_shown: bool,
    **manner: object,
) -> int:
    """Run a plan: reuse what stands, run what changed, and say why.

    PLAN may be a preview that 'holdfast plan -o' saved: then exactly that is run, or nothing.
    """
    _exclude(fail_fast, keep_going, "--fail-fast and --keep-going")
    _exclude(force, incremental, "--force and --incremental")
    if watching and (detach or key or manner["as_json"]):
        raise UsageError("--watch goes with none of --detach, --key and --json")
    saved = find_saved(plan)
    asked = Asked(saved, preview, show_plan, dry_run, diff_plan)
    if (watching and asked != Asked()) or (detach and (show_plan or dry_run or diff_plan)):
        raise UsageError("a preview holds for one run that somebody waits for")
    where = place(saved.file, store, saved.line) if saved else place(plan, store, plan_id)
    loaded = where.load(saved.params if saved else None)
    _exclude(bool(resampled), bool(selected or excluded), "--resample and a selection")
    more = resampled_steps(where, loaded, resampled)
    options = Options(
        force=force,
        force_steps=forced_steps(where, loaded, forced),
        cutoff=cutoff,
        on_drift=on_drift,
        joined=join,
        fail_fast=fail_fast,
        barrier=barrier,
        select=more or selected_steps(where, loaded, selected, excluded),
        resample=more,
    )
    yes = bool(manner["yes"]) or saved is not None
    if (loaded.foreign or trust is not None) and not (dry_run or diff_plan):
        from holdfast.cli.foreign import trust_foreign

        trust_foreign(where, loaded, options, trust)
    if (agreed := agree(where, loaded, options, asked, manner)) is None:
        return 0
    if key:
        say_left_out(where, loaded.plan, key)
    else:
        leave_earlier(where, loaded.plan, yes=yes)
    manner["spends"], manner["yes"] = bool(manner["yes"]) and not only_shown, True
    agreed = replace(agreed, max_cost=max_cost(where, loaded.plan, manner))
    if detach:
        _check_secrets(loaded.plan, _manner(manner).secrets)
        return detached(where, loaded.plan, key, as_json=bool(manner["as_json"]))
    if watching:
        return _watched(where, agreed, manner, removed, None if yes else _outside(loaded.plan))
    return _start(where, loaded.plan, agreed, manner, key, removed)


def _exclude(one: bool, other: bool, names: str) -> None:
    if one and other:
        raise UsageError(f"{names} contradict each other")


def _watched(
    where: Place,
    options: Options,
    manner: dict[str, object],
    removed: str,
    agreed: dict[StepId, Step] | None,
) -> int:
    """Run now as asked, and then again as things change; what was forced is forced once.

    `agreed` are the steps with external effects that somebody saw; None if a yes holds for all.
    """
    later = asking_for_nothing(options)
    rounds = iter([options])

    def again() -> int:
        chosen, plan = next(rounds, later), where.load().plan
        if chosen is later:
            say_left_out(where, plan)
        if agreed is not None:
            outside = _outside(plan)
            consent_to([s for s, step in outside.items() if agreed.get(s) != step], yes=False)
            agreed.update(outside)
        return _start(where, plan, chosen, manner, "", removed)

    return watch(where, later, again)


def _outside(plan: Plan) -> dict[StepId, Step]:
    return {step_id: step for step_id, step in plan.steps.items() if needs_consent(step)}


def _start(
    where: Place, plan: Plan, options: Options, manner: dict[str, object], key: str, removed: str
) -> int:
    code = drive(
        where,
        plan,
        manner,
        lambda world: start_run(world, plan, plan.name, options, key),
        None if key else lambda world: wire.repeat(world, plan, options),
    )
    if code == 0:
        tidy(where, plan, removed)
    return code


@click.command(epilog="\b\nExample:\n  holdfast resume\n  holdfast resume r-1f3c")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--checkpoint",
    metavar="ID|FILE|latest",
    help="Continue the run that a checkpoint names, after looking at what changed since.",
)
@file_option
@place_options
@run_options
def resume(
    run_id: str | None,
    checkpoint: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    **manner: object,
) -> int:
    """Continue a run that was stopped, failed or killed. What is done stays done."""
    _exclude(run_id is not None, checkpoint is not None, "a run and --checkpoint")
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        if checkpoint is None:
            found = unfinished(with_store, run_id, where.line())
        else:
            from holdfast.cli.checkpoint import run_of

            found = run_of(where, with_store, checkpoint, _folder(manner))
        state = load_state(with_store, found)
        if not state.ended:
            check_secrets(with_store, state, _manner(manner).secrets)
        more = additions(with_store, state)
        stay = {s for s in state.steps if is_left_rejected(with_store, state, s)}
    finally:
        with_store.close()
    if state.ended:
        raise UsageError(
            f"run {short(found)} is {state.status}; there is nothing to resume", hint="holdfast run"
        )
    raised = raised_cost(where, state, manner)
    for line in [*resume_lines(state, stay), *taken_up(more)]:
        talk(line)
    _say_edited(where, state)
    if not manner["yes"]:
        paid = unpaid(where, state, state.steps, manner)
        consent_to(_will_touch(where, state), yes=False, paid=paid)
    return drive(where, state.plan, manner, lambda world: resume_run(world, found, max_cost=raised))


def _folder(manner: dict[str, object]) -> str | None:
    return str(manner["checkpoints"]) if manner["checkpoints"] else None


def unfinished(store: Store, given: str | None, line: str | None) -> RunId:
    """A run as named, else the last that has not ended."""
    if given is not None:
        return find_run(store, given, line)
    rows = [row for row in store.runs() if line is None or row.line == line]
    for row in reversed(rows):
        state = read_state(store, row.run)
        if state is not None and not state.ended:
            return row.run
    raise UsageError("there is no unfinished run", hint="holdfast run")


def _say_edited(where: Place, state: State) -> None:
    """A run keeps its plan: who edited the file to mend a failure means `run`, not `resume`."""
    if where.file is None:
        return
    try:
        found = where.load(state.plan.params).plan
        edited = plan_digest(replace(found, name=state.plan.name)) != state.base
    except (PlanError, UsageError):
        edited = True
    if edited:
        talk(
            f"{where.file} changed since; this run keeps its plan. "
            + again("'holdfast run' takes the new one")
        )


@click.command(epilog="\b\nExample:\n  holdfast retry build")
@click.argument("step")
@file_option
@place_options
@run_options
def retry(
    step: str, plan: str | None, store: str | None, plan_id: str | None, **manner: object
) -> int:
    """Try a failed or held step again, with what was skipped below it."""
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        found = find_run(with_store, None, where.line())
        state = read_state(with_store, found)
        assert state is not None
        step_id = known_step(state.plan, step.removesuffix("+"))
        held = is_held(with_store, state, step_id)
    finally:
        with_store.close()
    phase = state.steps[step_id].phase
    if not state.ended and (held or phase in {"failed", "waiting"} or step_id in state.gaps):
        below = state.graph.below([step_id])
        touched = [s for s in still_outside(state) if s in below]
        paid = unpaid(where, state, below, manner)
        consent_to(touched, yes=bool(manner["yes"]), paid=paid)
        named, raised = (step_id,), raised_cost(where, state, manner)
        return drive(
            where,
            state.plan,
            manner,
            lambda world: resume_run(world, found, only=named, asked=named, max_cost=raised),
        )
    if not state.ended and phase not in {"done", "reused"}:
        raise UsageError(f"'{step_id}' is {phase}, not failed", hint="holdfast resume")
    loaded = where.load()
    options = Options(
        force_steps=forced_steps(where, loaded, [step_id]),
        max_cost=max_cost(where, loaded.plan, manner),
    )
    if not manner["yes"]:
        consent(where, loaded, options, parallel=0, agreed=manner["max_cost"] is not None)
    say_left_out(where, loaded.plan)
    return drive(
        where,
        loaded.plan,
        manner,
        lambda world: start_run(world, loaded.plan, loaded.plan.name, options),
    )


def max_cost(where: Place, plan: Plan, manner: Mapping[str, object]) -> int | None:
    """What a new run may spend."""
    return wire.market.cost_bound(where.root, plan, cast("int | None", manner["max_cost"]))


def unpaid(
    where: Place, state: State, steps: Iterable[StepId], manner: Mapping[str, object]
) -> list[StepId]:
    """Steps that would cost money in a run to which nobody said yes: it paid for none, and has no limit."""
    if (
        state.spent.cost
        or state.reserved
        or state.max_cost is not None
        or manner["max_cost"] is not None
    ):
        return []
    left = [s for s in steps if _is_to_do(state.steps[s]) and (base_of(s) or s) not in state.added]
    return [s for s in left if is_paid(where.root, state.plan.steps[s])]


def _is_to_do(step: StepState) -> bool:
    unselected = step.reason is not None and step.reason.code in LEFT_OUT
    return step.phase not in COMPLETE and not (step.phase == "skipped" and unselected)


def raised_cost(where: Place, state: State, manner: Mapping[str, object]) -> int | None:
    """What a run may spend from now on, if that was said; it must leave something.

    The person's own budget for a run holds all the same: the smaller one wins.
    """
    given = cast("int | None", manner["max_cost"])
    if given is not None:
        given = wire.market.cost_bound(where.root, state.plan, given)
    if given is not None and given <= state.spent.cost:
        raise UsageError(
            f"{short(state.run)} has spent {dollars(state.spent.cost)} already,"
            f" so --max-cost {exact(given)} leaves nothing",
            hint="--max-cost is for the whole run, with what it spent so far",
        )
    return given


def drive(
    where: Place,
    plan: Plan,
    given: dict[str, object],
    begin: Callable[[World], tuple[Hold, Engine]],
    repeat: Callable[[World], Repeated | None] | None = None,
) -> int:
    """Run to an end or a rest; with `repeat`, that is tried first."""
    manner = _manner(given)
    _check_secrets(plan, manner.secrets)
    settings, record = read_settings(where.root), record_folder(where, given)
    store = where.open(create=True)
    try:
        wishes = wire.Wishes(
            parallel=manner.parallel or settings.parallel or 0,
            resources=settings.resources,
            beat_seconds=float(str(given["beat"])),
            poll_seconds=float(str(given["poll"])),
            lease_seconds=float(str(given["lease"])),
            stays=manner.waits,
            policy=policy_of(store, where.location) if manner.how == "policy" else None,
            secrets=manner.secrets,
            record=record,
            spends=bool(given.get("spends", given["yes"])),
        )
        driven = Drive(where, plan, store, wishes, quiet=manner.quiet, checkpoints=_folder(given))
        state = once(driven, begin, repeat)
        while state.status == "waiting" and manner.how == "ask" and ask_people(store, where, state):
            run = state.run
            state = once(driven, lambda world: resume_run(world, run, only=()))  # noqa: B023
        keep_line(where, state.line)
        code = conclude(store, state, where.file, as_json=manner.as_json)
        told = run_told(store, state, where.file) if settings.notify else {}
    finally:
        store.close()
    if settings.notify:
        notify(settings.notify, told)
    return code


def _manner(given: dict[str, object]) -> Manner:
    secrets = given["secrets"]
    return Manner(
        as_json=bool(given["as_json"]),
        quiet=bool(given["quiet"]),
        parallel=int(str(given["jobs"] or 0)),
        yes=bool(given["yes"]),
        how=how_to(
            cast("str | None", given["approve"]),
            waits=bool(given["wait"]),
            as_json=bool(given["as_json"]),
        ),
        waits=bool(given["wait"]),
        secrets=tuple(str(name) for name in secrets) if isinstance(secrets, tuple) else (),
    )


def _check_secrets(plan: Plan, allowed: Sequence[str]) -> None:
    missing = wire.secrets_missing(plan, allowed)
    if missing:
        step, name = missing[0]
        raise UsageError(
            f"'{step.id}' asks for the secret '{name}', which nobody allowed",
            hint=f"--secret {name}",
        )


def still_outside(state: State) -> list[str]:
    """The steps of an unfinished run that would still touch the outside world."""
    return [
        step_id
        for step_id in state.graph.order
        if needs_consent(state.plan.steps[step_id]) and state.steps[step_id].phase not in COMPLETE
    ]


def _will_touch(where: Place, state: State) -> list[str]:
    """Those of them that a resumed run may come to."""
    outside = still_outside(state)
    if not outside:
        return []
    store = where.open(readonly=True)
    try:
        left = left_alone(store, state, wire.now_ms(), partial(wire.is_driven, store))
    finally:
        store.close()
    return [step for step in outside if step not in left]
