"""Write a plan as a PlanSpec.

A plan that came from one gives it back word for word; of one that was changed since, the requirements,
hypotheses and unknowns stay, and so do the steps that are the same. A step of ours is one that develops,
unless it says its type: what it produces it delivers, and who does it is an agent, a person, or a tool by the
name of the step. The steps of a workflow are no steps of the PlanSpec: it names their plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from holdfast.formats.planspec import EXECUTORS, PLANSPEC
from holdfast.model.digest import Json
from holdfast.model.plan import GATHER, Plan, Step, StepId

_HYPOTHESIS: dict[str, Json] = {
    "statement": "",
    "assumptions": [],
    "testableVia": "",
    "status": "untested",
}
_AGENTS = {
    "research": "literature-searcher",
    "synthesize": "result-synthesizer",
    "experiment": "experiment-runner",
    "develop": "code-writer",
}
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
    inner = {name: _inner(plan, name, steps) for name in steps if _is_flow(plan, name, steps)}
    kept = {
        name
        for name, step in plan.steps.items()
        if _is_kept(step.description, _above(plan, name, inner.get(name, set())), steps.get(name))
    }
    hidden = {one for name in kept & inner.keys() for one in inner[name]}
    own = {name: step for name, step in plan.steps.items() if name not in hidden}
    if head and len(kept) == len(own) == len(steps):
        return head
    made: list[Json] = [steps[name] if name in kept else _step(step) for name, step in own.items()]
    return {
        "id": plan.name,
        "goalSummary": plan.goal or plan.description or plan.name,
        **_premises(plan),
        **head,
        "steps": made,
    }


def _premises(plan: Plan) -> dict[str, Json]:
    """What the plan stands on, with the words of the format; `critical` has none there."""
    said = cast("Mapping[str, Mapping[str, Json]]", plan.premises)
    requirements: list[Json] = [
        {"id": name, "priority": "should", **cast("Mapping[str, Json]", one)}
        for name, one in said.get("requirements", {}).items()
    ]
    hypotheses: list[Json] = [
        {"id": name, **_HYPOTHESIS, **_camel(cast("Mapping[str, Json]", one), _HYPOTHESIS)}
        for name, one in said.get("hypotheses", {}).items()
    ]
    unknowns = {**_NOTHING_KNOWN, **_camel(said.get("unknowns", {}), _NOTHING_KNOWN)}
    return {"requirements": requirements, "hypotheses": hypotheses, "unknownsMap": unknowns}


def _camel(said: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
    given = {camel(key): value for key, value in said.items()}
    return {key: value for key, value in given.items() if key in known}


def camel(key: str) -> str:
    """A key as formats of this family write it."""
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _is_flow(plan: Plan, name: str, steps: Mapping[str, Mapping[str, Json]]) -> bool:
    """Whether a step of the PlanSpec is a workflow that was taken over as the steps of its plan."""
    step, executor = plan.steps.get(StepId(name)), steps[name].get("executor")
    is_named = isinstance(executor, Mapping) and executor.get("kind") == "workflow"
    return is_named and step is not None and step.uses == GATHER


def _inner(plan: Plan, name: str, steps: Collection[str]) -> set[StepId]:
    """The steps that were taken over for a workflow."""
    return {one for one in plan.steps if one.startswith(f"{name}.") and one not in steps}


def _above(plan: Plan, name: StepId, inner: Collection[StepId]) -> set[StepId]:
    """What a step needs, with the steps that were taken over for it; those themselves are none of it."""
    needed = {need.step for one in (name, *inner) for need in plan.steps[one].needs}
    return needed - {*inner}


def _is_kept(description: str, needs: Collection[str], said: Mapping[str, Json] | None) -> bool:
    if said is None or (said.get("description") or "") != description:
        return False
    above = {
        name
        for key in ("dependsOn", "dependencyIds", "inputStepIds")
        for name in cast("Sequence[str]", said.get(key) or ())
    }
    inputs = cast("Sequence[Mapping[str, Json]]", said.get("inputs") or ())
    above |= {str(one["fromStepId"]) for one in inputs if one.get("fromStepId")}
    return set(needs) == above


def _step(step: Step) -> dict[str, Json]:
    outputs: list[Json] = [{"name": name, "description": name} for name in step.outputs]
    words = step.specification or step.contract or step.description or step.id
    return {
        "type": step.type or "develop",
        "id": step.id,
        "description": step.description or step.id,
        "dependencyIds": [need.step for need in step.needs],
        "concurrent": not step.runs_alone,
        "requirementIds": [*step.requirements],
        "inputs": [],
        "outputs": outputs,
        "executor": _executor(step),
        **_of_type(step, words),
    }


def _of_type(step: Step, words: str) -> dict[str, Json]:
    """What a step of its type says."""
    match step.type:
        case "research":
            return {"query": words, "stoppingRule": step.contract}
        case "synthesize":
            found: dict[str, Json] = {
                "mode": step.mode or "integrative",
                "inputStepIds": [need.step for need in step.needs],
            }
            return found | (
                {"evaluateAgainst": [*step.evaluate_against]} if step.evaluate_against else {}
            )
        case "experiment":
            found = {
                "mode": step.mode or "exploratory",
                "hypothesisIds": [*step.hypotheses],
                "procedure": words,
                "expectedOutcomes": [],
                "successCriteria": [step.contract] if step.contract else [],
            }
            return found | (
                {"preregisteredCommitments": [*step.preregistered]} if step.preregistered else {}
            )
        case _:
            return {"specification": words, "deliverables": [*step.produces]}


def _executor(step: Step) -> dict[str, Json]:
    if step.uses == "human":
        return {"kind": "human"}
    if step.asks_model:
        kind = step.type or "develop"
        does = kind in EXECUTORS.get(step.agent, ())
        return {"kind": "agent", "ref": step.agent if does else _AGENTS[kind]}
    return {"kind": "tool", "ref": step.id}
