"""The order of a plan: waves, dependents, cycles. Linear in steps and edges, no recursion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from holdfast.errors import CyclicDependencyError, Problem
from holdfast.model.fixed import frozen
from holdfast.model.plan import Plan, Step, StepId


@frozen
class Graph:
    """A plan with its order worked out.

    A wave is a level: one more than the highest wave among a step's needs. A step whose items are not known
    yet leaves a level free for them. `order` goes wave by wave, by id inside a wave, so it is the same in
    every process.
    """

    steps: Mapping[StepId, Step]
    order: tuple[StepId, ...]
    wave: Mapping[StepId, int]
    rank: Mapping[StepId, int]
    dependents: Mapping[StepId, tuple[StepId, ...]]
    without: Mapping[StepId, frozenset[StepId]]  # of those, who goes on without the step

    def waves(self) -> list[list[StepId]]:
        """Step ids level by level; a level that waits for items is left out."""
        levels: list[list[StepId]] = []
        last = -1
        for step_id in self.order:
            if self.wave[step_id] != last:
                last = self.wave[step_id]
                levels.append([])
            levels[-1].append(step_id)
        return levels

    def below(self, changed: Iterable[StepId], apart: Collection[StepId] = ()) -> set[StepId]:
        """The given steps and everything that depends on them, directly or not; not through those `apart`."""
        reached = set(changed)
        queue = list(reached)
        while queue:
            for step_id in self.dependents.get(queue.pop(), ()):
                if step_id not in reached and step_id not in apart:
                    reached.add(step_id)
                    queue.append(step_id)
        return reached


def graph_of(plan: Plan) -> Graph:
    """Work out the order of a plan; a cycle is an error that shows its path."""
    dependents: dict[StepId, list[StepId]] = {}
    missing: dict[StepId, int] = {}
    without: dict[StepId, set[StepId]] = {}
    for step_id, step in plan.steps.items():
        missing[step_id] = len(step.needs)
        for need in step.needs:
            dependents.setdefault(need.step, []).append(step_id)
            if need.optional:
                without.setdefault(need.step, set()).add(step_id)
    order: list[StepId] = []
    wave: dict[StepId, int] = {}
    levels: dict[int, list[StepId]] = {}
    for step_id, count in missing.items():
        if not count:
            levels.setdefault(_room(plan.steps[step_id]), []).append(step_id)
    number = 0
    while levels:
        level = sorted(levels.pop(number, ()))
        number += 1
        for step_id in level:
            wave[step_id] = number - 1
            for dependent in dependents.get(step_id, ()):
                missing[dependent] -= 1
                if not missing[dependent]:
                    following = number + _room(plan.steps[dependent])
                    levels.setdefault(following, []).append(dependent)
        order += level
    if len(order) < len(plan.steps):
        stuck = {s for s in plan.steps if s not in wave}
        raise CyclicDependencyError((_cycle(plan, stuck),))
    return Graph(
        steps=plan.steps,
        order=tuple(order),
        wave=wave,
        rank={step_id: place for place, step_id in enumerate(order)},
        dependents={step_id: tuple(sorted(below)) for step_id, below in dependents.items()},
        without={step_id: frozenset(below) for step_id, below in without.items()},
    )


def _room(step: Step) -> int:
    """The waves that a step leaves free above itself."""
    return 1 if step.awaits_items else 0


def extended(
    graph: Graph, plan: Plan, added: Iterable[StepId], gathers: Step | None = None
) -> Graph:
    """The order of a plan that has further steps: equal to `graph_of(plan)`, without walking all of it.

    What was there needs nothing that is added, so it keeps its wave; so does the one that gathers all that
    is added, which left a wave free.
    """
    fresh = set(added)
    wave = dict(graph.wave)
    below: dict[StepId, list[StepId]] = {}
    missing: dict[StepId, int] = {}
    for step_id in sorted(fresh):
        needs = plan.steps[step_id].needs
        missing[step_id] = 0
        for need in needs:
            missing[step_id] += need.step in fresh
            below.setdefault(need.step, []).append(step_id)
    ready = [step_id for step_id, count in missing.items() if not count]
    for step_id in ready:  # grows while it is walked
        wave[step_id] = max([-1, *[wave[need.step] for need in plan.steps[step_id].needs]]) + 1
        for dependent in below.get(step_id, ()):
            missing[dependent] -= 1
            if not missing[dependent]:
                ready.append(dependent)
    if len(ready) < len(fresh):
        raise CyclicDependencyError((_cycle(plan, fresh.difference(ready)),))
    if gathers is not None:
        for step_id in ready:
            below.setdefault(step_id, []).append(gathers.id)
    order = sorted((*graph.order, *ready))
    order.sort(key=wave.__getitem__)  # those of one wave stay as they are
    dependents, without = dict(graph.dependents), dict(graph.without)
    for step in (*(plan.steps[s] for s in fresh), *((gathers,) if gathers else ())):
        for need in step.needs:
            if need.optional:
                without[need.step] = without.get(need.step, frozenset()) | {step.id}
    for step_id, more in below.items():
        dependents[step_id] = tuple(sorted((*dependents.get(step_id, ()), *more)))
    return Graph(
        steps=plan.steps,
        order=tuple(order),
        wave=wave,
        rank={step_id: place for place, step_id in enumerate(order)},
        dependents=dependents,
        without=without,
    )


def _cycle(plan: Plan, stuck: set[StepId]) -> Problem:
    """Every stuck step needs a stuck step, so walking the needs must come round."""
    path: list[StepId] = []
    seen: dict[StepId, int] = {}
    step_id = min(stuck)
    while step_id not in seen:
        seen[step_id] = len(path)
        path.append(step_id)
        step_id = min(need.step for need in plan.steps[step_id].needs if need.step in stuck)
    loop = path[seen[step_id] :]
    start = loop.index(min(loop))
    loop = loop[start:] + loop[:start]
    text = " → ".join([*loop, loop[0]])
    return Problem(f"the steps need each other in a circle: {text}", code="P052")


def rebuild_set(
    graph: Graph,
    *,
    changed: Iterable[StepId],
    incomplete: Iterable[StepId] = (),
    failed: Iterable[StepId] = (),
) -> set[StepId]:
    """What must run again: what changed, is incomplete or failed, and everything below it."""
    return graph.below({*changed, *incomplete, *failed})
