"""The rule by which evidence adds up: bounded, monotone, without order, and no source counts twice."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.core.confidence import UNSAID, Weight, bounded, certainties, together

pytestmark = pytest.mark.req("R128")

shares = st.one_of(st.none(), st.floats(0, 1))
sources = st.sampled_from(["a.csv", "b.csv", "c.csv", "d.csv"])


@st.composite
def bodies(draw: st.DrawFn, most: int = 8) -> dict[str, Weight]:
    """Evidence that stands on some of what comes before it, or on a source."""
    known: dict[str, Weight] = {}
    for number in range(draw(st.integers(1, most))):
        below = st.lists(st.sampled_from(sorted(known)), unique=True, max_size=3)
        stands_on = tuple(draw(below)) if known else ()
        first, *others = draw(st.lists(sources, unique=True, min_size=1, max_size=3))
        known[f"e{number}"] = Weight(first, draw(shares), stands_on, tuple(others))
    return known


def said(share: float | None) -> float:
    return UNSAID if share is None else share


@given(bodies())
def test_the_whole_lies_between_the_surest_and_certainty(known: dict[str, Weight]) -> None:
    found = together(known, known)
    surest = max(said(known[one].confidence) for one in known if not known[one].stands_on)
    assert found is not None
    assert surest <= found <= 1


@given(bodies(), st.randoms(use_true_random=False))
def test_no_order_plays_a_part(known: dict[str, Weight], chance: random.Random) -> None:
    mixed = list(known)
    chance.shuffle(mixed)
    turned = {name: known[name] for name in mixed}
    assert together(mixed, turned) == together(known, known)


@given(bodies(), st.data())
def test_more_evidence_never_makes_less_sure(known: dict[str, Weight], data: st.DataObject) -> None:
    some = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1))
    less, more = together(some, known), together(known, known)
    assert less is not None
    assert more is not None
    assert less <= more or less == pytest.approx(more)


@given(bodies(), st.data(), st.floats(0, 1))
def test_surer_evidence_never_makes_less_sure(
    known: dict[str, Weight], data: st.DataObject, surer: float
) -> None:
    name = data.draw(st.sampled_from(sorted(known)))
    assume(surer >= said(known[name].confidence))
    raised = {**known, name: known[name]._replace(confidence=surer)}
    before, after = together(known, known), together(raised, raised)
    assert before is not None
    assert after is not None
    assert before <= after or before == pytest.approx(after)


@given(st.lists(shares, min_size=1, max_size=6))
def test_one_source_counts_once_however_often_it_is_cited(given_: list[float | None]) -> None:
    known = {f"e{n}": Weight("a.csv", share) for n, share in enumerate(given_)}
    assert together(known, known) == pytest.approx(max(map(said, given_)))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_other_sources_count_as_independent_and_more_than_the_same(given_: list[float]) -> None:
    apart = {f"e{n}": Weight(f"{n}.csv", share) for n, share in enumerate(given_)}
    shared = {name: one._replace(source="a.csv") for name, one in apart.items()}
    doubt = 1.0
    for share in given_:
        doubt *= 1 - share
    found, less = together(apart, apart), together(shared, shared)
    assert found == pytest.approx(1 - doubt)
    assert less is not None
    assert found is not None
    assert less <= found


def test_several_sources_share_what_a_finding_claims() -> None:
    both = Weight("a.csv", 0.8, (), ("b.csv",))
    one, other = Weight("a.csv", 0.6), Weight("b.csv", 0.6)
    assert together("xy", {"x": both, "y": both}) == 0.8
    assert together("xyz", {"x": both, "y": one, "z": other}) == pytest.approx(0.84)
    half = 1 - 0.2**0.5
    assert together("xy", {"x": both, "y": one}) == pytest.approx(1 - 0.4 * (1 - half))


@given(bodies(), shares)
def test_what_is_derived_adds_nothing(known: dict[str, Weight], share: float | None) -> None:
    whole = {**known, "sum": Weight("sum", share, tuple(known))}
    assert together(whole, whole) == together(known, known)


@given(bodies())
def test_a_synthesis_is_at_most_as_sure_as_what_it_stands_on(known: dict[str, Weight]) -> None:
    for name, one in known.items():
        found = bounded(name, known)
        if one.stands_on:
            most = together(one.stands_on, known)
            assert found is not None
            assert most is not None
            assert found <= most or found == pytest.approx(most)
        assert one.confidence is None or (found is not None and found <= one.confidence)


@given(bodies(), st.data())
def test_all_at_once_says_the_same_as_one_by_one(
    known: dict[str, Weight], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(known))))  # contested: it counts nothing
    left = {name: one for name, one in known.items() if name not in gone}
    assert certainties(left) == {name: bounded(name, left) for name in left}


@given(bodies(6), st.data())
def test_the_whole_is_worth_as_much_as_the_narrowest_cut_above_its_sources(
    known: dict[str, Weight], data: st.DataObject
) -> None:
    ids = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1))
    cuts = (set(cut) for many in range(len(known) + 1) for cut in combinations(known, many))
    worth = [cost(cut, ids, known) for cut in cuts if not reached(ids, known, cut)]
    assert together(ids, known) == pytest.approx(min(worth))


def reached(ids: Iterable[str], known: dict[str, Weight], cut: Collection[str]) -> set[str]:
    """The findings from sources to which a way leads beside a cut."""
    queue = [one for one in ids if one not in cut]
    seen = {*queue}
    for one in queue:
        fresh = {*known[one].stands_on} - seen - {*cut}
        seen |= fresh
        queue += fresh
    return {one for one in seen if not known[one].stands_on}


def width(ids: Iterable[str], known: dict[str, Weight], to: str) -> float:
    """The most that a way to a finding lets through: as wide as its narrowest claim."""
    claims = sorted(
        {said(one.confidence) if not one.stands_on else claim(one) for one in known.values()}
    )
    open_ = [
        least
        for least in claims
        if to in reached(ids, known, [n for n in known if n != to and claim(known[n]) < least])
    ]
    return (
        min(said(known[to].confidence), max(open_, default=0.0))
        if to not in ids
        else said(known[to].confidence)
    )


def claim(one: Weight) -> float:
    return 1.0 if one.confidence is None else one.confidence


def cost(cut: Iterable[str], ids: Collection[str], known: dict[str, Weight]) -> float:
    doubt = 1.0
    surest: dict[str, float] = {}
    for one in cut:
        weight = known[one]
        if weight.stands_on:
            doubt *= 1 - claim(weight)
        else:
            named = (weight.source, *weight.others)
            share = 1 - (1 - width(ids, known, one)) ** (1 / len(named))
            surest |= {name: max(share, surest.get(name, 0.0)) for name in named}
    for share in surest.values():
        doubt *= 1 - share
    return 1 - doubt


@given(bodies(), st.data())
def test_what_is_contested_never_makes_surer(known: dict[str, Weight], data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1))
    gone = data.draw(st.sets(st.sampled_from(sorted(known))))
    left = {name: one for name, one in known.items() if name not in gone}
    before, after = together(ids, known), together(ids, left)
    assert before is not None
    assert after is None or after <= before or after == pytest.approx(before)


@pytest.mark.parametrize("claimed", [0.1, 0.5, 0.95, 0.9999])
def test_a_claim_bounds_all_that_its_sources_make_together(claimed: float) -> None:
    known = {f"e{n}": Weight(f"{n}.csv", 0.9) for n in range(4)}
    known["sum"] = Weight("", claimed, tuple(known))
    for n in range(3):  # said again by others, it is no surer
        known[f"again {n}"] = Weight("", 0.9999, ("sum",))
    whole = min(claimed, 1 - 0.1**4)
    assert together(["sum"], known) == pytest.approx(whole)
    assert together([one for one in known if known[one].stands_on], known) == pytest.approx(whole)
    assert together(known, known) == pytest.approx(1 - 0.1**4)


def test_a_weak_link_bounds_all_that_stands_on_it() -> None:
    known = {
        "base": Weight("a.csv", 0.9),
        "guess": Weight("", 0.1, ("base",)),
        "claim": Weight("", 0.9, ("guess",)),
    }
    assert bounded("claim", known) == 0.1
    assert together(["claim"], known) == pytest.approx(0.1)
    assert together(["claim", "base"], known) == pytest.approx(0.9)


@given(bodies(), st.randoms(use_true_random=False))
def test_sources_may_come_after_what_stands_on_them(
    known: dict[str, Weight], chance: random.Random
) -> None:
    mixed = list(known)
    chance.shuffle(mixed)
    assert certainties({name: known[name] for name in mixed}) == certainties(known)


def test_what_stands_on_itself_in_a_circle_is_worth_nothing() -> None:
    known = {"e1": Weight("", 0.9, ("e2",)), "e2": Weight("", 0.9, ("e1",))}
    assert together(known, known) is None
    assert 0.0 in certainties(known).values()


def test_nothing_makes_nothing_sure() -> None:
    assert together([], {}) is None
    assert together(["e1"], {}) is None
    assert bounded("e2", {"e2": Weight("", 0.9, ("e1",))}) == 0.0


@pytest.mark.parametrize(("claimed", "found"), [(0.4, 0.4), (0.9, 0.5), (None, 0.5)])
def test_a_long_chain_of_syntheses_is_gone_through_once(
    claimed: float | None, found: float
) -> None:
    known = {"e0": Weight("a.csv", 0.5)}
    for number in range(1, 20_000):
        known[f"e{number}"] = Weight("", claimed, (f"e{number - 1}",))
    assert certainties(known)["e19999"] == found


def test_what_is_certain_counts_among_other_sources() -> None:
    known = {
        "sure": Weight("a.csv", 1.0),
        "half": Weight("b.csv", 0.5),
        "sum": Weight("", 1.0, ("sure", "half")),
    }
    assert bounded("sum", known) == 1.0
    assert together(["sum", "half"], known) == 1.0


def test_what_stands_on_nothing_sure_is_not_sure() -> None:
    known = {
        "one": Weight("a.csv", 0.0),
        "two": Weight("b.csv", 0.0),
        "sum": Weight("", 0.9, ("one", "two")),
    }
    assert bounded("sum", known) == 0.0


def test_what_stands_on_nothing_known_widens_no_way() -> None:
    known = {
        "one": Weight("a.csv", 0.5),
        "two": Weight("b.csv", 0.5),
        "lost": Weight("", 0.9, ("gone",)),
        "sum": Weight("", 0.8, ("one", "two", "lost")),
    }
    assert together(["sum"], known) == pytest.approx(0.75)
