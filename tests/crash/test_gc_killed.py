"""Killed at any changing call of `gc` or `purge`, the store is whole and what stood still stands."""

import os
from pathlib import Path

import apsw
import pytest

from tests.crash.faults import KILLED, Scene, Shim, each, lay, spread, unsound

GC = ("gc", "--keep", "0s", "--yes")
SAMPLE = 14


@pytest.fixture
def old(tmp_path: Path) -> Scene:
    """A project with runs that may go; all contents are old."""
    scene = lay(tmp_path / "old", "small")
    for words in (("run",), ("run", "--force"), ("run", "--force")):
        assert scene.call(*words).code == 0
    database = apsw.Connection(str(scene.store / "state.db"))
    database.execute("UPDATE blob SET at = 0")
    database.close()
    for path in scene.store.glob("blobs/??/*"):
        os.utime(path, (0, 0))
    return scene


def sweep(scene: Scene, words: tuple[str, ...], numbers: list[int], shim: Shim) -> list[str]:
    """Kill a command at each of these calls; what was wrong afterwards."""
    wrong: list[str] = []
    fired: list[int] = []

    def kill(number: int) -> None:
        case = scene.copied(str(number))
        answer = case.call(*words, fault=shim.fault(number))
        if answer.code == KILLED:
            fired.append(number)
        wrong.extend(f"call {number}: {problem}" for problem in unsound(case.store))
        again = case.call(*words)
        if again.code not in {0, 2}:
            wrong.append(f"call {number}: again ended with {again.code}: {again.err}")
        wrong.extend(f"call {number}, again: {problem}" for problem in unsound(case.store))
        rebuilt = case.call("rebuild", "--json")
        if '"changed": false' not in rebuilt.out:
            wrong.append(f"call {number}: another index: {rebuilt.out}{rebuilt.err}")
        if not wrong:
            case.remove()

    each(kill, numbers)
    assert len(fired) >= len(numbers) - 2
    return wrong


@pytest.mark.req("R187")
def test_gc_killed_at_any_call(old: Scene, shim: Shim) -> None:
    calls = shim.count(old.copied("count"), *GC)
    assert sweep(old, GC, spread(calls, SAMPLE, seed=3), shim) == []


@pytest.mark.soak("kill")
@pytest.mark.req("R187")
def test_gc_killed_at_every_call(old: Scene, shim: Shim) -> None:
    calls = shim.count(old.copied("count"), *GC)
    assert sweep(old, GC, list(range(1, len(calls) + 1)), shim) == []


@pytest.mark.soak("kill")
def test_purge_killed_at_every_call(old: Scene, shim: Shim) -> None:
    facts = old.journal().results()
    words = ("purge", min(facts.values()), "--because", "x", "--yes")
    calls = shim.count(old.copied("count"), *words)
    assert sweep(old, words, list(range(1, len(calls) + 1)), shim) == []
