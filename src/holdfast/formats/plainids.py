"""Ids for items in formats that know only plain ids: `each[de/1]` stands there as `each.de_1`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from holdfast.formats.problems import folded
from holdfast.model.items import base_of, key_of
from holdfast.model.plan import STEP_ID, Plan, Step, StepId

_ODD = re.compile(r"[^A-Za-z0-9_.\-]+")
_LONGEST = 100  # characters, which leaves room for a number


def plain_ids(plan: Plan) -> dict[StepId, StepId]:
    """The id of each item where only plain ones are known; no two are the same."""
    taken = {folded(step_id) for step_id in plan.steps}
    found: dict[StepId, StepId] = {}
    for step_id in sorted(plan.steps):
        base = base_of(step_id)
        if base is not None:
            plain = _ODD.sub("_", key_of(step_id)) or "_"
            found[step_id] = _free(f"{base}.{plain}"[:_LONGEST], taken)
    return found


def _free(name: str, taken: set[str]) -> StepId:
    number, free = 1, name
    while folded(free) in taken or not STEP_ID.match(free):
        number += 1
        free = f"{name}-{number}"
    taken.add(folded(free))
    return StepId(free)


def with_plain_ids(plan: Plan, ids: Mapping[StepId, StepId]) -> Plan:
    """The plan with items under these ids, as steps like any other."""
    if not ids:
        return plan
    steps = (_renamed(step, ids) for step in plan.steps.values())
    return replace(plan, steps={step.id: step for step in steps})


def _renamed(step: Step, ids: Mapping[StepId, StepId]) -> Step:
    needs = tuple(replace(need, step=ids.get(need.step, need.step)) for need in step.needs)
    return replace(step, id=ids.get(step.id, step.id), needs=needs)
