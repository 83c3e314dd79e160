"""Pages of several steps: what they share is worked out once, and never told to the wrong one."""

from __future__ import annotations

import pytest

from holdfast.core.said import Said
from holdfast.engine.briefs import Pages
from holdfast.model.handoff import Observation
from tests.core.builders import plan, step
from tests.core.test_ledger import alike, told

SEEN = (
    Observation("snow covers the northern station", "a.csv"),
    Observation("snow covers the northern stations", "b.csv"),
)


@pytest.mark.req("R117")
def test_steps_below_the_same_steps_share_one_fold() -> None:
    compared: list[str] = []

    def counting(one: str, other: str) -> float:
        compared.append(one)
        return alike(one, other)

    above = [told("a", observed=SEEN), told("b", observed=(Observation("sun shines", "c.csv"),))]
    both = plan(step("a"), step("b"), step("x", "a", "b"), step("y", "b", "a"))
    pages = Pages(counting)
    first = pages.page(both, both.steps[step("x").id], above, [])
    once = len(compared)
    second = pages.page(both, both.steps[step("y").id], above[::-1], [])
    assert first == second
    assert once == len(compared) > 0


def test_another_handoff_or_another_word_of_a_person_is_told() -> None:
    line = plan(step("a"), step("x", "a"))
    under = line.steps[step("x").id]
    pages = Pages(alike)
    before = pages.page(line, under, [told("a", observed=SEEN[:1])], [])
    changed = [told("a", observed=SEEN)]
    after = pages.page(line, under, changed, [])
    assert b"said 2 times" not in before
    assert b"said 2 times" in after
    doubt = Said("contest", "a.csv", "broken gauge")
    assert pages.page(line, under, changed, [doubt]) != after
