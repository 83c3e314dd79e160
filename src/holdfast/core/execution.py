"""A run as an ExecutionState: what its handoffs add up to, in the words of the format it comes from.

A plan that no run was made of yet is the state that the format begins with. Only what is complete counts as
completed: a run with steps that failed, were skipped or cannot start is never complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.core.ledger import Ledger, Told
from holdfast.core.state import COMPLETE, State
from holdfast.model.digest import Json
from holdfast.model.handoff import handoff_json
from holdfast.model.plan import StepId


def execution_state(
    state: State, ledger: Ledger, plan: Mapping[str, Json], failed_at: Mapping[StepId, int]
) -> dict[str, Json]:
    """The whole of it. `plan` is the PlanSpec, `failed_at` when steps failed, by the journal."""
    log = _log(ledger)
    order = state.graph.order
    return {
        "plan": dict(plan),
        "completedStepIds": [s for s in order if state.steps[s].phase in COMPLETE],
        "pendingStepIds": [s for s in order if state.steps[s].phase not in COMPLETE],
        "currentStepId": next((s for s in order if s in state.running), None),
        "handoffLog": [
            {
                "stepId": one.step,
                "handoff": _handoff(one),
                "timestamp": one.at or failed_at.get(one.step, 0),
            }
            for one in log
        ],
        "evidenceLedger": [
            _said(
                finding=e.finding,
                source=e.source or None,
                confidence=e.confidence,
                fromStepId=e.step,
            )
            for e in ledger.evidence
        ],
        "uncertaintyInventory": [
            _said(
                question=u.question,
                raisedByStepId=u.step,
                status=u.status,
                resolvedByStepId=u.resolved_by or None,
            )
            for u in ledger.uncertainties
        ],
        "artifactRegistry": [
            {"artifact": a.artifact, "ref": a.ref, "fromStepId": a.step} for a in ledger.artifacts
        ],
        "gapsRegistry": [
            {"item": g.item, "reason": g.reason, "fromStepId": g.step} for g in ledger.gaps
        ],
        "iterations": len(log),
        "planComplete": state.status == "completed",
        "needsReplanning": state.replan is not None,
        "hypothesisStatuses": {
            name: {
                "status": one.status,
                "testedByStepIds": [*one.tested_by],
                "evidenceStepIds": [*one.evidence_steps],
            }
            for name, one in ledger.hypotheses.items()
        },
    }


def _log(ledger: Ledger) -> list[Told]:
    """Every handoff, those that count no more too; of a step the one that counts is the last."""
    both: Iterable[tuple[bool, Told]] = (
        *((False, one) for one in ledger.superseded),
        *((True, one) for one in ledger.handoffs),
    )
    ordered = sorted(both, key=lambda one: (one[1].wave, one[1].step, one[0], one[1].place))
    return [one for _, one in ordered]


def _handoff(one: Told) -> dict[str, Json]:
    """The handoff with keys in camel case; what is inside a payload stays as it is."""
    return {_camel(key): value for key, value in handoff_json(one.handoff).items()}


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _said(**entry: Json) -> dict[str, Json]:
    """An entry without what was not said."""
    return {key: value for key, value in entry.items() if value is not None}
