"""A thousand seeds through the real engine on a simulated machine; many more in the soak."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import chain

import pytest

from tests.crash.report import Report
from tests.simulation.faults import FAULTS
from tests.simulation.seeds import digest_of, play, shown

SEEDS = 1000
CHUNK = 125
SOAK_SEEDS = 100_000
SOAK_CHUNK = 1000
SAME = range(8)

# What the simulation does beside the faults it strikes with: all of it must happen among few seeds.
HAPPENED = (
    *("child_failed", "child_hung", "child_late", "child_lost", "orphaned", "orphan_wrote"),
    *("held", "fenced", "joined", "amended", "edited", "hurried", "anew", "resumed", "retried"),
    *("said_yes", "said_no", "answered_late", "effect", "limit_reached", "swept", "runs_collected"),
)
# Each for itself is seldom: one of a group happens among few seeds, all of them among many.
SELDOM = (
    ("model_refused", "model_limited", "model_down", "model_broke_off", "model_late"),
    ("kill_before_answer", "kill_after_answer"),
    ("disk_write", "disk_full", "disk_sync"),
    ("answer_kept", "took_back", "contents_collected"),
)


def sweep_seeds(seeds: Iterable[int], name: str) -> Report:
    """Play seeds; what fired and what was wrong goes into the report."""
    report = Report(name, kind="simulation")
    for result in play(seeds):
        report.tried += 1
        report.fired += result.fired.total()
        report.work += result.accepted
        report.kept += result.told
        report.outcomes += result.fired
        if result.violations:
            report.violations.append(shown(result))
            break  # the first seed that fails is the one to look at
    return report


def holds(report: Report, kinds: Iterable[str]) -> None:
    """No law was broken, work was done, and everything that can go wrong did."""
    assert not report.violations, report.violations[0]
    assert report.work > 2 * report.tried
    missing = [kind for kind in kinds if not report.outcomes[kind]]
    assert not missing, f"never happened: {missing}"
    for group in SELDOM:
        assert any(report.outcomes[kind] for kind in group), f"never happened: any of {group}"


@pytest.mark.req("R74", "R148", "D16", "I1", "I2", "I3", "I4", "I5", "I9", "I10", "I11", "I17")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_law_holds_on_a_thousand_seeds(first: int, sweep: Callable[[Report], None]) -> None:
    report = sweep_seeds(range(first, first + CHUNK), "seeds")
    sweep(report)
    holds(report, (*FAULTS, *HAPPENED))


@pytest.mark.soak
@pytest.mark.req("R74", "R148", "I1", "I2", "I3", "I4", "I5", "I9", "I10", "I11", "I17")
@pytest.mark.parametrize("first", range(10_000, 10_000 + SOAK_SEEDS, SOAK_CHUNK))
def test_every_law_holds_on_many_seeds(first: int, sweep: Callable[[Report], None]) -> None:
    report = sweep_seeds(range(first, first + SOAK_CHUNK), "many seeds")
    sweep(report)
    holds(report, (*FAULTS, *HAPPENED, *chain.from_iterable(SELDOM)))


@pytest.mark.req("R148")
def test_a_seed_gives_the_same_trace_twice_and_in_other_processes() -> None:
    first, second = ([result.trace for result in play(SAME)] for _ in range(2))
    assert first == second
    assert all(len(trace) > 10 for trace in first)
    for hashing in ("1", "4711"):
        env = {**os.environ, "PYTHONHASHSEED": hashing}
        words = [sys.executable, "-m", "tests.simulation", f"{SAME[0]}-{SAME[-1]}", "digests"]
        found = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
        assert found.stdout.split()[: len(SAME)] == [digest_of(trace) for trace in first]


def test_a_failing_seed_says_how_it_is_played_again() -> None:
    result = next(play([5]))
    words = shown(result)
    assert "make simulate SEED=5" in words
    assert "all is well" in words
