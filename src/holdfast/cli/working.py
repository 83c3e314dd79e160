"""One ticket from here to its end or rest: its plan, its engine, its log, its push, what is told of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import cast

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ask import consent_to
from holdfast.cli.asking import ask_people
from holdfast.cli.drive import Drive, manner_of, once, wishes_of
from holdfast.cli.driving import check_plan_secrets
from holdfast.cli.ending import conclude, exit_code
from holdfast.cli.follow import Follower
from holdfast.cli.measure import count
from holdfast.cli.money import spent_words
from holdfast.cli.place import Place
from holdfast.cli.say import SIGNS, out, out_json, short, talk
from holdfast.cli.treeedits import check_place, take_over
from holdfast.core.state import State
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.runs import resume_run, start_run
from holdfast.errors import EditError, HeldError, StaleError, UsageError
from holdfast.gitrepo.client import their_branch
from holdfast.gitrepo.commits import person
from holdfast.gitrepo.pushing import remote_address
from holdfast.gitrepo.refs import branches, move_branch
from holdfast.gitrepo.state import status
from holdfast.model.digest import Json
from holdfast.model.event import Options, Recorded
from holdfast.model.plan import Plan, RunId, StepId, plan_digest
from holdfast.ports import Store
from holdfast.wire.tickets import Known, Site, find_known, tickets_of, wishes_for
from holdfast.worker.plan import Terms, branch_of, line_of, plan_of
from holdfast.worker.push import push_plan
from holdfast.worker.runlog import RunLog
from holdfast.worker.script import Script
from holdfast.worker.standing import standing
from holdfast.worker.ticket import Ticket
from holdfast.worker.tree import TREE, tree_text, write_tree

_AGAIN = frozenset({"running", "paused", "waiting", "limit"})
NOT_READY = 5  # a limit was reached
_FEW = 3  # words about what was taken back
NOTHING = 1  # it says that it is ready, and nothing was changed


class Working:
    """One ticket, as it is to be worked on."""

    def __init__(
        self,
        site: Site,
        ticket: Ticket,
        terms: Terms,
        script: Script | None,
        manner: dict[str, object],
    ) -> None:
        self._site = site
        self._ticket = ticket
        self._terms = terms
        self._script = script
        self._manner = manner
        self._where = place_of(site, ticket)

    def done(self, *, push: str | None, in_place: bool) -> int:
        """Work until it is ready or cannot go on; the exit code."""
        branch, at = self._own_branch() if in_place else ("", "")
        url = remote_address(self._site.client, push).url if push else ""
        store = self._where.open(create=True)
        try:
            plan = self._plan(store)
            check_plan_secrets(plan, manner_of(self._manner).secrets)
            known = find_known(store, plan.name)
            head = self._check_branch(known, _unfinished(store, plan) or "")
            check_place(self._site, self._ticket, self._terms.base)
            if branch and at not in {*_ways(known, self._terms.base), head}:
                raise UsageError(
                    "--in-place goes on from the branch you are on", hint="leave --base out"
                )
            if known is not None:
                with alone(self._site, store, [known]):
                    take_over(self._site, store, known)
            self._agree(plan, url)
            self._site.desk(self._ticket, self._terms)
            state = self._driven(store, plan)
            known = find_known(store, plan.name)
            assert known is not None  # it was begun
            code = came_to(state, known)
            if code == 0:
                head = self._check_branch(known, state.run)
            if code == 0 and branch and at != head:
                self._follow(branch, head, at)
            pushed = self._pushed(store, head, state, url) if url and code == 0 else None
            self._tell(store, state, known, pushed, branch if code == 0 else "")
            if pushed is not None and exit_code(pushed) and not self._manner["as_json"]:
                again = " --script FILE" if self._script is not None else ""
                out(f"  to push again: holdfast work {self._ticket.id} --push {push}{again}")
            return code if pushed is None else exit_code(pushed)
        finally:
            store.close()

    def _check_branch(self, known: Known | None, run: str) -> str:
        """See that the branch of the ticket is where the work left it; one that is gone is put back.

        The commit that the work goes on from.

        People may have written into the task tree there, and `run`, that was killed, may just have moved it.
        """
        name = branch_of(self._ticket)
        heads = {row.name: row.oid for row in branches(self._site.client)}
        if name.partition("/")[0] in heads:
            raise UsageError(
                f"a branch '{name.partition('/')[0]}' is in the way of '{name}'", hint="rename it"
            )
        head = known.head if known is not None else ""
        if run:
            head = head or self._terms.base
        if not head and name in heads and heads[name] != self._terms.base:
            raise UsageError(f"there is a branch '{name}' already", hint="rename it, or say --id")
        if head and name not in heads and known is not None and head != known.begun:
            move_branch(self._site.client, name, new=head, old=None)
            talk(f"branch {name} was gone, and is put back")
        elif head:
            return standing(self._site.client, self._ticket, head, run)
        return head

    def _follow(self, branch: str, head: str, at: str) -> None:
        """Let the branch of the person follow; if it cannot any more, the ticket is ready all the same."""
        try:
            move_branch(self._site.client, branch, new=head, old=at, follow=True)
        except (EditError, StaleError) as error:
            name = branch_of(self._ticket)
            error.hint = (
                f"the ticket is ready on {name}, and yours did not follow: git merge {name}"
            )
            raise

    def _own_branch(self) -> tuple[str, str]:
        """The branch that the person's work tree is on and its commit, if that may follow."""
        found = status(self._site.client)
        if not found.is_clean:
            raise UsageError(
                "your work tree is not clean, and --in-place would touch it",
                hint="commit or stash what is there, or leave --in-place out",
            )
        branch = (their_branch(self._site.client) or "").removeprefix("refs/heads/")
        if not branch or found.head is None:
            raise UsageError("--in-place needs a branch with a commit", hint="git switch BRANCH")
        return branch, found.head

    def _plan(self, store: Store) -> Plan:
        """The plan of this ticket: the one that stands, or one that goes on from what was delivered."""
        known = find_known(store, line_of(self._ticket))
        if known is None:
            return plan_of(self._ticket, self._terms)
        if known.ticket.id != self._ticket.id:  # X and ticket-X have one line
            raise UsageError(
                f"'{self._ticket.id}' would be kept where '{known.ticket.id}' is",
                hint=f"give it another name with --id, or go on: holdfast work {known.ticket.id}",
            )
        before = known.terms
        self._terms = replace(self._terms, base=before.base, done=before.done)
        plan = plan_of(self._ticket, self._terms)
        if plan_digest(plan) == plan_digest(known.plan) or not known.head:
            return plan
        is_done = (
            known.is_ready
            and known.ticket == self._ticket
            and (before.model, before.agent) == (self._terms.model, self._terms.agent)
        )
        self._terms = replace(self._terms, base=known.head, done=is_done)
        plan = plan_of(self._ticket, self._terms)
        if plan_digest(plan) != plan_digest(known.plan):
            then = "what stands at {} is checked" if is_done else "work goes on from {}"
            talk(f"what is wanted is not what it was: {then.format(known.head[:12])}")
        return plan

    def _agree(self, plan: Plan, url: str) -> None:
        """Ask once before money is spent or something leaves this machine."""
        outside = [f"push to {url}"] if url else []
        paid = []
        model = "" if self._script is not None else self._terms.model
        if model and wire.market.is_paid(self._site.top, model):
            paid = [f"{plan.name} asks {self._terms.model}"]
        if not outside and not paid:
            return
        given = self._manner["max_cost"]
        if paid and given is not None:
            paid = []
        consent_to(outside, yes=bool(self._manner["yes"]), look="", paid=paid)

    def _driven(self, store: Store, plan: Plan) -> State:
        with _said_how_to_stop(plan.name):
            return self._carried_out(store, plan)

    def _carried_out(self, store: Store, plan: Plan) -> State:
        left = _unfinished(store, plan)
        most = wire.market.cost_bound(self._site.top, plan, self._manner["max_cost"])  # type: ignore[arg-type] # of a click type
        drive = self._drive(store, plan)
        if left is not None:
            talk(f"goes on with {short(left)}")
            state = once(drive, lambda world: resume_run(world, left, max_cost=most))
        else:
            options = Options(max_cost=most, max_ms=self._most_ms())
            state = once(drive, lambda world: start_run(world, plan, plan.name, options))
        manner = manner_of(self._manner)
        while (
            state.status == "waiting"
            and manner.how == "ask"
            and ask_people(store, self._where, state)
        ):
            run = state.run
            state = once(drive, lambda world: resume_run(world, run, only=()))  # noqa: B023
        return state

    def _most_ms(self) -> int | None:
        given = self._manner["max_ms"]
        return given if isinstance(given, int) else None

    def _drive(self, store: Store, plan: Plan) -> Drive:
        settings = wire.configured(self._site.top).settings
        wishes = wishes_of(self._where, store, settings, self._manner, "anything")
        wishes = wishes_for(
            self._site, self._where.location, wishes, person(self._site.client), self._script
        )
        quiet = bool(self._manner["quiet"])
        beside = partial(_Keeping, self._site, self._ticket, store)
        return Drive(self._where, plan, store, wishes, quiet=quiet, beside=beside)

    def _pushed(self, store: Store, head: str, state: State, url: str) -> State:
        plan = push_plan(self._ticket, head, url, state.run)
        drive = replace(self._drive(store, plan), beside=None)
        done = once(drive, lambda world: start_run(world, plan, plan.name, Options()))
        write_log(self._site, self._ticket, store, state.run)
        return done

    def _tell(
        self, store: Store, state: State, known: Known, pushed: State | None, followed: str
    ) -> None:
        code = came_to(state, known)
        log = write_log(self._site, self._ticket, store, state.run)
        if self._manner["as_json"]:
            out_json({**work_json(known, state, log), "pushed": _push_json(pushed)})
            return
        if code:
            conclude(store, state, None, as_json=False)
        for line in told_lines(known, state):
            out(line)
        if followed:
            out(f"{SIGNS['done']} your branch {followed} followed")
        if pushed is not None:
            if pushed.status == "completed":
                out(f"{SIGNS['done']} pushed")
            else:
                conclude(store, pushed, None, as_json=False)
        out(f"  log {log}")
        if code == 0:
            out_next(
                f"git log -p ..{branch_of(self._ticket)}    git merge {branch_of(self._ticket)}"
            )


