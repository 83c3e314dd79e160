"""When a plan no longer holds, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.ledger import Ledger, folded
from holdfast.core.replan import Premises, Rules, may_matter, may_matter_besides, triggers
from holdfast.core.said import Said
from holdfast.model.handoff import Observation, Standing, Trial, Undone
from holdfast.model.line import LedgerWord
from tests.core.test_ledger import alike, told

PREMISES = Premises(
    known=("The station is online",),
    musts={"R1": "a yearly mean", "R2": "a map"},
    critical=frozenset({"H1"}),
)


def causes(ledger: Ledger, rules: Rules | None = None) -> list[str]:
    return [one.cause for one in triggers(ledger, PREMISES, rules or Rules())]


@pytest.mark.req("R119")
def test_a_finding_or_an_open_question_against_what_is_known() -> None:
    refuting = told("a", observed=(Observation("no answer", refutes=("the station is online",)),))
    asking = told("b", uncertainty="Perhaps the station is online only at night?")
    other = told("c", uncertainty="Is the stationery online?")
    assert causes(folded([refuting], alike)) == ["assumption"]
    assert causes(folded([asking], alike)) == ["assumption"]
    assert causes(folded([other], alike)) == []
    solved = told("d", 1, resolves=(asking.handoff.uncertainty,))
    assert causes(folded([asking, solved], alike)) == []
    assert causes(folded([refuting], alike), Rules(assumptions=False)) == []


@pytest.mark.req("R119")
@pytest.mark.parametrize(
    ("known", "refuted", "is_meant"),
    [
        ("x > 5", "x < 5", False),
        ("x > 5", "x>5", True),
        ("the error is -1", "the error is 1", False),
        ("the error is -1", "The error is \N{MINUS SIGN}1.", True),
        ("the offset is 5", "the offset is 5.3", False),
        ("the load is 5 mW", "the load is 5 MW", False),
        ("a data-set of 2025 is there", "A data set of 2025, is there!", True),
        ("cafe\u0301 opens", "caf\u00e9 opens", True),
        ("it is so", "it was so", False),
    ],
)
def test_signs_numbers_and_units_tell_texts_apart(known: str, refuted: str, is_meant: bool) -> None:
    seen = (Observation("found", refutes=(refuted,)),)
    found = folded([told("a", observed=seen)], alike)
    causes = [one.cause for one in triggers(found, Premises(known=(known,)), Rules())]
    assert causes == ["assumption"] * is_meant


@pytest.mark.req("R119")
@pytest.mark.parametrize(
    ("known", "question", "is_held"),
    [
        ("the offset is 5", "Why do they write the offset is 5.3?", False),
        ("the offset is 5", "Why do they write the offset is 5?", True),
        ("the offset is 5", "Is it so that the offset is 5 % or more?", False),
        ("the offset is 5", "Why do they write the offset is 5mm?", False),
        ("x > 5", "Is 2x > 5 then?", False),
        ("x > 5", "Is a + x > 5 then?", False),
        ("x > 5", "Is x > 5 then?", True),
        ("p = m * v", "Is p = m / v then?", False),
        ("p = m * v", "Is p = m * v then?", True),
        ("size is in Gb", "Do we know that size is in GB?", False),
        ("1 error is borne", "Is it so that -1 error is borne?", False),
        ("it is complete", "When is the index complete?", False),
        ("日本は島国である", "日本は島国であるか?", True),
        ("日本は島国である。", "なぜ「日本は島国である」のか\N{FULLWIDTH QUESTION MARK}", True),
        ("誤差は5", "誤差は5.3か", False),
        ("ประเทศไทยร้อน", "จริงหรือที่ประเทศไทยร้อนมาก", True),
        ("cafe\u0301 opens", "Is it so that caf\u00e9 opens?", True),
        ("?!", "Who knows?!", False),
    ],
)
def test_a_question_holds_what_is_known_word_by_word(
    known: str, question: str, is_held: bool
) -> None:
    found = folded([told("a", uncertainty=question)], alike)
    causes = [one.cause for one in triggers(found, Premises(known=(known,)), Rules())]
    assert causes == ["assumption"] * is_held


@pytest.mark.req("R119")
def test_a_contested_finding_refutes_nothing() -> None:
    refuting = told("a", observed=(Observation("no answer", refutes=("the station is online",)),))
    found = folded([refuting], alike)
    word = Said("contest", found.evidence[0].id, "the cable was out")
    assert causes(folded([refuting], alike, said=[word])) == []


@pytest.mark.req("R119")
def test_a_finding_that_stands_on_contested_ones_refutes_nothing() -> None:
    base = told("a", observed=(Observation("no echo", "log.txt"),))
    (seen,) = folded([base], alike).evidence
    refuting = told(
        "b", 1, observed=(Observation("no answer", seen.id, refutes=("the station is online",)),)
    )
    assert causes(folded([base, refuting], alike)) == ["assumption"]
    word = Said("contest", "log.txt", "another day's")
    assert causes(folded([base, refuting], alike, said=[word])) == []


@pytest.mark.req("R119")
def test_a_question_that_others_put_in_other_words_doubts_with_theirs_too() -> None:
    one = told("a", uncertainty="is it known that stations is online at night in the cold?")
    other = told("b", uncertainty="is it known that the station is online at night in the cold?")
    found = folded([one, other], alike)
    assert len(found.uncertainties) == 1
    assert causes(found) == ["assumption"]


@pytest.mark.req("R120")
def test_closing_one_gap_of_several_is_no_other_cause() -> None:
    gaps = tuple(Undone(f"part {n}", "no time", "R1") for n in range(3))
    found = folded([told("a", not_done=gaps)], alike)
    (before,) = triggers(found, PREMISES, Rules(gaps=1))
    assert (before.about, before.step) == ("", "a"), "an answer of years ago is found by its id"
    word = Said("resolve", found.gaps[0].id, "done by hand")
    closed = folded([told("a", not_done=gaps)], alike, said=[word])
    (after,) = triggers(closed, PREMISES, Rules(gaps=1))
    assert (after.id, after.words) == (
        before.id,
        "2 critical things were not done, 1 is borne: part 1, part 2",
    )


@pytest.mark.req("R120")
@pytest.mark.parametrize(("critical", "borne", "expected"), [(3, 3, 0), (4, 3, 1), (1, 0, 1)])
def test_more_critical_gaps_than_are_borne(critical: int, borne: int, expected: int) -> None:
    gaps = [Undone(f"part {n}", "no time", "R1") for n in range(critical)]
    gaps += [Undone("the colours", "no time"), Undone("other", "no time", "R9")]
    found = folded([told("a", not_done=tuple(gaps))], alike)
    assert causes(found, Rules(gaps=borne)) == ["gaps"] * expected


@pytest.mark.req("R120")
def test_a_gap_is_critical_by_its_words_too() -> None:
    found = folded([told("a", not_done=(Undone("draw a map", "no data"),))], alike)
    assert causes(found, Rules(gaps=0)) == ["gaps"]


@pytest.mark.req("R121")
@pytest.mark.parametrize(
    ("name", "status"), [("H1", "refuted"), ("H1", "supported"), ("H2", "refuted")]
)
def test_a_refuted_hypothesis_that_the_plan_stands_on(name: str, status: Standing) -> None:
    found = folded([told("a", hypotheses={name: Trial(status)})], alike)
    assert causes(found) == (["hypothesis"] if (name, status) == ("H1", "refuted") else [])


@pytest.mark.req("R122")
def test_a_handoff_that_asks_for_another_plan_by_its_field_or_in_the_old_words() -> None:
    asks = told("a", replan="the file is empty")
    old = told("b", uncertainty="We Need To Replan: the file is empty")
    found = folded([asks, old], alike)
    assert causes(found) == ["request", "request"]
    one, other = triggers(found, PREMISES, Rules())
    assert triggers(found, PREMISES, Rules(), {one.id}) == [other]


@pytest.mark.req("R122")
@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("There is no need to replan, is there?", False),
        ("We do not need to replan.", False),
        ("I don't think we need to replan", False),
        ("It is not enough, we need to replan", True),
        ("No need to replan the first part, but we need to replan the second", True),
        ("No data so need to replan", True),
        ("not feasible so need to replan", True),
        ("we need to\nreplan the experiment", True),
        ("need  to replan", True),
        ("No: we need to replan", True),
        ("Not only that: we need to replan", True),
        ("nobody will need to replan", False),
        ("no one thinks that we need to replan", False),
        ("We no longer need to replan", False),
        ("There is no\nneed  to replan", False),
        ("I am not sure that we need to replan", False),
    ],
)
def test_who_says_that_no_other_plan_is_needed_asks_for_none(
    question: str, *, is_asked: bool
) -> None:
    assert causes(folded([told("a", uncertainty=question)], alike)) == ["request"] * is_asked


@pytest.mark.req("R119", "R122")
@pytest.mark.parametrize("what", ["handoff", "step"])
def test_what_a_contested_handoff_asks_is_no_cause(what: str) -> None:
    asks = told("a", replan="the file is empty", uncertainty="Is the station online at night?")
    known = Premises(known=("station online at night",))
    word = Said("contest", asks.id if what == "handoff" else "a", "nonsense")
    for said, expected in (([], ["assumption", "request"]), ([word], [])):
        found = folded([asks], alike, said=said)
        assert [one.cause for one in triggers(found, known, Rules())] == expected
    both = folded([asks, told("b", uncertainty=asks.handoff.uncertainty)], alike, said=[word])
    assert [one.cause for one in triggers(both, known, Rules())] == ["assumption"]


@pytest.mark.req("R120")
@pytest.mark.parametrize(
    ("item", "reason", "is_critical"),
    [
        ("the map", "no data", False),
        ("data of May", "no time", False),
        ("data", "no time", True),
        ("data: those of May", "no time", True),
        ("all", "no sales figures with their source", True),
    ],
)
def test_the_id_of_a_requirement_is_no_word_of_a_gap(
    item: str, reason: str, *, is_critical: bool
) -> None:
    must = Premises(musts={"data": "sales figures with their source"})
    found = folded([told("a", not_done=(Undone(item, reason),))], alike)
    assert bool(triggers(found, must, Rules(gaps=0))) == is_critical


def test_a_gap_is_critical_if_its_step_serves_what_must_be() -> None:
    gaps = tuple(Undone(f"part {n}", "no time") for n in range(4))
    one = told("a", not_done=gaps)
    must = Premises(musts={"q": "numbers"})
    for serves, expected in (((), []), (("other",), []), (("q",), ["gaps"])):
        found = folded([replace(one, serves=serves)], alike)
        assert [trigger.cause for trigger in triggers(found, must, Rules())] == expected
    named = tuple(replace(gap, requirement="nice") for gap in gaps)
    found = folded([replace(told("a", not_done=named), serves=("q",))], alike)
    assert triggers(found, must, Rules()) == []


def test_a_finding_alone_refutes_what_the_plan_stands_on() -> None:
    seen = (Observation("it fell", "x.csv", refutes=("H1",)),)
    one = replace(told("a", observed=seen), tests=("H1",))
    assert causes(folded([one], alike, {"H1": "untested"})) == ["hypothesis"]


@pytest.mark.req("R120")
def test_the_words_name_five_gaps_and_count_the_others() -> None:
    def words(many: int, borne: int) -> str:
        gaps = tuple(Undone(f"part {n}", "no time", "R1") for n in range(many))
        (found,) = triggers(folded([told("a", not_done=gaps)], alike), PREMISES, Rules(gaps=borne))
        return found.words

    assert words(1, 0) == "1 critical thing was not done, 0 are borne: part 0"
    assert words(2, 1) == "2 critical things were not done, 1 is borne: part 0, part 1"
    five = "part 0, part 1, part 2, part 3, part 4"
    assert words(5, 2) == f"5 critical things were not done, 2 are borne: {five}"
    assert words(7, 2) == f"7 critical things were not done, 2 are borne: {five} and 2 more"


def test_a_plan_asks_a_person_and_is_made_again_once_unless_it_says_otherwise() -> None:
    rules = Rules()
    assert (rules.assumptions, rules.hypotheses, rules.requests, rules.ask) == (True,) * 4
    assert (rules.gaps, rules.rounds, rules.to) == (3, 1, "")


OFF = Rules(assumptions=False, gaps=None, hypotheses=False, requests=False)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"replan": "empty"}, {"requests": True}),
        ({"uncertainty": "we need to replan"}, {"requests": True}),
        ({"uncertainty": "is it online?"}, {"assumptions": True}),
        ({"observed": (Observation("x", refutes=("y",)),)}, {"assumptions": True}),
        ({"not_done": (Undone("x", "y"),)}, {"gaps": 3}),
        ({"hypotheses": {"H1": Trial("supported")}}, {"hypotheses": True}),
        ({"observed": (Observation("x", refutes=("H1",)),)}, {"hypotheses": True}),
    ],
)
def test_a_handoff_matters_if_a_rule_of_the_plan_looks_at_what_it_says(
    said: dict[str, Any], rule: dict[str, Any]
) -> None:
    handoff = told("a", **said).handoff
    assert may_matter(handoff, PREMISES, replace(OFF, **rule))
    assert not may_matter(handoff, PREMISES, OFF)
    nothing = told("a").handoff
    assert not may_matter(nothing, PREMISES, Rules())
    if "requests" not in rule:
        assert not may_matter(handoff, Premises(), replace(OFF, **rule)), "the plan has no premise"


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("uncertainty", {"assumptions": True}),
        ("evidence", {"assumptions": True}),
        ("gap", {"gaps": 0}),
        ("evidence", {"hypotheses": True}),
    ],
)
def test_what_people_say_matters_by_the_same_rules(word: LedgerWord, rule: dict[str, Any]) -> None:
    said = [Said(word, "", "it rains", "me")]
    assert may_matter_besides(said, {}, PREMISES, replace(OFF, **rule))
    assert not may_matter_besides(said, {}, PREMISES, OFF)
    assert not may_matter_besides(said, {}, Premises(), replace(OFF, **rule))
    assert not may_matter_besides([], {}, PREMISES, Rules())
    other = [Said("contest", "e-1", "no", "me")]
    assert not may_matter_besides(other, {}, PREMISES, Rules())


def test_a_hypothesis_that_the_plan_itself_refutes_matters() -> None:
    rule = replace(OFF, hypotheses=True)
    assert may_matter_besides([], {"H1": "refuted"}, PREMISES, rule)
    assert not may_matter_besides([], {"H1": "supported"}, PREMISES, rule)
    assert not may_matter_besides([], {"H2": "refuted"}, PREMISES, rule)
    assert not may_matter_besides([], {"H1": "refuted"}, PREMISES, OFF)


@pytest.mark.req("R121")
def test_a_refuted_hypothesis_is_told_by_its_name() -> None:
    found = folded([told("a", hypotheses={"H1": Trial("refuted")})], alike)
    (cause,) = triggers(found, PREMISES, Rules())
    assert (cause.step, cause.words) == ("a", "'H1' was refuted, and the plan stands on it")
    (planned,) = triggers(folded([], alike, {"H1": "refuted"}), PREMISES, Rules())
    assert planned.step == ""
