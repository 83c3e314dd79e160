"""work: do a ticket, from its words to commits on a branch of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import click

from holdfast import wire
from holdfast.cli.ask import go_on
from holdfast.cli.drive import Drive, once, wishes_of
from holdfast.cli.driving import run_options
from holdfast.cli.ending import conclude
from holdfast.cli.place import Place
from holdfast.cli.say import out, talk
from holdfast.cli.view import view
from holdfast.config.settings import read_protected, read_settings
from holdfast.core.state import State
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.runs import resume_run, start_run
from holdfast.errors import UsageError
from holdfast.gitrepo.client import resolve
from holdfast.gitrepo.commits import person
from holdfast.model.event import Options, Recorded
from holdfast.model.plan import Plan, RunId, plan_digest
from holdfast.model.text import one_line
from holdfast.ports import Store
from holdfast.wire.tickets import Site, last_head, last_plan, open_site, wishes_for
from holdfast.worker.desk import Bounds
from holdfast.worker.detect import Check, detect
from holdfast.worker.plan import Terms, branch_of, line_of, plan_of
from holdfast.worker.runlog import RunLog
from holdfast.worker.script import Script, read_script
from holdfast.worker.ticket import MOST, Ticket, entity, read_ticket

_ENDINGS = (".md", ".markdown", ".txt", ".json", ".yaml", ".yml")


@click.command(
    "work",
    epilog="\b\nExample:\n  holdfast work ticket.md --model anthropic:claude-sonnet-5\n"
    "  gh issue view 12 --json number,title,body,url | holdfast work - --validate 'make test'\n"
    "  holdfast work ticket.md --script turns.yaml",
)
@click.argument("ticket", metavar="TICKET|-")
@click.option("--id", "ticket_id", metavar="ID", help="The id of the ticket.")
@click.option("--eoi", metavar="NAME", help="What to look at first: a file, a function, a concern.")
@click.option("--model", metavar="MODEL", help="Who works: provider:name, a tier or an alias.")
@click.option(
    "--script", metavar="FILE", help="Play the tool calls of this file instead of a model."
)
@click.option("--base", default="HEAD", metavar="REVISION", help="The commit to begin with (HEAD).")
@click.option(
    "--validate",
    "checks",
    multiple=True,
    metavar="COMMAND",
    help="A command that checks the work; may be repeated (default: found in the repository).",
)
@click.option(
    "--unverified", is_flag=True, help="Work without any check; the result is not verified."
)
@click.option(
    "--scope", multiple=True, metavar="GLOB", help="Only these may be written; repeatable."
)
@click.option("--cycles", type=click.IntRange(1, 100), default=10, help="At most so many (10).")
@click.option("--turns", type=click.IntRange(1, 500), default=40, help="Of a cycle, at most (40).")
@click.option("--max-files", type=click.IntRange(1), default=100, help="That may change (100).")
@click.option("--max-lines", type=click.IntRange(1), default=5000, help="That may change (5000).")
@run_options
def work(
    ticket: str,
    *,
    ticket_id: str | None,
    eoi: str | None,
    model: str | None,
    script: str | None,
    base: str,
    checks: tuple[str, ...],
    unverified: bool,
    scope: tuple[str, ...],
    cycles: int,
    turns: int,
    max_files: int,
    max_lines: int,
    **manner: object,
) -> int:
    """Do a ticket: work in a worktree of its own, check, commit, until it is ready.

    TICKET is a Markdown file (with front matter), an issue of GitHub or GitLab as JSON, what 'gh issue view'
    prints, or the words themselves. The result is a branch holdfast/ID in this repository; your work tree is
    not touched. Doing it again goes on where it was.
    """
    wanted = _ticket(ticket)
    if ticket_id:
        wanted = read_ticket_as(wanted, ticket_id)
    if eoi:
        wanted = replace(wanted, eoi=entity(eoi))
    site = open_site(os.getcwd())
    played = _script(script)
    terms = Terms(
        model=played.model if played else _model(site, model),
        base=resolve(site.client, base),
        checks=_checks(site, checks, unverified=unverified),
        scope=scope or ("**",),
        protected=read_protected(site.top),
        cycles=cycles,
        bounds=Bounds(turns=turns, files=max_files, lines=max_lines),
    )
    return _Working(site, wanted, terms, played, manner).done()


class _Working:
    """One ticket, from here to its end or rest."""

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
        location = wire.store_location(site.top, None)
        self._where = Place(None, site.folder(ticket), location, line_of(ticket))

    def done(self) -> int:
        store = self._where.open(create=True)
        try:
            plan = self._plan(store)
            self._agree(plan)
            self._site.desk(self._ticket, self._terms)
            state = self._driven(store, plan)
            code = conclude(store, state, None, as_json=bool(self._manner["as_json"]))
            if not self._manner["as_json"]:
                self._tell(store, state)
            return code
        finally:
            store.close()

    def _plan(self, store: Store) -> Plan:
        """The plan of this ticket: the one that stands, or one that goes on from what was delivered."""
        before = last_plan(store, line_of(self._ticket))
        if before is None:
            return plan_of(self._ticket, self._terms)
        base = str(before.origin["ticket"]["base"])  # type: ignore[index,call-overload] # as plan_of writes it
        self._terms = replace(self._terms, base=base)
        plan = plan_of(self._ticket, self._terms)
        if plan_digest(plan) == plan_digest(before) or not (
            head := last_head(store, line_of(self._ticket))
        ):
            return plan
        talk(f"the ticket, or what was said of it, is another: work goes on from {head[:12]}")
        self._terms = replace(self._terms, base=head)
        return plan_of(self._ticket, self._terms)

    def _agree(self, plan: Plan) -> None:
        if self._script is not None or self._manner["yes"]:
            return
        if not wire.market.is_paid(self._site.top, self._terms.model):
            return
        if not view().asks:
            raise UsageError(
                f"'{self._terms.model}' costs money, and nobody is there to ask", hint="say --yes"
            )
        talk(f"'{plan.name}' asks {self._terms.model}, which costs money")
        go_on("work on it?", default=True)

    def _driven(self, store: Store, plan: Plan) -> State:
        settings = read_settings(self._site.top)
        wishes = wishes_of(self._where, store, settings, self._manner, "anything")
        wishes = wishes_for(self._site, self._where.location, wishes, person(), self._script)
        drive = Drive(self._where, plan, store, wishes, quiet=bool(self._manner["quiet"]))
        left = _unfinished(store, plan)
        if left is not None:
            talk(f"goes on with {left[:8]}")
            return once(drive, lambda world: resume_run(world, left))
        return once(drive, lambda world: start_run(world, plan, plan.name, Options()))

    def _tell(self, store: Store, state: State) -> None:
        head = last_head(store, state.line)
        if head:
            out(f"branch {branch_of(self._ticket)} is at {head[:12]}")
        log = RunLog(self._ticket, state.run, store.get)
        log.read(_journal(store, state.run))
        out(f"log {log.write(os.path.join(self._site.home(self._ticket), 'runs'))}")


def read_ticket_as(ticket: Ticket, given: str) -> Ticket:
    """A ticket under an id that the person gave it."""
    checked = read_ticket(f"---\nid: {given!r}\ntitle: x\n---\n")
    return replace(ticket, id=checked.id)


def _journal(store: Store, run: RunId) -> list[Recorded]:
    return list(store.read(f"run:{run}"))


def _unfinished(store: Store, plan: Plan) -> RunId | None:
    rows = runs_of(store, plan.project, plan.name)
    if not rows:
        return None
    state = read_state(store, rows[-1].run)
    if state is None:
        return None
    again = state.status in {"running", "paused", "waiting", "limit"}
    return state.run if again and state.base == plan_digest(plan) else None


def _ticket(given: str) -> Ticket:
    if given == "-":
        return read_ticket(sys.stdin.buffer.read(MOST + 1).decode("utf-8", "replace"))
    if os.path.isfile(given):
        with open(given, "rb") as file:
            text = file.read(MOST + 1).decode("utf-8", "replace")
        return read_ticket(text, os.path.splitext(os.path.basename(given))[0])
    if given.endswith(_ENDINGS) and " " not in given:
        raise UsageError(f"there is no file '{one_line(given)}'")
    return read_ticket(given)


def _script(file: str | None) -> Script | None:
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8") as opened:
            return read_script(opened.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the script '{one_line(file)}': {error}") from error


def _model(site: Site, given: str | None) -> str:
    if not given:
        raise UsageError(
            "nobody said who works",
            hint="--model provider:name, or --script FILE; see docs/howto/work.md",
        )
    found = wire.market.known_models(site.top).names.get(given, given)
    if ":" not in found:
        raise UsageError(
            f"'{one_line(given)}' is no model", hint="provider:name, a tier or an alias"
        )
    return found


def _checks(site: Site, given: tuple[str, ...], *, unverified: bool) -> tuple[str, ...]:
    if given or unverified:
        return given
    found: tuple[Check, ...] = detect(site.top)
    if not found:
        raise UsageError(
            "nothing here says how the work is checked",
            hint="--validate COMMAND, or --unverified to do without",
        )
    for check in found:
        talk(f"checked by '{check.command}': {check.why}")
    return tuple(check.command for check in found)
