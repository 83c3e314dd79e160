"""Asks people on behalf of one run, and heeds what they decided.

What is asked is written to the line's journal before the step is held, and an approval is marked as
used there before the attempt that runs under it is named. Both say the same if they are said again:
an engine that died in between leaves nothing that the next one could misread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.core.approvals import Approval, Book, Use
from holdfast.core.state import State, StepState
from holdfast.engine.lines import Line
from holdfast.engine.opened import asked_about
from holdfast.engine.probe import Probed
from holdfast.engine.questions import HELD, Question, about, before, of_items
from holdfast.engine.world import World
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest
from holdfast.model.event import Reason
from holdfast.model.line import (
    ApprovalRequested,
    ApprovalUsed,
    LineEvent,
    StepAccepted,
    StepAmended,
)
from holdfast.model.plan import RunId, Step, StepId


class Answer(NamedTuple):
    """Whether an attempt may begin, and by which approvals; otherwise those it waits for."""

    granted: bool
    approvals: tuple[Approval, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The approvals by their ids."""
        return tuple(approval.id for approval in self.approvals)

    @property
    def reason(self) -> Reason:
        """Why a step that did not get a yes waits."""
        answers = any(approval.request.gate == "answer" for approval in self.approvals)
        return Reason("awaiting_person" if answers else "awaiting_approval", self.ids)


class Gatekeeper:
    """The approvals of one run."""

    def __init__(self, world: World, state: State) -> None:
        self._world = world
        self._state = state
        self._line = Line(world.store, state.project, state.line, world.clock)
        self.book = Book()
        self._given: dict[StepId, list[tuple[RunId, int]]] = {}

    def refresh(self) -> bool:
        """Read what was said on the line since; true if it was about approvals."""
        moved = False
        for recorded in self._line.news():
            event = recorded.event
            if isinstance(event, StepAmended | StepAccepted):
                place = (event.after_run, event.after_seq)
                self._given.setdefault(event.step, []).append(place)
            moved = self.book.take(recorded) or moved
        return moved

    def before(self, step: Step, probed: Probed, *, pays: bool = False) -> list[Question]:
        """What has to be answered before an attempt at this step may begin."""
        state = self._state
        here = state.steps[step.id]
        return before(
            step,
            state.base_ref,
            probed,
            lambda need: state.steps[need].digest,
            here.attempts,
            here.sent_back,
            pays=pays,
        )

    def of_items(self, base: Step, items: Sequence[Step]) -> list[Question]:
        """What has to be answered before the items of a step are added that cost money."""
        return [of_items(base, self._state.base_ref, items)]

    def about(
        self, step: Step, guards: Sequence[str], digest: Digest, form: Form
    ) -> list[Question]:
        """What has to be answered before a candidate may be accepted."""
        return about(step, self._state.base_ref, guards, digest, form)

    def was_given(self, step_id: StepId, since: Mapping[RunId, int]) -> bool:
        """Whether a person put an artifact in the place of a step after one of these events of runs."""
        spots = self._given.get(step_id, ())
        return any(run in since and seq >= since[run] for run, seq in spots)

    def ask(self, step: Step, questions: Sequence[Question], attempt: int) -> Answer:
        """Whether an attempt may go on; what was never asked is asked now."""
        use = Use(self._state.run, step.id, attempt)
        self.refresh()
        granted = [self._granted(question, use) for question in questions]
        if all(granted):
            found = tuple(approval for approval in granted if approval is not None)
            for approval in found:
                self._mark(approval, use)
            if all(use in approval.uses for approval in found):
                return Answer(True, found)
        waits = [
            self._asked(step, question)
            for question in questions
            if self._granted(question, use) is None
        ]
        ruled = [self._ruled(approval) for approval in waits]
        if waits and all(ruled):
            return self.ask(step, questions, attempt)
        return Answer(False, tuple(waits))

    def decided_for(self, step_id: StepId, here: StepState) -> list[Approval] | None:
        """The approvals that a step waits for, if none of them is open any more; else None."""
        assert here.reason is not None  # a step that waits has one
        if here.reason.code in HELD:
            question = asked_about(self._world.store, self._state, step_id)
            asked = self.book.by_subject.get(question.subject, [])[-1:]
        else:
            known = (self.book.by_id.get(name) for name in here.reason.because)
            asked = [found for found in known if found is not None]
        now = self._world.clock()
        for found in asked:
            self._ruled(found)
        open_ones = {"open", "revoked", "expired"} if here.reason.code in HELD else {"open"}
        if not asked or any(found.stand(now) in open_ones for found in asked):
            return None
        return asked

    def use(self, approval: Approval, step_id: StepId, attempt: int) -> bool:
        """Mark an approval as used by an attempt; false if it does not cover it."""
        use = Use(self._state.run, step_id, attempt)
        self._mark(approval, use)
        return use in approval.uses

    def repeats(self, step_id: StepId, attempt: int) -> bool:
        """Whether a person let this very attempt repeat an effect that nobody confirmed."""
        use = Use(self._state.run, step_id, attempt)
        return any(use in found.uses for found in self.book if found.request.gate == "effect")

    def was_let(self, question: Question) -> bool:
        """Whether an attempt began under a yes to the very same; only what asks before each is meant."""
        asked = self.book.by_subject.get(question.subject, ())
        return question.gate == "step" and any(found.uses for found in asked if not found.revoked)

    def rejection(self, asked: Sequence[Approval]) -> Approval | None:
        """The first no among these."""
        now = self._world.clock()
        return next((found for found in asked if found.stand(now) == "rejected"), None)

    def _ruled(self, approval: Approval) -> bool:
        """Let the person's own policy decide an open question; whether it is a yes now."""
        policy, now = self._world.policy, self._world.clock()
        if policy is not None and approval.stand(now) == "open":
            state = self._state
            said = policy.decision(self._world.store, state.line, approval, state.run)
            if said is not None:
                self._line.tell(
                    lambda: said if approval.stand(self._world.clock()) == "open" else None,
                    self.refresh,
                )
        return approval.stand(now) == "approved"

    def _granted(self, question: Question, use: Use) -> Approval | None:
        return self.book.granted(question.subject, use, self._world.clock())

    def _mark(self, approval: Approval, use: Use) -> None:
        """Say that an attempt is about to run under it, unless somebody else's is."""

        def say() -> LineEvent | None:
            if use in approval.uses or not approval.covers(use, self._world.clock()):
                return None
            return ApprovalUsed(approval.id, *use)

        self._line.tell(say, self.refresh)

    def _asked(self, step: Step, question: Question) -> Approval:
        subject = self._world.store.put(question.document)

        def say() -> LineEvent | None:
            if self.book.open(subject) is not None:
                return None
            approval = self.book.next_id(subject)
            run = self._state.run
            return ApprovalRequested(approval, question.gate, step.id, run, subject, question.names)

        self._line.tell(say, self.refresh)
        return self.book.open(subject) or self.book.by_subject[subject][-1]
