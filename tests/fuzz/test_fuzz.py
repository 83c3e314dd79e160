"""Whatever a stranger sends is taken or refused by a typed error: kept inputs, and seeded changes of them."""

import random
from collections.abc import Callable

import pytest

from tests.crash.report import Report
from tests.fuzz.mutate import changed, corpus, inputs
from tests.fuzz.targets import TARGETS

SAMPLE, WHOLE, SLICES = 150, 20_000, 4


def tried(name: str, count: int, seed: int) -> int:
    """How many inputs the target took without breaking its promise; the one that does is told."""
    number = 0
    for data in inputs(name, count, seed):
        number += 1
        try:
            TARGETS[name](data)
        except Exception as error:
            raise AssertionError(
                f"{name}: {data[:400]!r} (seed {seed}, number {number})"
            ) from error
    return number


@pytest.mark.req("D32", "R180")
@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_taken_or_refused(name: str) -> None:
    assert tried(name, SAMPLE, 0) == len(corpus(name)) + SAMPLE


@pytest.mark.soak("fuzz")
@pytest.mark.req("D32", "R180")
@pytest.mark.parametrize("seed", range(1, SLICES + 1))
@pytest.mark.parametrize("name", TARGETS)
def test_many_things_come(name: str, seed: int, sweep: Callable[[Report], None]) -> None:
    report = Report(f"fuzz {name} {seed}", "fuzz")
    report.tried = report.fired = report.work = tried(name, WHOLE // SLICES, seed)
    sweep(report)


def test_changes_are_the_same_every_time_and_are_changes() -> None:
    kept = corpus("plan")
    one, two = (changed(kept, random.Random(7)) for _ in range(2))
    assert one == two
    different = {changed(kept, random.Random(seed)) for seed in range(50)}
    assert len(different) > 40
