"""Which older versions need not be written: those that a later step of the plan writes over anyway."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.core.preview import Outlook
from holdfast.core.waves import Graph
from holdfast.model.plan import Step, StepId


def has_outputs_at(step: Step, paths: Collection[str]) -> bool:
    """Whether all these paths are outputs of the step, or lie beneath one."""
    return all(any(p == own or p.startswith(f"{own}/") for own in step.produces) for p in paths)


def is_overwritten(
    graph: Graph, outlooks: Mapping[StepId, Outlook], step_id: StepId, paths: Sequence[str]
) -> bool:
    """Whether these outputs of a step are those of a later one too, and nothing in between is made.

    Then nobody reads the version of the earlier step on disk, and the later one finds or writes its own.
    """
    below = graph.below([step_id]) - {step_id}
    later = [other for other in below if has_outputs_at(graph.steps[other], paths)]
    after = {end for other in later for end in graph.below([other]) - {other}}
    between = below - after
    return bool(later) and all(_stands(outlooks[other]) for other in between)


def _stands(outlook: Outlook) -> bool:
    return outlook.decision == "reuse" or outlook.means == "adopt"


def without_overwritten(graph: Graph, outlooks: Mapping[StepId, Outlook]) -> dict[StepId, Outlook]:
    """The outlooks, without files that would be written only to be written over."""
    return {
        step_id: replace(outlook, written=())
        if outlook.decision == "reuse"
        and outlook.written
        and is_overwritten(graph, outlooks, step_id, outlook.written)
        else outlook
        for step_id, outlook in outlooks.items()
    }
