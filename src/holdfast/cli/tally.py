"""A run at a glance, kept from its events: how many steps stand where, what runs, what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.cli.calls import Calls, calls_of
from holdfast.core.state import PHASES, Phase, State
from holdfast.core.views import cost_limit
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    CallFailed,
    GapClosed,
    PlanExtended,
    Reason,
    Recorded,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
    StepWaived,
)
from holdfast.model.plan import StepId


@dataclass(frozen=True, slots=True)
class Running:
    """One attempt that is under way."""

    attempt: int
    since: int
    guards_only: bool = False


@dataclass(slots=True)
class Tally:
    """What a footer shows. Only counts: telling an event twice changes nothing."""

    run: str = ""
    since: int = 0
    phases: dict[StepId, Phase] = field(default_factory=dict)
    counts: dict[Phase, int] = field(default_factory=lambda: dict.fromkeys(PHASES, 0))
    running: dict[StepId, Running] = field(default_factory=dict)
    waiting: dict[StepId, Reason] = field(default_factory=dict)
    asked: int = 0  # calls of models that have ended
    cost: int = 0
    unpriced: int = 0
    most: int | None = None  # what it may spend
    paid: dict[StepId, int] = field(default_factory=dict)  # by steps that run
    calls: Calls = field(default_factory=Calls)

    @property
    def total(self) -> int:
        return len(self.phases)

    @property
    def complete(self) -> int:
        return self.counts["done"] + self.counts["reused"]

    def take(self, recorded: Recorded) -> None:
        """Count one event."""
        event = recorded.event
        self.calls.take(recorded)
        match event:
            case AttemptStarted():
                self.running[event.step] = Running(
                    event.attempt, recorded.at, event.reguard is not None and not event.approvals
                )
                self._set(event.step, "running")
            case AttemptAccepted():
                before = self.running.pop(event.step, None)
                self.waiting.pop(event.step, None)
                self._set(event.step, "reused" if before and before.guards_only else "done")
            case AttemptRejected() | AttemptFailed() | AttemptLost():
                self.running.pop(event.step, None)
                self.waiting.pop(event.step, None)
                self._set(event.step, "pending")
            case StepFailed():
                self.waiting.pop(event.step, None)
                self._set(event.step, "failed")
            case StepHeld():
                self.waiting[event.step] = event.reason
                self._set(event.step, "waiting")
            case StepsReused() | StepsSkipped() | StepsTaken():
                phase: Phase = "skipped" if isinstance(event, StepsSkipped) else "reused"
                for item in event.items:
                    self._set(item.step, phase)
            case AttemptParked():
                self.running.pop(event.step, None)
                self.waiting[event.step] = Reason("awaiting_approval", event.approvals)
                self._set(event.step, "waiting")
            case StepsReset() | StepsReleased():
                for step in event.steps:
                    self.waiting.pop(step, None)
                    self._set(step, "pending")
            case PlanExtended():
                for step in event.added:
                    self._set(step, "pending")
            case CallAnswered() | CallFailed():
                self.asked += 1
                self.cost += event.cost or 0
                self.unpriced += event.cost is None
                self.paid[event.step] = self.paid.get(event.step, 0) + (event.cost or 0)
            case StepWaived():
                self._set(event.step, "reused")
            case GapClosed():
                for step in event.steps:
                    self._set(step, "pending")
            case _:
                pass

    def _set(self, step: StepId, phase: Phase) -> None:
        before = self.phases.get(step)
        if before is not None:
            self.counts[before] -= 1
        self.counts[phase] += 1
        self.phases[step] = phase


def tally_of(state: State) -> Tally:
    """The tally of a run as it stands."""
    begun = state.since - state.worked  # as if its starts had followed each other
    tally = Tally(run=state.run, since=begun, most=cost_limit(state))
    tally.calls = calls_of(state)
    spent = state.spent
    tally.asked, tally.cost, tally.unpriced = spent.calls, spent.cost, spent.unpriced
    tally.phases = {step_id: step.phase for step_id, step in state.steps.items()}
    tally.counts = dict(state.counts)
    for step_id, started in state.running.items():
        at = state.steps[step_id].started_at
        tally.running[step_id] = Running(started.attempt, at, started.reguard is not None)
    tally.waiting = {
        step_id: step.reason
        for step_id, step in state.steps.items()
        if step.phase == "waiting" and step.reason is not None
    }
    return tally


def counted(counts: Mapping[Phase, int]) -> str:
    """The counts that are not zero, in words."""
    words = {"reused": "reused", "done": "ran", "running": "running"}
    words |= {"waiting": "waiting", "failed": "failed", "skipped": "skipped"}
    return " · ".join(
        f"{counts[phase]} {words[phase]}" for phase in PHASES_SHOWN if counts.get(phase)
    )


PHASES_SHOWN: tuple[Phase, ...] = ("reused", "done", "running", "waiting", "failed", "skipped")
