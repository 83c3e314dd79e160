"""Whatever a stranger sends is taken or refused by a typed error: kept inputs, and seeded changes of them.

Some are taken and some are refused, or a target that answers everything in the same way would pass. None
takes long or much memory.
"""

import random
import resource
import time
from collections import Counter
from collections.abc import Callable

import pytest

from tests.crash.report import Report
from tests.fuzz.mutate import changed, corpus, inputs
from tests.fuzz.targets import TARGETS

SAMPLE, WHOLE, SLICES = 150, 20_000, 4
SECONDS, MEMORY = 6.0, 200_000  # three times the promise; the promise in KiB


def tried(name: str, count: int, seed: int) -> Counter[bool]:
    """How many inputs the target took and refused; the one with which it breaks its promise is told."""
    found: Counter[bool] = Counter()
    before = memory()
    for data in inputs(name, count, seed):
        told = f"{name}: {data[:400]!r} (seed {seed}, number {found.total() + 1})"
        begun = time.process_time()
        try:
            found[TARGETS[name](data)] += 1
        except Exception as error:
            raise AssertionError(told) from error
        assert time.process_time() - begun < SECONDS, f"it takes long: {told}"
    assert memory() - before < MEMORY, f"{name} takes much memory (seed {seed})"
    return found


def memory() -> int:
    """The most that this process ever had at once, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.req("D32", "R180")
@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_taken_or_refused(name: str) -> None:
    found = tried(name, SAMPLE, 0)
    assert found.total() == len(corpus(name)) + SAMPLE
    assert found[True], "nothing is taken"
    assert found[False], "nothing is refused"


@pytest.mark.soak("fuzz")
@pytest.mark.req("D32", "R180")
@pytest.mark.parametrize("seed", range(1, SLICES + 1))
@pytest.mark.parametrize("name", TARGETS)
def test_many_things_come(name: str, seed: int, sweep: Callable[[Report], None]) -> None:
    report = Report(f"fuzz {name} {seed}", "fuzz")
    found = tried(name, WHOLE // SLICES, seed)
    report.tried, report.fired, report.work = found.total(), found[False], found[True]
    sweep(report)
    assert report.fired
    assert report.work


def test_changes_are_the_same_every_time_and_are_changes() -> None:
    kept = corpus("plan")
    one, two = (changed(kept, random.Random(7)) for _ in range(2))
    assert one == two
    different = {changed(kept, random.Random(seed)) for seed in range(50)}
    assert len(different) > 40
