"""How two versions of a plan differ: steps that came, left, promise something else, or need others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import cast

from holdfast.model.digest import Json, same
from holdfast.model.fixed import frozen
from holdfast.model.plan import Plan, StepId, plan_bytes

_CONTRACT = frozenset({"contract", "outputs", "produces", "schema"})
_NAMES = {"values": "with"}  # as the plan file spells it


@frozen
class ChangeReport:
    """What changed since an earlier version of the plan, and outputs that a person changed on disk.

    `edited` names, for each step that is in both versions, the keys that differ.
    """

    added: tuple[StepId, ...] = ()
    removed: tuple[StepId, ...] = ()
    contract_changed: tuple[StepId, ...] = ()
    deps_changed: tuple[StepId, ...] = ()
    output_modified: tuple[StepId, ...] = ()
    edited: Mapping[StepId, tuple[str, ...]] = field(default_factory=dict)

    @property
    def all_changed(self) -> frozenset[StepId]:
        """Every step of the plan that changed; those that left it are no steps of it."""
        return frozenset(
            {*self.added, *self.contract_changed, *self.deps_changed, *self.output_modified}
        )


def compare(
    before: Plan | None, after: Plan, *, output_modified: tuple[StepId, ...] = ()
) -> ChangeReport:
    """Compare a plan with an earlier version; without one there is nothing to compare with."""
    if before is None:
        return ChangeReport(output_modified=output_modified)
    old, new = _steps(before), _steps(after)
    edited = {
        step_id: keys
        for step_id in sorted(old.keys() & new.keys())
        if (keys := _keys(old[step_id], new[step_id]))
    }
    return ChangeReport(
        added=tuple(sorted(after.steps.keys() - before.steps.keys())),
        removed=tuple(sorted(before.steps.keys() - after.steps.keys())),
        contract_changed=tuple(s for s, keys in edited.items() if _CONTRACT & {*keys}),
        deps_changed=tuple(s for s, keys in edited.items() if "needs" in keys),
        output_modified=output_modified,
        edited=edited,
    )


def _steps(plan: Plan) -> Mapping[StepId, Mapping[str, Json]]:
    """The steps as a snapshot spells them, so that a plan from a file equals one that was kept."""
    return cast("Mapping[StepId, Mapping[str, Json]]", json.loads(plan_bytes(plan))["steps"])


def _keys(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[str, ...]:
    if same(before, after):
        return ()
    every = dict.fromkeys([*before, *after])
    return tuple(_NAMES.get(key, key) for key in every if not same(before.get(key), after.get(key)))
