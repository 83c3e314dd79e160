"""approve, reject, revoke, approvals: people decide what steps wait for."""

from __future__ import annotations

import getpass
import os
import shlex
import sys
from collections.abc import Mapping, Sequence

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.core.approvals import Approval
from holdfast.engine.decisions import Decisions, Given, Person, Wanted
from holdfast.errors import UsageError
from holdfast.formats.shapes import seconds_of
from holdfast.model.digest import Json
from holdfast.model.event import Scope
from holdfast.ports import Store


@click.command(
    epilog="\b\nExample:\n  holdfast approve deploy\n  holdfast approve a-1f3c --scope run --until 2h --yes"
)
@click.argument("which", nargs=-1, metavar="[STEP|ID]...")
@click.option(
    "--scope", type=click.Choice(["once", "run", "content"]), help="How far the yes goes."
)
@click.option("--until", metavar="TIME", help="How long it stands, like 90s, 2h, 7d.")
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the decision.")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@click.option("--all", "every", is_flag=True, help="Everything that waits.")
@file_option
@place_options
@json_option
def approve(
    which: tuple[str, ...],
    scope: Scope | None,
    until: str | None,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    yes: bool,
    every: bool,
    as_json: bool,
) -> int:
    """Say yes to what a step waits for. What it covers is shown first; the default answer is no."""
    where = place(plan, store, plan_id)
    given = Given(scope, _moment(until), because)
    return _each(where, which, every, given, yes=yes, as_json=as_json)


def _moment(until: str | None) -> int:
    """When something ends that stands for a while; 0 is never."""
    if until is None:
        return 0
    seconds = seconds_of(until)
    if seconds is None:
        raise UsageError(f"--until '{until}' is not a duration", hint="write it like 90s, 2h or 7d")
    return wire.now_ms() + int(seconds * 1000)


def _each(
    where: Place,
    which: Sequence[str],
    every: bool,
    given: Given,
    *,
    yes: bool,
    as_json: bool,
    answer: bool = True,
) -> int:
    _refuse_steps()
    person = _person()
    with_store = where.open()
    try:
        decisions = _decisions(where, with_store)
        made = []
        for wanted in _chosen(decisions, which, every):
            if answer and not yes:
                _ask(decisions, wanted, person)
            made.append(decisions.decide(wanted.approval, person, given, yes=answer))
        _told(decisions, made, as_json=as_json)
    finally:
        with_store.close()
    return 0


@click.command(epilog="\b\nExample:\n  holdfast reject deploy --because 'the release is frozen'")
@click.argument("which", nargs=-1, required=True, metavar="STEP|ID...")
@click.option("--because", required=True, metavar="TEXT", help="Why; the next attempt is told.")
@file_option
@place_options
@json_option
def reject(
    which: tuple[str, ...],
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
) -> int:
    """Say no to what a step waits for, and why."""
    where = place(plan, store, plan_id)
    given = Given(because=because)
    return _each(where, which, False, given, yes=True, as_json=as_json, answer=False)


@click.command(epilog="\b\nExample:\n  holdfast revoke a-1f3c --because 'approved by mistake'")
@click.argument("approval")
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the decision.")
@file_option
@place_options
@json_option
def revoke(
    approval: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
) -> int:
    """Take an approval back: nothing starts under it any more."""
    _refuse_steps()
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        decisions = _decisions(where, with_store)
        found = [a for a in decisions.book if a.id.startswith(approval)]
        if len(found) != 1:
            raise UsageError(f"there is no approval '{approval}'", hint="holdfast approvals --all")
        _told(decisions, [decisions.revoke(found[0], _person(), because)], as_json=as_json)
    finally:
        with_store.close()
    return 0


@click.command(epilog="\b\nExample:\n  holdfast approvals\n  holdfast approvals --all --json")
@click.option("--all", "every", is_flag=True, help="Also what is decided.")
@file_option
@place_options
@json_option
def approvals(
    plan: str | None, store: str | None, plan_id: str | None, *, every: bool, as_json: bool
) -> int:
    """Show what waits for a person, with everything that an approval would cover."""
    where = place(plan, store, plan_id)
    if not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    with_store = where.open(readonly=True)
    try:
        decisions = _decisions(where, with_store)
        wanted = decisions.wanted()
        if as_json:
            shown = [item.approval for item in wanted]
            if every:
                shown = list(decisions.book)
            items: list[Json] = [approval_json(decisions, found) for found in shown]
            out_json({"schema": "holdfast.approvals/1", "approvals": items})
            return 0
        for item in wanted:
            for line in card(decisions, item):
                out(line)
        if every:
            for found in decisions.book:
                out(f"{found.id}  {found.stand(wire.now_ms()):<9} {found.request.step}")
        if not wanted:
            out("nothing waits for a person")
        else:
            first = wanted[0].approval.id
            out_next(f"holdfast approve {first}    holdfast reject {first} --because '…'")
    finally:
        with_store.close()
    return 0


