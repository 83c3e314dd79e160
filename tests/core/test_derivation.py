"""What evidence stands on: the entries, handoffs and steps that its source names, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.above import lying_above
from holdfast.core.confidence import certainties
from holdfast.core.ledger import Ledger, counting, folded, sure
from holdfast.core.likeness import equal
from holdfast.core.said import Said
from holdfast.core.told import Past, Told, past_of
from holdfast.model.handoff import Observation, Trial
from holdfast.model.plan import GATHER, Need, RunId, Step, StepId
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


MIXED = [
    ("a, gauge.csv", 0.2, ["a"], ("gauge.csv",)),
    ("gauge.csv; ID", 0.2, ["ID"], ("gauge.csv",)),
    ("gauge.csv, as told in ID", 0.2, ["ID"], ("gauge.csv",)),
    ("see UPPER", 0.2, ["ID"], ()),
    ("step a", 0.2, ["a"], ()),
    ("steps a and b", 0.44, ["a", "b"], ()),
    ("a + b", 0.44, ["a", "b"], ()),
    ("a+b, and s9", 0.44, ["a", "b"], ("s9",)),
    ("s1, s2", 0.99, [], ("s1", "s2")),
    ("a note of a, b", 0.3, ["b"], ("a note of a",)),
    ("the gauge of a and b", 0.99, [], ("the gauge of a and b",)),
    ("z, s9", 0.99, [], ("s9", "z")),
    ("c, s9", 0.99, [], ("s9",)),
]


@pytest.mark.req("R128")
@pytest.mark.parametrize(("source", "share", "stands_on", "plain"), MIXED)
def test_a_source_is_read_part_by_part(
    source: str, share: float, stands_on: list[str], plain: tuple[str, ...]
) -> None:
    """Each part that names a step above or an entry stands for it; each other is a source of its own."""
    one = told("a", observed=(Observation("one", "s1", 0.2),))
    two = told("b", observed=(Observation("two", "s2", 0.3),))
    (base,) = ledger(one).evidence
    named = source.replace("ID", base.id).replace("UPPER", base.id.upper())
    given_ = [one, two, told("c", 1, observed=(Observation("x", named, 0.99),)), told("z", 2)]
    found = folded(given_, alike, steps=planned(*given_))
    entry = found.evidence[-1]
    assert sure(entry, found) == pytest.approx(share)
    assert entry.stands_on == tuple(base.id if name == "ID" else name for name in stands_on)
    assert entry.sources == plain
    for name in plain:
        doubted = folded(given_, alike, said=[Said("contest", name, "no")], steps=planned(*given_))
        assert bool(doubted.evidence[-1].contested) == (name != "z")
    for name in entry.stands_on:
        doubted = folded(given_, alike, said=[Said("contest", name, "no")], steps=planned(*given_))
        assert (doubted.evidence[-1].contested, doubted.evidence[-1].stale) == ("", True)


@pytest.mark.req("R128")
def test_a_source_that_several_name_counts_once_beside_others() -> None:
    listed = ("s1, s2", "s2, s1", "s1")
    seen = tuple(Observation(f"{n}", name, 0.8, ("wet",)) for n, name in enumerate(listed))
    found = ledger(told("a", observed=seen), wet="untested").hypotheses["wet"]
    half = 1 - 0.2**0.5
    assert found.confidence_for == pytest.approx(1 - 0.2 * (1 - half))


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


FIRST = told(
    "a",
    place=1,
    observed=(Observation("rise", "gauge.csv", 0.3), Observation("wells rise", "gauge.csv", 0.3)),
)
IDS = [one.id for one in ledger(FIRST).evidence]
NEXT = replace(told("a", observed=(Observation("fall", "other.csv", 0.3),)), place=9)


def concluded(*sources: str, place: int = 2, **more: object) -> Told:
    seen = tuple(Observation(f"it is wet {n}", s, 0.9, ("wet",)) for n, s in enumerate(sources))
    return told("syn", 1, place, observed=seen, **more)


def over(*given: Told, said: Sequence[Said] = (), past: Past | None = None) -> Ledger:
    steps = planned(*{one.step: one for one in given}.values())
    return folded(given, alike, {"wet": "untested"}, said, steps=steps, past=past)


@pytest.mark.req("R128")
@pytest.mark.parametrize("source", [IDS[0], ", ".join(IDS), FIRST.id, "a"])
@pytest.mark.parametrize("contested", ["gauge.csv", IDS[0], FIRST.id, "a"])
def test_what_stands_on_something_contested_stays_stale_whatever_its_step_tells_now(
    source: str, contested: str
) -> None:
    word = Said("contest", contested, "misread", place=5)
    for later in ((), (NEXT,)):
        found = over(FIRST, concluded(source), *later, said=[word])
        assert found.evidence[-1].stale
        assert (found.hypotheses["wet"].status, found.hypotheses["wet"].stale) == (
            "inconclusive",
            True,
        )
        assert (sure(found.evidence[-1], found) or 0) <= 0.3
    again = over(FIRST, concluded(source), NEXT, concluded("other.csv", place=10), said=[word])
    assert not any(one.stale for one in again.evidence)
    back = over(FIRST, concluded(source), NEXT, said=[word, Said("uphold", contested, "")])
    assert not back.evidence[-1].stale


@pytest.mark.req("R123", "R128")
@pytest.mark.parametrize("named", [IDS[0], FIRST.id, "a"])
def test_a_verdict_falls_with_what_it_named_although_that_counts_no_more(named: str) -> None:
    verdict = concluded(hypotheses={"wet": Trial("supported", (named,))})
    stands = over(FIRST, verdict, NEXT).hypotheses["wet"]
    assert (stands.status, stands.stale) == ("supported", False)
    assert stands.confidence_for == pytest.approx(0.3)
    assert stands.evidence_steps == ("a",)
    word = Said("contest", "gauge.csv", "misread", place=5)
    fell = over(FIRST, verdict, NEXT, said=[word]).hypotheses["wet"]
    assert (fell.status, fell.stale, fell.confidence_for) == ("inconclusive", True, None)


@pytest.mark.req("R128")
@pytest.mark.parametrize("sources", [IDS, [FIRST.id, IDS[0]], ["a", IDS[1]]])
def test_what_was_told_before_bounds_what_stands_on_it_and_shares_its_source(
    sources: list[str],
) -> None:
    found = over(FIRST, concluded(*sources), NEXT)
    assert surety(found) == [0.3, pytest.approx(0.3), pytest.approx(0.3)]
    assert found.hypotheses["wet"].confidence_for == pytest.approx(0.3)
    assert not found.stale
    assert {one.id for one in found.past} <= {*IDS}


@pytest.mark.req("R128")
def test_a_step_that_left_the_plan_bounds_what_stands_on_it() -> None:
    derived = told("b", place=3, observed=(Observation("b", IDS[0], 0.2), Observation("c", "a", 1)))
    (first, second) = [entry.id for entry in over(FIRST, derived).evidence[-2:]]
    past = past_of([FIRST, derived, NEXT])
    left = over(concluded(f"{first} {second}", place=10), past=past)
    assert surety(left) == [pytest.approx(0.3)]
    assert {one.step for one in left.superseded} == {"a", "b"}
    doubted = [Said("contest", "gauge.csv", "no", place=20)]
    assert over(left.handoffs[0], said=doubted, past=past).evidence[-1].stale


@pytest.mark.req("R128")
@pytest.mark.parametrize("source", [IDS[0], FIRST.id, "a"])
def test_what_a_contested_step_told_again_stands_also_if_it_counts_no_more(source: str) -> None:
    again = told("a", place=7, observed=(Observation("rise", "gauge.csv", 0.4),))
    word = Said("contest", "a", "misread", place=5)
    first = replace(FIRST, handoff=replace(FIRST.handoff, observed=FIRST.handoff.observed[:1]))
    found = over(first, concluded(source), again, NEXT, said=[word])
    assert not found.evidence[-1].stale
    assert sure(found.evidence[-1], found) == 0.4


@pytest.mark.req("R124")
def test_what_a_step_beside_told_in_the_same_run_is_not_known() -> None:
    old, new = replace(FIRST, run=RunId("r-1")), replace(FIRST, run=RunId("r-2"), place=8)
    seen = tuple(replace(one, confidence=0.8) for one in FIRST.handoff.observed)
    beside = replace(new, id="h-000000000008", handoff=replace(FIRST.handoff, observed=seen))
    every = past_of([old, beside])
    below = replace(concluded(IDS[0], place=9), run=RunId("r-2"))
    for steps, share in ((["syn"], 0.3), (["syn", "a"], 0.8)):
        known = every._replace(run=RunId("r-2"), steps=[StepId(name) for name in steps])
        assert surety(over(below, past=known)) == [share]


@pytest.mark.req("R114", "R124", "C6")
@given(st.randoms(use_true_random=False))
def test_the_order_of_steps_inside_a_run_changes_nothing_in_what_stands_on_earlier_runs(
    chance: random.Random,
) -> None:
    """Three runs of six steps, some reused, each naming steps above it: in any order that needs allow."""
    names = [f"s{n}" for n in range(6)]
    runs = [[name for name in names if chance.random() < 0.7 or not run] for run in range(3)]
    cites = {name: chance.sample(names[: n - n % 2], n - n % 2)[:2] for n, name in enumerate(names)}

    def journal(*, shuffled: bool) -> Ledger:
        place, every = 0, []
        for number, run in enumerate(runs):
            drawn = chance.sample(run, len(run)) if shuffled else run
            for name in sorted(drawn, key=lambda name: names.index(name) // 2):
                seen = tuple(Observation(f"{name} by {c} {number}", c, 0.5) for c in cites[name])
                own = (*seen, Observation(f"{name} sees {number}", f"{name}.csv", 0.4))
                place += 1
                every.append(told(name, names.index(name) // 2, place, observed=own))
        said = [Said("contest", "s0.csv", "no", place=99)]
        found = over(*every, said=said)
        return replace(found, handoffs=(), superseded=())

    assert journal(shuffled=True) == journal(shuffled=False)


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
    certain = certainties(counting(found))
    return [certain[one.id] for one in found.evidence]


def test_who_lies_above_is_known_for_many_steps() -> None:
    steps = {StepId("s0"): Step(StepId("s0"))}
    for n in range(1, 3_000):
        steps[StepId(f"s{n}")] = Step(StepId(f"s{n}"), needs=(Need(StepId(f"s{n - 1}")),))
    pairs = [(StepId(f"s{n}"), f"s{n // 2}") for n in range(1, 3_000)]
    wrong = [(StepId(name), str(step)) for step, name in pairs if step != name]
    assert lying_above(steps, [*pairs, *wrong, (StepId("s1"), "no step")]) == {*pairs}
