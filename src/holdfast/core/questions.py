"""The questions that handoffs and people raise: open -> testing -> resolved, raised again after that, open.

Questions in nearly the same words are one, with everyone who raised it; each keeps its own id, by which it is
found and kept apart. A handoff takes up and resolves a question by its id or by its words; what people say
comes after all handoffs, in the order in which they said it. What a handoff says of its own question counts
as well: it is raised first, and then taken up or resolved. One that fell still asks, and answers nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import Literal

from holdfast.core.likeness import Alike, groups
from holdfast.core.said import PERSON, Said, apart
from holdfast.model.fixed import fixed, varying
from holdfast.model.handoff import Handoff, entry_id, is_question
from holdfast.model.plan import StepId

Answer = Literal["open", "testing", "resolved"]
Unmatched = tuple[StepId, str]  # who refers to it, and how


@fixed
class Raised:
    """A question that is taken for an earlier one, and how alike the two are."""

    id: str
    step: StepId
    question: str
    alike: float


@fixed
class Uncertainty:
    """A question, everyone who raised it, and whether it is answered."""

    id: str
    step: StepId
    question: str
    status: Answer
    raised_by: tuple[StepId, ...]
    same: tuple[str, ...]  # how others put it
    tested_by: StepId | None = None
    resolved_by: StepId | None = None
    because: str = ""
    merged: tuple[Raised, ...] = ()  # every other one that it stands for


def answered(
    told: Sequence[tuple[StepId, Handoff]],
    alike: Alike,
    said: Sequence[Said],
    void: Collection[StepId] = (),
) -> tuple[tuple[Uncertainty, ...], tuple[Unmatched, ...]]:
    """Every question once, as it stands after the last handoff and the last word of a person.

    Beside them what handoffs name as a question that nobody raised. What `void` steps say answers nothing.
    """
    own = [one for one in said if one.word == "uncertainty"]
    raised = [(step, handoff.uncertainty) for step, handoff in told if handoff.uncertainty]
    questions = _Questions([*raised, *((PERSON, one.text) for one in own)], told, alike, said)
    for step, handoff in told:
        if handoff.uncertainty:
            questions.ask(step, handoff.uncertainty)
        if step not in void:
            questions.move(step, handoff)
    for one in said:
        if one.word == "uncertainty":
            questions.ask(PERSON, one.text)
        elif one.word == "resolve":
            questions.resolve(one)
    return questions.all(), tuple(questions.unmatched)


@varying
class _Question:
    id: str
    step: StepId
    text: str
    status: Answer = "open"
    raised_by: dict[StepId, None] = field(default_factory=dict)
    same: dict[str, None] = field(default_factory=dict)
    tested_by: StepId | None = None
    resolved_by: StepId | None = None
    because: str = ""
    merged: dict[str, Raised] = field(default_factory=dict)


class _Questions:
    """The questions so far, in the order in which they were raised."""

    def __init__(
        self,
        raised: Sequence[tuple[StepId, str]],
        told: Iterable[tuple[StepId, Handoff]],
        alike: Alike,
        said: Sequence[Said],
    ) -> None:
        ids = [entry_id("u", step, text) for step, text in raised]
        texts = [text for _, text in raised]
        named = dict.fromkeys(name for _, handoff in told for name in _names(handoff))
        asked = [name for name in named if not is_question(name)]
        same = groups([*texts, *asked], alike, apart(ids, said))
        self._ids = dict(zip(raised, ids, strict=True))
        self._head = {name: ids[same[n].head] for n, name in enumerate(ids)}
        self._alike = {name: same[n].alike for n, name in enumerate(ids)}
        self._named = {
            text: ids[one.head]
            for text, one in zip(asked, same[len(texts) :], strict=True)
            if one.head < len(texts)
        }
        self._open: dict[str, _Question] = {}
        self.unmatched: list[Unmatched] = []

    def ask(self, step: StepId, text: str) -> None:
        """Raise a question; what was answered before is open again."""
        own = self._ids[step, text]
        head = self._head[own]
        known = self._open.get(head)
        if known is None:
            self._open[head] = _Question(head, step, text, raised_by={step: None})
            return
        known.raised_by[step] = None
        if own != head:
            known.merged[own] = Raised(own, step, text, self._alike[own])
        if text != known.text:
            known.same[text] = None
        if known.status == "resolved":
            known.status, known.tested_by, known.resolved_by = "open", None, None
            known.because = ""

    def move(self, step: StepId, handoff: Handoff) -> None:
        """Take up and answer what a handoff says it takes up and answers."""
        for found in self._found(step, handoff.testing):
            if found.status == "open":
                found.status, found.tested_by = "testing", step
        for found in self._found(step, handoff.resolves):
            found.status, found.resolved_by = "resolved", step

    def resolve(self, word: Said) -> None:
        """Answer a question by a person's word; one that nobody raised is something else."""
        found = self._find(word.entry)
        if found is not None:
            found.status, found.resolved_by, found.because = "resolved", PERSON, word.text

    def all(self) -> tuple[Uncertainty, ...]:
        """The questions as they stand."""
        return tuple(
            Uncertainty(
                one.id,
                one.step,
                one.text,
                one.status,
                tuple(one.raised_by),
                tuple(one.same),
                one.tested_by,
                one.resolved_by,
                one.because,
                tuple(one.merged.values()),
            )
            for one in self._open.values()
        )

    def _found(self, step: StepId, names: Collection[str]) -> list[_Question]:
        found = [(name, self._find(name)) for name in names]
        self.unmatched.extend((step, name) for name, one in found if one is None)
        return [one for _, one in found if one is not None]

    def _find(self, name: str) -> _Question | None:
        named = self._named.get(name, name)
        return self._open.get(self._head.get(named, named))


def _names(handoff: Handoff) -> tuple[str, ...]:
    return (*handoff.testing, *handoff.resolves)
