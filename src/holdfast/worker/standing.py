"""Where work goes on from: people may write into the task tree on the branch while a ticket is worked on."""

from __future__ import annotations

from holdfast.errors import StaleError
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.commits import RUN, STEP
from holdfast.gitrepo.diff import diff_trees
from holdfast.gitrepo.history import log
from holdfast.gitrepo.pins import pin
from holdfast.gitrepo.refs import branches
from holdfast.worker.plan import branch_of
from holdfast.worker.ticket import Ticket

_MOST = 1000  # commits of people since the last delivery


def standing(client: Client, ticket: Ticket, head: str, run: str, step: str = "") -> str:
    """The commit to go on from: the branch, if since `head` only the task tree was changed there.

    What a step of this very run committed before it was killed does not count: it is made again. StaleError
    if anything else was done to the branch.
    """
    name = branch_of(ticket)
    now = next((row.oid for row in branches(client) if row.name == name), None)
    if now is None or now == head:
        return head
    rows = list(log(client, now, since=head, most=_MOST))
    below = [row.oid for row in rows[1:]]
    pairs = zip(rows, [*below, head], strict=False)
    is_line = bool(rows) and all(row.parents == (under,) for row, under in pairs)
    while rows and rows[0].trailer(RUN) == run and (rows[0].trailer(STEP) == step or not step):
        del rows[0]
    if is_line and not rows:
        return head
    own = f"tickets/{ticket.id}/"
    if not is_line or any(
        not row.path.startswith(own) for row in diff_trees(client, head, rows[0].oid)
    ):
        raise StaleError(
            f"branch '{name}' is at {now[:12]}, and the work left it at {head[:12]}",
            hint=f"only '{own}' may change there meanwhile: merge or rename the branch, or put it back:"
            f" git branch -f {name} {head[:12]}",
        )
    pin(client, rows[0].oid)
    return str(rows[0].oid)
