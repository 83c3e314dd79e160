"""What commands that drive a run share: their options, what may be spent, who is asked, how it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import click

from holdfast import wire
from holdfast.cli.ahead import Ahead
from holdfast.cli.ask import ask
from holdfast.cli.asking import ask_people
from holdfast.cli.confined import sandbox_options
from holdfast.cli.consent import consent_within
from holdfast.cli.drive import Drive, manner_of, once, wishes_of
from holdfast.cli.ending import conclude, run_told
from holdfast.cli.foreign import trust_foreign
from holdfast.cli.money import Dollars, exact
from holdfast.cli.notify import notify
from holdfast.cli.place import Place, json_option, keep_line
from holdfast.cli.prepared import take, taking
from holdfast.cli.provisions import provide_again
from holdfast.cli.recording import record_folder, recording_options
from holdfast.cli.saved import Agreement, shown_whole
from holdfast.cli.say import short, talk
from holdfast.cli.tidy import tidy
from holdfast.core.state import State
from holdfast.engine.hold import Hold
from holdfast.engine.loop import Engine
from holdfast.engine.repeat import Repeated
from holdfast.engine.replans import last_file
from holdfast.engine.runs import resume_run, start_run
from holdfast.engine.trust import Trust
from holdfast.engine.worktrees import check_worktrees
from holdfast.engine.world import World
from holdfast.errors import UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.event import Agreed, Options
from holdfast.model.money import dollars
from holdfast.model.plan import Plan, StepId

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
        sandbox_options,
        click.option(
            "--executor",
            type=click.Choice(["local", "ray"]),
            help="Where commands and functions run: all on this machine, or on a Ray cluster, each in a "
            "directory of its own. Without this, on this machine, and with 'runs_on' by its workers.",
        ),
        click.option(
            "--address",
            envvar="RAY_ADDRESS",
            default="",
            metavar="HOST:PORT",
            help="The Ray cluster (default: RAY_ADDRESS, else one is started for this run).",
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


def exclude(one: bool, other: bool, names: str) -> None:
    """Refuse two wishes that contradict each other."""
    if one and other:
        raise UsageError(f"{names} contradict each other")


def check_trust(
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


def max_cost(where: Place, plan: Plan, manner: Mapping[str, object]) -> int | None:
    """What a new run may spend."""
    return wire.market.cost_bound(where.root, plan, cast("int | None", manner["max_cost"]))


def agree_again(
    where: Place,
    state: State,
    steps: Collection[StepId],
    manner: Mapping[str, object],
    told: Agreed | None = None,
) -> tuple[Agreed, int | None]:
    """See that these steps of a run can be done and may be; what is agreed to, and how much it may spend.

    Whoever began this in the background was `told` already.
    """
    raised = raised_cost(where, state, manner)
    provide_again(where, state, steps, raised)
    return told or consent_within(where, state, steps, manner), raised


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
    check_plan_secrets(plan, manner.secrets)
    settings = wire.configured(where.root).settings
    record_folder(where, given)  # what is wrong with it is said before a store is made
    store = where.open(create=True)
    try:
        wishes = wishes_of(where, store, settings, given, agreed)
        trust = Trust(store, plan.project, plan.name, wire.now_ms)
        # A file that is gone is still the line's: no other takes its place.
        seen = where.file_seen() or last_file(store, plan.name)
        wishes = replace(wishes, file=seen, written_here=not trust.was_asked)
        driven = Drive(where, plan, store, wishes, quiet=manner.quiet, checkpoints=folder_of(given))
        state = once(driven, begin, repeat)
        while state.status == "waiting" and manner.how == "ask" and ask_people(store, where, state):
            run = state.run
            state = once(driven, lambda world: resume_run(world, run, only=()))  # noqa: B023
        keep_line(where, state.line, state.file)
        following = taking(where.root, store, state, asks=manner.how == "ask")
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


def start_new(
    where: Place,
    plan: Plan,
    given: Agreement,
    manner: dict[str, object],
    key: str,
    removed: str,
    taken_by: str | None = None,
) -> int:
    """Begin a run and drive it; with `taken_by` it takes the place of the one that is held."""
    options = given.options
    check_worktrees(plan, where.root)  # before a store is made
    return drive(
        where,
        plan,
        manner,
        given.agreed,
        lambda world: start_run(world, plan, plan.name, options, key, taken_by),
        None if key else lambda world: wire.repeat(world, plan, options),
        removed,
    )


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
    return start_new(where, plan, replace(given, options=bound), manner, "", removed, taken_by)


def check_plan_secrets(plan: Plan, allowed: Sequence[str]) -> None:
    """Refuse a plan that asks for a secret which nobody allowed."""
    missing = wire.secrets_missing(plan, allowed)
    if missing:
        step, name = missing[0]
        raise UsageError(
            f"'{step.id}' asks for the secret '{name}', which nobody allowed",
            hint=f"--secret {name}",
        )


def folder_of(manner: dict[str, object]) -> str | None:
    """The directory to which checkpoints are written."""
    return str(manner["checkpoints"]) if manner["checkpoints"] else None
