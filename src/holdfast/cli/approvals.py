"""approvals: what waits for a person, and what was decided."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import cast

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.card import Card, card
from holdfast.cli.measure import moment
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.replanning import (
    held_at,
    ready_lines,
    replan_json,
    replan_lines,
    settled_on,
)
from holdfast.cli.say import named, out, out_json, short
from holdfast.cli.view import width_now
from holdfast.core.approvals import Approval
from holdfast.engine.decisions import Decisions
from holdfast.engine.replans import Held
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line, wrap
from holdfast.ports import Store

APPROVALS_SCHEMA = "holdfast.approvals/1"


@click.command(epilog="\b\nExample:\n  holdfast approvals\n  holdfast approvals --all --json")
@click.option(
    "--all", "every", is_flag=True, help="Also what is decided, and what nobody waits for."
)
@file_option
@place_options
@json_option
def approvals(
    plan: str | None, store: str | None, plan_id: str | None, *, every: bool, as_json: bool
) -> int:
    """Show what waits for a person, with everything that an approval would cover."""
    return list_approvals(place(plan, store, plan_id), every=every, as_json=as_json)


def list_approvals(where: Place, *, every: bool, as_json: bool) -> int:
    """Print what waits; with `every` also what does not any more."""
    if not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    store = where.open(readonly=True)
    try:
        decisions = decisions_at(where, store)
        doubted = held_at(store, where.line())
        settled = settled_on(store, where.line()) if every else []
        if as_json:
            found = approvals_json(decisions, every=every)
            found["approvals"] = [
                *cast("list[Json]", found["approvals"]),
                *(item for one in settled for item in one.json()),
                *(replan_json(doubted, "open") if doubted is not None else ()),
            ]
            out_json(found)
            return 0
        _print(where, store, decisions, doubted, every=every)
        for line in [line for one in settled for line in one.lines()]:
            for piece in wrap(one_line(line), width_now()):
                out(piece)
    finally:
        store.close()
    return 0


def decisions_at(where: Place, store: Store) -> Decisions:
    """The approvals of the line that is meant."""
    line = where.line()
    rows = store.runs(line)
    if not rows:
        raise UsageError(
            "there is no run yet" + (f" of line '{line}'" if line else ""), hint="holdfast run"
        )
    row, drives = rows[-1], partial(wire.is_driven, store)
    hidden = where.hidden(store)
    return Decisions(store, row.project, row.line, wire.now_ms, drives, hidden)


def approvals_json(decisions: Decisions, *, every: bool) -> dict[str, Json]:
    """All that waits, and with `every` all that was ever asked, for programs."""
    wanted = {item.approval.id: item for item in decisions.wanted()}
    found = {name: item.approval for name, item in wanted.items()}
    if every:
        found = {approval.id: approval for approval in decisions.book} | found
    passed = decisions.overtaken() if every else ()
    items: list[Json] = [
        {**approval_json(decisions, approval), "blocks": list(wanted[name].blocks)}
        if name in wanted
        else approval_json(decisions, approval, passed)
        for name, approval in found.items()
    ]
    return {"schema": APPROVALS_SCHEMA, "approvals": items}


def approval_json(
    decisions: Decisions, found: Approval, passed: Container[str] = ()
) -> dict[str, Json]:
    """An approval for programs. An open one that no step waits for is abandoned.

    A yes is overtaken (in `passed`) if its step asked about something else before it was used.
    """
    request, decision = found.request, found.decision
    state: str = found.stand(wire.now_ms())
    if state == "open" and found.id in {item.id for item in decisions.abandoned()}:
        state = "abandoned"
    if state == "approved" and found.id in passed:
        state = "overtaken"
    return {
        "approval": found.id,
        "gate": request.gate,
        "step": request.step,
        "run": request.run,
        "from": list(request.names),
        "subject": request.subject,
        "state": state,
        "at": found.at,
        "covers": dict(decisions.document(found)),
        "blocks": [],
        "uses": [{"run": use.run, "step": use.step, "attempt": use.attempt} for use in found.uses],
        "revoked": None if found.revoked is None else {"by": found.revoked.by},
        "decision": None
        if decision is None
        else {
            "yes": decision.yes,
            "by": decision.by,
            "names": list(decision.names),
            "scope": decision.scope,
            "until": decision.until or None,
            "because": decisions.words(decision.because),
            "content": decision.content,
            "terminal": decision.terminal,
            "rule": decisions.words(decision.rule) or None,
            "at": found.decided_at,
        },
    }


def _print(
    where: Place, store: Store, decisions: Decisions, doubted: Held | None, *, every: bool
) -> None:
    wanted = decisions.wanted()
    if doubted is not None:
        out(f"{short(doubted.run)} is held: what was learned speaks against its plan")
        for line in [*replan_lines(doubted.doubts), *ready_lines(doubted.plan)]:
            out(f"  {line}")
        out_next("holdfast approve replan    holdfast ledger")
        if not wanted and not every:
            return
        out()
    for number, item in enumerate(wanted):
        if number:
            out()
        out_card(card(decisions, store, item, where.root))
    if not wanted and doubted is None:
        out("nothing waits for a person")
    if every:
        _print_all(decisions)
    if wanted:
        first = wanted[0]
        name = named(first.step)
        verb = (
            f"answer {name} FILE" if first.approval.request.gate == "answer" else f"approve {name}"
        )
        out()
        out_next(f"holdfast {verb}    holdfast reject {name} --because '…'")


def _print_all(decisions: Decisions) -> None:
    waiting = {item.approval.id for item in decisions.wanted()}
    gone = {item.id for item in decisions.abandoned()}
    passed = decisions.overtaken()
    rest = [found for found in decisions.book if found.id not in waiting]
    if not rest:
        return
    out()
    width = max(len(found.request.step) for found in rest)
    for found in rest:
        state = stand_of(found, gone, passed)
        head = f"{found.id}  {state:<9}  {found.request.step:<{width}}"
        for piece in wrap(one_line(f"{head}  {story(decisions, found)}"), width_now()):
            out(piece)


def stand_of(found: Approval, gone: Container[str], passed: Container[str]) -> str:
    """Where a question stands: `gone` are those no step waits for, `passed` the yeses that came too late."""
    state: str = "abandoned" if found.id in gone else found.stand(wire.now_ms())
    return "overtaken" if state == "approved" and found.id in passed else state


def story(decisions: Decisions, found: Approval) -> str:
    """Who decided what, when and how far; who took it back; who used it."""
    decision = found.decision
    if decision is None:
        return f"asked by {short(found.request.run)}, {moment(found.at)}"
    words = [f"by {decision.by}"]
    if names := [name for name in decision.names if name != decision.by]:
        words[0] += f" as {', '.join(names)}"
    words.append(moment(found.decided_at))
    if decision.yes:
        words.append(decision.scope)
    if decision.until:
        words.append(f"until {moment(decision.until)}")
    words += [] if decision.terminal else ["by policy" if decision.rule else "without a terminal"]
    words += [f"attempt {use.attempt} of {short(use.run)}" for use in found.uses[:2]]
    words += [f"revoked by {found.revoked.by}"] if found.revoked else []
    because = decisions.words(decision.because)
    return ", ".join(words) + (f": {because}" if because else "")


def out_card(shown: Card) -> None:
    """Print a card as part of the result."""
    for line, raw in shown.lines():
        out(line, raw=raw)
