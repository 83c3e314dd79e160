"""What people are asked on a line, and how they decide it: exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from holdfast.core.approvals import Approval, Book, usual_scope
from holdfast.engine.lines import Line
from holdfast.engine.probe import read_state
from holdfast.errors import UsageError
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest, Json
from holdfast.model.event import ApprovalDecided, ApprovalRevoked, LineEvent, Scope
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store


@dataclass(frozen=True, slots=True)
class Person:
    """Who decides: the user of this system, the names that it holds, and who holds any at all."""

    user: str
    terminal: bool = False
    people: Mapping[str, Sequence[str]] | None = None

    def names_for(self, asked: Sequence[str]) -> tuple[str, ...]:
        """The names under which this person may answer; UsageError if somebody else has to.

        A name that nobody holds may be answered for by anybody; both names are recorded.
        """
        people = self.people or {}
        held = tuple(name for name in asked if self.user in people.get(name, ()))
        if held or not asked or not any(people.get(name) for name in asked):
            return held or tuple(asked)
        holders = ", ".join(sorted({user for name in asked for user in people.get(name, ())}))
        raise UsageError(
            f"this needs the approval of {' or '.join(asked)}, and '{self.user}' is not that",
            hint=f"ask {holders}",
        )


class Wanted(NamedTuple):
    """A step that waits, and the question it waits for."""

    run: RunId
    step: StepId
    approval: Approval
    blocks: tuple[StepId, ...]


class Given(NamedTuple):
    """What a person says: how far a yes goes, why, and the content that was asked for."""

    scope: Scope | None = None
    until: int = 0
    because: str = ""
    content: Digest | None = None
    form: Form = "bytes"


class Decisions:
    """The approvals of one line, as somebody who decides sees them."""

    def __init__(self, store: Store, project: str, line: str, clock: Callable[[], int]) -> None:
        self._store = store
        self._project = project
        self._name = line
        self._clock = clock
        self._line = Line(store, project, line, clock)
        self.book = Book()
        self.refresh()

    def refresh(self) -> None:
        """Read what was said since."""
        for recorded in self._line.news():
            self.book.take(recorded)

    def wanted(self) -> list[Wanted]:
        """What steps of unfinished runs wait for, in the order it was asked."""
        found = []
        for row in self._store.runs(self._name):
            state = read_state(self._store, row.run) if row.project == self._project else None
            if state is None or state.ended:
                continue
            for step_id in state.graph.order:
                here = state.steps[step_id]
                if here.phase != "waiting" or here.reason is None:
                    continue
                below = state.graph.below([step_id]) - {step_id}
                blocks = tuple(sorted(below, key=state.graph.rank.__getitem__))
                found += [
                    Wanted(row.run, step_id, self.book.by_id[name], blocks)
                    for name in here.reason.because
                    if name in self.book.by_id
                ]
        return found

    def document(self, approval: Approval) -> Mapping[str, Json]:
        """Everything that an approval covers."""
        return cast("Mapping[str, Json]", json.loads(self._store.get(approval.request.subject)))

    def decide(self, approval: Approval, person: Person, given: Given, *, yes: bool) -> Approval:
        """Decide a question; UsageError if somebody was faster, or if this person may not."""
        request = approval.request
        names = person.names_for(request.names)
        because = self._store.put(given.because.encode()) if given.because else None
        scope = given.scope or usual_scope(request.gate, self._approve_of(approval))

        def say() -> LineEvent:
            self._check_open(approval)
            return ApprovalDecided(
                approval=approval.id,
                subject=request.subject,
                yes=yes,
                by=person.user,
                scope=scope,
                until=given.until,
                names=names,
                because=because,
                content=given.content,
                form=given.form,
                terminal=person.terminal,
            )

        self._line.tell(say, self.refresh)
        return approval

    def revoke(self, approval: Approval, person: Person, because: str) -> Approval:
        """Take a yes, or an open question, back."""
        words = self._store.put(because.encode()) if because else None

        def say() -> LineEvent:
            if approval.revoked is not None:
                raise UsageError(f"approval '{approval.id}' is revoked already")
            return ApprovalRevoked(approval.id, person.user, words)

        self._line.tell(say, self.refresh)
        return approval

    def _approve_of(self, approval: Approval) -> str:
        return str(self.document(approval).get("approve", ""))

    def _check_open(self, approval: Approval) -> None:
        stand = approval.stand(self._clock())
        if stand == "open":
            return
        by = approval.decision.by if approval.decision is not None else ""
        raise UsageError(
            f"'{approval.id}' was {stand if stand != 'used' else 'approved'} already"
            + (f" by '{by}'" if by else "")
        )