class _Keeping:
    """A follower that writes the run's log whenever something was stored."""

    def __init__(self, site: Site, ticket: Ticket, store: Store, follower: Follower) -> None:
        self._site = site
        self._ticket = ticket
        self._store = store
        self._follower = follower
        self._log: RunLog | None = None

    def began(self, state: State) -> None:
        self._log = RunLog(self._ticket, state.run, self._store.get)
        self._log.read(journal_of(self._store, state.run))
        self._follower.began(state)
        self._log.write(runs_folder(self._site, self._ticket))

    def events(self, events: list[Recorded]) -> None:
        self._follower.events(events)
        if self._log is not None:
            self._log.read(events)
            self._log.write(runs_folder(self._site, self._ticket))

    def output(self, step: StepId, stream: str, data: bytes) -> None:
        self._follower.output(step, stream, data)

    def say(self, text: str) -> None:
        self._follower.say(text)


def _ways(known: Known | None, base: str) -> set[str]:
    """Where a branch may be that is to follow: where the work began, or where it came to."""
    return {base} if known is None else {base, known.begun, known.head}


def place_of(site: Site, ticket: Ticket) -> Place:
    """Where the line of a ticket is kept, and where it is worked on."""
    location = wire.store_location(site.top, None)
    return Place(None, site.folder(ticket), location, line_of(ticket))


