"""What is simulated: how many steps, workers and engines, how long things take, what goes wrong."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

SPREAD = 0.8  # of the logarithm of durations and latencies: some take many times the usual


@dataclass(frozen=True, slots=True)
class Scene:
    """Times are simulated seconds; chances are per errand that a worker took."""

    steps: int = 2_000
    workers: int = 50
    engines: int = 4
    lanes: int = 4  # processes that the workers and engines are shared out to
    seed: int = 1
    duration: float = 4.0  # the mean of a step
    latency: float = 0.005  # the mean of a call of the store
    dies: float = 0.005
    stands_still: float = 0.005
    reports_late: float = 0.01
    cut: float = 0.002  # the connection is lost under a worker's call
    beat: float = 10.0
    poll: float = 1.0
    lease: float = 30.0
    replaced: float = 20.0  # until another worker comes for one that died
    window: float = 0.25  # clocks of lanes differ by no more

    @property
    def places(self) -> int:
        """Errands that an engine has out at once: there is always one to take."""
        return math.ceil(2 * self.workers / self.engines)

    @property
    def takeover(self) -> float:
        """After its last beat somebody is dead by then: a lease, two polls, and what clocks differ by."""
        return self.lease + 2 * self.poll + self.window

    @property
    def still(self) -> tuple[float, float]:
        """How long a worker stands still: certainly past its lease."""
        return 1.2 * self.lease, 2.5 * self.lease

    @property
    def late(self) -> tuple[float, float]:
        """How long a report is under way, with nothing else heard: less than a lease."""
        return 0.1 * self.lease, 0.5 * self.lease

    def shares(self, count: int, lane: int) -> range:
        """Which of so many belong to a lane."""
        return range(lane, count, self.lanes)


def drawn(chance: random.Random, mean: float) -> float:
    """A positive number with this mean, most of them smaller."""
    return chance.lognormvariate(math.log(mean) - SPREAD**2 / 2, SPREAD)
