"""The delivery of a cycle: its commits, the task tree, and the branch in the person's repository.

Commits are made from the states that the cycle named, at the time that it ended, so doing it again after a
kill makes the very same ones. The branch of the person moves last, by comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from holdfast.errors import AttemptError, EditError, GitError, StaleError, UsageError
from holdfast.gitrepo.commits import commit, trailers_for
from holdfast.gitrepo.diff import diff_trees
from holdfast.gitrepo.greens import mark_green, rollback
from holdfast.gitrepo.names import Identity
from holdfast.gitrepo.refs import branches, move_branch
from holdfast.gitrepo.trees import Worktree
from holdfast.model.digest import Json, canonical
from holdfast.model.fixed import fixed
from holdfast.model.plan import Step, StepId
from holdfast.model.text import first_line
from holdfast.ports import Candidate, Job
from holdfast.worker.cycle import Open, head_before, made_by
from holdfast.worker.desk import Desk
from holdfast.worker.memory import Mark
from holdfast.worker.plan import branch_of, next_cycle, told
from holdfast.worker.standing import standing
from holdfast.worker.ticket import Ticket
from holdfast.worker.tools import in_thread
from holdfast.worker.tree import (
    TREE,
    Evidence,
    Node,
    attribute,
    read_tree,
    tell,
    walk,
    write_tree,
)
from holdfast.worker.written import text_of

SCHEMA = "holdfast.delivery/1"


@fixed
class Commit:
    """A commit that was delivered."""

    oid: str
    message: str
    nodes: tuple[str, ...]
    files: tuple[str, ...]


class DeliverGenerator:
    """Commits what cycles made; `identity` is who commits."""

    def __init__(self, open_desk: Open, who: Identity) -> None:
        self._open = open_desk
        self._who = who

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """What the cycle made is in the key; who commits is not: the same work is the same."""
        del step, root
        return {}

    async def generate(self, job: Job) -> Candidate:
        try:
            return await in_thread(lambda: self._delivered(job))
        except (EditError, GitError, StaleError, UsageError) as error:
            raise AttemptError(str(error), reason="command_failed") from error

    async def close(self) -> None:
        """Nothing is kept."""

    def _delivered(self, job: Job) -> Candidate:
        ticket, terms, number = told(job.step)
        made = made_by(job.given[StepId(f"cycle-{number}")].content())
        desk = self._open(ticket, terms)
        run = job.mark.partition("/")[0]
        before = standing(desk.tree.client, ticket, head_before(job, terms), run, job.step.id)
        clock = float(cast("int", made["at"]))
        tree = replace(desk.tree, client=replace(desk.tree.client, clock=lambda: clock))
        trailers = trailers_for(run=run, step=job.step.id, config_ref=job.config_ref)
        done = _commits(replace(desk, tree=tree), self._who, ticket, made, before, trailers)
        head = done[-1].oid if done else before
        head, nodes, text = self._attributed(
            replace(desk, tree=tree), ticket, made, done, head, trailers
        )
        if head != terms.base:
            _deliver(tree, branch_of(ticket), head, before)
        mark_green(tree, why=f"{job.step.id} of {ticket.id}")
        ready = bool(made["ready"])
        more = (
            () if ready or number >= terms.cycles else next_cycle(job.step, str(made["question"]))
        )
        whole: dict[str, Json] = {
            "schema": SCHEMA,
            "cycle": number,
            "branch": branch_of(ticket),
            "head": head,
            "state": made["state"],
            "commits": [_commit_json(one) for one in done],
            "ready": ready,
            "ended": made["ended"],
            "checked": list(terms.checks),
            "nodes": nodes,
            "tree": text,
            "lost": made.get("lost", []),
            **{key: made[key] for key in ("summary", "eoi", "plan", "reflections", "question")},
        }
        return Candidate("bytes", canonical(whole), fragments=more)

    def _attributed(
        self,
        desk: Desk,
        ticket: Ticket,
        made: Mapping[str, Json],
        done: Sequence[Commit],
        head: str,
        trailers: Mapping[str, str],
    ) -> tuple[str, list[Json], str]:
        """Write the task tree, and commit it; the head then, the nodes worked on, and the tree as text."""
        path = TREE.format(ticket.id)
        tree = read_tree(desk.folder, ticket)
        said = cast("list[Mapping[str, Json]]", made["nodes"])
        tell(tree, said)
        found = _evidence(said, done)
        attribute(tree, found)
        text = text_of(tree)
        if not done and not said:  # nothing to tell of any node
            return head, [], text
        write_tree(desk.folder, ticket, text)
        desk.stir()
        try:
            message = f"{ticket.id}: bring the task tree up to date"
            head = commit(desk.tree, message, path, identity=self._who, trailers=trailers).oid
        except (EditError, UsageError):  # nothing in it changed, or git ignores where it lies
            pass
        return head, list(_affected(tree, found)), text


def delivered(content: bytes) -> Mapping[str, Json]:
    """What a delivery said, read back."""
    return cast("Mapping[str, Json]", json.loads(content))


def _commits(
    desk: Desk,
    who: Identity,
    ticket: Ticket,
    made: Mapping[str, Json],
    before: str,
    trailers: Mapping[str, str],
) -> list[Commit]:
    """One commit for each logical step, and one for what is left."""
    rollback(desk.tree, to=before)
    laid = desk.keep("before the delivery")
    done: list[Commit] = []
    for mark in _marks(ticket, made):
        desk.go_to(mark.state)
        desk.spare_tree(laid)  # people may have written into it since
        try:
            new = commit(desk.tree, mark.message, identity=who, trailers=trailers)
        except EditError:  # nothing differs from the commit before it
            continue
        changed = diff_trees(desk.tree.client, new.parent or before, new.oid)
        files = tuple(row.path for row in changed)
        done.append(Commit(new.oid, mark.message, mark.nodes, files))
    return done


def _marks(ticket: Ticket, made: Mapping[str, Json]) -> Iterator[Mark]:
    for item in cast("list[Mapping[str, Json]]", made["commits"]):
        nodes = tuple(cast("list[str]", item["nodes"]))
        yield Mark(str(item["state"]), str(item["message"]), nodes)
    summary = first_line(str(made["summary"]))[:72]
    message = str(made["message"]) or summary or f"Work on {ticket.title}"[:72]
    yield Mark(str(made["state"]), message, tuple(cast("list[str]", made["worked_on"])))


def _deliver(tree: Worktree, branch: str, head: str, before: str) -> None:
    """Move the branch of the person's repository from where the work began, unless it is there already."""
    now = {row.name: row.oid for row in branches(tree.client)}.get(branch)
    if now != head:
        move_branch(tree.client, branch, new=head, old=None if now is None else before)


def _evidence(said: Sequence[Mapping[str, Json]], done: Sequence[Commit]) -> dict[str, Evidence]:
    """What this cycle delivered, node by node; without a word of the model it is all of the first node."""
    found: dict[str, Evidence] = {}
    for one in done:
        for node in one.nodes or ("n-1",):
            here = found.setdefault(node, Evidence())
            here.commits.append(one.oid)
            here.files += [path for path in one.files if path not in here.files]
    for told_of in said:
        here = found.setdefault(str(told_of["id"]), Evidence())
        here.finished = here.finished or bool(told_of.get("finished"))
        here.met += cast("list[str]", told_of.get("met") or [])
    return found


def _affected(tree: Node, found: Mapping[str, Evidence]) -> Iterator[Json]:
    for node in walk(tree):
        if (here := found.get(str(node["id"]))) is not None:
            yield {
                "id": str(node["id"]),
                "status": str(node["status"]),
                "coverage_pct": int(node["coverage_pct"]),
                "evidence": {"commits": list(here.commits), "files": list(here.files)},
                "note": str(node["notes"]),
            }


def _commit_json(one: Commit) -> Json:
    return {
        "oid": one.oid,
        "message": one.message,
        "nodes": list(one.nodes),
        "files": list(one.files),
    }
