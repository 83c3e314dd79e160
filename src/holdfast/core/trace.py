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
    """The trace of a run whose plan has these waves."""
    return [*_Tracer(waves).lines(events)]


class _Tracer:
    """Which waves were begun, and what in them is settled."""

    def __init__(self, waves: Sequence[Sequence[StepId]]) -> None:
        self._waves = waves
        self._wave = {step: number for number, wave in enumerate(waves) for step in wave}
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
                yield "plan_created", {"artifact_count": len(self._wave)}
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
                self._settled.difference_update(steps)
                self._begun.difference_update(self._wave[s] for s in steps if s in self._wave)
            case RunEnded(status=status) | RunRested(status=status) if STATUS[status] != "paused":
                yield "execution_complete", {"status": STATUS[status]}
            case _:
                pass

    def _begin(self, step: StepId) -> Iterator[tuple[str, dict[str, Json]]]:
        number = self._wave.get(step)
        if number is not None and number not in self._begun:
            self._begun.add(number)
            yield "wave_start", {"wave": number, "artifacts": [*self._waves[number]]}

    def _settle(
        self, step: StepId, event: str, says: dict[str, Json]
    ) -> Iterator[tuple[str, dict[str, Json]]]:
        yield from self._begin(step)
        yield event, {"id": step, **says}
        number = self._wave.get(step)
        was = number is not None and self._is_settled(number)
        self._settled.add(step)
        if number is not None and not was and self._is_settled(number):
            yield "wave_complete", {"wave": number}

    def _is_settled(self, number: int) -> bool:
        return self._settled.issuperset(self._waves[number])
