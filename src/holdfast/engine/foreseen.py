"""Steps that a preview foresees although the plan does not have them: items, and what artifacts bring."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.preview import Outlook
from holdfast.core.waves import Graph
from holdfast.engine.additions import Additions
from holdfast.engine.gathering import opened_by
from holdfast.engine.grow import fitting, words_of
from holdfast.errors import PlanError
from holdfast.model.artifact import Artifact
from holdfast.model.event import Reason
from holdfast.model.items import source_of
from holdfast.model.plan import Plan, Step, StepId
from holdfast.model.walls import WALLS, Walls
from holdfast.ports import Fragments, Store


def opened(
    store: Store,
    plan: Plan,
    outlooks: Mapping[StepId, Outlook],
    unlisted: dict[StepId, str],
    walls: Walls = WALLS,
) -> dict[StepId, tuple[StepId, Step]]:
    """The items of steps whose list would be reused, each with who lists it.

    `unlisted` is told why a list is none.
    """
    found: dict[StepId, tuple[StepId, Step]] = {}
    for base in [step for step in plan.steps.values() if step.awaits_items]:
        source = source_of(base.for_each)
        artifact = None if source is None else outlooks[source].artifact
        if source is None or artifact is None or outlooks[source].decision != "reuse":
            continue
        try:
            steps = opened_by(base, plan.steps, store.get, artifact.digest, artifact.form, walls)
        except PlanError as error:
            unlisted[base.id] = words_of(error)
            continue
        if len(steps) > 1:
            found |= {step_id: (source, step) for step_id, step in steps.items()}
    return found


def without_list(
    graph: Graph, outlooks: Mapping[StepId, Outlook], unlisted: Mapping[StepId, str]
) -> dict[StepId, Outlook]:
    """What comes of steps whose list is none, and of all that needs them."""
    found = {
        step_id: Outlook("wait", Reason("command_failed", (words,)))
        for step_id, words in unlisted.items()
    }
    for step_id in graph.order:
        stuck = tuple(sorted(n.step for n in graph.steps[step_id].needs if n.step in found))
        if stuck and outlooks[step_id].decision != "reuse":
            found[step_id] = Outlook("wait", Reason("dependency_failed", stuck))
    return found


def brought(
    additions: Additions, plan: Plan, outlooks: Mapping[StepId, Outlook]
) -> dict[StepId, tuple[StepId, Step]]:
    """The steps that come with what would be reused, and are not in the plan."""
    found: dict[StepId, tuple[StepId, Step]] = {}
    if not additions.are_any():
        return found
    for step_id, outlook in outlooks.items():
        if outlook.decision == "reuse" and outlook.artifact is not None:
            for name, step in additions.of(outlook.artifact).items():
                if name not in plan.steps:
                    found.setdefault(name, (step_id, step))
    return found


def unfit(additions: Additions, plan: Plan, fragments: Fragments, artifact: Artifact) -> str:
    more = additions.of(artifact)
    try:
        if more:
            fitting(plan, artifact.step, more, fragments)
    except PlanError as error:
        return error.problems[0].message
    return ""
