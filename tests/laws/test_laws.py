"""Random plans and random edits through the real engine, against the oracle."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import Options, Reason
from holdfast.model.newest import Newest
from holdfast.model.plan import StepId
from holdfast.store.memory import MemoryStore
from holdfast.store.sqlite import SqliteStore
from tests.laws.harness import (
    LINE,
    Bed,
    Stage,
    When,
    check,
    foretell,
    outcome,
    perform,
    play,
)
from tests.laws.oracle import Oracle
from tests.laws.plans import chain, plan, step
from tests.laws.scenarios import scenarios

slow = list(HealthCheck)


@pytest.mark.req("R40", "R41", "R42", "R43", "R44", "R45", "R56", "R58", "R59", "R76", "E9", "E10")
@settings(max_examples=80, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(12), seed=st.integers(0, 1000))
def test_every_run_is_what_the_oracle_says(root: str, stages: tuple[Stage, ...], seed: int) -> None:
    play(Bed(MemoryStore(), root), stages, seed=seed)


@pytest.mark.soak
@pytest.mark.req("R40", "R45", "R56")
@settings(max_examples=5000, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(12, 6), seed=st.integers(0, 1000))
def test_many_runs_are_what_the_oracle_says(
    root: str, stages: tuple[Stage, ...], seed: int
) -> None:
    play(Bed(MemoryStore(), root), stages, seed=seed)


@pytest.mark.req("R45")
def test_needs_written_in_another_order_are_the_same_needs(root: str) -> None:
    first, other = (plan(step("a"), step("b", "a"), step("c", *two)) for two in ("ab", "ba"))
    state = play(Bed(MemoryStore(), root), (Stage(first), Stage(other)))
    assert state is not None
    assert state.counts["reused"] == 3


@pytest.mark.req("R56", "R169")
def test_a_cause_is_what_differs_from_the_run_before(root: str) -> None:
    """What was tried and taken back is no cause of what runs later."""
    above, below = step("a"), step("b", "a")
    tried, moved = replace(below, values={**below.values, "text": 2}), step("a", text=2)
    runs = (plan(above, below), plan(above, tried), plan(above, below), plan(moved, below))
    state = play(Bed(MemoryStore(), root), tuple(Stage(one) for one in runs))
    assert state is not None
    assert state.steps[StepId("b")].reason == Reason("upstream_changed", ("a",))


@settings(max_examples=25, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(12, 2), seeds=st.lists(st.integers(1, 10_000), min_size=2, max_size=3))
def test_the_order_in_which_steps_end_changes_nothing(
    root: str, stages: tuple[Stage, ...], seeds: list[int]
) -> None:
    ends = []
    for seed in (0, *seeds):
        bed = Bed(MemoryStore(), root)
        state = play(bed, stages, seed=seed)
        assert state is not None
        ends.append(outcome(state))
    assert all(end == ends[0] for end in ends)


@pytest.mark.req("R73", "R74")
@settings(max_examples=20, deadline=None, suppress_health_check=slow)
@given(
    stages=scenarios(6, 3),
    at=st.integers(1, 30),
    when=st.sampled_from(["before", "after"]),
    seed=st.integers(0, 1000),
)
def test_the_laws_hold_on_disk(
    root: str,
    tmp_path_factory: pytest.TempPathFactory,
    stages: tuple[Stage, ...],
    at: int,
    when: When,
    seed: int,
) -> None:
    place: Path = tmp_path_factory.mktemp("store")
    oracle = Oracle()
    for stage in stages:  # a store opened anew for every stage, as another process would
        with SqliteStore.open(str(place / ".holdfast"), create=True) as store:
            bed = Bed(store, root)
            fates = foretell(oracle, stage)
            ended = perform(bed, stage, seed=seed, at=at, when=when)
            check(bed, ended, fates)


# --- the laws can fail: wrong engines are found --------------------------------------------------


class AnyArtifact(MemoryStore):
    """As if the key did not cover what is above: whatever was once accepted is found."""

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        return self.newest(project, line, step)


class NoArtifact(MemoryStore):
    """As if nothing had ever been accepted."""

    def newest_of_all(self, project: str, line: str) -> Newest:
        return Newest(project, line)

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        return None


class OldestArtifact(MemoryStore):
    """As if the first accepted artifact won, not the latest."""

    def newest_of_all(self, project: str, line: str) -> Newest:
        oldest = Newest(project, line)
        for row in reversed([*self.artifacts(project=project, line=line, status="accepted")]):
            oldest.add(row)
        return oldest

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        for row in self.artifacts(project=project, line=line, step=step, status="accepted"):
            if ref == (row.input_ref if content else row.config_ref):
                return row
        return None


def changed_above() -> tuple[Stage, ...]:
    z, m, a = chain("z", "m", "a")
    return Stage(plan(z, m, a)), Stage(plan(step("z", text=2), m, a))


def made_anew() -> tuple[Stage, ...]:
    z, m, a = chain("z", "m", "a")
    forced = Options(force_steps=(StepId("z"),))
    again = Stage(plan(z, m, a), forced, {StepId("z"): 1})
    return Stage(plan(z, m, a)), again, Stage(plan(z, m, a), salts={StepId("z"): 1})


@pytest.mark.req("R45", "E4")
def test_an_engine_that_ignores_changes_above_is_found(root: str) -> None:
    with pytest.raises(AssertionError):
        play(Bed(AnyArtifact(), root), changed_above())
    play(Bed(MemoryStore(), root), changed_above())


@pytest.mark.req("R40")
def test_an_engine_that_runs_everything_again_is_found(root: str) -> None:
    twice = (changed_above()[0],) * 2
    with pytest.raises(AssertionError):
        play(Bed(NoArtifact(), root), twice)
    play(Bed(MemoryStore(), root), twice)


@pytest.mark.req("E5", "E9")
def test_an_engine_in_which_the_first_artifact_wins_is_found(root: str) -> None:
    with pytest.raises(AssertionError):
        play(Bed(OldestArtifact(), root), made_anew())
    play(Bed(MemoryStore(), root), made_anew())


def test_a_wrong_answer_is_found(root: str) -> None:
    stage = changed_above()[0]
    lying = Stage(stage.plan, salts={StepId("m"): 5})
    bed = Bed(MemoryStore(), root)
    with pytest.raises(AssertionError, match="m"):
        check(bed, perform(bed, lying), foretell(Oracle(), stage))
    assert bed.store.runs(LINE)
