"""A run as an ExecutionState: what its handoffs add up to, in the words of the format it comes from.

A plan that no run was made of yet is the state that the format begins with. Only what is complete counts as
completed: a run with steps that failed, were skipped or cannot start is never complete.

In that format a step is done by handing over. One that is done and told nothing, as a person may who only
answers, stands in the log with what the journal knows: what it was to do, and the artifact that it gave. What
the steps of a workflow told, the step tells that the workflow does.

The format has no word for doubt. What a person contested, and what stands on it, is no evidence until it was
checked again: it is left out of the evidence, and stands in the log as it was told. So is a gap that a person
closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from holdfast.core.evidence import Evidence
from holdfast.core.ledger import Hypothesis, Ledger, Registered
from holdfast.core.state import COMPLETE, State
from holdfast.core.told import Told
from holdfast.model.digest import Json
from holdfast.model.handoff import Change, Handoff, handoff_json
from holdfast.model.plan import StepId


def execution_state(
    state: State, ledger: Ledger, plan: Mapping[str, Json], failed_at: Mapping[StepId, int]
) -> dict[str, Json]:
    """The whole of it. `plan` is the PlanSpec, `failed_at` when steps failed, by the journal."""
    own = _Own(plan, state)
    log = own.log(ledger)
    order = [step_id for step_id in state.graph.order if own.id(step_id) == step_id]
    current = next((s for s in state.graph.order if s in state.running), None)
    return {
        "plan": dict(plan),
        "completedStepIds": [s for s in order if state.steps[s].phase in COMPLETE],
        "pendingStepIds": [s for s in order if state.steps[s].phase not in COMPLETE],
        "currentStepId": None if current is None else own.id(current),
        "handoffLog": [
            {
                "stepId": own.id(one.step),
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
                fromStepId=own.id(e.step),
            )
            for e in ledger.evidence
            if _counts(e)
        ],
        "uncertaintyInventory": [
            _said(
                question=u.question,
                raisedByStepId=own.id(u.step),
                status=u.status,
                resolvedByStepId=own.id(u.resolved_by) if u.resolved_by else None,
            )
            for u in ledger.uncertainties
        ],
        "artifactRegistry": [
            {"artifact": a.artifact, "ref": a.ref, "fromStepId": own.id(a.step)}
            for a in own.artifacts(ledger, log)
        ],
        "gapsRegistry": [
            {"item": g.item, "reason": g.reason, "fromStepId": own.id(g.step)}
            for g in ledger.gaps
            if not g.closed
        ],
        "iterations": len(log),
        "planComplete": state.status == "completed",
        "needsReplanning": state.replan is not None,
        "hypothesisStatuses": {
            name: {
                "status": one.status,
                "testedByStepIds": own.ids(one.tested_by),
                "evidenceStepIds": own.ids(_steps_behind(one, ledger)),
            }
            for name, one in ledger.hypotheses.items()
        },
    }


def _counts(one: Evidence) -> bool:
    return not (one.contested or one.stale)


def _steps_behind(one: Hypothesis, ledger: Ledger) -> list[StepId]:
    """The steps whose evidence a hypothesis has, but for those of which all about it was contested."""
    about = {*one.supporting, *one.refuting, *one.fallen_for, *one.fallen_against}
    told = [e for e in (*ledger.evidence, *ledger.past) if e.id in about]
    fell = {e.step for e in told} - {e.step for e in told if _counts(e)}
    return [step for step in one.evidence_steps if step not in fell]


class _Own:
    """The steps that the PlanSpec has, each for itself and for the steps of the workflow that it is."""

    def __init__(self, plan: Mapping[str, Json], state: State) -> None:
        listed = cast("Iterable[Mapping[str, Json]]", plan.get("steps") or ())
        self._ids = {str(one.get("id")) for one in listed}
        self._state = state

    def id(self, step: StepId) -> StepId:
        """The step itself, or the workflow that it is a step of."""
        name = str(step)
        while name and name not in self._ids:
            name = name.rpartition(".")[0]
        return StepId(name) if name else step

    def ids(self, steps: Iterable[StepId]) -> list[Json]:
        """The same of several, each once; those that left the plan are none of it."""
        return [*dict.fromkeys(self.id(step) for step in steps if step in self._state.steps)]

    def log(self, ledger: Ledger) -> list[Told]:
        """Every handoff, those that count no more too; of a step the one that counts is the last."""
        told = {self.id(one.step) for one in ledger.handoffs}
        both: Iterable[tuple[bool, Told]] = (
            *((False, one) for one in ledger.superseded if one.step in self._state.steps),
            *((True, one) for one in ledger.handoffs),
            *((True, self._silent(s)) for s in self._done() if s not in told),
        )
        ordered = sorted(both, key=lambda one: (one[1].wave, one[1].step, one[0], one[1].place))
        return [one for _, one in ordered]

    def artifacts(self, ledger: Ledger, log: Iterable[Told]) -> list[Registered]:
        """All that was made, with what those gave that told nothing, in the order of the steps."""
        silent = [
            Registered("", one.step, change.artifact, change.ref)
            for one in log
            if not one.id
            for change in one.handoff.changed
        ]
        wave = self._state.graph.wave
        found = [*ledger.artifacts, *silent]
        return sorted(found, key=lambda one: (wave.get(one.step, 0), one.step)) if silent else found

    def _done(self) -> Iterable[StepId]:
        steps = self._state.steps
        return (s for s in steps if steps[s].phase in COMPLETE and self.id(s) == s)

    def _silent(self, step_id: StepId) -> Told:
        """What is known of a step that told nothing; it has no id, for nobody handed it over."""
        digest = self._state.steps[step_id].digest
        step = self._state.plan.steps.get(step_id)
        said = step.description if step else ""
        changed = (Change(str(step_id), str(digest)),) if digest else ()
        handoff = Handoff(said or str(step_id), changed=changed)
        return Told("", step_id, self._state.graph.wave.get(step_id, 0), handoff)


def _handoff(one: Told) -> dict[str, Json]:
    """The handoff with keys in camel case; what is inside a payload stays as it is."""
    return {_camel(key): value for key, value in handoff_json(one.handoff).items()}


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _said(**entry: Json) -> dict[str, Json]:
    """An entry without what was not said."""
    return {key: value for key, value in entry.items() if value is not None}
