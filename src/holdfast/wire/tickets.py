"""Tickets of a repository: where they are worked on, and the engine that works on one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.model.digest import digest_bytes

if TYPE_CHECKING:
    from holdfast.gitrepo.client import Client
    from holdfast.gitrepo.names import Identity
    from holdfast.model.plan import Plan
    from holdfast.ports import Store
    from holdfast.wire import Wishes
    from holdfast.worker.desk import Desk
    from holdfast.worker.plan import Terms
    from holdfast.worker.script import Script
    from holdfast.worker.ticket import Ticket


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
        return Desk(tree, home, scope_of(terms), terms.bounds)

    def folder(self, ticket: Ticket) -> str:
        """Where the worktree of a ticket is, or will be."""
        return os.path.join(self.client.home, "worktrees", ticket.id)


def open_site(folder: str, env: Mapping[str, str] = os.environ) -> Site:
    """The repository that a folder lies in."""
    from holdfast.gitrepo.opening import open_client
    from holdfast.gitrepo.place import locate

    top = locate(folder).top
    name = f"{os.path.basename(top)[:40]}-{digest_bytes(os.fsencode(top))[:12]}"
    home = os.path.join(state_home(env), "repositories", name)
    return Site(open_client(top, home, ignored_too=_LEFTOVERS))


def state_home(env: Mapping[str, str]) -> str:
    """The directory of Holdfast's own among the person's state."""
    base = env.get("XDG_STATE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.local/state")
    return os.path.join(base, "holdfast")


def wishes_for(
    site: Site, location: str, wishes: Wishes, who: Identity, script: Script | None
) -> Wishes:
    """What an engine is to have that works on tickets of a site."""
    from holdfast.model.plan import WORK
    from holdfast.wire import terms_for
    from holdfast.worker.cycle import CycleGenerator
    from holdfast.worker.deliver import DeliverGenerator
    from holdfast.worker.plan import DELIVER, SCOPE, VALIDATION, TicketSteps
    from holdfast.worker.validate import ScopeGuard, ValidationGuard

    wishes = replace(wishes, written_here=False)
    terms = terms_for(location, wishes)
    return replace(
        wishes,
        generators={
            WORK: CycleGenerator(site.desk, terms),
            DELIVER: DeliverGenerator(site.desk, who),
        },
        guards={
            VALIDATION: ValidationGuard(site.desk, terms),
            SCOPE: ScopeGuard(site.desk),
        },
        fragments=TicketSteps(),
        models=(lambda: script) if script is not None else None,
    )


def last_plan(store: Store, line: str) -> Plan | None:
    """The plan that a ticket was last worked on by."""
    from holdfast.engine.versions import kept_plan, versions

    found = versions(store, "", line)
    return kept_plan(store, found[-1].plan) if found else None


def last_head(store: Store, line: str) -> str:
    """The commit that a ticket came to; empty if nothing was delivered."""
    from holdfast.worker.deliver import delivered

    done = [
        artifact
        for step, artifact in store.newest_of_all("", line).items()
        if step.startswith("deliver-")
    ]
    if not done:
        return ""
    latest = max(done, key=lambda artifact: artifact.number)
    return str(delivered(store.get(latest.digest))["head"])
