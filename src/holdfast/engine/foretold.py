"""What a run would be held for, from what stands: its plan is looked at wave by wave before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.core.ledger import Silent, folded
from holdfast.core.likeness import Alike
from holdfast.core.moves import BY_CONDITION
from holdfast.core.premises import premises_of, rules_of, standings
from holdfast.core.preview import Outlook
from holdfast.core.refs import Upstream
from holdfast.core.replan import Trigger, may_matter, may_matter_besides, triggers
from holdfast.core.said import Said
from holdfast.core.told import Told
from holdfast.core.waves import Graph
from holdfast.engine.briefs import once_more
from holdfast.engine.foresee import Foreseen
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.replans import Footing, answered
from holdfast.model.line import ReplanAnswered
from holdfast.model.plan import Plan, StepId
from holdfast.ports import Store


class Foretold(NamedTuple):
    """What would speak against a plan. It `depends` if steps have to run before all of that is known.

    Found is then what would, if those that are only made once more tell the same.
    """

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
    """What holds a run at the first wave where something does, if steps up to it stand or are made again.

    `unsaid` is what somebody is about to say of the ledger.
    """
    plan, graph = foreseen.plan, foreseen.graph
    handoffs = Handoffs(store, plan.project, plan.name)
    handoffs.refresh()
    rules, premises = rules_of(plan), premises_of(plan, graph)
    known: Mapping[str, ReplanAnswered] | None = None
    said = [*handoffs.said, *unsaid]
    told: list[Told] = []
    passed: dict[StepId, Outlook] = {}
    depends = False
    besides = may_matter_besides(said, standings(plan), premises, rules)
    for wave in graph.waves():
        seen = {step_id: foreseen.outlooks[step_id] for step_id in wave}
        unsettled = [one for one in seen.values() if not _is_settled(one)]
        if not all(_is_made_again(one) or _may_stand(one) for one in unsettled):
            return Foretold((), depends=True)
        depends = depends or bool(unsettled)
        more = _told(handoffs, graph, seen, said)
        told += more
        passed |= seen
        if not besides and not any(may_matter(one.handoff, premises, rules) for one in more):
            continue
        besides = False
        silent = _silent(plan, graph, passed, told)
        past, stands = handoffs.past(), standings(plan)
        ledger = folded(told, alike, stands, said, (), silent, plan.steps, past)
        if known is None:
            known = answered(store, here, answers)
        found = [one for one in triggers(ledger, premises, rules) if one.id not in known]
        if found:
            return Foretold(found, depends)
    return Foretold((), depends)


def _is_settled(outlook: Outlook) -> bool:
    return outlook.decision == "reuse" or outlook.reason.code in BY_CONDITION


def _is_made_again(outlook: Outlook) -> bool:
    """Whether a step runs although nothing changed that it is made from."""
    return outlook.decision == "run" and outlook.reason.code in {"evidence_contested", "forced"}


def _may_stand(outlook: Outlook) -> bool:
    """Whether a step is reused if those above it make the same."""
    return outlook.decision == "maybe" and outlook.reason.code == "upstream_changed"


def _silent(
    plan: Plan, graph: Graph, seen: Mapping[StepId, Outlook], told: Sequence[Told]
) -> dict[StepId, Silent]:
    """The steps that test hypotheses, stand or are made again, and told nothing."""
    heard = {one.step for one in told}
    return {
        step_id: Silent(graph.wave[step_id], plan.steps[step_id].hypotheses)
        for step_id, outlook in seen.items()
        if step_id not in heard
        and plan.steps[step_id].hypotheses
        and plan.steps[step_id].type != "synthesize"
        and outlook.reason.code not in BY_CONDITION
    }


def _told(
    handoffs: Handoffs, graph: Graph, outlooks: Mapping[StepId, Outlook], said: Sequence[Said]
) -> list[Told]:
    """What came with the artifacts that are reused, and what those tell again that are made again."""
    stand: dict[StepId, Upstream] = {}
    again: dict[StepId, Upstream] = {}
    for step_id, outlook in outlooks.items():
        artifact = outlook.artifact or (outlook.probe.base if outlook.probe else None)
        if artifact is not None and outlook.decision != "wait":
            made = again if _is_made_again(outlook) else stand
            made[step_id] = Upstream(artifact.config_ref, artifact.digest)
    return handoffs.came_with(graph, stand) + once_more(handoffs, graph, again, said)
