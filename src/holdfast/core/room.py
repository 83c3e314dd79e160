"""How much there is of what attempts take while they run: named resources, and agents.

A resource is there as often as the plan's limits say, else once. Whoever runs the plan may say less of
it on his machine, or how much there is of one that the plan does not name. Processors and memory are for
the machines to know, unless somebody says how much there is. An agent has no bound but the one that the
limits give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.model.plan import OF_MACHINES, Limits, Plan, StepId

Thing = tuple[str, str]  # ("resource", its name) or ("agent", its name)
Demands = tuple[tuple[Thing, int], ...]
_ENOUGH: Final = 1 << 62
NOTHING_SAID: Final[Mapping[str, int]] = {}


def demands_of(plan: Plan) -> dict[StepId, Demands]:
    """What the attempts of each step take; steps that take nothing that is scarce are left out."""
    agents = plan.limits.agents
    found: dict[StepId, Demands] = {}
    for step_id, step in plan.steps.items():
        if step.resources or (agents and step.agent in agents):
            takes = [(("resource", name), count) for name, count in sorted(step.resources.items())]
            if step.agent in agents:
                takes.append((("agent", step.agent), 1))
            found[step_id] = tuple(takes)
    return found


def taken_by(demands: Mapping[StepId, Demands], running: Iterable[StepId]) -> dict[Thing, int]:
    """What the attempts of these steps have taken."""
    taken: dict[Thing, int] = {}
    for step_id in running:
        for thing, count in demands.get(step_id, ()):
            taken[thing] = taken.get(thing, 0) + count
    return taken


def capacity(limits: Limits, thing: Thing, machine: Mapping[str, int] = NOTHING_SAID) -> int:
    """How much of a thing may be taken at once; `machine` is what the person says of his own."""
    kind, name = thing
    if kind == "agent":
        return limits.agents[name]
    planned, there = limits.resources.get(name), machine.get(name)
    if planned is None and there is None and name in OF_MACHINES:
        return _ENOUGH
    if planned is None or there is None:
        return planned or there or 1
    return min(planned, there)


def fits(
    demands: Demands,
    taken: Mapping[Thing, int],
    limits: Limits,
    machine: Mapping[str, int] = NOTHING_SAID,
) -> bool:
    """Whether all of it can be taken beside what is taken now."""
    return all(
        taken.get(thing, 0) + count <= capacity(limits, thing, machine) for thing, count in demands
    )
