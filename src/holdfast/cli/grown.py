"""The plan of a file with what its steps added when it last ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.cli.place import Place, known_step
from holdfast.core.growth import with_steps
from holdfast.core.state import State
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.lines import line_journal
from holdfast.errors import UsageError
from holdfast.model.items import base_of, step_named, with_items
from holdfast.model.line import PlanVersioned, StepsAdded
from holdfast.model.plan import Plan, RunId, StepId
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
    known = all(step_named(name, loaded.plan.steps) for name in names)
    plan = loaded.plan if known else grown(where, loaded).plan
    return tuple(known_step(plan, name) for name in names)


def resampled_steps(where: Place, loaded: Loaded, names: Sequence[str]) -> tuple[StepId, ...]:
    """The steps of which one more artifact is wanted; they run alone, so none may need another."""
    found = forced_steps(where, loaded, names)
    for step_id in found:
        step = loaded.plan.steps.get(step_id)
        above = set(found) & set(step.data_needs) if step else set()
        if above:
            raise UsageError(
                f"'{step_id}' reads '{min(above)}': samples of both cannot be made at once",
                hint=f"holdfast run --resample {min(above)}",
            )
    return found


def with_added(store: Store, plan: Plan) -> Plan:
    """The same with a store that is open."""
    journal = store.read(line_journal(plan.project, plan.name))
    lists = any(step.awaits_items for step in plan.steps.values())
    if not lists and not any(isinstance(recorded.event, StepsAdded) for recorded in journal):
        return plan
    rows = runs_of(store, plan.project, plan.name)
    state = read_state(store, rows[-1].run) if rows else None
    return plan if state is None else _joined(plan, state)


def run_with(where: Place, plan: Plan, step_id: StepId) -> RunId | None:
    """The line's last run that a person added a step to; the plan does not have it."""
    if not where.exists():
        return None
    store = where.open(readonly=True)
    try:
        runs = [
            event.run
            for recorded in store.read(line_journal(plan.project, plan.name))
            if isinstance(event := recorded.event, PlanVersioned)
            and event.reason == "added_by_person"
        ]
        for run in reversed(dict.fromkeys(runs)):
            state = read_state(store, run)
            if state is not None and step_id in state.added:
                return run
    finally:
        store.close()
    return None


def _joined(plan: Plan, state: State) -> Plan:
    """Only what came from steps of the plan, and needs nothing that is gone from it."""
    there = set(plan.steps)
    for step_id in state.graph.order:
        origin = state.added.get(step_id)
        needs = {need.step for need in state.plan.steps[step_id].needs}
        if origin is not None and origin.step in there and needs <= there:
            there.add(step_id)
    more = {StepId(name): state.plan.steps[name] for name in there - plan.steps.keys()}
    for base in {base for name in more if (base := base_of(name)) is not None}:
        if base in plan.steps:
            items = [name for name in state.plan.steps[base].data_needs if name in more]
            more[base] = with_items(plan.steps[base], items)
    return with_steps(plan, more) if more else plan
