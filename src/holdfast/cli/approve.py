"""approve, reject, revoke, answer: people decide what steps wait for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.approvals import approval_json, decisions_at, list_approvals, out_card
from holdfast.cli.ask import ask, stdin_bytes
from holdfast.cli.card import MOST_FILES, card, stale_files
from holdfast.cli.handing import added, handed_over, handoff_option
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.replanning import (
    held_at,
    is_named,
    let_go_on,
    ready_lines,
    refuse_others,
    replan_json,
    replan_lines,
)
from holdfast.cli.say import named, out, out_json, talk
from holdfast.cli.view import view
from holdfast.core.approvals import Approval
from holdfast.engine.answers import given_for, lying_there
from holdfast.engine.decisions import Decisions, Given, Person, Wanted
from holdfast.engine.replans import Held
from holdfast.errors import UsageError
from holdfast.formats.shapes import seconds_of
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.line import Scope
from holdfast.model.plan import Step
from holdfast.ports import Store

STILL_WAITS = 3
GOES_ON = "the engine that waits goes on by itself"
_NOTHING = digest_bytes(b"")


@dataclass(frozen=True, slots=True)
class Desk:
    """Where somebody decides: the store, the approvals of the line, and who it is."""

    where: Place
    store: Store
    decisions: Decisions
    person: Person


@contextmanager
def desk(where: Place, *, terminal: bool | None = None) -> Iterator[Desk]:
    """Open the store for somebody who decides; UsageError inside a step.

    `terminal` says that somebody sees what is decided and answers himself; else the view knows.
    """
    if not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    store = where.open()
    try:
        sees = view().asks if terminal is None else terminal
        person = wire.person(store, where.location, terminal=sees)
        yield Desk(where, store, decisions_at(where, store), person)
    finally:
        store.close()


@click.command(
    epilog="\b\nExample:\n  holdfast approve deploy\n"
    "  holdfast approve a-1f3c --scope run --until 2h --yes\n  holdfast approve --list"
)
@click.argument("which", nargs=-1, metavar="[STEP|ID]...")
@click.option(
    "--scope",
    type=click.Choice(["once", "run", "content"]),
    help="How far the yes goes: one attempt, this run, or always for the same content.",
)
@click.option("--until", metavar="TIME", help="How long it stands, like 90s, 2h, 7d.")
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the decision.")
@click.option("--yes", is_flag=True, help="Do not ask again; recorded if there is no terminal.")
@click.option("--all", "every", is_flag=True, help="Everything that waits for a yes.")
@click.option("--list", "listed", is_flag=True, help="Only show what waits, as 'approvals' does.")
@handoff_option
@file_option
@place_options
@json_option
def approve(
    which: tuple[str, ...],
    scope: Scope | None,
    until: str | None,
    because: str,
    handoff: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    yes: bool,
    every: bool,
    listed: bool,
    as_json: bool,
) -> int:
    """Say yes to what a step waits for. What it covers is shown first; the default answer is no."""
    where = place(plan, store, plan_id)
    if listed:
        return list_approvals(where, every=False, as_json=as_json)
    given = Given(scope, _moment(until), because)
    with desk(where) as at:
        doubted = held_at(at.store, where.line())
        if doubted is not None and _means_plan(at, which, doubted):
            _refuse_handoff(handoff)
            return _plan_stands(at, which, doubted, because, yes=yes, as_json=as_json)
        chosen = _chosen(at, which, every=every, verb="approve")
        for wanted in chosen:  # nothing is decided if one of them is not theirs to decide, or gone
            at.person.names_for(wanted.approval.request.names)
            at.decisions.check_is_there(wanted)
        given = given._replace(handoff=_added(at, chosen, handoff))
        made = [
            at.decisions.decide(wanted, at.person, given, yes=True)
            for wanted in chosen
            if yes or _agrees(at, wanted)
        ]
        _told(at, made, as_json=as_json)
    return 0 if made else STILL_WAITS


def _added(at: Desk, chosen: Sequence[Wanted], file: str | None) -> Digest | None:
    """What is handed over with the yes; UsageError if it is no handoff, or not about one step."""
    if file is not None and len(chosen) > 1:
        names = ", ".join(wanted.step for wanted in chosen[:5])
        raise UsageError(
            f"a handoff is what one step tells, and these are {len(chosen)}: {names}",
            hint="approve them one after the other",
        )
    plan = at.decisions.plan_of(chosen[0])
    return added(at.store, at.where, plan, plan.steps[chosen[0].step], file)


def _refuse_handoff(file: str | None) -> None:
    if file is not None:
        raise UsageError(
            "a plan hands nothing over; only a step does",
            hint="say what you know: holdfast ledger add evidence TEXT --because …",
        )


def _means_plan(at: Desk, which: Sequence[str], doubted: Held) -> bool:
    """Whether the plan is meant that is doubted: by name, or because nothing else waits."""
    if which:
        return is_named(which, doubted)
    return not at.decisions.wanted()


def _plan_stands(
    at: Desk, which: Sequence[str], doubted: Held, because: str, *, yes: bool, as_json: bool
) -> int:
    """Let a run go on with its plan, whatever speaks against it."""
    refuse_others(which)
    if not yes:
        for line in [*replan_lines(doubted.doubts), *ready_lines(doubted.plan)]:
            out(line)
        if not view().asks:
            raise UsageError("this needs a yes, and nobody is there to ask", hint="say --yes")
        if not ask("go on with the plan as it is?", default=False):
            talk("the run still waits; for another plan: change it, then holdfast run")
            return STILL_WAITS
    hidden = at.where.hidden(at.store)
    let_go_on(at.store, at.where.line(), doubted, at.person, because, hidden)
    if as_json:
        items = replan_json(doubted, "approved")
        out_json({"schema": "holdfast.approvals/1", "approvals": items})
        return 0
    out(f"the plan stands as it is: {', '.join(doubted.event.triggers)} answered")
    if any(wire.drives(at.store, held[0], held[1], doubted.run) for held in _lines(at)):
        out(GOES_ON)
    else:
        out_next("holdfast resume")
    return 0


def _moment(until: str | None) -> int:
    """When something ends that stands for a while; 0 is never."""
    if until is None:
        return 0
    seconds = seconds_of(until)
    if seconds is None:
        raise UsageError(f"--until '{until}' is not a duration", hint="write it like 90s, 2h or 7d")
    return wire.now_ms() + int(seconds * 1000)


def _agrees(at: Desk, wanted: Wanted) -> bool:
    """Show what a yes would cover, and ask; the default is no."""
    out_card(card(at.decisions, at.store, wanted, at.where.root))
    if not view().asks:
        raise UsageError("this needs a yes, and nobody is there to ask", hint="say --yes")
    if ask(f"approve '{wanted.step}'?", default=False):
        return True
    talk(f"'{wanted.step}' still waits; to say no for good: holdfast reject {named(wanted.step)}")
    return False


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
    if not because.strip():
        raise UsageError("a rejection needs a reason", hint="--because 'the release is frozen'")
    with desk(place(plan, store, plan_id)) as at:
        doubted = held_at(at.store, at.where.line())
        if doubted is not None and is_named(which, doubted):
            raise UsageError(
                "a plan that no longer holds is not rejected: another one takes its place",
                hint="change the plan, then holdfast run; to go on as it is: holdfast approve replan",
            )
        chosen = _chosen(at, which, every=False, verb="reject")
        for wanted in chosen:
            at.person.names_for(wanted.approval.request.names)
        given = Given(because=because)
        made = [at.decisions.decide(wanted, at.person, given, yes=False) for wanted in chosen]
        _told(at, made, as_json=as_json)
    return 0


@click.command(epilog="\b\nExample:\n  holdfast revoke a-1f3c --because 'approved by mistake'")
@click.argument("approval", metavar="ID")
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
    """Take an approval back: nothing starts under it any more. What has begun goes on."""
    with desk(place(plan, store, plan_id)) as at:
        found = [a for a in at.decisions.book if a.id.startswith(approval)]
        if not found:
            raise UsageError(f"there is no approval '{approval}'", hint="holdfast approvals --all")
        if len(found) > 1:
            names = ", ".join(a.id for a in found[:3])
            raise UsageError(f"'{approval}' fits {len(found)} approvals: {names} …")
        _told(at, [at.decisions.revoke(found[0], at.person, because)], as_json=as_json)
    return 0


@click.command(
    epilog="\b\nExample:\n  holdfast answer review notes.md\n  echo yes | holdfast answer check -\n"
    "  holdfast answer logo            # take what lies at its output paths"
)
@click.argument("step")
@click.argument("file", required=False)
@click.option("--because", default="", metavar="TEXT", help="A note; kept with the answer.")
@click.option("--empty", is_flag=True, help="Empty content is what is meant.")
@handoff_option
@file_option
@place_options
@json_option
def answer(
    step: str,
    file: str | None,
    because: str,
    handoff: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    empty: bool,
    as_json: bool,
) -> int:
    """Give the content of a step that only a person can do. Its guards look at it next.

    FILE is the content, '-' reads stdin; without FILE what lies at the step's output paths counts.
    """
    with desk(place(plan, store, plan_id)) as at:
        wanted = at.decisions.answerable(step)
        at.person.names_for(wanted.approval.request.names)
        asking = at.decisions.plan_of(wanted)
        doing = asking.steps[wanted.step]
        told = handed_over(at.store, at.where, asking, doing, handoff)
        digest, form = _content(at, doing, file)
        if digest == _NOTHING and not empty:
            raise UsageError(f"the content for '{doing.id}' is empty", hint="if so meant: --empty")
        given = Given(because=because, content=digest, form=form, handoff=told)
        made = [at.decisions.decide(wanted, at.person, given, yes=True)]
        _told(at, made, as_json=as_json)
    return 0


def _content(at: Desk, step: Step, file: str | None) -> tuple[Digest, Form]:
    """Store what a person gives for a step: a file, stdin, or what lies at its output paths."""
    hidden = at.where.hidden(at.store)
    if file is None:
        return lying_there(at.store, at.where.root, step, hidden)
    if file == "-":
        return given_for(at.store, step, stdin_bytes(), hidden)
    try:
        with open(file, "rb") as opened:
            content = opened.read()
            program = bool(os.fstat(opened.fileno()).st_mode & 0o100)
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror}") from error
    return given_for(at.store, step, content, hidden, executable=program)


# --- which ----------------------------------------------------------------------------------------


def _chosen(at: Desk, which: Sequence[str], *, every: bool, verb: str) -> list[Wanted]:
    """The questions that are meant; each once, although several runs may wait for it."""
    if every and which:
        raise UsageError("--all and names contradict each other")
    open_ones = at.decisions.wanted()
    if every:
        found = [w for w in open_ones if w.approval.request.gate != "answer"]
        left = [w.step for w in open_ones if w.approval.request.gate == "answer"]
        if left:
            talk(f"left as they are, because they wait for content: {', '.join(left)}")
    elif not which:
        found = open_ones
        if len(found) > 1:
            names = ", ".join(w.step for w in found[:5])
            raise UsageError(
                f"{len(found)} questions are open: {names}", hint="say which, or --all"
            )
    else:
        found = [wanted for name in which for wanted in at.decisions.called(name)]
    if not found:
        raise UsageError("nothing waits for a person", hint="holdfast status")
    if verb == "approve":
        _refuse_answers(found)
    return list({wanted.approval.id: wanted for wanted in found}.values())


def _refuse_answers(found: Sequence[Wanted]) -> None:
    for wanted in found:
        if wanted.approval.request.gate == "answer":
            raise UsageError(
                f"'{wanted.step}' waits for its content, not for a yes",
                hint=f"holdfast answer {named(wanted.step)} FILE",
            )


# --- what came of it ------------------------------------------------------------------------------


def _told(at: Desk, made: Sequence[Approval], *, as_json: bool) -> None:
    if as_json:
        items: list[Json] = [approval_json(at.decisions, found) for found in made]
        out_json({"schema": "holdfast.approvals/1", "approvals": items})
        return
    for line in outcome(at, made):
        out(line)
    if not made:
        return
    if is_awaited(at, made[0]):
        out(GOES_ON)
    else:
        out_next("holdfast resume")
    sys.stdout.flush()


def outcome(at: Desk, made: Sequence[Approval]) -> Iterator[str]:
    """What was decided, a line each."""
    for found in made:
        stand = found.stand(wire.now_ms())
        word = "answered" if found.request.gate == "answer" and stand == "approved" else stand
        yield f"{found.request.step}: {word} ({found.id})"
        if stand == "approved" and (
            stale := stale_files(at.decisions.document(found), at.where.root)
        ):
            names = ", ".join(stale[:MOST_FILES])
            yield f"  changed since this was asked: {names}; the run will ask about that"


def is_awaited(at: Desk, found: Approval) -> bool:
    """Whether a live engine waits for a decision; else somebody has to resume the run."""
    return any(wire.drives(at.store, held[0], held[1], found.request.run) for held in _lines(at))


def _lines(at: Desk) -> list[tuple[str, str]]:
    return [(project, line) for project, line, _ in at.store.held()]
