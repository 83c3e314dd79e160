"""Goals: a model plans once, the plan is kept under its line and used again until somebody wants another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import click

from holdfast import wire
from holdfast.cli.again import Here, again, here_now, keep_here
from holdfast.cli.ahead import gather
from holdfast.cli.ask import ask, consent_to, who
from holdfast.cli.consent import agreed_with, said_of_money
from holdfast.cli.drive import Drive, once, wishes_of
from holdfast.cli.ending import conclude
from holdfast.cli.measure import age_words
from holdfast.cli.outlook import print_lines
from holdfast.cli.place import Place
from holdfast.cli.planning import Wanted
from holdfast.cli.prices import price_words
from holdfast.cli.provisions import provide
from holdfast.cli.recording import record_folder
from holdfast.cli.saved import paid_in, plan_changes
from holdfast.cli.say import short, talk
from holdfast.cli.view import view
from holdfast.config.settings import read_planner
from holdfast.core.state import State
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.trust import Trust
from holdfast.engine.versions import keep_planned, planned
from holdfast.errors import HeldError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.event import Options
from holdfast.model.plan import Plan, RunId, plan_digest
from holdfast.planner.found import Bounds
from holdfast.planner.goal import STEP, with_files_of
from holdfast.planner.listing import listing
from holdfast.ports import Store
from holdfast.wire import goals

OLD_MS = 24 * 3_600_000  # when a plan is said to be old
ESCALATED = 8
_NO_PLAN = frozenset(  # a model was asked as often as it may be, and none of its answers is a plan
    {
        "guard_rejected",
        "stagnated",
        "model_refused",
        "answer_cut",
        "answer_empty",
        "answer_too_large",
    }
)
_QUIET_MANNER: Mapping[str, object] = {
    "as_json": False,
    "quiet": False,
    "jobs": None,
    "yes": False,
    "approve": None,
    "wait": False,
    "secrets": (),
    "record": None,
    "checkpoints": None,
    "beat": 10.0,
    "poll": 1.0,
    "lease": 30.0,
    "max_cost": None,
}


def with_goal(where: Place, wanted: Wanted) -> Place:
    """The place with the goal of its line; UsageError if planning was asked for and there is no goal."""
    if where.goal:
        return where
    found = where.planned() if where.file is None else None
    if found is not None:
        return replace(where, goal=found.plan.goal)
    if wanted != Wanted():
        raise UsageError(
            "nothing is planned here: a plan file says itself what to do",
            hint="--model, --replan, --fresh and the like are for goals in words",
        )
    return where


def refuse_idle(manner: Mapping[str, object]) -> None:
    """Refuse what says how a model is to be asked, where none is."""
    flags = {"--yes": manner["yes"], "--max-cost": manner["max_cost"], "--record": manner["record"]}
    idle = [flag for flag, value in flags.items() if value not in {None, False}]
    if idle:
        raise UsageError(
            f"a look at a plan file asks no model: {' and '.join(idle)} would do nothing",
            hint=f"say {' '.join(idle)} to 'holdfast run'",
        )


def loaded_for(
    where: Place, wanted: Wanted, manner: dict[str, object], *, takes: bool = True
) -> Loaded | None:
    """The plan for the goal of a place, made if there is none, or if another one is wanted.

    None if there is nothing more to do: with `takes` false a new plan is only shown beside the old one.
    What planning cost is taken off the bound of the command.
    """
    current = where.planned()
    if current is not None and not wanted.anew:
        if current.plan.goal != where.goal:
            raise UsageError(
                f"line '{where.plan_id}' has a plan for another goal: {current.plan.goal}",
                hint="name another --plan-id, or say --replan",
            )
        if wanted != Wanted():
            talk(
                again(
                    "a plan for this goal stands and is used; another one: 'holdfast plan --replan'"
                )
            )
        _say_old(where)
        return current
    if current is None and not takes:
        print_lines(["No previous plan to compare", again("next: holdfast plan")])
        return None
    if current is not None and takes and not manner["yes"] and not view().asks:
        raise UsageError(
            "a new plan would take the place of the one that stands, and nobody is there to ask",
            hint="say --yes; the one that stands is kept as an earlier version",
        )
    plan, run = _planned(where, wanted, manner, current.plan if current else None)
    if current is None:
        _keep(where, plan, run)
        talk(f"planned in {short(run)}: plan {plan_digest(plan)[:12]}")
    elif plan_digest(plan) == plan_digest(current.plan):
        talk(f"{short(run)} planned the same again: the plan stands as it is")
    elif not _take(where, current.plan, plan, run, manner, takes=takes, fresh=wanted.fresh):
        return None
    return where.load()


def _say_old(where: Place) -> None:
    store = where.open(readonly=True)
    try:
        version = planned(store, "", str(where.plan_id))
    finally:
        store.close()
    if version is not None and (words := old_words(version.at, wire.now_ms())):
        talk(again(words))


def old_words(at: int, now: int) -> str:
    """What is said of a plan that was made some time ago; nothing of one that is younger than a day."""
    if now - at <= OLD_MS:
        return ""
    return f"this plan was made {age_words(now - at)}; 'holdfast run --replan' makes another one"


def old_run_words(at: int, now: int) -> str:
    """What is said of a run that is continued long after it began; nothing within a day."""
    if now - at <= OLD_MS:
        return ""
    return f"this run began {age_words(now - at)}; 'holdfast run' takes things as they are now"


# --- asking a model -------------------------------------------------------------------------------


def _planned(
    where: Place, wanted: Wanted, manner: dict[str, object], current: Plan | None
) -> tuple[Plan, RunId]:
    """A plan and the run that made it: one that was paid for and not looked at yet, or a new one."""
    asked, state = _left(where, _question(where, wanted, current), current)
    if state is None or not state.ended:
        state = _ask(where, asked, manner, state, again_=current is not None)
    store = where.open(readonly=True)
    try:
        if state.status != "completed":
            raise click.exceptions.Exit(_failed(store, state, asked, manner))
        digest = state.steps[STEP].digest
        assert digest is not None  # it is complete
        content = store.get(digest)
    finally:
        store.close()
    return goals.plan_from(content, asked, str(where.plan_id), where.root), state.run


def _question(where: Place, wanted: Wanted, current: Plan | None) -> Plan:
    own = read_planner()
    bounds = Bounds(
        wanted.artifacts or own.artifacts, wanted.depth or own.depth, wanted.rounds or own.rounds
    )
    sees = wanted.with_files or own.with_files
    return goals.question(
        where.root,
        where.goal,
        str(where.plan_id),
        wanted.model,
        bounds,
        strategy=wanted.strategy,
        earlier=None if wanted.fresh else current,
        failed=wanted.failed,
        files=listing(wire.project_files(where.root, "**")) if sees else "",
    )


def _left(where: Place, given: Plan, current: Plan | None) -> tuple[Plan, State | None]:
    """The last run that asked this very question, if it is unfinished or nobody saw what it planned.

    With it the question as it was asked then: files that came or went since are no other question.
    """
    if not where.exists():
        return given, None
    store = where.open(readonly=True)
    try:
        rows = runs_of(store, given.project, given.name)
        state = read_state(store, rows[-1].run) if rows else None
        if state is None or state.status == "superseded":
            return given, None
        asked = with_files_of(given, state.plan)
        if state.base != plan_digest(asked):
            return given, None
        if state.ended:
            digest = state.steps[STEP].digest
            assert digest is not None  # it is complete
            plan = goals.plan_from(store.get(digest), asked, str(where.plan_id), where.root)
            if _is_seen(store, where, plan, current):
                return given, None
        return asked, state
    finally:
        store.close()


def _is_seen(store: Store, where: Place, plan: Plan, current: Plan | None) -> bool:
    """Whether a plan is the one that stands, or one that somebody said no to."""
    if current is not None and plan_digest(plan) == plan_digest(current):
        return True
    trust = Trust(store, plan.project, str(where.plan_id), wire.now_ms)
    return trust.refused(plan_digest(plan))


def _ask(
    where: Place, asked: Plan, manner: dict[str, object], left: State | None, *, again_: bool
) -> State:
    given = {**_QUIET_MANNER, **manner}
    most = cast("int | None", given["max_cost"])
    place = replace(where, plan_id=asked.name, goal="")
    loaded = Loaded(asked, "", where.root)
    options = Options(force=again_, max_cost=wire.market.cost_bound(where.root, asked, most))
    provide(place, loaded, options, most)
    told = agreed = said_of_money(given)
    if told == "nothing":
        ahead = gather(place, loaded, options)
        if paid := paid_in(ahead):
            talk(f"planning asks {asked.steps[STEP].model}")
            consent_to([], yes=False, look="", paid=paid, price=price_words(ahead))
            agreed = agreed_with(told, paid)
    settings = wire.configured(where.root).settings
    record_folder(where, given)
    store = where.open(create=True)
    try:
        wishes = wishes_of(where, store, settings, given, agreed)
        drive = Drive(place, asked, store, wishes, quiet=bool(given["quiet"]))
        if left is None:
            state = once(drive, lambda world: start_run(world, asked, asked.name, options))
        else:
            run = left.run
            state = once(drive, lambda world: resume_run(world, run, max_cost=most))
    except HeldError as error:
        keep_here(Here(store=here_now().store, plan_id=asked.name))
        error.hint = "somebody plans for this goal already: wait for it, or holdfast stop"
        raise
    finally:
        store.close()
    if most is not None:
        manner["max_cost"] = max(0, most - state.spent.cost)
    return state


def _failed(store: Store, state: State, asked: Plan, manner: Mapping[str, object]) -> int:
    """Say why there is no plan; that no plan holds is always for a person to decide."""
    keep_here(Here(store=here_now().store, plan_id=asked.name))
    code = conclude(store, state, None, as_json=bool(manner["as_json"]))
    reason = state.steps[STEP].reason
    if state.status == "failed" and reason is not None and reason.code in _NO_PLAN:
        talk("no plan held; say the goal otherwise, name another --model, or allow more --rounds")
        return ESCALATED
    return code


# --- keeping what it made -------------------------------------------------------------------------


def _keep(where: Place, plan: Plan, run: RunId) -> None:
    store = where.open(create=True)
    try:
        keep_planned(store, plan, run, who(), wire.now_ms)
    finally:
        store.close()


def _take(
    where: Place,
    before: Plan,
    after: Plan,
    run: RunId,
    manner: Mapping[str, object],
    *,
    takes: bool,
    fresh: bool,
) -> bool:
    """Show how a new plan differs from the one that stands, and let somebody decide; whether to go on."""
    print_lines(plan_changes(before, after, f"planned again in {short(run)}"), err=takes)
    if not takes:
        print_lines([again(f"next: holdfast plan {'--fresh' if fresh else '--replan'}")])
        return False
    if not manner["yes"] and not ask("take the new plan?", default=False):
        store = where.open(create=True)
        try:
            Trust(store, after.project, after.name, wire.now_ms).refuse(after, who())
        finally:
            store.close()
        talk("the plan stands as it was")
        return False
    _keep(where, after, run)
    return True
