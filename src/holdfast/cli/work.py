"""work: do a ticket, from its words to commits on a branch of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import click
from click.core import ParameterSource

from holdfast import wire
from holdfast.cli.drive import manner_of
from holdfast.cli.driving import exclude, run_options
from holdfast.cli.hiring import agent_options, hired
from holdfast.cli.measure import Duration, Size
from holdfast.cli.say import talk
from holdfast.cli.working import Working
from holdfast.config.settings import read_protected
from holdfast.errors import UsageError
from holdfast.gitrepo.client import resolve
from holdfast.model.digest import Json
from holdfast.model.text import one_line
from holdfast.model.walls import Walls
from holdfast.wire.tickets import Known, Site, find_known, open_site
from holdfast.worker.desk import Bounds
from holdfast.worker.detect import Check, detect
from holdfast.worker.plan import Terms
from holdfast.worker.script import PROVIDER, Script, read_script
from holdfast.worker.ticket import Ticket, entity, read_ticket

_TIERS = ("large", "medium", "small")  # who works if nobody is named
_ENDINGS = (".md", ".markdown", ".txt", ".json", ".yaml", ".yml")


@click.command(
    "work",
    epilog="\b\nExample:\n  holdfast work ticket.md --model anthropic:claude-sonnet-5\n"
    "  gh issue view 12 --json number,title,body | holdfast work -\n"
    "  holdfast work ticket.md --agent aider --network --secret OPENAI_API_KEY\n"
    "  holdfast work ticket.md --script turns.yaml",
)
@click.argument("ticket", metavar="TICKET|-")
@click.option("--id", "ticket_id", metavar="ID", help="The id of the ticket.")
@click.option("--eoi", metavar="NAME", help="What to look at first: a file, a function, a concern.")
@click.option("--model", metavar="MODEL", help="Who works: provider:name, a tier or an alias.")
@click.option(
    "--script", metavar="FILE", help="Play the tool calls of this file instead of a model."
)
@agent_options
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
@click.option("--push", metavar="REMOTE", help="Push the branch there when the ticket is ready.")
@click.option("--in-place", is_flag=True, help="Let your own branch follow, if your tree is clean.")
@click.option("--cycles", type=click.IntRange(1, 100), default=10, help="At most so many (10).")
@click.option("--turns", type=click.IntRange(1, 500), default=40, help="Of a cycle, at most (40).")
@click.option(
    "--time",
    "max_ms",
    type=Duration(),
    help="What the run may take; begins no other step then (exit 5). Going on starts the time anew.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=8000,
    metavar="N",
    help="Of one answer of the model, at most (8000).",
)
@click.option("--max-files", type=click.IntRange(1), default=100, help="That may change (100).")
@click.option("--max-lines", type=click.IntRange(1), default=5000, help="That may change (5000).")
@click.option(
    "--max-bytes", type=Size(), default="5MB", help="Of new content that may be there (5MB)."
)
@click.option(
    "--command-time", type=Duration(), default="10m", help="Of a check or a command, at most (10m)."
)
@run_options
def work(
    ticket: str,
    *,
    ticket_id: str | None,
    eoi: str | None,
    model: str | None,
    script: str | None,
    agent: str | None,
    agent_time: int,
    base: str,
    checks: tuple[str, ...],
    unverified: bool,
    scope: tuple[str, ...],
    cycles: int,
    turns: int,
    max_tokens: int,
    max_files: int,
    max_lines: int,
    max_bytes: int,
    command_time: int,
    push: str | None,
    in_place: bool,
    **manner: object,
) -> int:
    """Do a ticket: work in a worktree of its own, check, commit, until it is ready.

    TICKET is a Markdown file (with front matter), an issue of GitHub or GitLab as JSON, what 'gh issue view'
    prints, or the words themselves. The result is a branch holdfast/ID in this repository; your work tree is
    not touched. Doing it again goes on where it was.
    """
    exclude(bool(agent), bool(model or script), "--agent, and --model or --script,")
    site, played = open_site(os.getcwd(), say=talk), _script(script)
    secrets = manner_of(manner).secrets
    seconds = command_time / 1000
    bounds = Bounds(turns=turns, files=max_files, lines=max_lines, seconds=seconds, bytes=max_bytes)
    parameters: dict[str, Json] = {"max_tokens": max_tokens}
    if (known := _known(site, ticket)) is not None:
        terms = _as_before(site, known, model, played, agent)
        if checks or unverified:
            terms = replace(terms, checks=_checks(site, checks, unverified=unverified))
        terms = _said_anew(known, terms, scope, cycles, bounds, parameters)
        terms = hired(terms, agent, agent_time, secrets)
        return Working(site, known.ticket, terms, played, manner).done(push=push, in_place=in_place)
    walls = wire.walls_at(os.getcwd())
    wanted = _ticket(ticket, walls, is_named=bool(ticket_id))
    if ticket_id:
        wanted = read_ticket_as(wanted, ticket_id)
    if eoi:
        wanted = replace(wanted, eoi=entity(eoi))
    terms = Terms(
        model="" if agent else played.model if played else _model(site, model),
        base=resolve(site.client, base),
        checks=_checks(site, checks, unverified=unverified),
        scope=scope or ("**",),
        protected=read_protected(site.top),
        cycles=cycles,
        bounds=bounds,
        parameters=parameters,
    )
    terms = hired(terms, agent, agent_time, secrets)
    return Working(site, wanted, terms, played, manner).done(push=push, in_place=in_place)


def _known(site: Site, given: str) -> Known | None:
    """The ticket of that id, if it was worked on here; a file of that name is meant rather."""
    location = wire.store_location(site.top, None)
    if os.path.isfile(given) or not wire.has_store(location):
        return None
    store = wire.open_store(location, readonly=True, whole=True)
    try:
        found = (find_known(store, line) for line in dict.fromkeys((given, f"ticket-{given}")))
        return next((known for known in found if known is not None), None)
    finally:
        store.close()


def _as_before(
    site: Site, known: Known, model: str | None, script: Script | None, agent: str | None
) -> Terms:
    """The terms of a ticket that is gone on with; who works may be another."""
    if script is not None or model is not None:
        who = script.model if script is not None else _model(site, model)
        return replace(known.terms, model=who, agent=(), secrets=())
    if agent is None and known.terms.model.startswith(f"{PROVIDER}:"):
        raise UsageError(f"'{known.ticket.id}' plays a script", hint="--script FILE")
    return known.terms


def _said_anew(
    known: Known,
    terms: Terms,
    scope: tuple[str, ...],
    cycles: int,
    bounds: Bounds,
    parameters: dict[str, Json],
) -> Terms:
    """The terms of a known ticket with what the command line says of them; the rest stays as it was."""
    context = click.get_current_context()

    def is_said(name: str) -> bool:
        return context.get_parameter_source(name) is ParameterSource.COMMANDLINE

    for name, option in (("ticket_id", "--id"), ("eoi", "--eoi"), ("base", "--base")):
        if is_said(name):
            raise UsageError(
                f"'{option}' cannot be changed: '{known.ticket.id}' was begun without or with another",
                hint=f"give the ticket itself again, or holdfast tickets drop {known.ticket.id}",
            )
    was = terms.bounds
    return replace(
        terms,
        scope=scope or terms.scope,
        cycles=cycles if is_said("cycles") else terms.cycles,
        bounds=replace(
            was,
            turns=bounds.turns if is_said("turns") else was.turns,
            files=bounds.files if is_said("max_files") else was.files,
            lines=bounds.lines if is_said("max_lines") else was.lines,
            bytes=bounds.bytes if is_said("max_bytes") else was.bytes,
            seconds=bounds.seconds if is_said("command_time") else was.seconds,
        ),
        parameters=parameters if is_said("max_tokens") else terms.parameters,
    )


def read_ticket_as(ticket: Ticket, given: str) -> Ticket:
    """A ticket under an id that the person gave it."""
    checked = read_ticket(f"---\nid: {given!r}\ntitle: x\n---\n")
    return replace(ticket, id=checked.id)


def _ticket(given: str, walls: Walls, *, is_named: bool) -> Ticket:
    most = walls.ticket + 1
    if given == "-":
        text = sys.stdin.buffer.read(most).decode("utf-8", "replace")
        return read_ticket(text, walls=walls)
    if os.path.isfile(given):
        with open(given, "rb") as file:
            text = file.read(most).decode("utf-8", "replace")
        return read_ticket(text, os.path.splitext(os.path.basename(given))[0], walls)
    if os.path.isdir(given):
        raise UsageError(
            f"'{one_line(given)}' is a directory, and a ticket is a file",
            hint="name the file of the ticket in it, or say what is wanted in some words",
        )
    if given.endswith(_ENDINGS) and " " not in given:
        raise UsageError(f"there is no file '{one_line(given)}'")
    if len(given.split()) == 1 and not is_named:  # an id that was mistyped, more likely than a wish
        raise UsageError(
            f"'{one_line(given)}' is no file, and no ticket that was worked on here",
            hint="holdfast tickets list; or say what is wanted in some words, or name it with --id",
        )
    return read_ticket(given, walls=walls)


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
        named = wire.market.known_models(site.top).names
        given = next((tier for tier in _TIERS if tier in named), None)
        if given is not None:
            talk(f"{given} model: {named[given]}")
    if not given:
        raise UsageError(
            "nobody said who works",
            hint="--model provider:name, --agent NAME or --script FILE; see docs/howto/work.md",
        )
    found = wire.market.known_models(site.top).names.get(given, given)
    if ":" not in found:
        raise UsageError(
            f"'{one_line(given)}' is no model", hint="provider:name, a tier or an alias"
        )
    return found


def _checks(site: Site, given: tuple[str, ...], *, unverified: bool) -> tuple[str, ...]:
    if any(not command.strip() for command in given):
        raise UsageError("a command that checks the work is empty", hint="--validate COMMAND")
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
