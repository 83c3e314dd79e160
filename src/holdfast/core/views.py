"""A run as people and programs see it: the same facts, in the shape of the machine-readable contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from holdfast.core.reasons import sentence
from holdfast.core.state import Phase, Spent, State
from holdfast.model.artifact import Artifact, Status
from holdfast.model.call import MICRO
from holdfast.model.digest import Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptRejected,
    AttemptStarted,
    ConflictFound,
    Reason,
    Recorded,
    Reused,
    RunStarted,
    StepsReused,
    StepsTaken,
    Taken,
)
from holdfast.model.line import ApprovalRequested, ReplanAnswered, StepAccepted, StepAmended
from holdfast.model.plan import RunId, StepId

RUN_SCHEMA = "holdfast.run/1"
AdditionState = Literal["open", "added", "refused", "dropped"]


class Addition(NamedTuple):
    """Steps that a person asked to add to a run, and what became of that.

    `open` is not answered yet; `dropped` never will be, for the run has ended. `said` is why it was refused.
    """

    request: int
    steps: tuple[StepId, ...]
    secrets: tuple[str, ...]  # that these steps ask for
    by: str
    because: str
    state: AdditionState
    said: str = ""

    def json(self) -> dict[str, Json]:
        """The same for programs."""
        return {
            "request": self.request,
            "steps": list(self.steps),
            "secrets": list(self.secrets),
            "by": self.by,
            "because": self.because or None,
            "state": self.state,
            "said": self.said or None,
        }


def reason_json(reason: Reason | None) -> Json:
    """A reason with its sentence."""
    if reason is None:
        return None
    return {"code": reason.code, "text": sentence(reason), "because": list(reason.because)}


def usd(micro: int | None) -> float | None:
    """Micro-dollars as dollars; None stays what nobody knows."""
    return None if micro is None else round(micro / MICRO, 6)


def spent_json(spent: Spent | None) -> dict[str, Json]:
    """What calls cost and used; where a price is not known, the cost is null and the word says so."""
    spent = spent or Spent()
    return {
        "cost_usd": usd(spent.cost) if not spent.unpriced else None,
        "price": "unknown" if spent.unpriced else "known",
        "calls": spent.calls,
        "tokens": spent.tokens,
    }


def cost_limit(state: State) -> int | None:
    """What a run may spend in all, in micro-dollars: as a person says, else as the plan does."""
    if state.max_cost is not None:
        return state.max_cost
    most = state.plan.limits.usd
    return None if most is None else int(most * MICRO)


def plan_head(state: State, file: str | None) -> dict[str, Json]:
    """Which plan a run belongs to."""
    return {"line": state.line, "ref": state.w_ref, "file": file}


def run_json(
    state: State,
    *,
    file: str | None,
    now: int,
    asked: Mapping[StepId, Sequence[ApprovalRequested]] | None = None,
    additions: Mapping[int, Addition] | None = None,
    saved: int | None = 0,
    replaces: ReplanAnswered | None = None,
) -> dict[str, Json]:
    """The object that `run`, `resume`, `retry` and `status` print.

    `asked` is what people were asked, `additions` what they asked to add, by the number of the request;
    `saved` are micro-dollars that reuse saved, None if that is not known. `replaces` is the answer by which
    its plan took the place of another.
    """
    additions = additions or {}
    return {
        "schema": RUN_SCHEMA,
        "run": state.run,
        "status": state.status,
        "reason": reason_json(None if state.ended or state.status == "running" else state.rest),
        "plan": plan_head(state, file),
        "steps": {step_id: _step_json(state, step_id, additions) for step_id in state.steps},
        "waiting": _waiting(state, asked or {}),
        "conflicts": [_conflict_json(found) for found in state.conflicts.values()],
        "replan": _replan_json(state),
        "replaces": None
        if replaces is None
        else {"run": replaces.run, "triggers": list(replaces.triggers), "how": replaces.choice},
        "gaps": [
            {"step": step_id, "by": gap.by, "because": gap.because, "at": gap.at}
            for step_id, gap in state.gaps.items()
        ],
        "additions": [addition.json() for addition in additions.values()],
        "forked": {"run": state.forked, "step": state.forked_at} if state.forked else None,
        "totals": totals(state, now, saved),
    }


def _replan_json(state: State) -> Json:
    """What speaks against the plan of a run, and the plan that took its place if one did."""
    if state.replan is None:
        return None
    return {
        "triggers": list(state.replan.triggers),
        "wave": state.replan.wave,
        "words": state.replan.words,
        "plan": state.replanned,
    }


def _conflict_json(found: ConflictFound) -> dict[str, Json]:
    return {
        "conflict": found.conflict,
        "kind": found.kind,
        "steps": list(found.steps),
        "paths": list(found.paths),
        "record": found.record,
    }


def shown_phase(state: State, step_id: StepId) -> Phase:
    """The state of a step as it is told: one that a person goes on without counts as skipped."""
    return "skipped" if step_id in state.gaps else state.steps[step_id].phase


def asked_for(state: State, step_id: StepId, additions: Mapping[int, Addition]) -> Addition | None:
    """The request of a person that a step of the run comes from."""
    origin = state.added.get(step_id)
    return additions.get(origin.request) if origin is not None else None


def origin_json(state: State, step_id: StepId, additions: Mapping[int, Addition]) -> Json:
    """Where a step comes from that the run did not begin with: a step, or a person's request."""
    origin = state.added.get(step_id)
    if origin is None:
        return None
    asked = asked_for(state, step_id, additions)
    return {
        "step": origin.step or None,
        "request": origin.request or None,
        "at": origin.at,
        "by": asked.by if asked else None,
        "because": (asked.because or None) if asked else None,
    }


