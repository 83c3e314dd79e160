"""What a run takes over from the one before it: answers that were paid for and never acted on.

They are read from the run that came to no good end, not handed on by whoever ended it: a process that dies
between the end of one run and the beginning of the next loses nothing.
"""

from __future__ import annotations

from holdfast.core.effects import is_in_hand
from holdfast.core.estimate import asked_models
from holdfast.core.fold import apply
from holdfast.core.state import State, StepState, Tools
from holdfast.engine.journals import read_state, runs_of
from holdfast.model.event import AnswersKept, RunEnded
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import Store

MOST_BESIDE = 8  # runs of a line that may have left something


def left_answers(store: Store, plan: Plan, previous: RunId | None) -> list[AnswersKept]:
    """What the steps of a plan need not ask again; nothing if the run before it came to a good end.

    What is asked otherwise now is simply not found among it.
    """
    if previous is None or not _may_leave(store, plan, previous):
        return []
    state = read_state(store, previous)
    if state is None:
        return []
    kept = (_kept(store, step_id, step) for step_id, step in state.steps.items())
    return [found for found in kept if found is not None and found.step in plan.steps]


class Beside:
    """The other runs of a run's line: each is read once, and then followed."""

    def __init__(self, store: Store, state: State) -> None:
        self._store = store
        self._state = state
        self._others: dict[RunId, State] = {}

    def answers(self, step_id: StepId) -> AnswersKept | None:
        """What another engine paid for a step whose claim is ours now, and never acted on.

        Only the newest run that tried the step knows: it has taken over what those before it left.
        """
        state = self._state
        here = state.steps[step_id]
        if here.paid or here.attempts:
            return None
        rows = runs_of(self._store, state.project, state.line)
        for row in reversed(rows[-MOST_BESIDE:]):
            other = self._now(row.run) if row.run != state.run else None
            step = other.steps.get(step_id) if other is not None else None
            if step is not None and step.attempts:
                return _kept(self._store, step_id, step)
        return None

    def has_in_hand(self, step_id: StepId) -> bool:
        """Whether an engine that shares the line has the effect of a step under way, under whatever key.

        Who is there is asked first: what one that has left by then said last is read afterwards.
        """
        state = self._state
        holders = self._store.holders(state.project, state.line)
        runs = {one.run for one in holders if one.run is not None and one.run != state.run}
        found = map(self._now, runs)
        return any(other is not None and is_in_hand(other, step_id) for other in found)

    def _now(self, run: RunId) -> State | None:
        known = self._others.get(run)
        if known is None:
            found = read_state(self._store, run)
            if found is not None:
                self._others[run] = found
            return found
        for recorded in self._store.read(f"run:{run}", known.seq):
            apply(known, recorded)
        return known


def _kept(store: Store, step_id: StepId, step: StepState) -> AnswersKept | None:
    """What one step left; a candidate that people had not decided about counts for nothing now."""
    answers = (*step.paid, *step.heard)
    items = tuple((paid.request, paid.answer) for paid in answers if store.has(paid.answer))
    tools = step.tools or Tools()
    used = tuple(item for item in tools.said.values() if store.has(item.answer))
    left = tuple(sorted(tools.left))
    return AnswersKept(step_id, items, used, left) if items or used or left else None


def _may_leave(store: Store, plan: Plan, run: RunId) -> bool:
    if not any(asked_models(step) for step in plan.steps.values()):
        return False
    journal = f"run:{run}"
    last = store.last(journal)
    ends = (recorded.event for recorded in store.read(journal, max(0, last - 1)))
    return any(isinstance(event, RunEnded) and event.status != "completed" for event in ends)
