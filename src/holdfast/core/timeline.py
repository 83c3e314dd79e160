"""When each step was worked on, when it waited for a person, and what decided how long a run took.

`Worked` takes the events of a run one by one, so somebody who looks on adds only what is new. An engine that
died leaves attempts without an end: they count up to the last thing that it wrote.

Time is drawn on an axis from which long stretches are cut in which nobody worked: a night between two
attempts would leave nothing to be seen of either.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from holdfast.core.waves import Graph
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    GapClosed,
    Recorded,
    RunEnded,
    RunEvent,
    RunResumed,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
    StepWaived,
)
from holdfast.model.line import LineEvent
from holdfast.model.plan import StepId

How = Literal["accepted", "parked", "rejected", "failed", "lost", "running", "waiting"]
WIDE: Final = 1000.0  # of the axis
_CUT: Final = 24.0  # of it for a stretch that is cut
_MOST_CUTS: Final = 12
_SHORTEST_CUT: Final = 2000  # milliseconds
_LEAST_SHARE: Final = 0.1  # of all work: a shorter stretch is drawn as long as it is
_MOST_PIECES: Final = 60  # of the bar of a group


class Bar(NamedTuple):
    """An attempt, or a wait, from when to when; the number of a wait is 0."""

    begun: int
    ended: int
    how: How
    attempt: int = 0


@dataclass(slots=True)
class Worked:
    """What the events of a run say about time, up to the last that was taken."""

    seq: int = 0
    last: int = 0
    over: bool = False
    bars: dict[StepId, list[Bar]] = field(default_factory=dict)
    settled: dict[StepId, int] = field(default_factory=dict)
    _running: dict[StepId, tuple[int, int]] = field(default_factory=dict)
    _held: dict[StepId, int] = field(default_factory=dict)

    def take(self, recorded: Recorded) -> None:
        """One more event of the run."""
        event, at = recorded.event, recorded.at
        match event:
            case RunResumed():
                for step in [*self._running]:  # whoever had them is gone
                    self._end(step, self.last, "lost")
            case AttemptStarted():
                self._release((event.step,), at)
                self.settled.pop(event.step, None)
                self._running[event.step] = (at, event.attempt)
            case AttemptParked():
                self._end(event.step, at, "parked")
                self._held.setdefault(event.step, at)
            case AttemptAccepted():
                self._end(event.step, at, "accepted")
                self._settle((event.step,), at)
            case AttemptRejected():
                self._end(event.step, at, "rejected")
                self._release((event.step,), at)
            case AttemptFailed():
                self._end(event.step, at, "failed")
            case AttemptLost():
                self._end(event.step, at, "lost")
            case StepHeld():
                self._held.setdefault(event.step, at)
            case RunEnded():
                self.over = True
                self._release([*self._held], at)
            case _:
                self._moved(event, at)
        self.seq, self.last = recorded.seq, at

    def _moved(self, event: RunEvent | LineEvent, at: int) -> None:
        match event:
            case StepFailed() | StepWaived():
                self._settle((event.step,), at)
            case StepsReused() | StepsTaken() | StepsSkipped():
                self._settle([item.step for item in event.items], at)
            case StepsReleased() | StepsReset() | StepsReopened() | GapClosed():
                self._release(event.steps, at)
                for step in event.steps:
                    self.settled.pop(step, None)
            case _:
                pass

    def _settle(self, steps: Iterable[StepId], at: int) -> None:
        for step in steps:
            self.settled[step] = at
            self._release((step,), at)

    def _release(self, steps: Iterable[StepId], at: int) -> None:
        for step in steps:
            if (since := self._held.pop(step, None)) is not None and at > since:
                self.bars.setdefault(step, []).append(Bar(since, at, "waiting"))

    def _end(self, step: StepId, at: int, how: How) -> None:
        if (found := self._running.pop(step, None)) is not None:
            self.bars.setdefault(step, []).append(Bar(found[0], max(found[0], at), how, found[1]))

    def of(self, step: StepId, now: int) -> tuple[Bar, ...]:
        """The bars of a step; one that is open reaches up to now."""
        found = [*self.bars.get(step, ())]
        if (running := self._running.get(step)) is not None:
            found.append(Bar(running[0], max(running[0], now), "running", running[1]))
        if (since := self._held.get(step)) is not None:
            found.append(Bar(since, max(since, now), "waiting"))
        return tuple(found)

    def all(self, now: int) -> dict[StepId, Sequence[Bar]]:
        """The bars of every step that has any."""
        found: dict[StepId, Sequence[Bar]] = dict(self.bars)
        found.update((step, self.of(step, now)) for step in (*self._running, *self._held))
        return found


# --- time as a drawing ----------------------------------------------------------------------------------


class Cut(NamedTuple):
    """A stretch in which nobody worked, drawn short: from where to where on the axis, and how long it was."""

    left: float
    right: float
    lasted: int
    waiting: bool  # somebody was waited for


@dataclass(frozen=True, slots=True)
class Axis:
    """Moments as places between 0 and WIDE; between its knots all time is drawn alike."""

    moments: tuple[int, ...]
    places: tuple[float, ...]
    cuts: tuple[Cut, ...]

    def at(self, moment: int) -> float:
        """Where a moment lies; one before the first or after the last lies there."""
        if moment <= self.moments[0]:
            return 0.0
        if moment >= self.moments[-1]:
            return WIDE
        place = bisect_right(self.moments, moment) - 1
        begin, end = self.moments[place], self.moments[place + 1]
        left, right = self.places[place], self.places[place + 1]
        return left + (right - left) * (moment - begin) / (end - begin)


def axis_of(bars: Iterable[Bar], begin: int, end: int) -> Axis:
    """The axis from the begin to the end, long stretches without work cut."""
    end = max(end, begin + 1)
    worked: list[tuple[int, int]] = []
    waited: list[tuple[int, int]] = []
    for bar in bars:
        span = (max(begin, bar.begun), min(end, bar.ended))
        if span[0] <= span[1]:
            (waited if bar.how == "waiting" else worked).append(span)
    idle = _idle(joined(worked), begin, end)
    work = (end - begin) - sum(b - a for a, b in idle)
    least = max(_SHORTEST_CUT, work * _LEAST_SHARE)
    long = sorted((gap for gap in idle if gap[1] - gap[0] > least), key=lambda gap: gap[0] - gap[1])
    cut = sorted(long[:_MOST_CUTS])
    if len(cut) == 1 and cut[0] == (begin, end):
        cut = []
    return _drawn(cut, joined(waited), begin, end)


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same time in spans that do not touch each other, in order."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _idle(work: Sequence[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    edges = [begin, *(moment for span in work for moment in span), end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]


def _drawn(
    cuts: Sequence[tuple[int, int]], waits: Sequence[tuple[int, int]], begin: int, end: int
) -> Axis:
    shown = (end - begin) - sum(b - a for a, b in cuts)
    scale = (WIDE - _CUT * len(cuts)) / max(1, shown)
    moments, places, told = [begin], [0.0], []
    for a, b in cuts:
        left = places[-1] + (a - moments[-1]) * scale
        told.append(Cut(left, left + _CUT, b - a, _overlap(waits, a, b) * 2 > b - a))
        for moment, place in ((a, left), (b, left + _CUT)):
            if moment > moments[-1]:
                moments.append(moment)
                places.append(place)
    if moments[-1] < end:
        moments.append(end)
        places.append(WIDE)
    return Axis(tuple(moments), tuple(places), tuple(told))


def _overlap(spans: Iterable[tuple[int, int]], begin: int, end: int) -> int:
    return sum(max(0, min(b, end) - max(a, begin)) for a, b in spans)


def critical_path(graph: Graph, worked: Worked) -> tuple[StepId, ...]:
    """The steps that decided when the run ended, the last first: each waited for the one after it.

    Of what a step needs, the one that was settled last held it up. What was reused held up nobody.
    """
    ran = {step for step, bars in worked.bars.items() if bars and step in graph.steps}
    moment = worked.settled
    here = max(
        (step for step in ran if step in moment),
        key=lambda step: (moment[step], -graph.rank[step]),
        default=None,
    )
    found: list[StepId] = []
    while here is not None:
        if here in ran:
            found.append(here)
        needs = [need.step for need in graph.steps[here].needs if need.step in moment]
        here = max(needs, key=lambda step: (moment[step], -graph.rank[step]), default=None)
    return tuple(found)


def folded(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    """The bars of a group as one row: whenever somebody worked, and whenever somebody was waited for."""
    found: list[Bar] = []
    kinds: Mapping[How, list[tuple[int, int]]] = {"accepted": [], "waiting": []}
    running = False
    for bar in bars:
        kinds["waiting" if bar.how == "waiting" else "accepted"].append((bar.begun, bar.ended))
        running = running or bar.how == "running"
    for how, spans in kinds.items():
        found += [Bar(a, b, how) for a, b in _few(joined(spans))]
    if running:
        last = max(
            (place for place, bar in enumerate(found) if bar.how == "accepted"),
            key=lambda place: found[place].ended,
        )
        found[last] = found[last]._replace(how="running")
    return tuple(found)


def _few(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """No more than can be drawn: those that are nearest to each other become one."""
    if len(spans) <= _MOST_PIECES:
        return spans
    gaps = sorted(range(1, len(spans)), key=lambda n: spans[n - 1][1] - spans[n][0])
    split = sorted(gaps[: _MOST_PIECES - 1])
    edges = [0, *split, len(spans)]
    return [(spans[a][0], spans[b - 1][1]) for a, b in pairwise(edges)]
