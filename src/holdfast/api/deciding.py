"""What waits for people, and their answers."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import partial

from holdfast import wire
from holdfast.core.approvals import Approval
from holdfast.engine.answers import given_for, lying_there
from holdfast.engine.decisions import Decisions, Given, Wanted
from holdfast.engine.unkept import Hidden
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.line import Scope
from holdfast.model.plan import Plan
from holdfast.ports import RunRow, Store


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to people: what it is about, who may answer, and what became of it.

    `covers` is everything that decides what would happen; `subject` is its digest. `state` is open,
    approved, rejected, revoked, expired, used, abandoned (open, and no step waits for it any more) or
    overtaken (approved, and its step asked about something else before the yes was used).
    """

    id: str
    step: str
    run: str
    gate: str
    names: tuple[str, ...]
    subject: str
    state: str
    covers: Mapping[str, Json]
    blocks: tuple[str, ...] = ()


def approvals(location: str, *, line: str | None = None, every: bool = False) -> list[Asked]:
    """What waits for a person on a line of a store (the last one if none is named).

    With `every` also what was decided, and what nobody waits for any more.
    """
    store = wire.open_store(location, readonly=True)
    try:
        decisions = _decisions(store, line)
        wanted = {item.approval.id: item for item in decisions.wanted()}
        found = {name: item.approval for name, item in wanted.items()}
        if every:
            found = {approval.id: approval for approval in decisions.book} | found
        passed = decisions.overtaken() if every else ()
        return [_asked(decisions, item, wanted.get(name), passed) for name, item in found.items()]
    finally:
        store.close()


def approve(
    location: str,
    which: str,
    *,
    line: str | None = None,
    scope: Scope | None = None,
    seconds: float = 0,
    because: str = "",
) -> list[Asked]:
    """Say yes to what a step, or the approval with this id, waits for; `seconds` is how long it stands.

    UsageError if somebody else has to say it, if somebody was faster, or inside a step or an engine.
    """
    until = wire.now_ms() + int(seconds * 1000) if seconds else 0
    return _decide(location, line, which, Given(scope, until, because), yes=True)


def reject(location: str, which: str, *, because: str, line: str | None = None) -> list[Asked]:
    """Say no, and why; the same rules as for `approve`."""
    if not because.strip():
        raise UsageError("a rejection needs a reason")
    return _decide(location, line, which, Given(because=because), yes=False)


def answer(
    location: str,
    step: str,
    content: bytes | str | None = None,
    *,
    root: str = ".",
    line: str | None = None,
    because: str = "",
) -> Asked:
    """Give the content of a step that only a person can do; without, what lies at its output paths."""
    store = wire.open_store(location)
    try:
        person = wire.person(store, location, terminal=False)
        decisions = _decisions(store, line)
        wanted = decisions.answerable(step)
        doing = decisions.plan_of(wanted).steps[wanted.step]
        person.names_for(wanted.approval.request.names)
        row = _last(store, line)
        hidden = hidden_in(os.path.abspath(root), store, row.project, row.line)
        if content is None:
            digest, form = lying_there(store, os.path.abspath(root), doing, hidden)
        else:
            given = content.encode() if isinstance(content, str) else content
            digest, form = given_for(store, doing, given, hidden)
        said = Given(because=because, content=digest, form=form)
        return _asked(decisions, decisions.decide(wanted, person, said, yes=True), wanted)
    finally:
        store.close()


def _decide(location: str, line: str | None, which: str, given: Given, *, yes: bool) -> list[Asked]:
    store = wire.open_store(location)
    try:
        person = wire.person(store, location, terminal=False)
        decisions = _decisions(store, line)
        chosen = {wanted.approval.id: wanted for wanted in decisions.called(which)}.values()
        for wanted in chosen:
            person.names_for(wanted.approval.request.names)
            if yes and wanted.approval.request.gate == "answer":
                raise UsageError(f"'{wanted.step}' waits for its content, not for a yes")
        return [
            _asked(decisions, decisions.decide(wanted, person, given, yes=yes), wanted)
            for wanted in chosen
        ]
    finally:
        store.close()


def _decisions(store: Store, line: str | None) -> Decisions:
    row, drives = _last(store, line), partial(wire.is_driven, store)
    hidden = hidden_in(os.getcwd(), store, row.project, row.line)
    return Decisions(store, row.project, row.line, wire.now_ms, drives, hidden)


def _last(store: Store, line: str | None) -> RunRow:
    """The last run of a line, or of all."""
    rows = store.runs(line)
    if not rows:
        raise UsageError("there is no run yet" + (f" of line '{line}'" if line else ""))
    return rows[-1]


def hidden_in(root: str, store: Store, project: str, line: str, *plans: Plan) -> Hidden:
    """What nothing may hold that is stored: keys, and what steps of a line and of these plans may see."""
    return wire.market.vault_for(root, store, project, line, lambda: plans).values


def _asked(
    decisions: Decisions, found: Approval, wanted: Wanted | None, passed: Container[str] = ()
) -> Asked:
    request, state = found.request, str(found.stand(wire.now_ms()))
    if state == "approved" and found.id in passed:
        state = "overtaken"
    return Asked(
        found.id,
        request.step,
        request.run,
        request.gate,
        request.names,
        request.subject,
        "abandoned" if state == "open" and wanted is None else state,
        decisions.document(found),
        wanted.blocks if wanted is not None else (),
    )