def runs_folder(site: Site, ticket: Ticket) -> str:
    """Where the logs of a ticket's runs are."""
    return os.path.join(site.home(ticket), "runs")


def journal_of(store: Store, run: RunId) -> list[Recorded]:
    """Everything that happened in a run."""
    return list(store.read(f"run:{run}"))


def write_log(site: Site, ticket: Ticket, store: Store, run: RunId) -> str:
    """Write the log of a run from its journal, and from those of its pushes; where it is."""
    log = RunLog(ticket, run, store.get)
    log.read(journal_of(store, run))
    for row in store.runs(f"{line_of(ticket)}.push"):
        state = read_state(store, row.run)
        if state is not None and state.plan.steps[StepId("push")].values.get("run") == run:
            log.read_push(journal_of(store, row.run))
    return log.write(runs_folder(site, ticket))


@contextmanager
def alone(site: Site, store: Store, lines: Sequence[Known]) -> Iterator[None]:
    """Hold the lines of tickets while something becomes of their worktrees; HeldError if one is worked on."""
    held: list[Hold] = []
    try:
        for known in lines:
            where = place_of(site, known.ticket)
            world = wire.world_for(
                known.plan, where.root, where.location, store, wire.Wishes(say=talk)
            )
            with _said_how_to_stop(known.plan.name):
                hold = Hold(world, known.plan.project, known.plan.name)
                hold.take(join=False)
            held.append(hold)
        yield
    finally:
        for hold in held:
            hold.release()


