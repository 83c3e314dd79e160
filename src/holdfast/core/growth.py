"""How a run grows: its plan gets further steps while it goes on, and nothing that it had changes.

A step that is added may need steps that are there and others that are added with it; nothing that is
there can need it, but for one: a step that gathers items needs exactly these items from the moment they
are known, and it has not begun before. Its wave left room for them. So what was reached stays reached,
the waves of what was there stay as they are, and a state that grew in place equals one that is folded
from nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf

from holdfast.core.moves import LOST, is_met
from holdfast.core.room import demands_of, taken_by
from holdfast.core.state import Origin, State, StepState
from holdfast.core.waves import extended
from holdfast.errors import BugError, PlanError
from holdfast.model.event import PlanExtended
from holdfast.model.items import base_of, unopened
from holdfast.model.plan import Limits, Need, Plan, Step, StepId


def with_steps(plan: Plan, added: Mapping[StepId, Step], limits: Limits | None = None) -> Plan:
    """The plan with further steps, and with other limits if their agents bring some."""
    return replace(plan, steps={**plan.steps, **added}, limits=limits or plan.limits)


def after(steps: Mapping[StepId, Step], above: StepId) -> dict[StepId, Step]:
    """The steps, each of which comes after `above` as well."""
    return {name: _after(step, above) for name, step in steps.items()}


def _after(step: Step, above: StepId) -> Step:
    if any(need.step == above for need in step.needs):
        return step
    return replace(step, needs=(*step.needs, Need(above, "sequence")))


def is_same(one: Step, other: Step, origin: StepId) -> bool:
    """Whether two steps are equal, whether or not they say that they come after `origin`."""
    return _after(one, origin) == _after(other, origin) if origin else one == other


def lost_need(state: State, added: Mapping[StepId, Step]) -> tuple[StepId, StepId] | None:
    """A step to be added, and one that it needs and that did not get through in this run."""
    for step_id, step in added.items():
        for need in step.needs:
            above = state.steps.get(need.step)
            if above is not None and above.phase in LOST and not need.optional:
                return step_id, need.step
    return None


def grow(state: State, event: PlanExtended, at: int) -> list[StepId]:
    """Take further steps into the state; gives those that can start at once.

    The caller, which is the fold, has checked nothing yet: an illegal event changes nothing.
    """
    steps, limits, gathers = _checked(state, event)
    whole = steps if gathers is None else {**steps, gathers.id: gathers}
    plan = with_steps(state.plan, whole, limits)
    try:
        graph = extended(state.graph, plan, steps, gathers)
    except PlanError as error:
        raise BugError(
            f"'plan_extended' brings steps that need each other: {error.message}"
        ) from error
    is_bounded = plan.limits != state.plan.limits
    state.plan, state.graph = plan, graph
    state.plan_digest, state.w_ref = event.plan, event.w_ref
    ready = []
    for step_id in sorted(steps, key=graph.rank.__getitem__):
        needs = steps[step_id].needs
        state.steps[step_id] = StepState()
        state.added[step_id] = Origin(event.step, event.request, at, event.agreed)
        missing = sum([not is_met(state, need) for need in needs])
        state.missing[step_id] = missing
        if not missing:
            ready.append(step_id)
    state.counts["pending"] += len(steps)
    state.alone |= {s for s, step in steps.items() if step.runs_alone}
    state.demands = demands_of(plan)
    if is_bounded:  # what runs may take of what was not counted before
        state.taken = taken_by(state.demands, state.running)
    if gathers is not None:
        state.missing[gathers.id] += len(steps)
        state.ready.discard(gathers.id)
    origin = event.step if gathers is None else gathers.id
    if state.selected is not None and (event.request or origin in state.selected):
        state.selected |= (
            steps.keys()
        )  # what a person, or a step that was asked for, adds shall run
    if state.reopening:  # what stands on a step that is sent back does not start
        state.frozen = frozenset(graph.below(state.reopening.values()))
    _enter_waves(state)
    return ready


def _checked(state: State, event: PlanExtended) -> tuple[dict[StepId, Step], Limits, Step | None]:
    if event.parent != state.plan_digest:
        raise BugError("'plan_extended' does not follow from the plan of the run")
    later = state.plans(event.plan)
    found = later.steps
    steps = {s: _then(found[s], event.added) for s in event.added if s in found}
    if len(steps) < len(event.added) or not steps:
        raise BugError("'plan_extended' names steps that its plan does not have")
    for step_id, step in steps.items():
        if step_id in state.steps:
            raise BugError(f"'plan_extended' adds '{step_id}', which is there already")
        for need in step.needs:
            if need.step not in state.steps and need.step not in steps:
                raise BugError(f"'plan_extended' adds '{step_id}', whose need is no step")
    if not _only_binds_agents(state.plan.limits, later.limits):
        raise BugError("'plan_extended' changes limits that added steps cannot change")
    return steps, later.limits, _gathers(state, steps, found)


def _then(step: Step, added: Collection[StepId]) -> Step:
    """A step as it was added: what it gathers may have been found out later."""
    if not step.has_items:
        return step
    before = unopened(step)
    items = len(step.needs) - len(before.needs)
    return before if items and step.needs[-1].step not in added else step


def _gathers(
    state: State, steps: Mapping[StepId, Step], found: Mapping[StepId, Step]
) -> Step | None:
    """The step that is there and gathers what is added, with its items; None if there is no such step."""
    bases = {base_of(step_id) for step_id in steps}
    base = next(iter(bases)) if len(bases) == 1 else None
    if base is None or base not in state.steps:
        if any(one in state.steps for one in bases):
            raise BugError("'plan_extended' adds items beside other steps")
        return None
    now, later = state.plan.steps[base], found[base]
    items = {need.step for need in later.needs[len(now.needs) :]}
    widened = replace(now, needs=later.needs, has_items=True)
    above = {need.step for need in now.needs}
    if (
        not now.awaits_items
        or later != widened
        or later.needs[: len(now.needs)] != now.needs
        or items != steps.keys()
        or any(n != Need(n.step, optional=now.optional) for n in later.needs[len(now.needs) :])
        or any(need.step not in above for one in steps.values() for need in one.needs)
    ):
        raise BugError(f"'plan_extended' adds items that '{base}' does not gather")
    here = state.steps[base]
    if here.phase != "pending" or state.missing[base]:
        raise BugError(f"'plan_extended' adds items of '{base}', which does not wait for them")
    return later


def _only_binds_agents(limits: Limits, later: Limits) -> bool:
    """Whether the later limits differ only in agents, of whom no more may run at once than before."""
    if later == limits:
        return True
    freer = any(later.agents.get(name, inf) > most for name, most in limits.agents.items())
    return replace(later, agents=limits.agents) == limits and not freer


def _enter_waves(state: State) -> None:
    """Waves in which steps failed lie elsewhere in the order now, and may have further steps."""
    if not state.failures:
        return
    places: dict[int, list[int]] = {}
    for place, step_id in enumerate(state.graph.order):
        places.setdefault(state.graph.wave[step_id], []).append(place)
    for number, wave in state.failures.items():
        wave.first, wave.end = places[number][0], places[number][-1] + 1
        wave.settled = wave.first
