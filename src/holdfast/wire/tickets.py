"""Tickets of a repository: where they are worked on, and the engine that works on one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from holdfast.errors import BugError
from holdfast.model.digest import digest_bytes
from holdfast.model.plan import StepId

if TYPE_CHECKING:
    from holdfast.core.state import State
    from holdfast.gitrepo.client import Client
    from holdfast.gitrepo.names import Identity
    from holdfast.model.digest import Json
    from holdfast.model.plan import Plan, Step
    from holdfast.ports import Store
    from holdfast.wire import Wishes
    from holdfast.worker.desk import Desk
    from holdfast.worker.plan import Terms
    from holdfast.worker.script import Script
    from holdfast.worker.ticket import Ticket

_FIRST = StepId("cycle-1")
# What tools leave behind in a work tree, whether or not the repository says so.
_LEFTOVERS = (
    *("__pycache__/", "*.py[co]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".coverage"),
    *("node_modules/", ".npm/", ".gradle/", "*.class", ".DS_Store", "*.swp", "*~"),
)


@dataclass(frozen=True, slots=True)
class Site:
    """A person's repository, and where its tickets are worked on."""

    client: Client

    @property
    def top(self) -> str:
        """The person's work tree."""
        return self.client.place.top

    def home(self, ticket: Ticket) -> str:
        """Where things about a ticket are kept that are no part of the repository."""
        return os.path.join(self.client.home, "tickets", ticket.id)

    def desk(self, ticket: Ticket, terms: Terms) -> Desk:
        """The worktree of a ticket; made when it is first asked for."""
        from holdfast.gitrepo.worktrees import add_worktree
        from holdfast.worker.desk import Desk
        from holdfast.worker.plan import branch_of, scope_of

        tree = add_worktree(self.client, ticket.id, branch_of(ticket), terms.base)
        os.makedirs(home := self.home(ticket), 0o700, exist_ok=True)
        return Desk(tree, home, scope_of(terms), terms.bounds, reserved=f"tickets/{ticket.id}")

    def folder(self, ticket: Ticket) -> str:
        """Where the worktree of a ticket is, or will be."""
        return os.path.join(self.client.home, "worktrees", ticket.id)


def open_site(
    folder: str, env: Mapping[str, str] = os.environ, say: Callable[[str], None] = lambda _: None
) -> Site:
    """The repository that a folder lies in; `say` is told if another one was there before."""
    from holdfast.gitrepo.former import leave_former
    from holdfast.gitrepo.opening import open_client
    from holdfast.gitrepo.place import locate

    top = locate(folder).top
    name = f"{os.path.basename(top)[:40]}-{digest_bytes(os.fsencode(top))[:12]}"
    home = os.path.join(state_home(env), "repositories", name)
    client = open_client(top, home, ignored_too=_LEFTOVERS)
    if aside := leave_former(client):
        say(
            f"another repository was at '{top}' before: what was kept of its tickets is in '{aside}'"
        )
        client = open_client(top, home, ignored_too=_LEFTOVERS)
    return Site(client)


def state_home(env: Mapping[str, str]) -> str:
    """The directory of Holdfast's own among the person's state."""
    base = env.get("XDG_STATE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.local/state")
    return os.path.join(base, "holdfast")


