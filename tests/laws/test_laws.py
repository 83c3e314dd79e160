"""Random plans and random edits through the real engine, against the oracle."""

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.store.memory import MemoryStore
from tests.laws.harness import Bed, Stage, play
from tests.laws.scenarios import scenarios


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as path:
        yield path


@pytest.mark.req("R40", "R43", "R44", "R45", "R76", "E9")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(stages=scenarios(12), seed=st.integers(0, 1000))
def test_every_run_is_what_the_oracle_says(root: str, stages: tuple[Stage, ...], seed: int) -> None:
    play(Bed(MemoryStore(), root), stages, seed=seed)