def _step_json(state: State, step_id: StepId, additions: Mapping[int, Addition]) -> dict[str, Json]:
    step = state.steps[step_id]
    complete = step.phase in {"done", "reused"}
    return {
        "state": shown_phase(state, step_id),
        "reason": reason_json(step.reason),
        "attempts": step.attempts,
        "config_ref": step.config_ref,
        "digest": step.digest if complete else None,
        **spent_json(step.spent),
        "duration_ms": 0 if step.phase == "reused" else step.spent_ms,
        "added": origin_json(state, step_id, additions),
    }


def _waiting(
    state: State, asked: Mapping[StepId, Sequence[ApprovalRequested]]
) -> list[dict[str, Json]]:
    """One entry for each question; a step that waits for something else has one without."""
    found: list[dict[str, Json]] = []
    if state.replan is not None and state.replanned is None:
        about = {"step": None, "from": None, "subject": state.replan.words, "for": "replan"}
        found += [{"approval": name, **about} for name in state.replan.triggers]
    for step_id, step in state.steps.items():
        if step.phase != "waiting":
            continue
        questions = asked.get(step_id, ())
        found += [
            {
                "approval": question.approval,
                "step": step_id,
                "from": " or ".join(question.names) or None,
                "subject": question.subject,
            }
            for question in questions
        ]
        if not questions:
            found.append({"approval": None, "step": step_id, "from": None, "subject": None})
    return found


def totals(state: State, now: int, saved: int | None = 0) -> dict[str, Json]:
    """Counts and sums of a run; `now` is 0 if no engine works on it."""
    counts = state.counts
    return {
        "steps": len(state.steps),
        "done": counts["done"],
        "reused": counts["reused"] - len(state.gaps),
        "failed": counts["failed"],
        "skipped": counts["skipped"] + len(state.gaps),
        **spent_json(state.spent),
        "known_usd": usd(state.spent.cost),
        "saved_usd": usd(saved),
        "rejected_usd": usd(state.spent.rejected),
        "interrupted_usd": usd(state.spent.interrupted),
        "interrupted_calls": state.spent.cut,
        "max_cost_usd": usd(cost_limit(state)),
        "duration_ms": worked_ms(state, now),
    }


def worked_ms(state: State, now: int = 0) -> int:
    """For how many milliseconds engines worked on a run, in all its starts; `now` only while one does."""
    if state.status != "running":
        return state.worked
    return state.worked + max(0, (now or state.last_at) - state.since)


