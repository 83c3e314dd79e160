"""Asks people on behalf of one run, and heeds what they decided.

What is asked is written to the line's journal before the step is held, and an approval is marked as
used there before the attempt that runs under it is named. Both say the same if they are said again:
an engine that died in between leaves nothing that the next one could misread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.core.approvals import Approval, Book, Use
from holdfast.core.state import State
from holdfast.engine.lines import Line
from holdfast.engine.probe import Probed
from holdfast.engine.world import World
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest, Json, canonical, digest_bytes
from holdfast.model.event import ApprovalRequested, ApprovalUsed, Gate, LineEvent
from holdfast.model.plan import Step

SUBJECT_SCHEMA = "holdfast.approval/1"


class Question(NamedTuple):
    """What a person is asked: the document of everything that is covered, and who may answer."""

    gate: Gate
    document: bytes
    names: tuple[str, ...] = ()

    @property
    def subject(self) -> Digest:
        """What an approval of it is bound to."""
        return digest_bytes(self.document)


class Answer(NamedTuple):
    """Whether an attempt may begin, and by which approvals; otherwise those it waits for."""

    granted: bool
    approvals: tuple[Approval, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(approval.id for approval in self.approvals)


class Gatekeeper:
    """The approvals of one run."""

    def __init__(self, world: World, state: State) -> None:
        self._world = world
        self._state = state
        self._line = Line(world.store, state.project, state.line, world.clock)
        self.book = Book()

    def refresh(self) -> bool:
        """Read what was said on the line since; true if it was about approvals."""
        moved = False
        for recorded in self._line.news():
            moved = self.book.take(recorded) or moved
        return moved

    def before(self, step: Step, probed: Probed) -> list[Question]:
        """What has to be answered before an attempt at this step may begin."""
        found: list[Question] = []
        covered = self._covered(step, probed)
        if step.approve in {"always", "on_change"} or self._is_over_budget(step):
            gate: Gate = "budget" if step.approve == "over_budget" else "step"
            found.append(_question(gate, covered))
        for need in step.needs:
            if need.type == "approval":
                above = self._state.steps[need.step]
                about: dict[str, Json] = {"from": need.approver, "after": need.step}
                about["artifact"] = above.digest
                names = (need.approver,) if need.approver else ()
                found.append(_question("edge", {**covered, **about}, names))
        if step.uses == "human":
            found.append(_question("answer", covered, _approvers(step)))
        return found

    def about(
        self, step: Step, guards: Sequence[str], digest: Digest, form: Form
    ) -> list[Question]:
        """What has to be answered before a candidate may be accepted."""
        return [
            _question(
                "guard",
                {
                    "step": step.id,
                    "plan": self._state.w_ref,
                    "guard": guard,
                    "artifact": digest,
                    "form": form,
                },
                _names_of(step, guard),
            )
            for guard in guards
        ]

    def ask(self, step: Step, questions: Sequence[Question], attempt: int) -> Answer:
        """Whether an attempt may go on; what was never asked is asked now."""
        use = Use(self._state.run, step.id, attempt)
        self.refresh()
        granted = [self._granted(question, use) for question in questions]
        if all(granted):
            found = tuple(approval for approval in granted if approval is not None)
            for approval in found:
                self._mark(approval, use)
            if all(self._granted(question, use) for question in questions):
                return Answer(True, found)
        waits = [
            self._asked(step, question)
            for question in questions
            if self._granted(question, use) is None
        ]
        return Answer(False, tuple(waits))

    def _granted(self, question: Question, use: Use) -> Approval | None:
        return self.book.granted(question.subject, use, self._world.clock())

    def _mark(self, approval: Approval, use: Use) -> None:
        """Say that an attempt is about to run under it, unless somebody else's is."""

        def say() -> LineEvent | None:
            if use in approval.uses or not approval.covers(use, self._world.clock()):
                return None
            return ApprovalUsed(approval.id, *use)

        self._tell(say)

    def _asked(self, step: Step, question: Question) -> Approval:
        subject = self._world.store.put(question.document)

        def say() -> LineEvent | None:
            if self.book.open(subject) is not None:
                return None
            approval = self.book.next_id(subject)
            run = self._state.run
            return ApprovalRequested(approval, question.gate, step.id, run, subject, question.names)

        self._tell(say)
        found = self.book.open(subject)
        assert found is not None or self.book.by_subject[subject]  # it was asked, perhaps answered
        return found or self.book.by_subject[subject][-1]

    def _tell(self, say: Callable[[], LineEvent | None]) -> None:
        self._line.tell(say, self.refresh)

    def _is_over_budget(self, step: Step) -> bool:
        most = step.budget.get("attempts")
        if step.approve != "over_budget" or not isinstance(most, int):
            return False
        made = self._state.steps[step.id].attempts
        return made > 0 and made % most == 0

    def _covered(self, step: Step, probed: Probed) -> dict[str, Json]:
        """Everything that decides what an attempt would do."""
        state, seen = self._state, probed.seen
        needs: dict[str, Json] = {need: state.steps[need].digest for need in step.data_needs}
        return {
            "step": step.id,
            "plan": state.w_ref,
            "input_ref": probed.probe.refs.input_ref,
            "uses": step.uses,
            "run": list(step.run),
            "shell": step.shell,
            "with": step.values,
            "env": list(step.env),
            "secrets": list(step.secrets),
            "effects": step.effects,
            "workspace": step.workspace,
            "approve": step.approve,
            "produces": list(step.produces),
            "files": {**_digests(seen.get("inputs")), **_digests(seen.get("files"))},
            "needs": needs,
            "attempts": state.steps[step.id].attempts if step.approve == "over_budget" else 0,
        }


def _question(gate: Gate, covered: dict[str, Json], names: tuple[str, ...] = ()) -> Question:
    return Question(gate, canonical({"schema": SUBJECT_SCHEMA, "gate": gate, **covered}), names)


def _digests(part: Json) -> dict[str, Json]:
    return dict(part) if isinstance(part, dict) else {}


def _approvers(step: Step) -> tuple[str, ...]:
    return (step.agent,) if step.agent else ()


def _names_of(step: Step, name: str) -> tuple[str, ...]:
    """Who may answer for a `human` guard."""
    for guard in step.guards:
        for item in (guard, *guard.items):
            if item.kind == "human" and (item.name or "human") == name:
                config = item.config
                asked = config.get("from") if isinstance(config, dict) else None
                return (asked,) if isinstance(asked, str) and asked else ()
    return ()