def card(decisions: Decisions, wanted: Wanted) -> list[str]:
    """What would happen, what it covers and what it blocks, for a person who decides."""
    found, document = wanted.approval, decisions.document(wanted.approval)
    request = found.request
    names = f" from {' or '.join(request.names)}" if request.names else ""
    lines = [f"{found.id}  {request.step} waits for an approval{names}  ({wanted.run[:8]})"]
    run, shell = document.get("run"), document.get("shell")
    if isinstance(run, list) and run:
        lines.append(f"  runs      {shlex.join(str(word) for word in run)}")
    elif shell:
        lines.append(f"  runs      sh: {ascii(shell)[1:-1]}")
    for key in ("effects", "env", "secrets", "workspace", "artifact", "produces"):
        value = document.get(key)
        if value and value != "none":
            text = ", ".join(str(v) for v in value) if isinstance(value, list) else str(value)
            lines.append(f"  {key:<9} {text}")
    files = document.get("files")
    if isinstance(files, Mapping) and files:
        lines.append(f"  files     {', '.join(sorted(files)[:5])}")
    if wanted.blocks:
        lines.append(f"  blocks    {', '.join(wanted.blocks[:5])}")
    lines.append(f"  digest    {request.subject}")
    return lines


def approval_json(decisions: Decisions, found: Approval) -> dict[str, Json]:
    """An approval for programs."""
    request, decision = found.request, found.decision
    return {
        "approval": found.id,
        "gate": request.gate,
        "step": request.step,
        "run": request.run,
        "from": list(request.names),
        "subject": request.subject,
        "state": found.stand(wire.now_ms()),
        "at": found.at,
        "covers": dict(decisions.document(found)),
        "decision": None
        if decision is None
        else {
            "yes": decision.yes,
            "by": decision.by,
            "names": list(decision.names),
            "scope": decision.scope,
            "until": decision.until or None,
            "terminal": decision.terminal,
            "at": found.decided_at,
        },
    }


def _decisions(where: Place, store: Store) -> Decisions:
    line = where.line()
    rows = store.runs(line)
    if not rows:
        raise UsageError("there is no run yet", hint="holdfast run")
    return Decisions(store, rows[-1].project, rows[-1].line, wire.now_ms)


def _chosen(decisions: Decisions, which: Sequence[str], every: bool) -> list[Wanted]:
    wanted = decisions.wanted()
    if every:
        return wanted
    if not which:
        if len(wanted) == 1:
            return wanted
        hint = "holdfast approvals"
        raise UsageError("say which: several wait" if wanted else "nothing waits", hint=hint)
    found: list[Wanted] = []
    for name in which:
        fits = [w for w in wanted if w.step == name or w.approval.id.startswith(name)]
        if not fits:
            known = [a for a in decisions.book if a.id.startswith(name)]
            if known:
                stand = known[0].stand(wire.now_ms())
                raise UsageError(f"'{known[0].id}' is {stand}", hint="holdfast approvals")
            raise UsageError(f"nothing called '{name}' waits", hint="holdfast approvals")
        found += fits
    return found


def _ask(decisions: Decisions, wanted: Wanted, person: Person) -> None:
    for line in card(decisions, wanted):
        out(line)
    if not person.terminal:
        raise UsageError("there is no terminal to ask at", hint="--yes")
    if not click.confirm("approve this?", default=False):
        raise UsageError("not approved; nothing was changed")


def _told(decisions: Decisions, made: Sequence[Approval], *, as_json: bool) -> None:
    if as_json:
        items: list[Json] = [approval_json(decisions, found) for found in made]
        out_json({"schema": "holdfast.approvals/1", "approvals": items})
        return
    for found in made:
        out(f"{found.id}: {found.request.step} {found.stand(wire.now_ms())}")
    out_next("holdfast resume")


def _person() -> Person:
    from holdfast.config.settings import read_people

    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return Person(getpass.getuser(), terminal, read_people())


def _refuse_steps() -> None:
    """A step may not approve anything, nor may what it started."""
    if "HOLDFAST_STEP" in os.environ:
        raise UsageError("a step cannot decide about approvals; a person must")
