"""What a plan stands on, read from what its file says: known facts, requirements, hypotheses, rules.

A hypothesis is critical if the plan says so. If it says nothing about that, it is if a step that develops
something comes after one that tests it: what is built stands on what was found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

from holdfast.core.replan import Premises, Rules
from holdfast.core.waves import Graph
from holdfast.model.digest import Digest, Json
from holdfast.model.handoff import Standing
from holdfast.model.plan import Limits, Plan, StepId, plan_digest

_UNTESTED: Standing = "untested"


def premises_of(plan: Plan, graph: Graph) -> Premises:
    """What speaks against the plan if it turns out otherwise."""
    unknowns = cast("Mapping[str, Json]", plan.premises.get("unknowns", {}))
    musts = {
        name: str(one.get("description", ""))
        for name, one in _part(plan, "requirements").items()
        if one.get("priority") == "must"
    }
    known = tuple(str(text) for text in cast("list[Json]", unknowns.get("known_knowns", [])))
    return Premises(known, musts, _critical(plan, graph))


def rules_of(plan: Plan) -> Rules:
    """When the plan is to be made again; `gaps: false` lets any number of them be."""
    said = dict(cast("Mapping[str, Json]", plan.premises.get("replan", {})))
    if said.get("gaps") is False:
        said["gaps"] = None
    return Rules(**said)  # type: ignore[arg-type]  # its keys are the fields, as the plan file is read


def standings(plan: Plan, running: Collection[StepId] = ()) -> dict[str, Standing]:
    """How the hypotheses of a plan stand before anybody said what came of them.

    One that nobody tested yet is being tested while a step that tests it runs.
    """
    tested = {name for step_id in running for name in plan.steps[step_id].hypotheses}
    return {
        name: _stands(cast("Standing", one.get("status", _UNTESTED)), is_tested=name in tested)
        for name, one in _part(plan, "hypotheses").items()
    }


def statements(plan: Plan) -> dict[str, str]:
    """What each hypothesis of a plan says."""
    return {name: str(one.get("statement", "")) for name, one in _part(plan, "hypotheses").items()}


def substance(plan: Plan) -> Digest:
    """What a plan does and stands on: two that have the same are one plan to what speaks against it.

    Left out is what changes neither: its words about itself and about its steps, its limits, where it was
    read from, and the rules by which it is made again.
    """
    steps = {step_id: replace(step, description="") for step_id, step in plan.steps.items()}
    premises = {key: part for key, part in plan.premises.items() if key != "replan"}
    bare = replace(
        plan,
        steps=steps,
        goal="",
        description="",
        limits=Limits(),
        params={},
        origin={},
        premises=premises,
    )
    return plan_digest(bare)


def _stands(said: Standing, *, is_tested: bool) -> Standing:
    return "testing" if is_tested and said == _UNTESTED else said


def _part(plan: Plan, key: str) -> Mapping[str, Mapping[str, Json]]:
    return cast("Mapping[str, Mapping[str, Json]]", plan.premises.get(key, {}))


def _critical(plan: Plan, graph: Graph) -> frozenset[str]:
    found = set()
    for name, one in _part(plan, "hypotheses").items():
        said = one.get("critical")
        if said is None:
            tests = [step.id for step in plan.steps.values() if name in step.hypotheses]
            below = graph.below(tests) if tests else ()
            said = any(plan.steps[s].type == "develop" for s in below if s not in tests)
        if said:
            found.add(name)
    return frozenset(found)
