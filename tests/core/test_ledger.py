"""The ledger is a function of the latest handoffs, in whatever order they came."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from holdfast.core.bases import _circling
from holdfast.core.evidence import doubt_of, names_source
from holdfast.core.ledger import Ledger, Silent, folded, loose_ends, sure
from holdfast.core.replan import Premises, Rules, triggers
from holdfast.core.said import Said
from holdfast.core.told import Told
from holdfast.model.digest import digest_json
from holdfast.model.handoff import (
    STANDINGS,
    Change,
    Handoff,
    Observation,
    Standing,
    Trial,
    Undone,
    handoff_id,
    handoff_json,
)
from holdfast.model.plan import StepId

WORDS = [
    "rain",
    "heat",
    "pump",
    "cost",
    "station",
    "sample",
    "river",
    "drift",
    "noise",
    "season",
    "not",
    "5",
    "7",
    "failed",
]


def alike(one: str, other: str) -> float:
    return fuzz.ratio(one, other) / 100


def told(step: str, wave: int = 0, place: int = 0, **said: object) -> Told:
    handoff = replace(Handoff("look"), **said)  # type: ignore[arg-type]  # fields of a handoff
    name = StepId(step)
    content = digest_json(handoff_json(handoff))
    return Told(handoff_id(name, content), name, wave, handoff, place=place)


def ledger(*given: Told, said: Sequence[Said] = (), **hypotheses: Standing) -> Ledger:
    return folded(given, alike, hypotheses, said)


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
names = st.sampled_from([f"s{n}" for n in range(6)])
handoffs = st.builds(
    Handoff,
    attempted=st.just("look"),
    observed=st.lists(
        st.builds(
            Observation,
            texts,
            st.one_of(st.just(""), names, st.just("a.csv")),
            st.one_of(st.none(), st.floats(0, 1)),
            st.just(("H1",)),
        ),
        max_size=3,
    ).map(tuple),
    changed=st.lists(st.builds(Change, texts, texts), max_size=2).map(tuple),
    not_done=st.lists(st.builds(Undone, texts, texts), max_size=2).map(tuple),
    uncertainty=st.one_of(st.just(""), texts),
    resolves=st.lists(texts, max_size=2, unique=True).map(tuple),
    testing=st.lists(texts, max_size=2, unique=True).map(tuple),
    hypotheses=st.dictionaries(
        st.sampled_from(["H1", "H2"]), st.builds(Trial, st.sampled_from(STANDINGS))
    ),
)


@pytest.mark.req("R114", "R124", "C6")
@given(
    st.lists(st.tuples(names, st.integers(0, 2), handoffs), max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_steps_end_changes_nothing(
    given_: list[tuple[str, int, Handoff]], chance: random.Random
) -> None:
    wave = {step: depth for step, depth, _ in given_}
    all_told = [
        Told(f"h-{n:012d}", StepId(step), wave[step], handoff, place=n)
        for n, (step, _, handoff) in enumerate(given_)
    ]
    shuffled = list(all_told)
    chance.shuffle(shuffled)
    assert ledger(*shuffled, H1="untested") == ledger(*all_told, H1="untested")


@pytest.mark.req("E18", "R117")
def test_the_latest_handoff_of_a_step_counts_and_the_earlier_stays_on_record() -> None:
    old = told("a", observed=(Observation("the old one"),), place=1)
    new = told("a", observed=(Observation("the new one"),), place=2)
    found = ledger(new, old)
    assert [one.finding for one in found.evidence] == ["the new one"]
    assert (found.handoffs, found.superseded) == ((new,), (old,))


@pytest.mark.req("R123")
def test_who_says_that_a_hypothesis_is_untested_did_not_test_it() -> None:
    found = ledger(told("a", hypotheses={"H1": Trial("untested")}), H1="untested")
    assert (found.hypotheses["H1"].status, found.hypotheses["H1"].tested_by) == ("untested", ())


@pytest.mark.req("R115")
@pytest.mark.parametrize("by_id", [False, True])
def test_a_handoff_may_take_up_and_resolve_its_own_question(*, by_id: bool) -> None:
    asks = told("a", uncertainty="Own?")
    name = ledger(asks).uncertainties[0].id if by_id else "own"
    (tested,) = ledger(told("a", uncertainty="Own?", testing=(name,))).uncertainties
    assert (tested.status, tested.tested_by) == ("testing", "a")
    found = ledger(told("a", uncertainty="Own?", testing=(name,), resolves=(name,)))
    assert (found.uncertainties[0].status, found.uncertainties[0].resolved_by) == ("resolved", "a")
    assert not found.unmatched
    again = ledger(*found.handoffs, told("b", 1, uncertainty="own?"))
    assert again.uncertainties[0].status == "open"


@pytest.mark.req("E18", "R114")
def test_an_uncertainty_that_nobody_named_is_none() -> None:
    assert ledger(told("a", uncertainty="")).uncertainties == ()


@pytest.mark.req("R115", "E18")
def test_later_handoffs_take_up_and_answer_a_question() -> None:
    question = "is the sample large enough"
    asked = told("a", uncertainty=question)
    takes = told("b", 1, testing=(question,))
    solves = told("c", 2, resolves=(ledger(asked).uncertainties[0].id,))
    assert ledger(asked).uncertainties[0].status == "open"
    assert ledger(asked, takes).uncertainties[0].status == "testing"
    done = ledger(asked, takes, solves).uncertainties[0]
    assert (done.status, done.tested_by, done.resolved_by) == ("resolved", "b", "c")


@pytest.mark.req("R115")
def test_what_is_asked_again_after_an_answer_is_open() -> None:
    question = "is the sample large enough"
    steps = [told("a", uncertainty=question), told("b", 1, resolves=(question,))]
    again = told("c", 2, uncertainty=question)
    found = ledger(*steps, again).uncertainties[0]
    assert (found.status, found.raised_by) == ("open", ("a", "c"))


@pytest.mark.req("R127")
def test_questions_in_nearly_the_same_words_are_one_and_keep_who_raised_them() -> None:
    found = ledger(
        told("a", uncertainty="Is the sample of the river large enough?"),
        told("b", uncertainty="is the river sample large enough"),
        told("c", uncertainty="Is the sample of the river not large enough?"),
    )
    assert [one.raised_by for one in found.uncertainties] == [("a", "b"), ("c",)]
    assert found.uncertainties[0].same == ("is the river sample large enough",)


@pytest.mark.req("R127")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 of 70 stations failed", "6 of 70 stations failed"),
        ("the pump does not leak", "the pump does leak"),
        ("the cost is 1.25 in the season", "the cost is 1.52 in the season"),
    ],
)
def test_other_numbers_and_denials_are_other_findings(one: str, other: str) -> None:
    found = ledger(
        told("a", observed=(Observation(one),)), told("b", observed=(Observation(other),))
    )
    assert [seen.head == seen.id for seen in found.evidence] == [True, True]


@pytest.mark.req("R127")
def test_a_person_keeps_apart_what_was_taken_for_one() -> None:
    given = [
        told("a", observed=(Observation("rain falls on the station in spring"),)),
        told("b", observed=(Observation("rain falls on the stations in spring"),)),
    ]
    one, other = ledger(*given).evidence
    assert (other.head, round(other.alike, 1)) == (one.id, 1.0)
    apart = ledger(*given, said=[Said("apart", one.id, other.id)])
    assert [seen.head for seen in apart.evidence] == [one.id, other.id]


@pytest.mark.req("R123")
@pytest.mark.parametrize(
    ("verdicts", "stands"),
    [
        ([], "untested"),
        (["testing"], "testing"),
        (["testing", "supported"], "supported"),
        (["refuted", "inconclusive"], "refuted"),
        (["supported", "refuted"], "inconclusive"),
    ],
)
def test_a_hypothesis_stands_as_all_that_tested_it_say(
    verdicts: list[Standing], stands: Standing
) -> None:
    given = [
        told(
            f"s{n}",
            observed=(Observation(f"seen {n}", "a.csv"),),
            hypotheses={"H1": Trial(one, (f"s{n}",))},
        )
        for n, one in enumerate(verdicts)
    ]
    found = ledger(*given, H1="untested").hypotheses["H1"]
    assert (found.status, len(found.tested_by)) == (stands, len(verdicts))
    assert found.evidence_steps == tuple(f"s{n}" for n in range(len(verdicts)))


@pytest.mark.req("R128")
def test_what_shares_a_source_counts_once_and_a_synthesis_adds_nothing() -> None:
    first = told("a", observed=(Observation("one", "a.csv", 0.6, ("H1",)),))
    again = told("b", observed=(Observation("two", "a.csv", 0.5, ("H1",)),))
    other = told("c", observed=(Observation("three", "b.csv", 0.5, ("H1",)),))
    sums = told("d", 1, observed=(Observation("all", "a", 0.95, ("H1",)),))
    assert ledger(first, again, H1="untested").hypotheses["H1"].confidence_for == pytest.approx(0.6)
    both = ledger(first, again, other, H1="untested")
    assert both.hypotheses["H1"].confidence_for == pytest.approx(0.8)
    whole = ledger(first, again, other, sums, H1="untested")
    assert whole.hypotheses["H1"].confidence_for == pytest.approx(0.8)
    synthesis = whole.evidence[-1]
    assert synthesis.stands_on == ("a",)
    assert whole.found_by == {"a": (whole.evidence[0].id,)}
    assert sure(synthesis, whole) == pytest.approx(0.6)


def test_what_stands_on_contested_evidence_falls_with_it() -> None:
    given = [
        told("a", observed=(Observation("one", "a.csv", 0.6, ("H1",)),)),
        told("b", 1, observed=(Observation("two", "a", 0.6),)),
        told("c", 2, observed=(Observation("three", "b", 0.6),)),
        told("d", 2, observed=(Observation("four", "b.csv", 0.6),)),
    ]
    whole = ledger(*given, H1="untested")
    contested = Said("contest", whole.evidence[0].id, "the sensor was broken")
    found = ledger(*given, said=[contested], H1="untested")
    assert [one.stale for one in found.evidence] == [False, True, True, False]
    assert found.evidence[0].contested == "the sensor was broken"
    assert found.stale == (found.evidence[1].id, found.evidence[2].id, "H1")
    assert sure(found.evidence[2], found) == 0.0


@pytest.mark.req("R129")
def test_what_refers_to_nothing_is_named() -> None:
    found = ledger(told("a", resolves=("who is there",), refers_to=("h-000000000000",)))
    assert loose_ends(found) == [("a", "who is there"), ("a", "h-000000000000")]
    first = told("a", observed=(Observation("rain"),))
    names = (first.id, ledger(first).evidence[0].id, "the ledger of last year", "e-000000000000")
    assert loose_ends(ledger(first, told("b", 1, refers_to=names))) == [("b", "e-000000000000")]


def test_a_contested_step_is_answered_by_what_it_tells_afterwards() -> None:
    word = Said("contest", "a", "I doubt it", place=5)
    before = told("a", place=4, observed=(Observation("rain falls"),))
    after = told("a", place=6, observed=(Observation("rain falls"),))
    assert ledger(before, said=[word]).evidence[0].contested == "I doubt it"
    assert ledger(before, after, said=[word]).evidence[0].contested == ""


def test_contested_evidence_stays_so_until_that_is_taken_back() -> None:
    seen = told("a", place=6, observed=(Observation("rain falls", "a.csv"),))
    name = ledger(seen).evidence[0].id
    for entry in (name, "a.csv", seen.id):
        word = Said("contest", entry, "no", place=5)
        back = Said("uphold", entry, "", place=7)
        anew = Said("contest", entry, "still no", place=8)
        assert ledger(seen, said=[word]).evidence[0].contested == "no"
        assert ledger(seen, said=[word, back]).evidence[0].contested == ""
        assert ledger(seen, said=[word, back, anew]).evidence[0].contested == "still no"


def test_what_stands_on_a_contested_step_is_stale_and_not_contested_itself() -> None:
    below = told("b", 1, observed=(Observation("it is wet", "a"),))
    found = ledger(
        told("a", observed=(Observation("rain falls"),)), below, said=[Said("contest", "a", "no")]
    )
    assert [(one.contested, one.stale) for one in found.evidence] == [("no", False), ("", True)]


def _seen(name: str, side: str, source: str = "") -> Observation:
    return Observation(name, source, **{side: ("h",)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sides", "verdict", "expected"),
    [
        ((), None, "inconclusive"),
        (("refutes",), None, "refuted"),
        (("supports",), None, "supported"),
        (("supports", "refutes"), None, "inconclusive"),
        (("refutes",), "inconclusive", "inconclusive"),
        (("refutes",), "supported", "supported"),
    ],
)
def test_a_step_without_a_verdict_speaks_by_what_it_found(
    sides: tuple[str, ...], verdict: Standing | None, expected: Standing
) -> None:
    seen = tuple(_seen(f"finding of {side}", side) for side in sides)
    tried = {"h": Trial(verdict)} if verdict else {}
    one = replace(told("a", observed=seen, hypotheses=tried), tests=("h",))
    found = ledger(one, h="untested").hypotheses["h"]
    assert (found.status, found.tested_by) == (expected, ("a",))


def test_a_step_that_tested_and_told_nothing_is_inconclusive() -> None:
    found = folded(
        [], alike, {"h": "untested"}, silent={StepId("a"): Silent(0, ("h",))}
    ).hypotheses["h"]
    assert (found.status, found.tested_by) == ("inconclusive", ("a",))


def test_those_that_tested_stand_in_canonical_order_also_who_told_nothing() -> None:
    given_ = [
        told(name, wave, hypotheses={"h": Trial("supported")})
        for name, wave in (("a", 1), ("c", 0))
    ]
    quiet = {StepId("b"): Silent(0, ("h",)), StepId("d"): Silent(1, ("h",))}
    found = folded(given_, alike, silent=quiet).hypotheses["h"]
    assert found.tested_by == ("b", "c", "a", "d")


def test_what_stands_on_contested_evidence_counts_on_no_side() -> None:
    base = told("a", observed=(Observation("rain", "a.csv", 0.9, ("wet",)),))
    above = told("b", 1, observed=(Observation("so wet", "a", 0.8, ("wet",)),))
    own = told("c", observed=(Observation("puddles", "c.csv", 0.7, ("wet",)),))
    word = [Said("contest", "a.csv", "no")]
    found = ledger(base, above, own, said=word, wet="untested").hypotheses["wet"]
    assert (len(found.supporting), len(found.fallen_for)) == (1, 2)


def test_what_is_contested_counts_on_no_side_and_decides_nothing() -> None:
    seen = (_seen("it fell", "refutes", "x.csv"), _seen("it fell again", "refutes", "y.csv"))
    given = told("a", observed=seen, hypotheses={"h": Trial("refuted")})
    some = ledger(given, said=[Said("contest", "x.csv", "old")], h="untested").hypotheses["h"]
    assert (some.status, len(some.refuting), len(some.fallen_against)) == ("refuted", 1, 1)
    assert some.stale
    words = [Said("contest", "x.csv", "old"), Said("contest", "y.csv", "old")]
    every = ledger(given, said=words, h="untested").hypotheses["h"]
    assert (every.status, every.refuting, every.stale) == ("inconclusive", (), True)


def test_a_verdict_that_is_contested_itself_decides_nothing() -> None:
    given = told("a", hypotheses={"h": Trial("refuted")})
    found = ledger(given, said=[Said("contest", "a", "no")], h="untested").hypotheses["h"]
    assert (found.status, found.stale) == ("inconclusive", True)


@pytest.mark.req("R129")
def test_a_verdict_that_names_nothing_leans_on_what_its_own_handoff_found() -> None:
    """It falls with all of that, and is stale with some of it; what speaks for it counts before the rest."""
    fell, dry = Observation("sales fell", "reg.csv"), Observation("it was dry", "sky.csv")
    against = Observation("sales fell", "reg.csv", refutes=("grows",))
    no = {"grows": Trial("refuted")}

    def stands(*seen: Observation, contested: Sequence[str]) -> tuple[Standing, bool]:
        given_ = (told("a", observed=seen, hypotheses=no), told("b", 1))
        said = [Said("contest", name, "no") for name in contested]
        found = ledger(*given_, said=said, grows="untested").hypotheses["grows"]
        return found.status, found.stale

    assert stands(fell, dry, contested=()) == ("refuted", False)
    assert stands(fell, contested=["reg.csv"]) == ("inconclusive", True)
    assert stands(fell, dry, contested=["reg.csv"]) == ("refuted", True)
    assert stands(fell, dry, contested=["reg.csv", "sky.csv"]) == ("inconclusive", True)
    assert stands(against, dry, contested=["reg.csv"]) == ("inconclusive", True)
    assert stands(against, dry, contested=["sky.csv"]) == ("refuted", False)
    assert stands(contested=["reg.csv"]) == ("refuted", False)


def test_a_verdict_falls_by_what_it_leans_on_itself_whatever_others_found() -> None:
    """Another finding on the same side, of a step that says otherwise, does not keep it up."""
    seen = (Observation("sales fell", "reg.csv"),)
    other = (Observation("prices fell", "shop.csv", refutes=("grows",)),)
    given_ = (
        told("a", observed=seen, hypotheses={"grows": Trial("refuted")}),
        told("b", observed=other, hypotheses={"grows": Trial("inconclusive")}),
    )
    said = [Said("contest", "reg.csv", "no")]
    assert ledger(*given_, grows="untested").hypotheses["grows"].status == "refuted"
    found = ledger(*given_, said=said, grows="untested").hypotheses["grows"]
    assert (found.status, found.stale) == ("inconclusive", True)


@pytest.mark.req("R114")
@pytest.mark.parametrize("turned", [False, True])
def test_a_finding_told_twice_is_one_with_all_that_was_told_of_it(*, turned: bool) -> None:
    weak = Observation("sales fell", "register", 0.2)
    sure = Observation("sales fell", "register", 0.95, refutes=("grows",))
    found = ledger(told("a", observed=(sure, weak) if turned else (weak, sure)), grows="untested")
    (one,) = found.evidence
    assert (one.confidence, one.refutes) == (0.95, ("grows",))
    assert found.hypotheses["grows"].status == "refuted"


def test_a_gap_told_twice_leaves_every_requirement_open_that_it_names() -> None:
    twice = (Undone("the map", "no data"), Undone("the map", "no time", "R1"))
    (gap,) = ledger(told("a", not_done=twice)).gaps
    assert (gap.reason, gap.requirements) == ("no data; no time", ("R1",))


@pytest.mark.req("R128")
def test_evidence_stands_on_what_it_names_wherever_that_is_folded() -> None:
    below = told("b", 1, observed=(Observation("it rains", "gauge.csv", 0.6, refutes=("dry",)),))
    (base,) = ledger(below).evidence
    above = told("a", observed=(Observation("it is wet", base.id, 0.9, refutes=("dry",)),))
    found = ledger(above, below, dry="untested")
    derived = next(one for one in found.evidence if one.step == "a")
    assert derived.stands_on == (base.id,)
    assert found.hypotheses["dry"].confidence_against == pytest.approx(0.6)
    doubted = ledger(above, below, said=[Said("contest", "gauge.csv", "broken")], dry="untested")
    assert [one.stale for one in doubted.evidence] == [True, False]
    assert doubted.hypotheses["dry"].status == "inconclusive"


def test_steps_that_name_each_other_stand_on_what_comes_first() -> None:
    found = ledger(
        told("a", observed=(Observation("it rains", "b", 0.6),)),
        told("b", 1, observed=(Observation("it is wet", "a", 0.9),)),
    )
    first, second = found.evidence
    assert (first.stands_on, second.stands_on) == ((), ("a",))


def test_the_name_of_its_own_step_is_no_second_source() -> None:
    seen = (
        Observation("it rains", "", 0.5, supports=("wet",)),
        Observation("streets are wet", "a", 0.5, supports=("wet",)),
    )
    found = ledger(told("a", observed=seen), wet="untested")
    assert found.hypotheses["wet"].confidence_for == pytest.approx(0.5)


@pytest.mark.req("R123")
def test_a_verdict_falls_with_the_step_that_it_names() -> None:
    base = told("a", observed=(Observation("it rains", "gauge.csv", 0.9),))
    verdict = told("b", 1, hypotheses={"dry": Trial("refuted", (StepId("a"),))})
    assert ledger(base, verdict, dry="untested").hypotheses["dry"].status == "refuted"
    doubt = [Said("contest", "gauge.csv", "broken")]
    fallen = ledger(base, verdict, said=doubt, dry="untested").hypotheses["dry"]
    assert (fallen.status, fallen.stale) == ("inconclusive", True)


def test_a_person_can_be_doubted_as_a_source() -> None:
    said = [Said("evidence", "", "it rains", "kim"), Said("contest", "kim", "was not there")]
    (one,) = ledger(said=said).evidence
    assert one.contested == "was not there"


@pytest.mark.req("R129")
def test_a_contest_takes_down_no_verdict_that_does_not_lean_on_it() -> None:
    seen = (Observation("sales fell", "north.csv", 0.9),)
    other = (Observation("prices fell", "south.csv", 0.3, refutes=("grows",)),)
    given_ = (
        told("a", observed=seen, hypotheses={"grows": Trial("refuted")}),
        told("b", observed=other),
    )
    for name, status in (("south.csv", "refuted"), ("north.csv", "refuted"), ("a", "refuted")):
        said = [Said("contest", name, "no")]
        found = ledger(*given_, said=said, grows="untested").hypotheses["grows"]
        assert (found.status, found.stale) == (status, True), name
    said = [Said("contest", name, "no") for name in ("south.csv", "north.csv")]
    assert ledger(*given_, said=said, grows="untested").hypotheses["grows"].status == "inconclusive"


@pytest.mark.req("R128", "R129")
def test_how_sure_either_side_is_comes_from_what_stands_alone() -> None:
    base = told("a", observed=(Observation("one", "a.csv, b.csv", 0.6),))
    above = told("b", 1, observed=(Observation("two", "a", 0.6, ("wet",), ("dry",)),))
    own = told("c", observed=(Observation("three", "c.csv", 0.3, ("wet",), ("dry",)),))
    word = [Said("contest", "c.csv", "no")]
    found = ledger(base, above, own, said=word, wet="untested", dry="untested").hypotheses
    assert found["wet"].confidence_for == found["dry"].confidence_against == pytest.approx(0.6)
    part = told("a", observed=(Observation("one", "a.csv", 0.6), Observation("more", "b.csv", 0.6)))
    word = [Said("contest", "b.csv", "no")]
    found = ledger(part, above, own, said=word, wet="untested", dry="untested").hypotheses
    assert len(found["wet"].fallen_for) == len(found["dry"].fallen_against) == 1
    assert found["wet"].confidence_for == found["dry"].confidence_against == pytest.approx(0.3)


@pytest.mark.req("R129")
@pytest.mark.parametrize(
    ("contested", "status"),
    [("h", "open"), ("b", "open"), ("r.csv", "resolved"), ("r.csv q.csv", "open"), ("a", "open")],
)
def test_what_a_contested_handoff_answers_is_open_again(contested: str, status: str) -> None:
    """So it is if all that the handoff found fell, or stands on what did."""
    asks = told("a", uncertainty="Is it wet?", observed=(Observation("rain", "sky.csv"),))
    sources = ("a",) if contested == "a" else ("r.csv", "q.csv")
    seen = tuple(Observation(f"puddles in {source}", source) for source in sources)
    solves = told("b", 1, resolves=(asks.handoff.uncertainty,), observed=seen)
    (before,) = ledger(asks, solves).uncertainties
    assert (before.status, before.resolved_by) == ("resolved", "b")
    names = [solves.id] if contested == "h" else contested.split()
    said = [Said("contest", name, "no") for name in names]
    (after,) = ledger(asks, solves, said=said).uncertainties
    assert after.status == status
    again = told("b", 1, place=9, resolves=(asks.handoff.uncertainty,))
    (found,) = ledger(asks, again, said=[Said("contest", "b", "no", place=5)]).uncertainties
    assert found.status == "resolved"


@pytest.mark.req("R120")
@pytest.mark.parametrize("turned", [False, True])
def test_a_gap_told_twice_is_critical_whichever_requirement_was_named_first(
    *, turned: bool
) -> None:
    twice = (Undone("the map", "no data", "nice"), Undone("the map", "no time", "numbers"))
    found = ledger(told("a", not_done=twice[::-1] if turned else twice))
    assert {*found.gaps[0].requirements} == {"nice", "numbers"}
    must = Premises(musts={"numbers": "sales with their source"})
    assert [one.cause for one in triggers(found, must, Rules(gaps=0))] == ["gaps"]


def test_what_a_step_tells_twice_speaks_for_all_that_it_was_told_for() -> None:
    one = Observation("rain", "a.csv", 0.4, ("H1",), ("H3",))
    other = Observation("rain", "a.csv", 0.6, ("H2", "H1"), ("H4",))
    (found,) = ledger(told("a", observed=(one, other))).evidence
    assert (found.supports, found.refutes, found.confidence) == (("H1", "H2"), ("H3", "H4"), 0.6)


def test_that_two_are_kept_apart_contests_neither() -> None:
    steps = [told(name, observed=(Observation("rain falls", f"{name}.csv"),)) for name in "ab"]
    one, other = (found.id for found in ledger(*steps).evidence)
    found = ledger(*steps, said=[Said("apart", one, other)]).evidence
    assert [(row.id, row.head, row.contested) for row in found] == [
        (one, one, ""),
        (other, other, ""),
    ]


def test_a_verdict_for_a_hypothesis_leans_on_what_supports_it() -> None:
    rain = Observation("rain", "a.csv", 0.9, ("H1",))
    sun = Observation("sun", "b.csv", 0.9)
    one = told("a", observed=(rain, sun), hypotheses={"H1": Trial("supported")})
    assert ledger(one, H1="untested").hypotheses["H1"].status == "supported"
    doubt = Said("contest", "a.csv", "nobody saw it")
    assert ledger(one, said=[doubt], H1="untested").hypotheses["H1"].status == "inconclusive"


def test_evidence_is_from_each_of_its_sources_and_from_the_whole_list() -> None:
    seen = (Observation("rain", "a.csv, b.csv"), Observation("sun", "a.csv"))
    both, one = ledger(told("a", observed=seen)).evidence
    names = ("a.csv", "b.csv", "a.csv, b.csv", "c.csv")
    assert [names_source(both, name) for name in names] == [True, True, True, False]
    assert [names_source(one, name) for name in names] == [True, False, False, False]


@pytest.mark.parametrize(("place", "is_doubted"), [(0, True), (4, False), (6, True)])
def test_a_step_is_contested_as_it_was_made_then(place: int, *, is_doubted: bool) -> None:
    word = Said("contest", "a", "wrong", place=place)
    assert doubt_of({"a": word}, told("a", place=5)) == ("wrong" if is_doubted else "")


def test_what_stands_on_something_free_is_in_no_circle() -> None:
    stands = {"b": ("a",), "c": ("b",), "d": ("c", "b"), "x": ("y", "d"), "y": ("x",)}
    assert _circling(stands) == ["x", "y"]


def test_what_is_contested_is_not_sure_at_all() -> None:
    found = ledger(
        told("a", observed=(Observation("rain", "a.csv", 0.9),)),
        said=[Said("contest", "a.csv", "nobody saw it")],
    )
    assert sure(found.evidence[0], found) == 0.0


def test_only_questions_of_people_are_asked_by_them() -> None:
    words = [Said("gap", "", "the map"), Said("uncertainty", "", "who drew it")]
    assert [one.question for one in ledger(said=words).uncertainties] == ["who drew it"]
