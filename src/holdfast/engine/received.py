"""What runs that were brought from another store say of effects outside.

They are history of the line and never continued, so no run here follows them. But what they may have done,
or did and have no receipt of any more, was done for this line: nobody does it here before a person looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from holdfast.core.effects import effect_name, made_none, telling
from holdfast.core.state import State
from holdfast.engine.journals import start_of
from holdfast.model.event import Event, Recorded
from holdfast.model.line import (
    Doubted,
    RunImported,
    RunOpened,
    StepAccepted,
    StepAmended,
)
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

TELLING: Final[tuple[type[Event], ...]] = (
    RunImported,
    RunOpened,
    StepAccepted,
    StepAmended,
)


class Received:
    """The brought runs of one line, and what was answered since they came; fed with its journal."""

    def __init__(self) -> None:
        self.gone: set[Doubted] = set()  # rows that only lack their content
        self._came: dict[RunId, int] = {}  # with the number of the event
        self._begun: dict[RunId, int] = {}
        self._answered: dict[StepId, int] = {}
        self._last: list[RunId] | None = None

    def take(self, recorded: Recorded) -> None:
        """The next event of the line."""
        match recorded.event:
            case RunImported() as event if event.store:
                self._came[event.run] = recorded.seq
                self._last = None
                self.gone.update(event.gone)
            case RunOpened() as event:
                self._begun[event.run] = recorded.seq
            case StepAccepted() | StepAmended() as event:
                self._answered[event.step] = recorded.seq
            case _:
                pass

    def open_of(
        self,
        store: Store,
        past: Callable[[RunId], State | None],
        step: StepId,
        previous: RunId | None,
    ) -> State | None:
        """The brought run that left an effect of a step open; None if there is none, or it was answered.

        Whoever gave a result since has answered, and so has a run of the line itself, up to `previous`, that
        acted when it knew: it began later, or says so.
        """
        for found in self._open(store, past, step):
            came, name = self._came[found.run], effect_name(found, step)
            acted = (one for one, left in telling(past, step, previous) if left is False)
            knew = (
                self._begun.get(one.run, 0) > came or name in one.steps[step].beside
                for one in acted
            )
            if self._answered.get(step, 0) < came and not any(knew):
                return found
        return None

    def _open(
        self, store: Store, past: Callable[[RunId], State | None], step: StepId
    ) -> Iterator[State]:
        """The runs that acted and do not know how it ended; if such a one did not come, who waits for it."""

        def brought(run: RunId) -> State | None:
            return past(run) if run in self._came else None

        for last in self._ends(store):
            found: State | None = None
            for one, left in telling(brought, step, last):
                if left:
                    found = one
                    if not made_none(one, step):
                        break
            if found is not None:
                yield found

    def _ends(self, store: Store) -> list[RunId]:
        """The brought runs that no other of them follows."""
        if self._last is None:
            starts = (start_of(store, run) for run in self._came)
            followed = {start.previous for start in starts if start is not None}
            self._last = [run for run in self._came if run not in followed]
        return self._last
