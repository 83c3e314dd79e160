"""Drives a run to an end or a rest, and tells a person or a program of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from holdfast import wire
from holdfast.cli.asking import How, how_to, policy_of
from holdfast.cli.follow import Follower, following
from holdfast.cli.place import Place
from holdfast.cli.recording import record_folder
from holdfast.cli.reminders import Reminders
from holdfast.cli.say import short
from holdfast.config.settings import Settings
from holdfast.core.fold import apply, fold
from holdfast.core.state import State
from holdfast.engine.hold import Hold
from holdfast.engine.loop import Engine
from holdfast.engine.repeat import Repeated
from holdfast.engine.world import World
from holdfast.errors import UsageError
from holdfast.model.event import Agreed, Where
from holdfast.model.fixed import frozen
from holdfast.model.plan import Plan
from holdfast.ports import Store


@frozen
class Manner:
    """How a command that runs things behaves."""

    as_json: bool
    quiet: bool
    parallel: int
    yes: bool
    secrets: tuple[str, ...]
    how: How
    waits: bool


def manner_of(given: Mapping[str, object]) -> Manner:
    """The manner that the options of a command ask for."""
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


def where_of(given: Mapping[str, object]) -> Where:
    """Where the options of a command let steps run that can leave this machine."""
    return "ray" if given.get("executor") == "ray" else ""


def as_begun(state: State, given: Mapping[str, object]) -> dict[str, object]:
    """The options of a command that goes on with a run: unless they say otherwise, where it began."""
    return {**given, "executor": given.get("executor") or state.options.executor}


def wishes_of(
    where: Place, store: Store, settings: Settings, given: Mapping[str, object], agreed: Agreed
) -> wire.Wishes:
    """What the options of a command ask of an engine."""
    manner = manner_of(given)
    return wire.Wishes(
        parallel=manner.parallel or settings.parallel or 0,
        resources=settings.resources,
        beat_seconds=float(str(given["beat"])),
        poll_seconds=float(str(given["poll"])),
        lease_seconds=float(str(given["lease"])),
        stays=manner.waits,
        policy=policy_of(store, where.location) if manner.how == "policy" else None,
        secrets=manner.secrets,
        record=record_folder(where, given),
        agreed=agreed,
        network=bool(given.get("network")),
        sandbox=not given.get("no_sandbox"),
        executor=where_of(given),
        here=given.get("executor") == "local",
        address=str(given.get("address") or ""),
    )


@frozen
class Drive:
    """What stays the same while a run goes on in one command, asking in between."""

    where: Place
    plan: Plan
    store: Store
    wishes: wire.Wishes
    quiet: bool
    checkpoints: str | None = None  # where to write them
    beside: Callable[[Follower], Follower] | None = None  # who else is told


def once(
    drive: Drive,
    begin: Callable[[World], tuple[Hold, Engine]],
    repeat: Callable[[World], Repeated | None] | None = None,
) -> State:
    """Drive to an end or a rest, and tell of it."""
    _check_ticket(drive)
    with following(drive.store, quiet=drive.quiet) as follower:
        tell = _noting(drive, follower)
        reminders = Reminders(tell.say)
        wishes = replace(
            drive.wishes,
            on_events=tell.events,
            on_output=tell.output,
            say=tell.say,
            remind=reminders,
        )
        root, location = drive.where.root, drive.where.location
        world = wire.world_for(drive.plan, root, location, drive.store, wishes)
        repeated = None if repeat is None else repeat(world)
        if repeated is None:
            _say_here(drive.plan, wishes)
            state = wire.drive(lambda: _begun(begin(world), tell), signals=True, world=world)
        else:
            state = _told(repeated, tell)
    reminders.again()
    return state


def _say_here(plan: Plan, wishes: wire.Wishes) -> None:
    """Who wants a step to run elsewhere should know that it does not."""
    named = [step for step in plan.steps.values() if step.runs_on and step.can_leave]
    if named and wishes.here:
        wishes.say(
            f"'{named[0].id}' is for '{named[0].runs_on}' and runs on this machine all the same;"
            " hint: without --executor local its workers do it"
        )


def _check_ticket(drive: Drive) -> None:
    """Tickets have generators of their own, and a worktree: only `work` knows them."""
    ticket = drive.plan.origin.get("ticket")
    if isinstance(ticket, Mapping) and not drive.wishes.generators:
        raise UsageError(
            f"'{drive.plan.name}' is the line of a ticket", hint=f"holdfast work {ticket['id']}"
        )


def _noting(drive: Drive, follower: Follower) -> Follower:
    """The follower, with whoever else is told, writing checkpoints if that was asked for."""
    if drive.beside is not None:
        follower = drive.beside(follower)
    if drive.checkpoints is None:
        return follower
    from holdfast.cli.checkpoint import Noting

    return Noting(follower, drive.where, drive.store, drive.checkpoints)


def _told(repeated: Repeated, tell: Follower) -> State:
    """Tell of a run that was over as soon as it began."""
    first, *rest = repeated.events
    state = fold(repeated.plan, [first], repeated.plans)
    tell.began(state)
    tell.events([first])
    for recorded in rest:
        apply(state, recorded)
    tell.events(rest)
    return state


def _begun(begun: tuple[Hold, Engine], tell: Follower) -> tuple[Hold, Engine]:
    state = begun[1].state
    tell.began(state)
    if state.ended:
        tell.say(f"{short(state.run)} was begun under this key and is {state.status} already")
    return begun
