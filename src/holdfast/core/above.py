"""Which steps lie above others, and for which steps one stands that gathers what they made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache

from holdfast.model.plan import GATHER, Step, StepId
from holdfast.model.sources import Meant

Steps = Mapping[StepId, Step]
Pair = tuple[StepId, str]  # a step, and a name that may be one above it


def stands_for(steps: Steps, name: str) -> tuple[StepId, ...]:
    """The steps that a name means: a step itself, or all whose work it gathers, of a sub-plan every one."""
    found: dict[StepId, None] = {}
    queue = [StepId(name)] if name in steps else []
    seen = {*queue}
    while queue:
        one = queue.pop()
        step = steps[one]
        inner = _within(step, name)
        if step.uses == GATHER:
            inner += step.data_needs
        else:
            found[one] = None
        fresh = [need for need in inner if need in steps and need not in seen]
        seen.update(fresh)
        queue += reversed(fresh)
    return tuple(found)


def _within(step: Step, name: str) -> list[StepId]:
    """What a step of a sub-plan needs inside it."""
    inside = f"{name}."
    if not step.id.startswith(inside):
        return []
    return [need.step for need in step.needs if need.step.startswith(inside)]


def step_meant(steps: Collection[str]) -> Meant:
    """Which step a name means: that of the name, or the only one that it is in other capital letters."""

    @cache
    def in_small() -> dict[str, str]:
        found: dict[str, str] = {}
        for step in steps:
            small = step.casefold()
            found[small] = "" if small in found else step
        return found

    def meant(name: str) -> str:
        return name if name in steps else in_small().get(name.casefold(), "")

    return meant


def lying_above(steps: Steps, pairs: Iterable[Pair]) -> set[Pair]:
    """Those whose name is a step above the step. A set of steps is the bits of a number: many stay small."""
    named: dict[StepId, set[str]] = {}
    for step, name in pairs:
        if step in steps and name in steps:
            named.setdefault(step, set()).add(name)
    found: set[Pair] = set()
    for step, names in named.items():
        direct = names.intersection(need.step for need in steps[step].needs)
        found.update((step, name) for name in direct)
        names.difference_update(direct)
    bit = {name: 1 << n for n, name in enumerate(sorted(set().union(*named.values())))}
    reached: dict[str, int] = {}
    for step, names in named.items():
        if names:
            above = _reached(steps, step, bit, reached)
            found.update((step, name) for name in names if above & bit[name])
    return found


def _reached(steps: Steps, step: StepId, bit: Mapping[str, int], reached: dict[str, int]) -> int:
    queue = [step]
    while queue:
        one = queue[-1]
        needs = [need.step for need in steps[one].needs]
        fresh = [need for need in needs if need not in reached]
        if fresh:
            queue += fresh
            continue
        bits = 0
        for need in needs:
            bits |= reached[need] | bit.get(need, 0)
        reached[queue.pop()] = bits
    return reached[step]
