"""What evidence stands on: the entries, handoffs and steps that its source names, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.above import lying_above
from holdfast.core.confidence import certainties
from holdfast.core.evidence import Told, weights
from holdfast.core.ledger import Ledger, folded, sure
from holdfast.core.likeness import equal
from holdfast.core.said import Said
from holdfast.model.handoff import Observation
from holdfast.model.plan import GATHER, Need, Step, StepId
from tests.core.test_ledger import alike, ledger, told


def planned(*given: Told) -> dict[StepId, Step]:
    """The steps of a plan in which each step needs all of the waves before it."""
    return {
        one.step: Step(one.step, needs=tuple(Need(o.step) for o in given if o.wave < one.wave))
        for one in given
    }


def gathering(name: str, *steps: str) -> Step:
    return Step(StepId(name), uses=GATHER, needs=tuple(Need(StepId(one)) for one in steps))


def surety(found: Ledger) -> list[float | None]:
    return [sure(one, found) for one in found.evidence]


@pytest.mark.req("R128")
@pytest.mark.parametrize("between", [", ", ",", "; ", " and ", " ", ", and ", " & ", "\n"])
def test_a_source_may_name_several_and_stands_on_all_of_them(between: str) -> None:
    one = told("a", observed=(Observation("one", "a.csv", 0.2),))
    two = told("b", observed=(Observation("two", "b.csv", 0.3),))
    ids = [entry.id for entry in ledger(one, two).evidence]
    given = [one, two, told("c", 1, observed=(Observation("both", between.join(ids), 0.99),))]
    found = ledger(*given)
    assert found.evidence[-1].stands_on == tuple(ids)
    assert surety(found)[-1] == pytest.approx(1 - 0.8 * 0.7)
    for name, left in ((ids[0], 0.3), (ids[1], 0.2)):
        doubted = ledger(*given, said=[Said("contest", name, "no")])
        assert doubted.evidence[-1].stale
        assert surety(doubted)[-1] == pytest.approx(left)


def test_an_id_in_the_words_of_a_source_is_what_it_stands_on() -> None:
    one = told("a", observed=(Observation("one", "a.csv", 0.2),))
    (base,) = ledger(one).evidence
    words = told("c", 1, observed=(Observation("it", f"as I read it (see {base.id})", 0.99),))
    plain = told("d", 1, observed=(Observation("that", "e-000000000000, as I hear", 0.99),))
    assert surety(ledger(one, words, plain)) == [0.2, 0.2, 0.99]


@pytest.mark.req("R128")
def test_a_step_that_gathers_stands_for_all_that_its_items_found() -> None:
    items = [told(f"each[{n}]", observed=(Observation(n, f"{n}.csv", 0.2),)) for n in "ns"]
    inner = told("sub.a", observed=(Observation("deep", "deep.csv", 0.3),))
    last = told("sub.b", 1, observed=(Observation("last", "last.csv", 0.3),))
    names = ("each", "sub", "each, sub")
    syn = told("syn", 3, observed=tuple(Observation(f"of {n}", n, 0.99) for n in names))
    given = [*items, inner, last, syn]
    gathers = [gathering("each", "each[n]", "each[s]"), gathering("sub", "sub.b")]
    steps = planned(*given) | {one.id: one for one in gathers}
    needs = (*steps[syn.step].needs, *(Need(one.id) for one in gathers))
    steps[syn.step] = replace(steps[syn.step], needs=needs)
    found = folded(given, alike, steps=steps)
    whole = [1 - 0.8**2, 1 - 0.7**2, 1 - 0.8**2 * 0.7**2]
    assert surety(found)[-3:] == pytest.approx(whole)
    doubted = folded(given, alike, said=[Said("contest", "each", "no", place=9)], steps=steps)
    states = [(one.step, bool(one.contested), one.stale) for one in doubted.evidence]
    assert states == [
        ("each[n]", True, False),
        ("each[s]", True, False),
        ("sub.a", False, False),
        ("sub.b", False, False),
        ("syn", False, True),
        ("syn", False, False),
        ("syn", False, True),
    ]
    anew = [replace(one, place=10) for one in items]
    answered = folded(
        [*given, *anew], alike, said=[Said("contest", "each", "no", place=9)], steps=steps
    )
    assert not any(one.contested or one.stale for one in answered.evidence)


@pytest.mark.req("R128")
@pytest.mark.parametrize("needs", [(), ("b",)])
def test_a_step_that_is_not_above_is_a_word_like_any_other(needs: tuple[str, ...]) -> None:
    early = told("a", observed=(Observation("early", "z", 0.9),))
    late = told("z", 1, observed=(Observation("late", "z.csv", 0.1),))
    given = [early, told("b"), late]
    steps = {one.step: Step(one.step) for one in given}
    steps[late.step] = Step(late.step, needs=tuple(Need(StepId(one)) for one in ("a", *needs)))
    found = folded(given, alike, said=[Said("contest", "z", "no")], steps=steps)
    first, _ = found.evidence
    assert (first.stands_on, first.contested, first.stale) == ((), "", False)
    assert sure(first, found) == 0.9


@pytest.mark.req("R128")
@pytest.mark.parametrize(
    ("shares", "whole"), [((None, 0.2), 0.5), ((0.2, None), 0.5), ((None, 0.7), 0.7)]
)
def test_a_finding_told_twice_is_as_sure_as_the_surer(
    shares: tuple[float | None, float | None], whole: float
) -> None:
    seen = tuple(Observation("it rains", "s", share, refutes=("dry",)) for share in shares)
    found = ledger(told("a", observed=seen), dry="untested").hypotheses["dry"]
    assert found.confidence_against == whole


def test_what_many_stand_on_is_held_once() -> None:
    """Each of many that name a step with many findings holds its name: together they hold few ids."""
    many = 2_000
    base = told("a", observed=tuple(Observation(f"{n} mm", f"{n}.csv", 0.1) for n in range(many)))
    syn = told("b", 1, observed=tuple(Observation(f"{n} cm", "a", 0.9) for n in range(many)))
    found = folded([base, syn], equal, steps=planned(base, syn))
    assert sum(len(one.stands_on) for one in found.evidence) == many
    assert len(found.found_by["a"]) == many
    assert surety_of_all(found)[-1] == pytest.approx(0.9)


def surety_of_all(found: Ledger) -> list[float | None]:
    certain = certainties(weights(found.evidence, found.found_by))
    return [certain[one.id] for one in found.evidence]


def test_who_lies_above_is_known_for_many_steps() -> None:
    steps = {StepId("s0"): Step(StepId("s0"))}
    for n in range(1, 3_000):
        steps[StepId(f"s{n}")] = Step(StepId(f"s{n}"), needs=(Need(StepId(f"s{n - 1}")),))
    pairs = [(StepId(f"s{n}"), f"s{n // 2}") for n in range(1, 3_000)]
    wrong = [(StepId(name), str(step)) for step, name in pairs if step != name]
    assert lying_above(steps, [*pairs, *wrong, (StepId("s1"), "no step")]) == {*pairs}
