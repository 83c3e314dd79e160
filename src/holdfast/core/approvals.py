"""What people decided: the approvals of a line, folded from its journal.

An approval is bound to a subject: the digest of everything that decides what would happen. Another
subject is another question, so a change of anything that is covered asks again by itself. One question
is decided once. A yes stands for what its scope says:

| scope     | stands for                                                   |
|-----------|--------------------------------------------------------------|
| `once`    | one attempt                                                  |
| `run`     | every attempt with the same subject in the run that waited   |
| `content` | every attempt with the same subject, in any run              |

A step that is to be approved always, a budget, an answer and the repetition of an effect are never
decided for content: a yes of an earlier day may not let something happen today that a person wanted
to be asked about each time. A yes to the repetition of an effect ends when the effect is begun again
under another one: what it was about is not the last that may have happened any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Literal, NamedTuple

from holdfast.model.digest import Digest, digest_json
from holdfast.model.event import Recorded
from holdfast.model.fixed import varying
from holdfast.model.line import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalRevoked,
    ApprovalUsed,
    Gate,
    Scope,
)
from holdfast.model.plan import RunId, StepId

Stand = Literal["open", "approved", "rejected", "revoked", "expired", "used"]
_ID_LENGTH = 12


class Use(NamedTuple):
    """An attempt that may run under an approval."""

    run: RunId
    step: StepId
    attempt: int


@varying
class Approval:
    """One question and what became of it."""

    request: ApprovalRequested
    at: int
    decision: ApprovalDecided | None = None
    decided_at: int = 0
    revoked: ApprovalRevoked | None = None
    uses: list[Use] = field(default_factory=list)
    overtaken: bool = False  # by a later beginning of the same effect

    @property
    def id(self) -> str:
        return self.request.approval

    def stand(self, now: int) -> Stand:
        """Where it stands at a moment."""
        if self.revoked is not None:
            return "revoked"
        if self.decision is None:
            return "open"
        if not self.decision.yes:
            return "rejected"
        if self.overtaken and not self.uses:
            return "expired"
        if self.decision.until and now >= self.decision.until:
            return "expired"
        return "used" if self.decision.scope == "once" and self.uses else "approved"

    def covers(self, use: Use, now: int) -> bool:
        """Whether an attempt may run under it. One that was named before and never began still may."""
        if self.decision is None or self.stand(now) not in {"approved", "used"}:
            return False
        if self.decision.scope == "run":
            return self.decision.run == use.run
        return self.decision.scope == "content" or not self.uses or self.uses == [use]

    def stands_for(self, run: RunId, now: int) -> bool:
        """Whether it is a yes that this run alone may use."""
        if self.decision is None or self.stand(now) != "approved":
            return False
        if self.decision.scope == "run":
            return self.decision.run == run
        return self.request.gate in {"effect", "stuck"} and self.request.run == run


@varying
class Book:
    """The approvals of a line by id, and those of each subject and step in the order they were asked."""

    by_id: dict[str, Approval] = field(default_factory=dict)
    by_subject: dict[Digest, list[Approval]] = field(default_factory=dict)
    by_place: dict[tuple[StepId, Gate], list[Approval]] = field(default_factory=dict)

    def take(self, recorded: Recorded) -> bool:
        """Take an event of the line in; false if it is not about approvals. The first decision counts."""
        match recorded.event:
            case ApprovalRequested() as request:
                if request.approval not in self.by_id:
                    found = Approval(request, recorded.at)
                    self.by_id[request.approval] = found
                    self.by_subject.setdefault(request.subject, []).append(found)
                    self.by_place.setdefault((request.step, request.gate), []).append(found)
            case ApprovalDecided() | ApprovalUsed() | ApprovalRevoked() as said:
                known = self.by_id.get(said.approval)
                if known is not None:
                    _tell(known, said, recorded.at)
                    if isinstance(said, ApprovalUsed) and known.request.gate == "effect":
                        self._overtake(known)
            case _:
                return False
        return True

    def _overtake(self, used: Approval) -> None:
        """An effect is begun again: other yeses to that, which nobody used, are about an earlier one."""
        for other in self.by_place[used.request.step, "effect"]:
            if other is not used and other.decision is not None:
                other.overtaken = True

    def granted(self, subject: Digest, use: Use, now: int) -> Approval | None:
        """The newest approval under which this attempt may run."""
        asked = self.by_subject.get(subject, ())
        return next((found for found in reversed(asked) if found.covers(use, now)), None)

    def open(self, subject: Digest) -> Approval | None:
        """The question about this subject that nobody answered yet."""
        asked = self.by_subject.get(subject, ())
        return next((found for found in asked if found.stand(0) == "open"), None)

    def next_id(self, subject: Digest) -> str:
        """The id of a new question about this subject; the same in every process that asks it."""
        number = len(self.by_subject.get(subject, ()))
        return f"a-{digest_json({'subject': subject, 'number': number})[:_ID_LENGTH]}"

    def __iter__(self) -> Iterator[Approval]:
        return iter(self.by_id.values())


def _tell(found: Approval, said: ApprovalDecided | ApprovalUsed | ApprovalRevoked, at: int) -> None:
    match said:
        case ApprovalDecided():
            if found.decision is None and found.revoked is None:
                found.decision, found.decided_at = said, at
        case ApprovalUsed():
            use = Use(said.run, said.step, said.attempt)
            if use not in found.uses:
                found.uses.append(use)
        case ApprovalRevoked():
            found.revoked = found.revoked or said


def usual_scope(gate: Gate, approve: str) -> Scope:
    """The scope of a yes that names none.

    A step that asks only on a change means the content; one that asks by itself for nothing but its price
    means all that this run tries of it.
    """
    if gate == "step" and not approve:
        return "run"
    return "content" if approve == "on_change" or gate == "guard" else "once"


def allowed_scopes(gate: Gate, approve: str) -> tuple[Scope, ...]:
    """The scopes that a yes may have."""
    if gate in {"answer", "effect", "stuck"}:
        return ("once",)
    if gate == "budget" or (gate == "step" and approve == "always"):
        return ("once", "run")
    return ("once", "run", "content")
