"""Write a plan as a workflow of action pairs, with the prompts of its models in a file of their own.

A plan that came from such files gives them back word for word. Any other plan is written so that reading it
again gives the same steps, as far as the format has words for them: what makes a step is its generator and
its configuration, what judges it its guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.formats.atomicguard import ATOMICGUARD, RETRIES
from holdfast.formats.planout import duration
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Plan, Step

NO_GUARD = "none"
_POLICIES = {"all": "all_pass", "any": "any_pass", "majority": "majority_pass"}


def workflow_documents(plan: Plan) -> tuple[dict[str, Json], dict[str, Json]]:
    """The workflow and its prompts."""
    known = _mapping(plan.origin.get(ATOMICGUARD))
    workflow, prompts = _mapping(known.get("workflow")), _mapping(known.get("prompts"))
    if _is_kept(plan, workflow, prompts):
        return dict(workflow), dict(prompts)
    retries = Counter(step.retries for step in plan.steps.values()).most_common(1)[0][0]
    common = retries or RETRIES  # the format knows no workflow without any
    document: dict[str, Json] = {"name": plan.name}
    if plan.description:
        document["description"] = plan.description
    for key in ("specification", "constraints"):
        said = {getattr(step, key) for step in plan.steps.values()}
        if len(said) == 1 and (text := said.pop()):
            document[key] = text
    document["rmax"] = common
    document["action_pairs"] = {str(s): _pair(step, common) for s, step in plan.steps.items()}
    told = {str(s): _prompt(step) for s, step in plan.steps.items() if step.prompt is not None}
    return document, cast("dict[str, Json]", told)


def _is_kept(plan: Plan, workflow: Mapping[str, Json], prompts: Mapping[str, Json]) -> bool:
    """Whether the files that a plan came from still say what it is."""
    pairs = workflow.get("action_pairs")
    if pairs is None:  # one workflow in a file that could hold several
        flows = _mapping(workflow.get("workflows", workflow))
        pairs = _mapping(next(iter(flows.values()), None)).get("action_pairs")
    known = _mapping(pairs)
    if not known or known.keys() != {str(s) for s in plan.steps}:
        return False
    for step in plan.steps.values():
        pair = _mapping(known[step.id])
        if [need.step for need in step.needs] != [*cast("list[str]", pair.get("requires") or ())]:
            return False
        if (pair.get("description") or "") != step.description:
            return False
        told = {**_mapping(prompts.get(step.id))}
        told.pop("escalation_feedback_wrapper", None)
        now = _prompt(step)
        if step.prompt is not None and told and any(now.get(k) != v for k, v in told.items() if v):
            return False
    return True


def _prompt(step: Step) -> dict[str, Json]:
    if isinstance(step.prompt, Mapping):
        return dict(step.prompt)
    return {"task": step.prompt}


def _pair(step: Step, common: int) -> dict[str, Json]:
    config: dict[str, Json] = {}
    if step.run:
        config["run"] = step.run[0] if step.uses == "python" else [*step.run]
    if step.shell:
        config["shell"] = step.shell
    if step.model:
        config["model"] = step.tier or step.model
    config |= step.parameters
    if step.values:
        config["with"] = step.values
    pair: dict[str, Json] = {"generator": step.uses}
    if config:
        pair["generator_config"] = config
    if step.description:
        pair["description"] = step.description
    pair |= _guards(step.guards)
    if step.needs:
        pair["requires"] = [need.step for need in step.needs]
    if step.retries != common:
        pair["rmax"] = step.retries
    if step.patience is not None:
        pair["r_patience"] = step.patience
    if step.escalate:
        pair |= {"escalation": [*step.escalate], "e_max": step.rounds}
    return pair


def _guards(guards: Sequence[Guard]) -> dict[str, Json]:
    if not guards:
        return {"guard": NO_GUARD}
    if len(guards) == 1 and not guards[0].items:
        one = _guard(guards[0])
        return {
            "guard": one["type"],
            **({"guard_config": one["config"]} if "config" in one else {}),
        }
    inner: list[Json] = [_guard(guard) for guard in guards]
    composed: dict[str, Json] = {"compose": "sequential", "policy": "all_pass", "guards": inner}
    return {"guard": "composite", "guards": composed}


def _guard(guard: Guard) -> dict[str, Json]:
    if guard.items:
        inner: list[Json] = [_guard(item) for item in guard.items]
        named = {"name": guard.name} if guard.name and guard.name != guard.kind else {}
        policy = _POLICIES[guard.kind]
        return {"compose": "sequential", "policy": policy, "guards": inner, **named}
    config: dict[str, Json] = {}
    if guard.kind == "syntax":
        config["language"] = guard.config
    elif guard.config not in (None, {}):
        config["value"] = guard.config
    if guard.name and guard.name != guard.kind:
        config["name"] = guard.name
    if guard.fatal_on:
        config["fatal_on"] = [*guard.fatal_on]
    if guard.timeout is not None:
        config["timeout"] = duration(guard.timeout)
    return {"type": guard.kind, **({"config": config} if config else {})}


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
