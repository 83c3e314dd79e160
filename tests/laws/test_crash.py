"""The process dies before and after every change of the store; another one goes on."""

from copy import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.store.memory import MemoryStore
from tests.laws.harness import (
    Bed,
    Stage,
    When,
    changes_of,
    check,
    foretell,
    outcome,
    perform,
)
from tests.laws.oracle import Oracle
from tests.laws.scenarios import scenarios

slow = list(HealthCheck)
WHENS: tuple[When, When] = ("before", "after")


def copied(store: MemoryStore) -> MemoryStore:
    """The same content in another store: what the disk held at this moment."""
    other = MemoryStore()
    for name, held in vars(store).items():
        if isinstance(held, dict):
            inner = {
                key: copy(item) if isinstance(item, list) else item for key, item in held.items()
            }
            setattr(other, name, inner)
        elif name != "_lock":
            setattr(other, name, copy(held))
    return other


def crash_everywhere(root: str, stages: tuple[Stage, ...], seed: int) -> None:
    """Each stage once whole, and once for every change with a death right before and right after it."""
    oracle = Oracle()
    bed = Bed(MemoryStore(), root)
    for stage in stages:
        assert isinstance(bed.store, MemoryStore)
        held = copied(bed.store)
        fates = foretell(oracle, stage)
        ended = perform(bed, stage, seed=seed)
        check(bed, ended, fates)
        whole = outcome(ended.state)
        for at in range(1, changes_of(Bed(copied(held), root), stage) + 1):
            for when in WHENS:
                other = Bed(copied(held), root)
                again = perform(other, stage, seed=seed, at=at, when=when)
                check(other, again, fates)
                assert outcome(again.state) == whole


@pytest.mark.req("R74", "R88", "E12")
@settings(max_examples=8, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(5, 3), seed=st.integers(0, 1000))
def test_a_crash_at_any_change_ends_like_the_run_without_one(
    root: str, stages: tuple[Stage, ...], seed: int
) -> None:
    crash_everywhere(root, stages, seed)


@pytest.mark.soak
@pytest.mark.req("R74", "R88", "E12")
@settings(max_examples=300, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(12, 4), seed=st.integers(0, 1000))
def test_a_crash_at_any_change_of_large_plans(
    root: str, stages: tuple[Stage, ...], seed: int
) -> None:
    crash_everywhere(root, stages, seed)


@pytest.mark.req("R74")
@settings(max_examples=150, deadline=None, suppress_health_check=slow)
@given(
    stages=scenarios(10, 4),
    seed=st.integers(0, 1000),
    at=st.lists(st.integers(1, 40), min_size=4, max_size=4),
    when=st.sampled_from(WHENS),
    anew=st.booleans(),
)
def test_runs_that_crash_one_after_the_other(
    root: str,
    stages: tuple[Stage, ...],
    seed: int,
    at: list[int],
    when: When,
    anew: bool,
) -> None:
    oracle, bed = Oracle(), Bed(MemoryStore(), root)
    for stage, place in zip(stages, at, strict=False):
        fates = foretell(oracle, stage)
        ended = perform(bed, stage, seed=seed, at=place, when=when, anew=anew)
        check(bed, ended, fates, anew=anew)
