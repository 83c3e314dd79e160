"""A goal as a question: a plan of one step that asks a model for artifacts, and a guard that checks them.

It is an ordinary run, so attempts, money, consent, recordings and a kill mean what they mean for any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.model.digest import Json
from holdfast.model.expression import literals
from holdfast.model.plan import Guard, Plan, Step, StepId
from holdfast.planner.found import SCHEMA, Bounds, Found

PLANNING = ".planning"  # what the name of a line ends in on which its plans are made
STEP = StepId("plan")
KIND = "plan"  # of the guard
GOAL = "GOAL"  # what its words are called
FILES = "PROJECT FILES"  # what the listing is called
_ROLE = (
    "You plan work. You find the artifacts that have to exist when a goal is reached, and what each of them"
    " needs before it can be made. You do not make them."
)
_TASK = """\
Find the artifacts that reach the goal, and answer with one JSON object: {{"artifacts": [...]}}.

Each artifact has
- id: a short name that tells it from the others, such as UserModel: letters, digits, _ . and -
- description: one sentence that says what it is
- contract: what it must fulfil, so exactly that somebody who sees nothing else can make it and check it
- requires: the ids of the artifacts that must be there before it; an empty list if it needs none
- produces_file: the path of the one file it is, relative to the project; leave it out if it is no file
- domain_type: one word for its kind, such as protocol, model, service, test, document
- tier: small, medium or large, only if you are sure how able its maker must be
- tests: if the rest of the plan stands on a claim that may turn out false, and this artifact tests it: that
  claim, in one sentence; leave it out otherwise. If it is refuted, you are asked for another plan.

Rules
- First what others build on (interfaces, formats, outlines), so that the rest can be made side by side.
- Every id in requires is among the artifacts, and no artifact requires itself, not even by way of others.
- Two artifacts never have the same produces_file.
- At most {artifacts} artifacts, and at most {depth} in a row. Fewer are better."""
_STRATEGIES = {
    "": "",
    "contract-first": "\n- Every interface is an artifact of its own, which whatever fulfils it requires."
    " What others begin with is one: its domain_type is contract, format, interface, outline, protocol or"
    " schema.",
    "sequential": "\n- Each artifact requires the one before it: nothing is made side by side.",
}
_KEEP = """\


There is a plan already (EARLIER PLAN). Keep the id, contract and requires of every artifact that still
serves the goal exactly as they are: what is unchanged is not made again. Change, add and leave out only
what has to be."""
_FILES = """\


The project has these files already (PROJECT FILES). Put new files where they belong beside them, and name an
existing one in produces_file only if it is to be written anew."""
_FAILED = """\


Work on that plan did not get there (WHAT FAILED): something failed, or turned out otherwise than the plan
takes it. Find a plan that avoids it."""


def question(
    goal: str,
    line: str,
    model: str,
    bounds: Bounds,
    *,
    tier: str = "",
    strategy: str = "",
    earlier: Sequence[Found] = (),
    failed: str = "",
    files: str = "",
) -> Plan:
    """The plan that plans. `model` also does the steps whose tier nobody configured.

    `files` is a listing of the project, if the planner is to see one.
    """
    values: dict[str, Json] = {GOAL: goal}
    task = _TASK.format(artifacts=bounds.artifacts, depth=bounds.depth) + _STRATEGIES[strategy]
    if files:
        values[FILES] = files
        task += _FILES
    if earlier:
        values["EARLIER PLAN"] = json.dumps(_as_json(earlier), ensure_ascii=False, indent=1)
        task += _KEEP
    if failed:
        values["WHAT FAILED"] = failed
        task += _FAILED
    config: dict[str, Json] = {
        "artifacts": bounds.artifacts,
        "depth": bounds.depth,
        "model": model,
    }
    if strategy:
        config["strategy"] = strategy
    step = Step(
        id=STEP,
        uses="llm",
        prompt={"role": _ROLE, "task": task},
        model=model,
        tier=tier,
        values={
            name: literals(value) for name, value in values.items()
        },  # nobody's words are expressions
        schema=SCHEMA,
        guards=(Guard(KIND, config, name="plan"),),
        retries=bounds.rounds - 1,
        workspace="scratch",
        description="find the artifacts that the goal asks for",
    )
    return Plan(name=line + PLANNING, steps={STEP: step}, goal=goal)


def _as_json(found: Sequence[Found]) -> dict[str, Json]:
    listed: list[Json] = []
    for one in found:
        item: dict[str, Json] = {
            "id": one.id,
            "description": one.description,
            "contract": one.contract,
            "requires": list(one.requires),
        }
        for key in ("produces_file", "domain_type", "tier", "tests"):
            if value := getattr(one, key):
                item[key] = value
        listed.append(item)
    return {"artifacts": listed}


def with_files_of(asked: Plan, earlier: Plan) -> Plan:
    """A question about the project as an earlier one saw it; what else differs stays different."""
    step, seen = asked.steps[STEP], earlier.steps.get(STEP)
    if FILES not in step.values or seen is None or FILES not in seen.values:
        return asked
    values = {**step.values, FILES: seen.values[FILES]}
    return replace(asked, steps={STEP: replace(step, values=values)})


def settings_of(plan: Plan) -> Mapping[str, Json]:
    """What the guard of a plan that plans was told."""
    config = plan.steps[STEP].guards[0].config
    assert isinstance(config, Mapping)  # as `question` makes it
    return config
