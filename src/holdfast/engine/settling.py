"""What people decided about conflicts, carried out: who gives up what, and who may go on."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.moves import IN_CONFLICT
from holdfast.core.state import State
from holdfast.engine.finish import Finisher
from holdfast.engine.result import Result, Told
from holdfast.engine.taking import Word
from holdfast.model.digest import Digest
from holdfast.model.event import ConflictFound, StepsReleased
from holdfast.model.plan import StepId


class Settler:
    """Settles the open conflicts of one run as far as they are decided."""

    def __init__(self, state: State, finisher: Finisher) -> None:
        self._state = state
        self._finisher = finisher
        self._words: dict[StepId, Word] = {}

    def agreed(self) -> Iterator[Told]:
        """Disagreements of agents that a person decided, and the steps that may go on then."""
        conflicts = self._finisher.conflicts
        conflicts.refresh()
        for found in list(self._state.conflicts.values()):
            if found.kind == "agents" and conflicts.decision(found.conflict) is not None:
                yield conflicts.settled(found)
        free = [
            step_id
            for step_id, here in self._state.steps.items()
            if here.phase == "waiting"
            and here.parked is None
            and here.reason is not None
            and here.reason.code == IN_CONFLICT
            and not conflicts.blocks(step_id)
        ]
        if free:
            yield Told([StepsReleased(tuple(free), "conflict_settled")])

    def decided(self) -> Iterator[tuple[StepId, Told]]:
        """The steps all of whose conflicts over files are decided, and the facts of that."""
        found = list(self._state.conflicts.values())
        for step_id in dict.fromkeys(step for one in found for step in one.steps):
            here = self._state.steps[step_id]
            if here.parked is None or here.reason is None or here.reason.code != IN_CONFLICT:
                continue
            mine = [self._state.conflicts[name] for name in here.reason.because]
            if all(self._finisher.conflicts.decision(one.conflict) for one in mine):
                yield step_id, self._told(step_id, mine)

    def _told(self, step_id: StepId, mine: list[ConflictFound]) -> Told:
        conflicts, told = self._finisher.conflicts, Told()
        lost: list[str] = []
        allowed: dict[str, Digest | None] = {}
        others: dict[str, list[Digest | None]] = {}
        for found in (*self._state.steps[step_id].settled, *mine):
            gone, there = conflicts.lost_and_won(step_id, found)
            lost += gone
            allowed |= there
            wrote = conflicts.of_the_other(step_id, found)
            for path in found.paths:
                others.setdefault(path, []).append(wrote[path])
        self._words[step_id] = Word(lost, allowed, others)
        for found in mine:
            settled = conflicts.settled(found)
            told.events += settled.events
            told.blobs += settled.blobs
        return told

    def taken(self, step_id: StepId, now: int) -> Result:
        """Take over the changes of a step that was decided about; EditError if they cannot be."""
        return self._finisher.resolved(step_id, self._words.pop(step_id), now)
