"""What must be true of a scene that was played, and how near the model of docs/scale.md comes."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import chain
from statistics import mean

from bench.scale.hold import Played
from bench.scale.scene import Scene

SETTLED = (0.1, 0.9)  # shares of the steps between which all workers are busy


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one play; all times simulated but `wall`."""

    store: str
    steps: int
    workers: int
    accepted: int
    lost: int
    twice: int  # steps that were accepted twice
    taken_twice: int  # errands that two workers took, or two reports were taken of
    made_up: int  # errands that were accepted and nobody reported
    told_late: int  # reports that were taken of workers that had been silent past their lease
    refused: int  # reports that came too late
    died: int
    stood_still: int
    late: int
    cut: int
    left: int
    overtaken: int
    takeover_mean: float  # from the last beat until another one may have it
    takeover_most: float
    takeover_limit: float
    per_second: float
    model: float
    calls_per_step: float
    wall: float
    calls_per_wall_second: float

    @property
    def wrong(self) -> list[str]:
        """What must not be."""
        zero = ("lost", "twice", "taken_twice", "made_up", "told_late", "left")
        said = asdict(self)
        wrong = [f"{name}: {said[name]}" for name in zero if said[name]]
        if self.takeover_most > self.takeover_limit:
            wrong.append(f"a takeover after {self.takeover_most:.1f} s")
        return wrong


def judge(store: str, played: Played) -> Found:
    scene, seen = played.scene, played.seen
    accepted = list(chain.from_iterable(lane.accepted for lane in seen))
    times = Counter(step for step, _, _ in accepted)
    taken = Counter(chain.from_iterable(lane.taken for lane in seen))
    reported = Counter(chain.from_iterable(lane.reported for lane in seen))
    lapsed = {errand: when for lane in seen for errand, when in lane.lapsed.items()}
    again = dict(chain.from_iterable(lane.again for lane in seen))
    fates = sum((lane.fates for lane in seen), Counter[str]())
    waits = [again[errand] - beat for errand, (beat, _) in lapsed.items() if errand in again]
    calls = sum((lane.calls for lane in seen), Counter[str]()).total()
    return Found(
        store=store,
        steps=scene.steps,
        workers=scene.workers,
        accepted=len(times),
        lost=scene.steps - len(times),
        twice=sum(count > 1 for count in times.values()),
        taken_twice=sum(count > 1 for one in (taken, reported) for count in one.values()),
        made_up=sum(reported[errand] == 0 for _, errand, _ in accepted),
        told_late=sum(errand in lapsed for errand in reported),
        refused=sum(len(lane.refused) for lane in seen),
        died=fates["dies"],
        stood_still=fates["stands still"],
        late=fates["late"],
        cut=fates["cut"],
        left=played.left,
        overtaken=len(again),
        takeover_mean=mean(waits) if waits else 0.0,
        takeover_most=max(waits, default=0.0),
        takeover_limit=scene.takeover,
        per_second=_rate(sorted(when for _, _, when in accepted)),
        model=model_rate(scene),
        calls_per_step=calls / scene.steps,
        wall=played.wall,
        calls_per_wall_second=calls / played.wall,
    )


def _rate(times: list[float]) -> float:
    """Steps a second while everybody is busy."""
    first, last = (int(share * len(times)) for share in SETTLED)
    return (last - first) / (times[last] - times[first])


def model_rate(scene: Scene) -> float:
    """Workers over the time that one of them spends for a step that is accepted.

    That is the step itself and two calls, and of what goes wrong its share: half a step, and the time until
    the worker, or another one for it, takes again.
    """
    wrong = scene.dies + scene.stands_still
    halves = wrong * scene.duration / 2 + (1 - wrong) * scene.duration
    waits = scene.dies * scene.replaced + scene.stands_still * mean(scene.still)
    waits += scene.reports_late * mean(scene.late)
    per_try = halves + waits + 2 * scene.latency
    return scene.workers * (1 - wrong) / per_try
