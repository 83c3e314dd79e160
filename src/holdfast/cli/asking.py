"""A run that came to rest waiting: ask the person who is there, and say what waits."""

from __future__ import annotations

import sys
from functools import partial
from typing import Literal

import click

from holdfast import wire
from holdfast.cli.card import Card, card
from holdfast.cli.place import Place
from holdfast.cli.say import named, shown, talk
from holdfast.cli.view import view
from holdfast.core.state import State
from holdfast.engine.decisions import Decisions, Given, Person, Policy, Wanted
from holdfast.errors import UsageError
from holdfast.ports import Store

How = Literal["ask", "wait", "policy"]


def how_to(given: str | None, *, waits: bool, as_json: bool) -> How:
    """How approvals are decided: as told; else at a terminal by asking, elsewhere by people later."""
    if given == "ask" and not view().asks:
        raise UsageError("there is no terminal to ask at", hint="--approve wait")
    if given == "ask" and waits:
        raise UsageError("--wait waits for somebody elsewhere, --approve ask asks here")
    if given in {"ask", "wait", "policy"}:
        return "ask" if given == "ask" else "policy" if given == "policy" else "wait"
    return "ask" if view().asks and not waits and not as_json else "wait"


def policy_of(store: Store, location: str) -> Policy:
    """The person's own rules, in his name; UsageError inside a step, and if there are none."""
    from holdfast.config.settings import read_rules

    rules = read_rules()
    if not rules:
        raise UsageError(
            "there is no rule for approvals in your own configuration",
            hint="[[approvals]] in config.toml, or --approve wait",
        )
    return Policy(rules, wire.person(store, location, terminal=False))


def ask_people(store: Store, where: Place, state: State) -> bool:
    """Ask about everything the run waits for; whether anything was decided."""
    try:
        person = wire.person(store, where.location, terminal=True)
    except UsageError as error:
        talk(f"nobody is asked here: {error.message}")
        return False
    hidden = where.hidden(store, state.plan)
    drives = partial(wire.is_driven, store)
    decisions = Decisions(store, state.project, state.line, wire.now_ms, drives, hidden)
    moved = False
    for wanted in decisions.wanted(state.run):
        if wanted.approval.request.gate == "answer":
            _show(card(decisions, store, wanted, where.root))
        else:
            moved = _ask(decisions, store, where, wanted, person) or moved
    return moved


def _ask(decisions: Decisions, store: Store, where: Place, wanted: Wanted, person: Person) -> bool:
    try:
        person.names_for(wanted.approval.request.names)
    except UsageError as error:
        talk(f"⏸ {wanted.step}: {error.message}; {error.hint}")
        return False
    _show(card(decisions, store, wanted, where.root))
    answer = _answer(wanted)
    if answer == "later":
        return False
    given = Given(because=_reason() if answer == "no" else "")
    try:
        made = decisions.decide(wanted, person, given, yes=answer == "yes")
    except UsageError as error:  # somebody was faster: that counts as well
        talk(error.message)
        return True
    talk(f"{wanted.step}: {made.stand(wire.now_ms())} ({made.id})")
    return True


def _answer(wanted: Wanted) -> Literal["yes", "no", "later"]:
    """One letter; whatever is not a clear yes leaves it as it is."""
    question = f"approve '{wanted.step}'? [y]es, [r]eject, [N]ot now"
    said = str(click.prompt(question, default="n", show_default=False, err=True)).strip().lower()
    return "yes" if said in {"y", "yes"} else "no" if said in {"r", "reject"} else "later"


def _reason() -> str:
    while True:
        said = str(click.prompt("because", default="", show_default=False, err=True)).strip()
        if said:
            return said
        talk("a rejection needs a reason")


def _show(found: Card) -> None:
    for line, raw in found.lines():
        if raw and sys.stderr is not None:
            sys.stderr.write(shown(line, sys.stderr, raw=True) + "\n")
        else:
            talk(line)


def waits_for(step: str, gate: str) -> str:
    """The command by which somebody elsewhere decides."""
    return (
        f"holdfast answer {named(step)}" if gate == "answer" else f"holdfast approve {named(step)}"
    )
