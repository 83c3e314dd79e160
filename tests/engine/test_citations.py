"""What a handoff names of other steps lies above it, however it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.above import step_meant
from holdfast.core.ledger import folded
from holdfast.engine.citations import misplaced
from holdfast.model.handoff import Handoff, Observation, Trial
from holdfast.model.plan import Need, Step, StepId
from tests.core.test_ledger import alike, told

A, B, SIDE = StepId("a"), StepId("b"), StepId("side")
STEPS = {A: Step(A), B: Step(B, needs=(Need(A),)), SIDE: Step(SIDE)}


def wrong(handoff: Handoff) -> list[str]:
    return [*misplaced(STEPS, step_meant(STEPS), B, handoff)]


@pytest.mark.req("R125", "R128")
@pytest.mark.parametrize(
    "source",
    [
        "side",
        "Side",
        "from side",
        "(side)",
        "side (p. 3)",
        "output of side",
        "a and side",
        "gauge.csv, side",
        "(gauge.csv, Side)",
        "side e-0123456789ab",
    ],
)
def test_a_step_beside_is_refused_as_a_source_wherever_the_ledger_reads_one(source: str) -> None:
    (said,) = wrong(replace(Handoff("look"), observed=(Observation("x", source),)))
    assert said.startswith("'observed[0].source' names the step 'side', which is not above 'b'")


@pytest.mark.req("R125", "R128")
@pytest.mark.parametrize(
    "source", ["a", "from A", "a (p. 3)", "b", "gauge.csv", "the side", "side.csv", "sides", ""]
)
def test_a_step_above_and_a_name_in_the_world_are_sources(source: str) -> None:
    assert wrong(replace(Handoff("look"), observed=(Observation("x", source),))) == []


@pytest.mark.req("R124", "R125")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("side", "names the step 'side', which is not above 'b'; name what it told by its id"),
        ("the moon", "names 'the moon', which is neither an entry nor a step above 'b'"),
        ("A", "names 'A', which is neither an entry nor a step above 'b'; is 'a' meant?"),
        ("from a", "names 'from a', which is neither an entry nor a step above 'b'"),
        ("a", ""),
        ("b", ""),
        ("e-0123456789ab", ""),
        ("h-0123", ""),
    ],
)
def test_a_verdict_leans_on_steps_above_and_entries_alone(name: str, said: str) -> None:
    """Ids are looked up among what was told."""
    found = wrong(replace(Handoff("look"), hypotheses={"g": Trial("supported", (name,))}))
    assert len(found) == bool(said)
    assert all(one.startswith(f"'hypotheses.g.evidence' {said}") for one in found)


@pytest.mark.req("R128")
def test_what_the_guard_lets_pass_the_ledger_reads_alike() -> None:
    base = told("a", observed=(Observation("rain", "sky.csv", 0.4),))
    for source in ("a", "from A", "a (p. 3)", "gauge.csv, a"):
        seen = told("b", 1, observed=(Observation("wet", source, 0.9),))
        assert wrong(seen.handoff) == []
        assert folded([base, seen], alike, steps=STEPS).evidence[-1].stands_on == ("a",)
