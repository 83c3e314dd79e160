"""run, resume, retry, stop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import click

from holdfast import wire
from holdfast.cli.additions import taken_up
from holdfast.cli.again import again, mend
from holdfast.cli.ahead import Ahead
from holdfast.cli.ask import ask
from holdfast.cli.asking import ask_people
from holdfast.cli.consent import consent_within
from holdfast.cli.detach import detach as detached
from holdfast.cli.drive import Drive, manner_of, once, wishes_of
from holdfast.cli.earlier import leave_earlier, say_left_out
from holdfast.cli.ending import conclude, run_told
from holdfast.cli.foreign import trust_foreign
from holdfast.cli.goal import loaded_for, old_run_words, with_goal
from holdfast.cli.grown import forced_steps, resampled_steps
from holdfast.cli.measure import Duration
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
    refuse_planning,
)
from holdfast.cli.planning import goal_options, taken
from holdfast.cli.prepared import before, take, taking
from holdfast.cli.provisions import provide, provide_again
from holdfast.cli.recording import record_folder, recording_options
from holdfast.cli.resume import resume_lines
from holdfast.cli.saved import Agreement, Asked, agree, consent, find_saved, held_to, shown_whole
from holdfast.cli.say import last_object, short, talk
from holdfast.cli.selection import select_options, selected_steps
from holdfast.cli.show import load_state
from holdfast.cli.succession import with_step
from holdfast.cli.tidy import removed_option, tidy
from holdfast.cli.titles import brief
from holdfast.cli.watch import Spending, watch
from holdfast.config.settings import read_settings
from holdfast.core.changes import asking_for_nothing
from holdfast.core.state import State
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_state
from holdfast.engine.loop import Engine
from holdfast.engine.opened import is_left_rejected, left_alone
from holdfast.engine.repeat import Repeated
from holdfast.engine.replans import led_to
from holdfast.engine.requests import additions, check_secrets
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.world import World
from holdfast.errors import PlanError, StaleError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Digest
from holdfast.model.event import Agreed, Drift, Options, Shown
from holdfast.model.money import dollars
from holdfast.model.plan import Plan, RunId, StepId, plan_digest
from holdfast.ports import Store

WAITING = 3  # for a person


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
            help="What the run may spend on models in all; stops before it would be more (exit 5). "
            "With 'run --watch', all runs of the watch together.",
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
    _exclude(fail_fast, keep_going, "--fail-fast and --keep-going")
    _exclude(force, incremental, "--force and --incremental")
    if watching and (detach or key or manner["as_json"]):
        raise UsageError("--watch goes with none of --detach, --key and --json")
    refuse_planning(plan_id)
    saved = find_saved(plan)
    asked = Asked(saved, preview, show_plan, dry_run, diff_plan)
    if (watching and asked != Asked()) or (detach and (show_plan or dry_run or diff_plan)):
        raise UsageError("a preview holds for one run that somebody waits for")
    where = place(saved.file, store, saved.line) if saved else place(plan, store, plan_id)
    where = with_goal(where, wanted)
    if where.goal:
        if saved is not None and where.planned() is None:
            raise StaleError(
                f"'{saved.name}' is stale: the plan for its goal is gone", hint="holdfast plan"
            )
        found = loaded_for(where, wanted, manner, takes=not diff_plan)
        if found is None:
            return 0
        loaded = found
    else:
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
        max_ms=max_ms,
    )
    yes = bool(manner["yes"]) or saved is not None
    held = None if diff_plan else held_to(where, loaded, options, asked)
    seen = None
    if not (show_plan or dry_run or diff_plan):
        seen = _check_trust(where, loaded, options, trust, manner)
    manner["incremental"] = incremental and not watching
    if (given := agree(where, loaded, options, asked, manner, seen, held)) is None:
        return 0
    if show_plan and (loaded.foreign or trust is not None):  # who said yes saw this very plan
        trust_foreign(where, loaded, options, trust, lambda: True)
    held_one = before(where, loaded.plan)
    if key:
        say_left_out(where, loaded.plan, key)
    elif held_one.taken_by is None:
        leave_earlier(where, loaded.plan, yes=yes or held_one.goes_over)
    if detach:
        _check_secrets(loaded.plan, manner_of(manner).secrets)
        return detached(where, loaded.plan, key, given, as_json=bool(manner["as_json"]))
    bound = replace(given.options, max_cost=max_cost(where, loaded.plan, manner))
    if told:
        bound = replace(bound, shown=tuple(Shown(StepId(s), Digest(d)) for s, d in shown))
    given = replace(given, options=bound, agreed=told or given.agreed)
    if watching:
        return _watched(where, given, manner, removed)
    if not where.goal:
        return _start(where, loaded.plan, given, manner, key, removed, held_one.taken_by)
    from holdfast.cli.regenerate import regenerated

    later = replace(given, options=asking_for_nothing(given.options))
    start = partial(_start_planned, where, later, manner, removed)
    with last_object():
        code = _start(where, loaded.plan, given, manner, key, removed)
        return regenerated(where, code, wanted, manner, on_failure, start)


def _start_planned(
    where: Place, given: Agreement, manner: dict[str, object], removed: str, loaded: Loaded
) -> int:
    """Run another plan that a model made, if somebody is there to approve it."""
    try:
        _check_trust(where, loaded, given.options, None, manner)
    except UsageError as error:
        mend(error)
        talk(str(error))
        return WAITING
    except click.exceptions.Exit:  # he said no, and may say yes later
        return WAITING
    bound = replace(given.options, max_cost=max_cost(where, loaded.plan, manner))
    given = replace(given, options=bound)
    return _start(where, loaded.plan, given, manner, "", removed)


def _check_trust(
    where: Place, loaded: Loaded, options: Options, trust: str | None, manner: dict[str, object]
) -> Ahead | None:
    """A plan that came from elsewhere runs only if a person approved it, also when it changed meanwhile.

    Of a plan that a model made he sees the preview, and his yes is to all of it; what he saw.
    """
    if not loaded.foreign and trust is None:
        return None
    seen: list[Ahead] = []

    def asked() -> bool:
        talk("a model made this plan, and nobody approved it yet")
        seen.append(shown_whole(where, loaded, options, manner))
        return ask("approve this plan and run it?", default=False)

    trust_foreign(where, loaded, options, trust, asked if where.goal else None)
    return seen[0] if seen else None


def _exclude(one: bool, other: bool, names: str) -> None:
    if one and other:
        raise UsageError(f"{names} contradict each other")


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
            _check_trust(where, loaded, later, None, manner)
            say_left_out(where, loaded.plan)
            now = consent(where, loaded, later, manner, seen)
            seen.update(now.seen)
        bound = max_cost(where, loaded.plan, {"max_cost": spending.left_to(loaded.plan.name)})
        now = replace(now, options=replace(now.options, max_cost=bound))
        return _start(where, loaded.plan, now, manner, "", removed)

    return watch(where, later, again, spending)


def _start(
    where: Place,
    plan: Plan,
    given: Agreement,
    manner: dict[str, object],
    key: str,
    removed: str,
    taken_by: str | None = None,
) -> int:
    options = given.options
    return drive(
        where,
        plan,
        manner,
        given.agreed,
        lambda world: start_run(world, plan, plan.name, options, key, taken_by),
        None if key else lambda world: wire.repeat(world, plan, options),
        removed,
    )


@click.command(epilog="\b\nExample:\n  holdfast resume\n  holdfast resume r-1f3c")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "-c",
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
            check_secrets(with_store, state, manner_of(manner).secrets)
        more = additions(with_store, state)
        stay = {s for s in state.steps if is_left_rejected(with_store, state, s)}
        drives = partial(wire.is_driven, with_store)
        left = left_alone(with_store, state, wire.now_ms(), drives)
    finally:
        with_store.close()
    if state.ended:
        raise UsageError(
            f"run {short(found)} is {state.status}; there is nothing to resume", hint="holdfast run"
        )
    raised = raised_cost(where, state, manner)
    provide_again(where, state, set(state.steps) - stay, raised)
    if words := old_run_words(state.started_at, wire.now_ms()):
        talk(again(words))
    for line in [*resume_lines(state, stay), *taken_up(more)]:
        talk(line)
    _say_edited(where, state)
    agreed = consent_within(where, state, state.steps.keys() - left, manner)
    return drive(
        where, state.plan, manner, agreed, lambda world: resume_run(world, found, max_cost=raised)
    )


def _folder(manner: dict[str, object]) -> str | None:
    return str(manner["checkpoints"]) if manner["checkpoints"] else None


def unfinished(store: Store, given: str | None, line: str | None) -> RunId:
    """A run as named, else the last that has not ended."""
    if given is not None:
        return find_run(store, given, line)
    rows = [row for row in store.runs() if line is None or row.line == line]
    if line is not None and not rows:
        raise UsageError(f"there is no run of '{brief(line)}'", hint="holdfast run")
    for row in reversed(rows):
        state = read_state(store, row.run)
        if state is not None and not state.ended:
            return row.run
    raise UsageError("there is no unfinished run", hint="holdfast run")


def _say_edited(where: Place, state: State) -> None:
    """A run keeps its plan: who edited the file to mend a failure means `run`, not `resume`."""
    if (where.file is None and not where.goal) or _is_later(where, state):
        return
    try:
        found = where.load(state.plan.params).plan
        edited = plan_digest(replace(found, name=state.plan.name)) != state.base
    except (PlanError, UsageError):
        edited = True
    if edited:
        talk(
            f"{where.file or 'the plan'} changed since; this run keeps its plan. "
            + again("'holdfast run' takes the new one")
        )


def _is_later(where: Place, state: State) -> bool:
    """Whether the plan of a run took the place of the one in the file."""
    store = where.open(readonly=True)
    try:
        return led_to(store, state) is not None
    finally:
        store.close()


@click.command(epilog="\b\nExample:\n  holdfast retry build")
@click.argument("step")
@file_option
@place_options
@run_options
def retry(
    step: str, plan: str | None, store: str | None, plan_id: str | None, **manner: object
) -> int:
    """Try a failed or held step again, with what was skipped below it."""
    where = with_step(place(plan, store, plan_id), step.removesuffix("+"))
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
        agreed, raised = agree_again(where, state, below, manner)
        named = (step_id,)
        return drive(
            where,
            state.plan,
            manner,
            agreed,
            lambda world: resume_run(world, found, only=named, asked=named, max_cost=raised),
        )
    if not state.ended and phase not in {"done", "reused"}:
        raise UsageError(f"'{step_id}' is {phase}, not failed", hint="holdfast resume")
    loaded = where.load()
    _check_trust(where, loaded, Options(), None, manner)
    options = Options(
        force_steps=forced_steps(where, loaded, [step_id]),
        max_cost=max_cost(where, loaded.plan, manner),
    )
    provide(where, loaded, options, cast("int | None", manner["max_cost"]))
    given = consent(where, loaded, options, manner)
    say_left_out(where, loaded.plan)
    return drive(
        where,
        loaded.plan,
        manner,
        given.agreed,
        lambda world: start_run(world, loaded.plan, loaded.plan.name, given.options),
    )


def max_cost(where: Place, plan: Plan, manner: Mapping[str, object]) -> int | None:
    """What a new run may spend."""
    return wire.market.cost_bound(where.root, plan, cast("int | None", manner["max_cost"]))


def agree_again(
    where: Place, state: State, steps: Collection[StepId], manner: Mapping[str, object]
) -> tuple[Agreed, int | None]:
    """See that these steps of a run can be done and may be; what is agreed to, and how much it may spend."""
    raised = raised_cost(where, state, manner)
    provide_again(where, state, steps, raised)
    return consent_within(where, state, steps, manner), raised


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
    agreed: Agreed,
    begin: Callable[[World], tuple[Hold, Engine]],
    repeat: Callable[[World], Repeated | None] | None = None,
    removed: str = "keep",
) -> int:
    """Run to an end or a rest, paying for what was `agreed`; with `repeat`, that is tried first.

    If another plan takes its place, that one is run too. `removed` says what becomes of files of steps that
    left the plan.
    """
    manner = manner_of(given)
    _check_secrets(plan, manner.secrets)
    settings = read_settings(where.root)
    record_folder(where, given)  # what is wrong with it is said before a store is made
    store = where.open(create=True)
    try:
        wishes = wishes_of(where, store, settings, given, agreed)
        driven = Drive(where, plan, store, wishes, quiet=manner.quiet, checkpoints=_folder(given))
        state = once(driven, begin, repeat)
        while state.status == "waiting" and manner.how == "ask" and ask_people(store, where, state):
            run = state.run
            state = once(driven, lambda world: resume_run(world, run, only=()))  # noqa: B023
        keep_line(where, state.line)
        following = taking(store, state, asks=manner.how == "ask")
        code = WAITING
        if following is None:
            code = conclude(store, state, where.file, as_json=manner.as_json)
        told = run_told(store, state, where.file) if settings.notify else {}
    finally:
        store.close()
    if following is not None:
        return take(where, following, given, partial(_start_prepared, removed))
    if settings.notify:
        notify(settings.notify, told)
    if code == 0:
        tidy(where, plan, removed)
    return code


def _start_prepared(
    removed: str,
    where: Place,
    plan: Plan,
    given: Agreement,
    manner: dict[str, object],
    taken_by: str,
) -> int:
    """Run a plan that was ready to take the place of another one."""
    bound = replace(given.options, max_cost=max_cost(where, plan, manner))
    return _start(where, plan, replace(given, options=bound), manner, "", removed, taken_by)


def _check_secrets(plan: Plan, allowed: Sequence[str]) -> None:
    missing = wire.secrets_missing(plan, allowed)
    if missing:
        step, name = missing[0]
        raise UsageError(
            f"'{step.id}' asks for the secret '{name}', which nobody allowed",
            hint=f"--secret {name}",
        )
