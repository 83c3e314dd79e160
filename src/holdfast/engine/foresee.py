"""A preview of a plan against a store: read only, nothing is created, run or written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from holdfast.core.changes import Choice, Probe
from holdfast.core.preview import Outlook, preview
from holdfast.core.refs import Refs, Upstream
from holdfast.core.waves import Graph, graph_of
from holdfast.engine.outputs import Outputs
from holdfast.engine.probe import Prober
from holdfast.engine.survey import Survey
from holdfast.model.digest import Digest
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Store

_UNKNOWN = Refs(Digest(""), Digest(""), Digest(""))


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The outlook of every step, and the run it was compared with."""

    graph: Graph
    outlooks: Mapping[StepId, Outlook]
    previous: RunId | None


def foresee(
    plan: Plan,
    line: str,
    root: str,
    store: Store,
    survey: Survey,
    options: Options,
    clock: Callable[[], int],
) -> Foreseen:
    """What a run of this plan would do now. The survey must know the versions of tools already."""
    graph = graph_of(plan)
    prober = Prober(store, survey, plan, plan.project, line)
    outputs = Outputs(root, "", store)
    rows = [row for row in store.runs(line) if row.project == plan.project]
    previous = rows[-1].run if rows else None

    def look(step: Step, upstream: Mapping[StepId, Upstream]) -> Probe:
        return prober.probe(step, upstream, options, previous=previous).probe

    def own(step: Step) -> Probe:
        newest = store.newest(plan.project, line, step.id)
        changes = () if newest is None else prober.own_changes(step, newest)
        undone = prober.is_undone(step.id, _UNKNOWN.config_ref, newest)
        return Probe(step.id, _UNKNOWN, newest=newest, changes=changes, undone=undone)

    def disk(step: Step, choice: Choice) -> Choice:
        if choice.artifact is None:
            return choice
        drift = outputs.drift(
            step,
            choice.artifact,
            lambda: store.artifacts(project=plan.project, line=line, step=step.id),
        )
        if drift.state == "edited":
            return Choice("run", Reason("output_modified", drift.paths))
        return choice

    outlooks = preview(graph, options, look, disk, own, now=clock())
    for step_id, outlook in outlooks.items():
        asked = step_id in options.force_steps
        if (
            outlook.decision == "run"
            and not asked
            and prober.is_held(plan.steps[step_id], previous)
        ):
            outlooks[step_id] = replace(
                outlook, decision="wait", reason=Reason("effect_unconfirmed")
            )
    return Foreseen(graph, outlooks, previous)
