"""The trace of a run: its journal in the words of the saved plan of artifacts, one line for an event.

A line follows from the events up to it alone. The trace of a run that went on therefore begins with the
trace that it had before: it is only ever appended to. Waves are numbered from 0, as that format does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.core.reasons import sentence
from holdfast.model.digest import Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    Event,
    PlanExtended,
    Recorded,
    RunEnded,
    RunRested,
    RunStarted,
    StepFailed,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
    StepWaived,
)
from holdfast.model.plan import StepId

STATUS = {
    "running": "in_progress",
    "completed": "completed",
    "superseded": "paused",
    "paused": "paused",
    "waiting": "paused",
    "limit": "paused",
    "failed": "failed",
    "escalated": "failed",
    "blocked": "failed",
}


class Line(NamedTuple):
    """One line: when, which event, what it says."""

    at: int
    event: str
    says: dict[str, Json]


def trace(events: Iterable[Recorded], waves: Sequence[Sequence[StepId]]) -> list[Line]:
    """The trace of a run whose plan has these waves by now."""
    known = [*events]
    later = {
        step
        for recorded in known
        if isinstance(recorded.event, PlanExtended)
        for step in recorded.event.added
    }
    return [*_Tracer(waves, later).lines(known)]


class _Tracer:
    """Which waves were begun, and how much in them is not settled.

    Steps that were added `later` join their wave when they were; the waves of the others are the same
    before and after.
    """

    def __init__(self, waves: Sequence[Sequence[StepId]], later: set[StepId]) -> None:
        self._wave = {step: number for number, wave in enumerate(waves) for step in wave}
        self._waves = [[step for step in wave if step not in later] for wave in waves]
        self._left = [len(wave) for wave in self._waves]
        self._begun: set[int] = set()
        self._settled: set[StepId] = set()
        self._started: dict[StepId, int] = {}

    def lines(self, events: Iterable[Recorded]) -> Iterator[Line]:
        for recorded in events:
            for name, says in self._said(recorded.event, recorded.at):
                yield Line(recorded.at, name, says)

    def _said(self, event: Event, at: int) -> Iterator[tuple[str, dict[str, Json]]]:
        match event:
            case RunStarted():
                yield "plan_created", {"artifact_count": sum(self._left)}
            case AttemptStarted(step=step):
                self._started[step] = at
                yield from self._begin(step)
            case AttemptAccepted(step=step):
                took = at - self._started.get(step, at)
                yield from self._settle(step, "artifact_complete", {"duration_ms": took})
            case StepFailed(step=step, reason=reason):
                yield from self._settle(step, "artifact_failed", {"error": sentence(reason)})
            case StepsReused(items=reused):
                for item in reused:
                    yield from self._settle(item.step, "artifact_skipped", {"reason": item.code})
            case StepsTaken(items=taken):
                for one in taken:
                    yield from self._settle(one.step, "artifact_skipped", {"reason": "forked"})
            case StepsSkipped(items=skipped):
                for left in skipped:
                    says: dict[str, Json] = {"reason": left.code, "because": left.because}
                    yield from self._settle(left.step, "artifact_skipped", says)
            case StepWaived(step=step):
                yield from self._settle(step, "artifact_skipped", {"reason": "waived"})
            case StepsReset(steps=steps) | StepsReopened(steps=steps):
                self._reopen(steps)
            case PlanExtended(added=added):
                for step in added:
                    self._waves[self._wave[step]].append(step)
                    self._left[self._wave[step]] += 1
            case RunEnded(status=status) | RunRested(status=status) if STATUS[status] != "paused":
                yield "execution_complete", {"status": STATUS[status]}
            case _:
                pass

    def _begin(self, step: StepId) -> Iterator[tuple[str, dict[str, Json]]]:
        number = self._wave.get(step)
        if number is not None and number not in self._begun:
            self._begun.add(number)
            yield "wave_start", {"wave": number, "artifacts": sorted(self._waves[number])}

    def _settle(
        self, step: StepId, event: str, says: dict[str, Json]
    ) -> Iterator[tuple[str, dict[str, Json]]]:
        yield from self._begin(step)
        yield event, {"id": step, **says}
        number = self._wave.get(step)
        if number is None or step in self._settled:
            return
        self._settled.add(step)
        self._left[number] -= 1
        if not self._left[number]:
            yield "wave_complete", {"wave": number}

    def _reopen(self, steps: Iterable[StepId]) -> None:
        for step in steps:
            if step in self._settled:
                self._settled.remove(step)
                self._left[self._wave[step]] += 1
            self._begun.discard(self._wave.get(step, -1))