@contextmanager
def _said_how_to_stop(line: str) -> Iterator[None]:
    try:
        yield
    except HeldError as error:
        error.hint = f"wait for it, or: holdfast stop --plan-id {line}"
        raise


def rebuild_views(site: Site, store: Store) -> list[str]:
    """Write the logs of all runs of tickets, and the task trees in worktrees, again; where they are."""
    written: list[str] = []
    for known in tickets_of(store):
        rows = runs_of(store, "", line_of(known.ticket))
        written += [write_log(site, known.ticket, store, row.run) for row in rows]
        folder = site.folder(known.ticket)
        if known.deliveries and os.path.isdir(folder) and not _is_edited(folder, known):
            write_tree(folder, known.ticket, str(known.deliveries[-1]["tree"]))
            written.append(os.path.join(folder, TREE.format(known.ticket.id)))
    return written


def _is_edited(folder: str, known: Known) -> bool:
    """Whether somebody wrote into the task tree of a worktree; it is said."""
    place = os.path.join(folder, TREE.format(known.ticket.id))
    there = tree_text(folder, known.ticket).replace("\r\n", "\n")
    if not there or there == str(known.deliveries[-1]["tree"]):
        return False
    talk(f"somebody wrote into '{place}': it is left as it is, and taken over by the next work")
    return True


def came_to(state: State, known: Known) -> int:
    """The exit code of a ticket: 0 only if it is ready, and something was done for it."""
    if state.status != "completed":
        return exit_code(state)
    if not known.deliveries or not known.deliveries[-1]["ready"]:
        return NOT_READY
    return 0 if known.commits else NOTHING


def told_lines(known: Known, state: State) -> list[str]:
    """What a ticket came to, for people."""
    ticket, last = known.ticket, known.deliveries[-1] if known.deliveries else {}
    commits = known.commits
    word = "ready" if last.get("ready") else "not ready"
    if last.get("ready") and not commits:
        word = "says that it is ready, and changed nothing"
    head = f"{ticket.id} {word}"
    cycles = len(known.deliveries)
    parts = [head, count(cycles, "cycle"), count(len(commits), "commit"), spent_words(state)]
    lines = [" · ".join(filter(None, parts))]
    lines += [f"  {str(one['oid'])[:12]} {one['message']}" for one in commits[-10:]]
    if not commits:
        lines += [f"  {line}" for line in cast("list[str]", last.get("lost", []))[-_FEW:]]
    checks = list(known.terms.checks)
    if known.head and known.head != known.begun:
        lines.append(f"  branch {branch_of(ticket)} is at {known.head[:12]}")
    lines.append(
        f"  checked by {', '.join(checks)}" if checks else "  unverified: nothing checked it"
    )
    return lines


def work_json(known: Known, state: State, log: str) -> dict[str, Json]:
    """What a ticket came to, for programs."""
    last = known.deliveries[-1] if known.deliveries else {}
    return {
        "schema": "holdfast.work/1",
        "ticket": known.ticket.id,
        "title": known.ticket.title,
        "line": state.line,
        "run": state.run,
        "status": str(state.status),
        "ready": bool(last.get("ready")),
        "verified": bool(known.terms.checks),
        "branch": branch_of(known.ticket),
        "base": known.begun,
        "head": known.head or None,
        "state": last.get("state"),
        "cycles": len(known.deliveries),
        "commits": list(known.commits),
        "checks": list(known.terms.checks),
        "cost": state.spent.cost,
        "log": log,
    }


def _push_json(pushed: State | None) -> Json:
    if pushed is None:
        return None
    return {"run": pushed.run, "status": str(pushed.status)}


def _unfinished(store: Store, plan: Plan) -> RunId | None:
    """The run to go on with: one that rests or was killed, of this very plan."""
    rows = runs_of(store, plan.project, plan.name)
    state = read_state(store, rows[-1].run) if rows else None
    if state is None or state.base != plan_digest(plan):
        return None
    return state.run if str(state.status) in _AGAIN else None
