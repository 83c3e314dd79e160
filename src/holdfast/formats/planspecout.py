"""Write a plan as a PlanSpec.

A plan that came from one gives it back word for word; of one that was changed since, the requirements,
hypotheses and unknowns stay, and so do the steps that are the same. A step of ours is one that develops:
what it produces it delivers, and who does it is an agent, a person, or a tool by the name of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.formats.planspec import EXECUTORS, PLANSPEC
from holdfast.model.digest import Json
from holdfast.model.plan import Plan, Step

WRITER = "code-writer"
_NOTHING_KNOWN: dict[str, Json] = {
    "knownKnowns": [],
    "knownUnknowns": [],
    "unknownUnknowns": [],
    "communityCheck": "",
}


def planspec_document(plan: Plan) -> dict[str, Json]:
    """The PlanSpec."""
    known = plan.origin.get(PLANSPEC)
    head = dict(known) if isinstance(known, Mapping) else {}
    listed = cast("Sequence[Mapping[str, Json]]", head.get("steps") or ())
    steps = {str(step.get("id")): step for step in listed}
    kept = {name for name, step in plan.steps.items() if _is_kept(step, steps.get(name))}
    if head and len(kept) == len(plan.steps) == len(steps):
        return head
    made: list[Json] = [
        steps[name] if name in kept else _step(step) for name, step in plan.steps.items()
    ]
    return {
        "id": plan.name,
        "goalSummary": plan.goal or plan.description or plan.name,
        "requirements": [],
        "hypotheses": [],
        "unknownsMap": _NOTHING_KNOWN,
        **head,
        "steps": made,
    }


def _is_kept(step: Step, said: Mapping[str, Json] | None) -> bool:
    if said is None or (said.get("description") or "") != step.description:
        return False
    above = {
        name
        for key in ("dependsOn", "dependencyIds", "inputStepIds")
        for name in cast("Sequence[str]", said.get(key) or ())
    }
    inputs = cast("Sequence[Mapping[str, Json]]", said.get("inputs") or ())
    above |= {str(one["fromStepId"]) for one in inputs if one.get("fromStepId")}
    return {need.step for need in step.needs} == above


def _step(step: Step) -> dict[str, Json]:
    outputs: list[Json] = [{"name": name, "description": name} for name in step.outputs]
    return {
        "type": "develop",
        "id": step.id,
        "description": step.description or step.id,
        "dependencyIds": [need.step for need in step.needs],
        "concurrent": not step.runs_alone,
        "requirementIds": [],
        "inputs": [],
        "outputs": outputs,
        "executor": _executor(step),
        "specification": step.specification or step.contract or step.description or step.id,
        "deliverables": [*step.produces],
    }


def _executor(step: Step) -> dict[str, Json]:
    if step.uses == "human":
        return {"kind": "human"}
    if step.asks_model:
        does = "develop" in EXECUTORS.get(step.agent, ())
        return {"kind": "agent", "ref": step.agent if does else WRITER}
    return {"kind": "tool", "ref": step.id}
