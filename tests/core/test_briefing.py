"""What a step is told of the work before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.briefing import LETTERS, briefing
from holdfast.core.ledger import Ledger, folded
from holdfast.core.said import Said
from holdfast.model.handoff import Change, Observation, Trial, Undone
from holdfast.model.plan import StepId
from tests.core.test_ledger import alike, handoffs, told

NEEDS = [StepId("b")]


def a_ledger() -> Ledger:
    return folded(
        [
            told(
                "a",
                observed=(Observation("rain falls", "a.csv", 0.4),),
                not_done=(Undone("x", "y"),),
            ),
            told(
                "b",
                1,
                first="look at the map",
                observed=(
                    Observation("sun shines", "b.csv", 0.2),
                    Observation("wind blows", "c.csv", 0.9),
                ),
                changed=(Change("map", "map.svg"),),
                not_done=(Undone("the legend", "no time"),),
                uncertainty="who drew it",
                hypotheses={"H1": Trial("supported")},
            ),
        ],
        alike,
        {"H1": "untested"},
    )


@pytest.mark.req("R117")
def test_a_page_has_its_parts_in_the_order_of_their_worth() -> None:
    page = briefing(a_ledger(), NEEDS, ["H1"])
    lines = page.text.splitlines()
    assert page.left_out == 0
    plain = [
        " ".join(word for word in line.split() if word[1:2] != "-" or word == "-") for line in lines
    ]
    assert plain == [
        "## Do first, as the steps before advise",
        "- look at the map (b)",
        "",
        "## What the steps before did",
        "- b: look",
        "- changed map: map.svg",
        "- not done the legend: no time",
        "",
        "## Hypotheses",
        "- H1 is supported: 0 for, 0 against",
        "",
        "## Open questions",
        "- who drew it (open)",
        "",
        "## Evidence",
        "- wind blows (c.csv, 0.90)",
        "- sun shines (b.csv, 0.20)",
        "- rain falls (a.csv, 0.40)",
        "",
        "## Not done further above",
        "- x: y",
    ]


def test_what_was_contested_is_not_told() -> None:
    whole = a_ledger()
    word = Said("contest", whole.evidence[0].id, "wrong")
    assert "rain falls" not in briefing(folded(whole.handoffs, alike, said=[word]), NEEDS).text


@given(st.lists(handoffs, max_size=6), st.integers(0, 200))
def test_a_page_keeps_its_budget_and_says_what_it_left_out(
    given_: list[object], budget: int
) -> None:
    all_told = [told(f"s{n}", n) for n in range(len(given_))]
    whole = folded(
        [
            type(one)(one.id, one.step, one.wave, handoff)  # type: ignore[arg-type]  # a handoff
            for one, handoff in zip(all_told, given_, strict=True)
        ],
        alike,
    )
    needs = [StepId("s0"), StepId("s1")]
    page, all_of_it = briefing(whole, needs, budget=budget), briefing(whole, needs, budget=10**6)
    assert all_of_it.left_out == 0
    told_of = [line for line in page.text.splitlines() if line.lstrip().startswith("-")]
    everything = [line for line in all_of_it.text.splitlines() if line.lstrip().startswith("-")]
    assert told_of == everything[: len(told_of)]
    assert len(told_of) + page.left_out == len(everything)
    assert sum(map(len, told_of)) <= budget * LETTERS