def wishes_for(
    site: Site, location: str, wishes: Wishes, who: Identity, script: Script | None
) -> Wishes:
    """What an engine is to have that works on tickets of a site."""
    from holdfast.gitrepo.place import read_global
    from holdfast.model.plan import WORK
    from holdfast.wire import terms_for
    from holdfast.worker.cycle import CycleGenerator
    from holdfast.worker.deliver import DeliverGenerator
    from holdfast.worker.plan import BRANCH, DELIVER, SCOPE, VALIDATION, TicketSteps
    from holdfast.worker.push import PUSH, PushGenerator
    from holdfast.worker.validate import BranchGuard, ScopeGuard, ValidationGuard

    wishes = replace(wishes, written_here=False)
    terms = terms_for(location, wishes)
    # What our branches stand on is the person's history: git of the worktree reads it there.
    history = os.path.join(site.client.place.common, "objects")
    terms = replace(terms, readable=(*terms.readable, history), judged=True)
    return replace(
        wishes,
        generators={
            WORK: CycleGenerator(site.desk, terms),
            DELIVER: DeliverGenerator(site.desk, who),
            PUSH: PushGenerator(site.client, read_global("credential.helper")),
        },
        guards={
            VALIDATION: ValidationGuard(site.desk, terms),
            SCOPE: ScopeGuard(site.desk),
            BRANCH: BranchGuard(site.client),
        },
        fragments=TicketSteps(),
        models=(lambda: script) if script is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Known:
    """A ticket that was worked on: as its last plan tells it, and what its last run delivered.

    `begun` is the commit that it began with at first, `head` the one that it came to so far, in whichever
    run; empty if nothing was delivered. `commits` are those that were made for these words, and `is_ready`
    says that they were ready at the head.
    """

    ticket: Ticket
    terms: Terms
    plan: Plan
    deliveries: tuple[Mapping[str, Json], ...]
    begun: str
    head: str
    commits: tuple[Mapping[str, Json], ...]
    is_ready: bool


def find_known(store: Store, line: str) -> Known | None:
    """What a store knows of a ticket."""
    from holdfast.engine.journals import read_state, runs_of
    from holdfast.engine.versions import kept_plan, versions
    from holdfast.worker.deliver import delivered
    from holdfast.worker.plan import ORIGIN, told

    found = versions(store, "", line)
    plan = kept_plan(store, found[-1].plan) if found else None
    first = plan.steps.get(_FIRST) if plan is not None else None
    if plan is None or ORIGIN not in plan.origin or first is None:
        return None
    ticket, terms, _ = told(filled(first))
    runs = [state for row in runs_of(store, "", line) if (state := read_state(store, row.run))]
    alike = [state for state in runs if told(filled(state.plan.steps[_FIRST]))[0] == ticket]
    said = [one for state in alike for one in _deliveries(store, state)]
    made = [row for step, row in store.newest_of_all("", line).items() if _is_delivery(step)]
    latest = max(made, key=lambda row: row.number, default=None)
    head = str(delivered(store.get(latest.digest))["head"]) if latest is not None else ""
    commits = [one for done in said for one in cast("list[Mapping[str, Json]]", done["commits"])]
    return Known(
        ticket,
        terms,
        plan,
        deliveries=tuple(_deliveries(store, runs[-1])) if runs else (),
        begun=told(filled(runs[0].plan.steps[_FIRST]))[1].base if runs else terms.base,
        head=head,
        commits=tuple({str(one["oid"]): one for one in commits}.values()),
        is_ready=bool(said and said[-1]["ready"] and said[-1]["head"] == head),
    )


def _deliveries(store: Store, state: State) -> list[Mapping[str, Json]]:
    """What was delivered in a run, cycle by cycle."""
    from holdfast.worker.deliver import delivered

    made = [step.digest for name, step in state.steps.items() if _is_delivery(name)]
    said = [delivered(store.get(digest)) for digest in made if digest]
    return sorted(said, key=lambda one: int(str(one["cycle"])))


def _is_delivery(step: str) -> bool:
    return step.startswith("deliver-")


def tickets_of(store: Store) -> list[Known]:
    """All tickets that a store knows, by the names of their lines."""
    from holdfast.engine.versions import lines_of

    lines = [
        line for project, line in lines_of(store) if not project and line.startswith("ticket-")
    ]
    return [known for known in (find_known(store, line) for line in lines) if known is not None]


def filled(step: Step) -> Step:
    """A step whose values are what they stand for: nothing in them reads anything."""
    from holdfast.model.expression import fill

    def nothing(_: object) -> Json:
        raise BugError("a step of a ticket reads something")

    return replace(step, values={key: fill(value, nothing) for key, value in step.values.items()})