def artifacts_of(
    events: Iterable[Recorded], origin: Callable[[int, Reused], Artifact | None]
) -> list[tuple[int, Artifact]]:
    """The rows of the artifact index that a run's journal implies, each with the number of its event.

    `origin` finds the row that a reuse by content stands on: its input ref is not in the event.
    """
    rows: list[tuple[int, Artifact]] = []
    start: RunStarted | None = None
    open_attempts: dict[str, AttemptStarted] = {}
    standing: dict[str, int] = {}
    for recorded in events:
        event = recorded.event
        if isinstance(event, RunStarted):
            start = event
        elif isinstance(event, AttemptStarted):
            open_attempts[event.step] = event
        elif start is not None and isinstance(
            event, AttemptAccepted | AttemptRejected | AttemptLost
        ):
            row = _row(start, open_attempts.pop(event.step), event, recorded.at)
            if isinstance(event, AttemptAccepted):
                _supersede(rows, standing, event.step)
            rows += [(recorded.seq, row)] if row else []
        elif start is not None and isinstance(event, StepsReused):
            for item in event.items:
                if item.code == "unchanged_content" and (row := origin(recorded.seq, item)):
                    row = replace(row, config_ref=item.config_ref, run=start.run, attempt=0)
                    _supersede(rows, standing, item.step)
                    rows.append((recorded.seq, row))
        elif start is not None and isinstance(event, StepsTaken):
            for taken in event.items:
                _supersede(rows, standing, taken.step)
                rows.append((recorded.seq, taken_row(start, taken)))
        elif isinstance(event, AttemptFailed):
            del open_attempts[event.step]
    return rows


def _supersede(rows: list[tuple[int, Artifact]], standing: dict[str, int], step: StepId) -> None:
    """A run that accepts a step again lets what it accepted before stand no more; the next row does."""
    before = standing.get(step)
    if before is not None:
        seq, row = rows[before]
        rows[before] = (seq, replace(row, status="superseded"))
    standing[step] = len(rows)


def taken_row(start: RunStarted, item: Taken) -> Artifact:
    """The row of the artifact index for what a fork takes: it stands in the line of the fork as well."""
    return Artifact(
        project=start.project,
        line=start.line,
        step=item.step,
        config_ref=item.config_ref,
        input_ref=item.input_ref,
        own_ref=item.own_ref,
        digest=item.digest,
        status="accepted",
        source=item.source,
        run=start.run,
        attempt=0,
        form=item.form,
        verified=item.verified,
        reusable=item.reusable,
        at=item.made_at,
    )


def _row(
    start: RunStarted,
    began: AttemptStarted,
    event: AttemptAccepted | AttemptRejected | AttemptLost,
    at: int,
) -> Artifact | None:
    digest = event.kept if isinstance(event, AttemptLost) else event.digest
    if digest is None:
        return None
    status: Status = "rejected"
    if isinstance(event, AttemptAccepted):
        status = "accepted" if event.stands else "superseded"
    elif isinstance(event, AttemptLost):
        status = "interrupted"
    return Artifact(
        project=start.project,
        line=start.line,
        step=event.step,
        config_ref=began.config_ref,
        input_ref=began.input_ref,
        own_ref=began.own_ref,
        digest=digest,
        status=status,
        source=began.source,
        run=start.run,
        attempt=began.attempt,
        form="tree" if isinstance(event, AttemptLost) else event.form,
        verified=isinstance(event, AttemptAccepted) and event.verified,
        reusable=isinstance(event, AttemptAccepted) and event.reusable,
        at=at,
    )


def person_row(event: StepAmended | StepAccepted, project: str, line: str, at: int) -> Artifact:
    """The row of the artifact index for a person's version, or for one that a person accepted."""
    amended = isinstance(event, StepAmended)
    return Artifact(
        project=project,
        line=line,
        step=event.step,
        config_ref=event.config_ref,
        input_ref=event.input_ref,
        own_ref=event.own_ref,
        digest=event.digest,
        status="accepted",
        source="human" if amended else "accepted",
        run=RunId(""),
        attempt=0,
        form=event.form,
        verified=isinstance(event, StepAmended) and event.verified,
        at=at,
    )
