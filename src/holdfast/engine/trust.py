"""Plans that came from elsewhere: they run only after a person approved their digest.

The approval stands on the line like any other: bound to the digest of the whole plan, good for that content
in any run, revocable.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.approvals import Book
from holdfast.engine.lines import Line
from holdfast.errors import BugError
from holdfast.model.digest import Digest
from holdfast.model.line import ApprovalDecided, ApprovalRequested, LineEvent
from holdfast.model.plan import Plan, RunId, StepId, plan_bytes
from holdfast.ports import Store


class Trust:
    """What people said about the plans of one line."""

    def __init__(self, store: Store, project: str, line: str, clock: Callable[[], int]) -> None:
        self._store = store
        self._line = Line(store, project, line, clock)
        self._clock = clock
        self._book = Book()
        self._refresh()

    def _refresh(self) -> None:
        for recorded in self._line.news():
            self._book.take(recorded)

    @property
    def was_asked(self) -> bool:
        """Whether a plan of this line came from elsewhere: a model, another program, a ticket."""
        return any(asked.request.gate == "plan" for asked in self._book)

    def covers(self, digest: Digest) -> bool:
        """Whether a person approved this plan and did not take it back."""
        asked = self._book.by_subject.get(digest, ())
        return any(found.stand(self._clock()) == "approved" for found in asked)

    def refused(self, digest: Digest) -> bool:
        """Whether the last that a person said of this plan is no."""
        asked = self._book.by_subject.get(digest, [])
        return bool(asked) and asked[-1].stand(self._clock()) == "rejected"

    def refuse(self, plan: Plan, by: str) -> None:
        """Record that a person does not want this plan."""
        digest = self._store.put([plan_bytes(plan)])
        self._decide(digest, by, yes=False, terminal=True)

    def approve(self, plan: Plan, by: str, *, terminal: bool) -> None:
        """Record that a person approved this plan: question and answer, each once."""
        digest = self._store.put([plan_bytes(plan)])
        self._decide(digest, by, yes=True, terminal=terminal)
        if not self.covers(digest):
            raise BugError("an approval of a plan was recorded and does not stand")

    def _decide(self, digest: Digest, by: str, *, yes: bool, terminal: bool) -> None:

        def ask() -> LineEvent | None:
            if self._book.open(digest) is not None or (yes and self.covers(digest)):
                return None
            name = self._book.next_id(digest)
            return ApprovalRequested(name, "plan", StepId(""), RunId(""), digest)

        def answer() -> LineEvent | None:
            found = self._book.open(digest)
            if found is None:
                return None
            return ApprovalDecided(
                found.id, digest, yes=yes, by=by, scope="content", terminal=terminal
            )

        self._line.tell(ask, self._refresh)
        self._line.tell(answer, self._refresh)
