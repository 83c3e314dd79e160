"""What a person wrote into the task tree of a ticket's worktree becomes a commit before anybody works."""

from __future__ import annotations

import os

from holdfast.cli.say import talk
from holdfast.engine.journals import read_state, runs_of
from holdfast.errors import ELSEWHERE, StoreError, UsageError
from holdfast.gitrepo.commits import commit_files, person
from holdfast.gitrepo.history import list_files, show_file
from holdfast.gitrepo.refs import branches, move_branch
from holdfast.model.digest import digest_bytes
from holdfast.ports import Store
from holdfast.wire.tickets import Known, Site
from holdfast.worker.plan import branch_of, line_of
from holdfast.worker.ticket import Ticket
from holdfast.worker.tree import TREE, told_tree, tree_text

_AT_REST = frozenset({"waiting", "completed"})  # a delivery was the last to write there


def take_over(site: Site, store: Store, known: Known) -> None:
    """Commit what differs in the task tree of a worktree to the branch of the ticket.

    Where a command was cut short nobody knows who wrote it: it is kept beside, and that is said.
    """
    ticket, folder = known.ticket, site.folder(known.ticket)
    path = TREE.format(ticket.id)
    there = tree_text(folder, ticket) if os.path.isdir(folder) else ""
    if not there or not known.deliveries:
        return
    name = branch_of(ticket)
    now = next((row.oid for row in branches(site.client) if row.name == name), None)
    tip = now or known.head or known.terms.base
    before = _committed(site, tip, path)
    plain = there.replace("\r\n", "\n")
    if plain in {before.replace("\r\n", "\n"), str(known.deliveries[-1]["tree"])}:
        return
    state = read_state(store, runs_of(store, "", line_of(ticket))[-1].run)
    if state is None or str(state.status) not in _AT_REST:
        kept = _keep_beside(site.home(ticket), there)
        talk(f"the task tree in '{folder}' is not the one that was delivered: a copy is '{kept}'")
        return
    told_tree(folder, ticket)  # that nobody could go on with it is said now
    content = there if "\r\n" in before else plain
    made = commit_files(
        site.client,
        {path: content.encode()},
        f"{ticket.id}: take over what was written into the task tree",
        onto=tip,
        identity=person(site.client),
    )
    move_branch(site.client, name, new=made.oid, old=now)
    talk(f"what was written into the task tree is commit {made.oid[:12]} of {name}")


def check_place(site: Site, ticket: Ticket, base: str) -> None:
    """UsageError if a file or a link stands where the task tree shall be."""
    above = ("tickets", f"tickets/{ticket.id}")
    for file in list_files(site.client, base, *above):
        if file.path in above:
            raise UsageError(
                f"'{file.path}' is no folder in {base[:12]}, and the task tree is kept below it",
                hint="rename it, and commit that",
            )


def _committed(site: Site, commit: str, path: str) -> str:
    try:
        return show_file(site.client, commit, path).decode("utf-8", "replace")
    except UsageError:  # there is none
        return ""


def _keep_beside(home: str, text: str) -> str:
    place = os.path.join(home, f"task_tree-{digest_bytes(text.encode())[:12]}.yaml")
    try:
        with open(place, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise StoreError(
            f"'{place}' cannot be written: {error.strerror}", hint=ELSEWHERE
        ) from error
    return place
