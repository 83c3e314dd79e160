"""A plan that no longer holds: what speaks against it, and a person who lets it go on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from holdfast import wire
from holdfast.cli.again import again, here_now, quoted
from holdfast.cli.measure import moment
from holdfast.core.premises import rules_of
from holdfast.engine.decisions import Person
from holdfast.engine.replans import (
    GO_ON,
    Doubt,
    Held,
    answers_at,
    go_on,
    held,
    was_doubted,
)
from holdfast.engine.unkept import Hidden, check_words
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.digest import Digest, Json
from holdfast.model.line import ReplanAnswered
from holdfast.model.plan import Plan, RunId
from holdfast.model.text import one_line
from holdfast.ports import Store

REPLAN = "replan"  # what a person calls it


def replan_lines(found: Sequence[Doubt]) -> list[str]:
    """What speaks against a plan, a line each."""
    return [f"{one.id}: {one_line(one.words)}" for one in found]


def ready_lines(plan: Plan) -> list[str]:
    """The plan that is ready to take the place of this one, and how it does; else what can be done."""
    if file := _ready(plan):
        return [again(f"{file} is ready to take its place: holdfast run {quoted(file)}")]
    file = rules_of(plan).to
    gone = [f"{file}, which was to take its place, is not there any more"] if file else []
    return [*gone, again("let it go on as it is, or change the plan: holdfast run")]


def held_commands(plan: Plan) -> list[str]:
    """What a person can do about a plan that no longer holds."""
    file = _ready(plan)
    other = [f"holdfast run {quoted(file)}"] if file else []
    return ["holdfast approve replan", "holdfast ledger", *other]


def _ready(plan: Plan) -> str:
    """The file of the plan that may take the place of this one, unless it is gone."""
    file, root = rules_of(plan).to, here_now().root
    return file if not root or os.path.isfile(os.path.join(root, file)) else ""


def is_named(which: Sequence[str], found: Held) -> bool:
    """Whether a person means this: by the word, by an id, or by the beginning of one."""
    return any(
        name == REPLAN or (name.startswith("t-") and one.startswith(name))
        for name in which
        for one in found.event.triggers
    )


def held_at(store: Store, line: str | None) -> Held | None:
    """What the last run of a line waits for, if its plan is doubted."""
    rows = store.runs(line)
    return held(store, rows[-1].project, rows[-1].line, wire.alike) if rows else None


def let_go_on(
    store: Store, line: str | None, found: Held, person: Person, because: str, hidden: Hidden
) -> None:
    """Record that a run goes on with its plan as it is."""
    check_words(because, hidden)
    row = store.runs(line)[-1]
    go_on(
        store,
        row.project,
        row.line,
        found,
        person.user,
        because,
        wire.now_ms,
        terminal=person.terminal,
    )


def refuse_others(which: Sequence[str]) -> None:
    """UsageError if a plan and steps are named in one breath."""
    if [name for name in which if name != REPLAN and not name.startswith("t-")]:
        raise UsageError(
            "a plan and steps are decided one after the other", hint="holdfast approve replan"
        )


def replan_json(found: Held, state: str) -> list[Json]:
    """What speaks against a plan, for programs."""
    subject = found.event.words
    return [_doubt_json(one, found.run, state, subject, None) for one in found.doubts]


def _doubt_json(one: Doubt, run: RunId, state: str, subject: Digest | None, decision: Json) -> Json:
    return {
        "approval": one.id,
        "gate": REPLAN,
        "step": one.step or None,
        "run": run,
        "from": [],
        "subject": subject,
        "state": state,
        "covers": {"cause": one.cause, "words": one.words, "entries": list(one.entries)},
        "blocks": [],
        "uses": [],
        "revoked": None,
        "decision": decision,
    }


# --- what was decided -----------------------------------------------------------------------------


class Settled(NamedTuple):
    """That somebody answered, or another plan did, that something speaks against a plan."""

    at: int
    answer: ReplanAnswered
    doubts: Sequence[Doubt]
    because: str

    @property
    def state(self) -> str:
        """One word for it."""
        return "approved" if self.answer.choice == GO_ON else "replaced"

    def lines(self) -> list[str]:
        """A line for each doubt: who decided what, when and why."""
        said = [f"by {self.answer.by}"] if self.answer.by else []
        if self.answer.plan is not None:
            said.append(f"plan {self.answer.plan[:12]} took its place")
        said.append(moment(self.at))
        if self.answer.choice == GO_ON and not self.answer.terminal:
            said.append("without a terminal")
        story = ", ".join(said) + (f": {self.because}" if self.because else "")
        return [
            f"{one.id}  {self.state:<9}  {REPLAN}  {one.words} · {story}" for one in self.doubts
        ]

    def json(self) -> list[Json]:
        """The same for programs."""
        answer = self.answer
        decision: Json = {
            "yes": answer.choice == GO_ON,
            "by": answer.by or None,
            "plan": answer.plan,
            "because": self.because or None,
            "terminal": answer.terminal,
            "at": self.at,
        }
        return [_doubt_json(one, answer.run, self.state, None, decision) for one in self.doubts]


def settled_on(store: Store, line: str | None) -> list[Settled]:
    """All that was answered on a line about its plans, in the order of the journal."""
    rows = store.runs(line)
    found = []
    for at, answer in answers_at(store, rows[-1].project, rows[-1].line) if rows else ():
        unknown = [Doubt(name, "", "", "its words are gone", ()) for name in answer.triggers]
        words = "" if answer.because is None else _kept(store, answer.because)
        found.append(Settled(at, answer, was_doubted(store, answer) or unknown, words))
    return found


def _kept(store: Store, digest: Digest) -> str:
    try:
        return store.get(digest).decode("utf-8", "replace")
    except IntegrityError:
        return "its words are gone"
