"""What our branches stand on is named in the person's repository, so that `git gc` there leaves it.

Our commits borrow the person's objects. If they rewrite a branch and prune, a commit that only our branch
still needs would go. A ref under `refs/holdfast/keep/` holds it, until none of our branches contains it
any more.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.gitrepo.calls import ask
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.durable import point
from holdfast.gitrepo.names import Oid

KEEP, LEFT = "refs/holdfast/keep/", "refs/holdfast/left/"


def pin(client: Client, commit: Oid) -> None:
    """Let a commit of the person's repository stay there; one that is only ours needs no pin."""
    said = ask(client.theirs, "cat-file", "--batch-check", stdin=f"{commit}\n".encode())
    if said.split()[1:2] == [b"commit"]:
        point(client.theirs, f"{KEEP}{commit}", commit, client.place.common)


def unpin(client: Client) -> tuple[Oid, ...]:
    """Let go of every commit that none of our refs needs any more; returns those."""
    rows = ask(client.theirs, "for-each-ref", "--format=%(objectname)", KEEP).decode().split()
    gone: list[Oid] = []
    for oid in rows:
        words = ("for-each-ref", "--count=1", f"--contains={oid}", "refs/heads/", "refs/holdfast/")
        if not ask(client.base, *words).strip():
            ask(client.theirs, "update-ref", "-d", f"{KEEP}{oid}", oid)
            gone.append(Oid(oid))
    return tuple(gone)


def hold(client: Client, commit: Oid | None) -> None:
    """Keep a commit that a branch of ours leaves: nothing that was committed is pruned because of it."""
    if commit is not None:
        point(client.base, f"{LEFT}{int(client.clock()):012d}-{commit}", commit)


def let_go(client: Client, *, before: float, needed: Collection[str]) -> None:
    """Forget commits that branches left before a time, and that nothing needs."""
    words = ("for-each-ref", "--format=%(objectname) %(refname)", LEFT)
    for row in ask(client.base, *words).decode().splitlines():
        oid, _, ref = row.partition(" ")
        at = int(ref.removeprefix(LEFT).partition("-")[0])
        if at < before and oid not in needed:
            ask(client.base, "update-ref", "-d", ref, oid)
