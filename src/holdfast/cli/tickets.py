"""tickets: what was worked on here, and what becomes of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ask import confirm
from holdfast.cli.measure import count
from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, talk, talk_once
from holdfast.cli.show import load_state
from holdfast.cli.working import (
    alone,
    came_to,
    rebuild_views,
    runs_folder,
    told_lines,
    work_json,
)
from holdfast.core.state import State
from holdfast.engine.journals import runs_of
from holdfast.errors import UsageError
from holdfast.gitrepo.greens import describe, rollback
from holdfast.gitrepo.refs import branches
from holdfast.gitrepo.worktrees import find_worktree, remove_worktree
from holdfast.model.digest import Json
from holdfast.model.text import one_line
from holdfast.ports import Store
from holdfast.wire.tickets import Known, Site, find_known, open_site, tickets_of
from holdfast.worker.plan import branch_of, line_of

_WORDS = {0: "ready", 1: "failed", 3: "waits for you", 5: "not ready"}


@click.group(
    "tickets",
    epilog="\b\nExample:\n  holdfast tickets list\n  holdfast tickets show mean --json\n"
    "  holdfast tickets drop mean",
)
def tickets() -> None:
    """Look at the tickets that were worked on in this repository, or clear up after them."""


@tickets.command("list", epilog="\b\nExample:\n  holdfast tickets list --json")
@json_option
def list_tickets(*, as_json: bool) -> int:
    """Show all tickets: what they came to, and the branches that hold it."""
    with _opened() as (site, store):
        rows = [(known, _state(store, known)) for known in tickets_of(store)]
        if as_json:
            told: list[Json] = [_json(site, known, state) for known, state in rows]
            out_json({"schema": "holdfast.tickets/1", "tickets": told})
            return 0
        for known, state in rows:
            words = _WORDS.get(came_to(state, known), str(state.status))
            out(
                f"{known.ticket.id}  {words}  {branch_of(known.ticket)}  {one_line(known.ticket.title)}"
            )
        if not rows:
            talk("no ticket was worked on here")
            out_next("holdfast work TICKET")
    return 0


@tickets.command("show", epilog="\b\nExample:\n  holdfast tickets show mean")
@click.argument("ticket", metavar="ID")
@json_option
def show(ticket: str, *, as_json: bool) -> int:
    """Show what a ticket came to: its commits, its branch, what checked it."""
    with _opened() as (site, store):
        known = _known(store, ticket)
        state = _state(store, known)
        if as_json:
            out_json(_json(site, known, state))
            return 0
        out(one_line(known.ticket.title))
        for line in told_lines(known, state):
            out(line)
        out_next(
            f"holdfast work {known.ticket.id}    holdfast logs --plan-id {line_of(known.ticket)}"
        )
    return 0


@tickets.command("rebuild", epilog="\b\nExample:\n  holdfast tickets rebuild")
@json_option
def rebuild(*, as_json: bool) -> int:
    """Write the logs of all runs, and the task trees in worktrees, again from the journal."""
    with _opened(readonly=False) as (site, store), alone(site, store, tickets_of(store)):
        written = rebuild_views(site, store)
    if as_json:
        out_json({"schema": "holdfast.tickets.rebuild/1", "written": [*written]})
    else:
        out(f"{count(len(written), 'file')} written")
    return 0


@tickets.command("rollback", epilog="\b\nExample:\n  holdfast tickets rollback mean")
@click.argument("ticket", metavar="ID")
@json_option
def roll_back(ticket: str, *, as_json: bool) -> int:
    """Bring the worktree of a ticket back to its last commit whose checks passed.

    What is there is stored first. It says what it cannot undo.
    """
    with _opened(readonly=False) as (site, store), alone(site, store, [_known(store, ticket)]):
        known = _known(store, ticket)
        tree = find_worktree(site.client, known.ticket.id)
        done = rollback(tree, to=known.head or known.terms.base)
    left = describe(done)
    if as_json:
        out_json(
            {
                "schema": "holdfast.tickets.rollback/1",
                "to": done.to,
                "saved": done.restored.saved.oid,
                "left": list(left),
            }
        )
        return 0
    out(
        f"{tree.folder} is at {str(done.to)[:12]}; what was there is snapshot {done.restored.saved.oid[:12]}"
    )
    for line in left:
        out(f"  {line}")
    return 0


@tickets.command("drop", epilog="\b\nExample:\n  holdfast tickets drop mean --yes")
@click.argument("ticket", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def drop(ticket: str, *, yes: bool, as_json: bool) -> int:
    """Remove the worktree of a ticket. Its branch, its commits and its journal stay."""
    with _opened(readonly=False) as (site, store):
        known = _known(store, ticket)
        confirm(f"remove the worktree of '{known.ticket.id}'?", yes=yes)
        with alone(site, store, [known]):
            saved = remove_worktree(site.client, known.ticket.id, changed="save", ignored="drop")
        left = {row.name for row in branches(site.client)} & {branch_of(known.ticket)}
    if as_json:
        out_json(
            {
                "schema": "holdfast.tickets.drop/1",
                "ticket": ticket,
                "saved": saved.oid if saved else None,
            }
        )
    else:
        stays = "".join(f"; branch {name} stays" for name in left)
        out(f"the worktree of '{known.ticket.id}' is gone{stays}")
    return 0


@contextmanager
def _opened(*, readonly: bool = True) -> Iterator[tuple[Site, Store]]:
    site = open_site(os.getcwd(), say=talk)
    location = wire.store_location(site.top, None)
    if not wire.has_store(location):
        raise UsageError("no ticket was worked on here", hint="holdfast work TICKET")
    store = wire.open_store(location, readonly=readonly, say=talk_once)
    try:
        yield site, store
    finally:
        store.close()


def _known(store: Store, given: str) -> Known:
    for line in dict.fromkeys((given, f"ticket-{given}")):
        if (known := find_known(store, line)) is not None:
            return known
    raise UsageError(
        f"no ticket '{one_line(given)}' was worked on here", hint="holdfast tickets list"
    )


def _state(store: Store, known: Known) -> State:
    row = runs_of(store, "", line_of(known.ticket))[-1]
    return load_state(store, row.run)


def _json(site: Site, known: Known, state: State) -> dict[str, Json]:
    return work_json(known, state, runs_folder(site, known.ticket))
