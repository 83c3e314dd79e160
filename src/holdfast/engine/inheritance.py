"""What a run takes over from the one before it: answers that were paid for and never acted on.

They are read from the run that was superseded, not handed on by whoever superseded it: a process that dies
between the end of one run and the beginning of the next loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.state import State, StepState, Tools
from holdfast.engine.journals import read_state, runs_of
from holdfast.model.event import AnswersKept, RunEnded
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import Store

MOST_BESIDE = 8  # runs of a line that may have left something


def left_answers(store: Store, plan: Plan, previous: RunId | None) -> list[AnswersKept]:
    """What the steps of a plan need not ask again; nothing if the run before it came to its end.

    What is asked otherwise now is simply not found among it.
    """
    if previous is None or not _is_superseded(store, previous):
        return []
    state = read_state(store, previous)
    if state is None:
        return []
    kept = (_kept(store, step_id, step) for step_id, step in state.steps.items())
    return [found for found in kept if found is not None and found.step in plan.steps]


def answers_beside(store: Store, state: State, step_id: StepId) -> Iterator[AnswersKept]:
    """What another engine of the line paid for a step whose claim is ours now, and never acted on."""
    if state.steps[step_id].paid:
        return
    rows = runs_of(store, state.project, state.line)
    for row in reversed(rows[-MOST_BESIDE:]):
        other = read_state(store, row.run) if row.run != state.run else None
        step = other.steps.get(step_id) if other is not None else None
        if step is not None and (found := _kept(store, step_id, step)) is not None:
            yield found
            return


def _kept(store: Store, step_id: StepId, step: StepState) -> AnswersKept | None:
    """What one step left; a candidate that people had not decided about counts for nothing now."""
    answers = (*step.paid, *step.heard)
    items = tuple((paid.request, paid.answer) for paid in answers if store.has(paid.answer))
    tools = step.tools or Tools()
    used = tuple(item for item in tools.said.values() if store.has(item.answer))
    left = tuple(sorted(tools.left))
    return AnswersKept(step_id, items, used, left) if items or used or left else None


def _is_superseded(store: Store, run: RunId) -> bool:
    journal = f"run:{run}"
    last = store.last(journal)
    ends = (recorded.event for recorded in store.read(journal, max(0, last - 1)))
    return any(isinstance(event, RunEnded) and event.status == "superseded" for event in ends)
