"""What people ask of a run that has not ended: written to the line's journal, answered in its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.core.growth import lost_need, with_steps
from holdfast.core.state import State
from holdfast.engine.grow import Request, unanswered
from holdfast.engine.lines import line_journal
from holdfast.errors import ConflictError, UsageError
from holdfast.model.event import PlanExtended, RequestRefused, StepWaived
from holdfast.model.line import AdditionRequested
from holdfast.model.plan import Plan, RunId, Step, StepId, fragment_bytes, fragment_steps
from holdfast.ports import Append, Batch, Store

Answer = PlanExtended | StepWaived | RequestRefused


def plan_to_be(store: Store, state: State) -> Plan:
    """The plan of a run with everything that people asked to add and that it did not take up yet."""
    plan = state.plan
    for _, asked in unanswered(store, state):
        if isinstance(asked, AdditionRequested):
            steps = fragment_steps(store.get(asked.fragment))
            if not steps.keys() & plan.steps.keys():
                plan = with_steps(plan, steps)
    return plan


def check_needs(state: State, steps: Mapping[StepId, Step]) -> None:
    """UsageError if one of these steps could never start in this run as it stands."""
    lost = lost_need(state, steps)
    if lost is not None:
        phase = state.steps[lost[1]].phase
        what = "failed" if phase == "failed" else "was skipped"
        raise UsageError(
            f"'{lost[0]}' needs '{lost[1]}', which {what} in this run",
            hint=f"holdfast retry {lost[1]}",
        )


def ask_to_add(
    store: Store,
    state: State,
    steps: Mapping[StepId, Step],
    by: str,
    because: str,
    clock: Callable[[], int],
) -> int:
    """Ask a run to add steps; gives the number of the request."""
    fragment = store.put(fragment_bytes(steps))
    reason = store.put(because.encode()) if because else None
    return ask(store, state, AdditionRequested(state.run, fragment, by, reason), clock)


def ask(store: Store, state: State, request: Request, clock: Callable[[], int]) -> int:
    """Write a request to the line's journal; gives its number there."""
    journal = line_journal(state.project, state.line)
    while True:
        last = store.last(journal)
        try:
            store.commit(Batch([Append(journal, last, [(clock(), request)])]))
        except ConflictError:
            if store.last(journal) == last:
                raise
            continue
        return last + 1


def answer(store: Store, run: RunId, request: int, after: int) -> Answer | None:
    """What a run answered to a request; None while it did not. Its events up to `after` say nothing of it."""
    for recorded in store.read(f"run:{run}", after):
        event = recorded.event
        if not isinstance(event, PlanExtended | StepWaived | RequestRefused):
            continue
        if event.request == request:
            return event
    return None
