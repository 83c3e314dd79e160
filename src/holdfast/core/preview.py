"""What a run would do, before it does anything: reuse, run, or only if something above changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from holdfast.core.changes import Choice, Probe, choose
from holdfast.core.refs import Upstream
from holdfast.core.waves import Graph
from holdfast.errors import EditError
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Step, StepId

Decision = Literal["run", "reuse", "maybe", "wait"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What would happen to one step. Its refs are known only if nothing above it will run."""

    decision: Decision
    reason: Reason
    probe: Probe | None = None


Look = Callable[[Step, Mapping[StepId, Upstream]], Probe]
Disk = Callable[[Step, Choice], Choice]


def preview(
    graph: Graph,
    options: Options,
    look: Look,
    disk: Disk,
    own: Callable[[Step], Probe],
    *,
    now: int,
) -> dict[StepId, Outlook]:
    """Decide every step in order.

    `look` probes a step whose needs are all reused, `own` compares only the own parts of a step whose
    needs are not known yet, `disk` checks outputs that would be reused.
    """
    outlooks: dict[StepId, Outlook] = {}
    known: dict[StepId, Upstream] = {}
    for step_id in graph.order:
        step = graph.steps[step_id]
        open_needs = [need for need in step.data_needs if need not in known]
        if open_needs:
            outlooks[step_id] = _below(step, own(step), options, open_needs, outlooks)
            continue
        try:
            probe = look(step, {need: known[need] for need in step.data_needs})
            choice = choose(step, probe, options, now=now)
            if choice.action == "reuse" and step.produces:
                choice = disk(step, choice)
        except EditError as error:
            outlooks[step_id] = Outlook("run", Reason("command_failed", (error.message,)))
            continue
        if choice.action == "run" or choice.artifact is None:
            outlooks[step_id] = Outlook("run", choice.reason, probe)
            continue
        decision: Decision = "maybe" if choice.action == "reguard" else "reuse"
        outlooks[step_id] = Outlook(decision, choice.reason, probe)
        if choice.action == "reuse":
            known[step_id] = Upstream(probe.refs.config_ref, choice.artifact.digest)
    return outlooks


def _below(
    step: Step,
    probe: Probe,
    options: Options,
    open_needs: list[StepId],
    outlooks: Mapping[StepId, Outlook],
) -> Outlook:
    """A step below one that runs or may run. Its ref cannot be known, so only what is certain is said."""
    if options.force or step.id in options.force_steps:
        return Outlook("run", Reason("forced"))
    if probe.newest is None:
        return Outlook("run", Reason("undone" if probe.undone else "never_ran"), probe)
    if probe.changes:
        first = probe.changes[0]
        return Outlook("run", Reason(first.code, first.names), probe)
    certain = tuple(sorted(need for need in open_needs if _will_change(outlooks[need])))
    cutoff = options.cutoff or step.reuse == "content"
    if certain and not cutoff:
        return Outlook("run", Reason("upstream_changed", certain), probe)
    return Outlook("maybe", Reason("upstream_changed", tuple(sorted(open_needs))), probe)


def _will_change(above: Outlook) -> bool:
    """A step that runs under a ref that no accepted artifact ever had gives its dependents a new ref."""
    if above.decision != "run" or above.probe is None:
        return above.decision == "run"
    return above.probe.found is None and not above.probe.undone
