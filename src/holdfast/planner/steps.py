"""Artifacts that were found become the steps of a plan, spelled as a plan file spells them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from holdfast.model.digest import Json
from holdfast.model.expression import literal
from holdfast.model.plan import PLAN_SCHEMA, Plan, Step
from holdfast.planner.found import Found, tiers

ORIGIN = "planned"  # under which a plan keeps what its artifacts said beside that
_ROLE = "You make one artifact of a larger plan. Others make the rest, from their own contracts."
_FILE = (
    "Write the artifact '{id}', which is the file that the specification names. It fulfils its contract and"
    " fits the results above. Answer with the content of the file and nothing else: no explanation, no"
    " fences around it."
)
_TEXT = (
    "Write the artifact '{id}'. It fulfils its contract and fits the results above. Answer with it and"
    " nothing else."
)
_SYNTAX = {".py": "python", ".pyi": "python", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}


def plan_data(
    goal: str, line: str, found: Sequence[Found], named: Collection[str], model: str
) -> dict[str, Json]:
    """The plan with the keys of a plan file.

    `named` are the tiers that somebody configured; what has another one is made by `model`.
    """
    tier = tiers(found)
    steps: dict[str, Json] = {
        one.id: _step(goal, one, tier[one.id] if tier[one.id] in named else model) for one in found
    }
    kept: dict[str, Json] = {
        one.id: {"tier": tier[one.id], "domain_type": one.domain_type} for one in found
    }
    claims: dict[str, Json] = {
        one.id: {"statement": literal(one.tests), "critical": True} for one in found if one.tests
    }
    return {
        "schema": PLAN_SCHEMA,
        "name": line,
        "goal": literal(goal),
        "origin": {ORIGIN: {"artifacts": kept}},
        **({"hypotheses": claims} if claims else {}),
        "steps": steps,
    }


def _step(goal: str, one: Found, model: str) -> dict[str, Json]:
    """Words of a person or a model stand where they are data, and are no expressions."""
    task = (_FILE if one.produces_file else _TEXT).format(id=one.id)
    about = [f"The goal of all: {goal}", f"This artifact: {one.description}"]
    if one.produces_file:
        about.append(f"Its file: {one.produces_file}")
    step: dict[str, Json] = {
        "uses": "llm",
        "description": literal(one.description),
        "specification": literal("\n".join(about)),
        "contract": literal(one.contract),
        "prompt": {"role": _ROLE, "task": task},
        "model": model,
    }
    if one.tests:  # it says how the claim stands, so that the plan is doubted if it does not hold
        step |= {"type": "experiment", "hypotheses": [one.id], "handoff": True}
    if one.requires:
        step["needs"] = list(one.requires)
    if one.produces_file:
        step["produces"] = one.produces_file
        if language := _SYNTAX.get(os.path.splitext(one.produces_file)[1]):
            step["guards"] = [{"syntax": language}]
    return step


def found_of(plan: Plan) -> list[Found]:
    """The artifacts that a plan was made of; of any other plan, its steps as artifacts."""
    planned = plan.origin.get(ORIGIN)
    kept = planned.get("artifacts") if isinstance(planned, Mapping) else None
    claims = _claims(plan)
    return [
        _found(step, kept if isinstance(kept, Mapping) else {}, claims.get(step.id, ""))
        for step in plan.steps.values()
    ]


def _claims(plan: Plan) -> dict[str, str]:
    known = plan.premises.get("hypotheses")
    said = known if isinstance(known, Mapping) else {}
    return {
        name: str(one.get("statement", ""))
        for name, one in said.items()
        if isinstance(one, Mapping)
    }


def _found(step: Step, kept: Mapping[str, Json], tests: str) -> Found:
    said = kept.get(step.id)
    more = said if isinstance(said, Mapping) else {}
    return Found(
        id=step.id,
        description=step.description,
        contract=step.contract,
        requires=tuple(need.step for need in step.needs),
        produces_file=step.produces[0] if step.produces else "",
        domain_type=str(more.get("domain_type", "")),
        tier=str(more.get("tier", "")),
        tests=tests if step.id in step.hypotheses else "",
    )
