"""What a run would be held for, from what stands: its plan is looked at wave by wave before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.core.ledger import Told, folded
from holdfast.core.likeness import Alike
from holdfast.core.moves import BY_CONDITION
from holdfast.core.premises import premises_of, rules_of, standings
from holdfast.core.preview import Outlook
from holdfast.core.refs import Upstream
from holdfast.core.replan import Trigger, may_matter, triggers
from holdfast.core.said import Said
from holdfast.core.waves import Graph
from holdfast.engine.foresee import Foreseen
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.replans import Footing, answered
from holdfast.model.line import ReplanAnswered
from holdfast.model.plan import StepId
from holdfast.ports import Store


class Foretold(NamedTuple):
    """What would speak against a plan. It `depends` if steps have to run before all of that is known."""

    found: Sequence[Trigger]
    depends: bool


def foretold(
    store: Store,
    foreseen: Foreseen,
    here: Footing,
    answers: Sequence[ReplanAnswered],
    alike: Alike,
    unsaid: Sequence[Said] = (),
) -> Foretold:
    """What holds a run at the first wave where something does, if all steps up to it are reused.

    `unsaid` is what somebody is about to say of the ledger.
    """
    plan, graph = foreseen.plan, foreseen.graph
    handoffs = Handoffs(store, plan.project, plan.name)
    handoffs.refresh()
    rules, premises = rules_of(plan), premises_of(plan, graph)
    known: Mapping[str, ReplanAnswered] | None = None
    told: list[Told] = []
    for wave in graph.waves():
        if not all(_is_settled(foreseen.outlooks[step_id]) for step_id in wave):
            return Foretold((), depends=True)
        more = _told(handoffs, graph, foreseen.outlooks, wave)
        told += more
        if not any(may_matter(one.handoff, premises, rules) for one in more):
            continue
        ledger = folded(told, alike, standings(plan), [*handoffs.said, *unsaid])
        if known is None:
            known = answered(store, here, answers)
        found = [one for one in triggers(ledger, premises, rules) if one.id not in known]
        if found:
            return Foretold(found, depends=False)
    return Foretold((), depends=False)


def _is_settled(outlook: Outlook) -> bool:
    return outlook.decision == "reuse" or outlook.reason.code in BY_CONDITION


def _told(
    handoffs: Handoffs,
    graph: Graph,
    outlooks: Mapping[StepId, Outlook],
    steps: Sequence[StepId],
) -> list[Told]:
    """What came with the artifacts that are reused."""
    made: dict[StepId, Upstream] = {}
    for step_id in steps:
        artifact = outlooks[step_id].artifact
        if artifact is not None:
            made[step_id] = Upstream(artifact.config_ref, artifact.digest)
    return handoffs.came_with(graph, made)
