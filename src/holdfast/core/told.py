"""What steps told: the handoffs of a line, those too that count no more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.model.fixed import fixed
from holdfast.model.handoff import Handoff, Observation, entry_id
from holdfast.model.plan import RunId, StepId


@fixed
class Told:
    """A handoff as the journal has it. `place` grows with the journal: of a step, the last one counts."""

    id: str
    step: StepId
    wave: int
    handoff: Handoff
    at: int = 0
    run: RunId = RunId("")
    attempt: int = 1
    place: int = 0
    failed: bool = False
    tests: tuple[str, ...] = ()  # the hypotheses that its step declares
    serves: tuple[str, ...] = ()  # the requirements


def findings(told: Told) -> list[tuple[str, Observation]]:
    """What a handoff found, each with its id."""
    step = told.step
    return [
        (entry_id("e", step, seen.finding, seen.source), seen) for seen in told.handoff.observed
    ]


class Tellings:
    """All that was told on a line, by its ids and by steps, each in the order of the journal.

    `more` gives what was told since it was last called. It is called only if somebody asks: most ledgers
    stand on nothing but what counts.
    """

    def __init__(self, more: Callable[[], Iterable[Told]]) -> None:
        self._more = more
        self._named: dict[str, list[Told]] = {}
        self._by: dict[str, list[Told]] = {}

    def named(self, name: str) -> Sequence[Told]:
        """Those that told an entry, or the handoff of this id."""
        return self._read(self._named).get(name, ())

    def by(self, step: str) -> Sequence[Told]:
        """Those of a step."""
        return self._read(self._by).get(step, ())

    def _read(self, index: Mapping[str, list[Told]]) -> Mapping[str, list[Told]]:
        for told in self._more():
            self._by.setdefault(told.step, []).append(told)
            for name in dict.fromkeys([told.id, *(name for name, _ in findings(told))]):
                self._named.setdefault(name, []).append(told)
        return index


class Past(NamedTuple):
    """What was told before, as far as it is known to some `steps` of a `run`; without them all of it.

    What a step beside them told in the same run is not known: whether it came first is a matter of time.
    """

    tellings: Tellings
    run: RunId = RunId("")
    steps: Collection[StepId] | None = None

    def last(self, name: str) -> Told | None:
        """The last handoff that told an entry, or that has this id."""
        return self._last(self.tellings.named(name))

    def before(self, step: str, place: int) -> Told | None:
        """The last one that a step told before a place of the journal."""
        return self._last([one for one in self.tellings.by(step) if one.place < place])

    def _last(self, told: Sequence[Told]) -> Told | None:
        known = (
            one
            for one in reversed(told)
            if self.steps is None or one.run != self.run or one.step in self.steps
        )
        return next(known, None)


def past_of(told: Sequence[Told]) -> Past:
    """A past that is these handoffs."""
    left = [sorted(told, key=lambda one: one.place)]
    return Past(Tellings(lambda: left.pop() if left else ()))
