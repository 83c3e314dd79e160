"""Plays many seeds in one directory in memory, and says how one that failed is played again."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator

from holdfast.store.sqlite import SqliteStore
from tests.simulation.play import Result
from tests.simulation.story import simulate

MEMORY = "/dev/shm"


def play(seeds: Iterable[int]) -> Iterator[Result]:
    place = MEMORY if os.path.isdir(MEMORY) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        template = os.path.join(folder, "template")
        SqliteStore.open(template, create=True).close()
        for seed in seeds:
            yield simulate(seed, folder, template)


def digest_of(trace: Iterable[str]) -> str:
    """A whole trace in one word."""
    return hashlib.sha256("\n".join(trace).encode()).hexdigest()


def shown(result: Result) -> str:
    """A result in words."""
    counts = f"{result.executed} executed, {result.accepted} accepted, {result.commits} commits"
    words = "\n  ".join(result.violations) or "all is well"
    return f"seed {result.seed}: {counts}\n  {words}\n  again: make simulate SEED={result.seed}"
