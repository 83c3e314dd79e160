"""The plan of a file with what its steps added when it last ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.cli.place import Place, known_step
from holdfast.core.growth import with_steps
from holdfast.core.state import State
from holdfast.engine.lines import line_journal
from holdfast.model.line import StepsAdded
from holdfast.model.plan import Plan, StepId
from holdfast.ports import Store

if TYPE_CHECKING:
    from holdfast.formats.planfile import Loaded


def grown(where: Place, loaded: Loaded) -> Loaded:
    """The plan, with the steps that steps of it added in the line's last run; most plans have none."""
    if not where.exists():
        return loaded
    store = where.open(readonly=True)
    try:
        return replace(loaded, plan=with_added(store, loaded.plan))
    finally:
        store.close()


def forced_steps(where: Place, loaded: Loaded, names: Sequence[str]) -> tuple[StepId, ...]:
    """The steps that are asked for by name; what a step will add can be asked for too."""
    if not names:
        return ()
    known = all(name in loaded.plan.steps for name in names)
    plan = loaded.plan if known else grown(where, loaded).plan
    return tuple(known_step(plan, name) for name in names)


def with_added(store: Store, plan: Plan) -> Plan:
    """The same with a store that is open."""
    journal = store.read(line_journal(plan.project, plan.name))
    if not any(isinstance(recorded.event, StepsAdded) for recorded in journal):
        return plan
    from holdfast.engine.probe import read_state

    rows = [row for row in store.runs(plan.name) if row.project == plan.project]
    state = read_state(store, rows[-1].run) if rows else None
    return plan if state is None else _joined(plan, state)


def _joined(plan: Plan, state: State) -> Plan:
    """Only what came from steps of the plan, and needs nothing that is gone from it."""
    there = set(plan.steps)
    for step_id in state.graph.order:
        origin = state.added.get(step_id)
        needs = {need.step for need in state.plan.steps[step_id].needs}
        if origin is not None and origin.step in there and needs <= there:
            there.add(step_id)
    more = {StepId(name): state.plan.steps[name] for name in there - plan.steps.keys()}
    return with_steps(plan, more) if more else plan


def added_words(state: State, step_id: StepId) -> str:
    """Where a step of a run comes from, if the run did not begin with it."""
    origin = state.added.get(step_id)
    if origin is None:
        return ""
    return f"added by {origin.step}" if origin.step else "added by a person"
