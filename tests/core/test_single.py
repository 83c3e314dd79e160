"""A part of a ledger has all of what was asked for, and nothing else."""

import pytest

from holdfast.core.ledger import Ledger, folded
from holdfast.core.likeness import equal
from holdfast.core.said import Said
from holdfast.core.single import (
    all_of,
    entries_of,
    narrowed,
    past_of,
    questions_of,
    words_about,
)
from holdfast.model.handoff import Change, Observation, Trial, Undone, entry_id
from tests.core.builders import sid
from tests.core.test_ledger import told

A, B = sid("a"), sid("b")
FIRST = told(
    "a",
    observed=(Observation("it is wet", "https://x.org/1", 0.9, supports=("h1",)),),
    uncertainty="is it deep?",
    not_done=(Undone("the well", "no time"),),
    changed=(Change("map", "map.svg"),),
    hypotheses={"h1": Trial("supported")},
)
SECOND = told(
    "b",
    1,
    observed=(Observation("it is wet", "b"), Observation("it is cold", "gauge")),
    uncertainty="who pays?",
    not_done=(Undone("the roof", "rain"),),
    changed=(Change("list", "list.csv"),),
    resolves=(entry_id("u", A, "is it deep?"),),
    hypotheses={"h2": Trial("refuted")},
)
OLD = told(
    "a",
    observed=(Observation("it is dry", "gauge"),),
    uncertainty="is it shallow?",
    not_done=(Undone("the fence", "dark"),),
    changed=(Change("sketch", "sketch.svg"),),
    hypotheses={"h3": Trial("supported")},
)
WET, COLD = (
    entry_id("e", A, "it is wet", "https://x.org/1"),
    entry_id("e", B, "it is cold", "gauge"),
)
DEEP, WELL = entry_id("u", A, "is it deep?"), entry_id("g", A, "the well")
MAP, DRY = entry_id("a", A, "map", "map.svg"), entry_id("e", A, "it is dry", "gauge")


def whole(*said: Said) -> Ledger:
    return folded([FIRST, SECOND], equal, said=said, earlier=[OLD])


def sizes(of: Ledger) -> tuple[int, ...]:
    """Evidence, questions, gaps, artifacts, hypotheses, handoffs, superseded ones."""
    lists = (of.evidence, of.uncertainties, of.gaps, of.artifacts, of.hypotheses, of.handoffs)
    return (*map(len, lists), len(of.superseded))


def test_every_entry_that_counts_has_its_text() -> None:
    assert sorted(entries_of(whole()).values()) == [
        "is it deep?",
        "it is cold",
        "it is wet",
        "it is wet",
        "list",
        "look",
        "look",
        "map",
        "the roof",
        "the well",
        "who pays?",
    ]


def test_what_only_the_past_told_is_known_apart() -> None:
    assert sorted(past_of(whole()).values()) == [
        "is it shallow?",
        "it is dry",
        "look",
        "sketch",
        "the fence",
    ]
    again = folded([FIRST, SECOND], equal, earlier=[OLD, FIRST])
    assert past_of(again) == past_of(whole())


def test_a_question_that_is_taken_for_another_is_found_by_its_own_id() -> None:
    same = folded([FIRST, told("b", 1, uncertainty="is it deep?")], equal)
    other = entry_id("u", B, "is it deep?")
    assert len(same.uncertainties) == 1
    assert questions_of(same) == {DEEP: "is it deep?", other: "is it deep?"}
    assert sizes(all_of(same, other, ()).ledger) == (0, 1, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "name, shown",
    [
        (WET, (2, 0, 0, 0, 0, 0, 0)),  # with the one that says the same
        (COLD, (1, 0, 0, 0, 0, 0, 0)),
        (DEEP, (0, 1, 0, 0, 0, 0, 0)),
        (WELL, (0, 0, 1, 0, 0, 0, 0)),
        (MAP, (0, 0, 0, 1, 0, 0, 0)),
        (FIRST.id, (1, 1, 1, 1, 1, 1, 0)),
        (SECOND.id, (2, 1, 1, 1, 1, 1, 0)),
    ],
)
def test_one_entry_is_shown_with_what_belongs_to_it(name: str, shown: tuple[int, ...]) -> None:
    one = all_of(whole(), name, ())
    assert sizes(one.ledger) == shown
    assert one.gone == frozenset()


def test_what_counts_no_more_is_shown_as_it_was_told_and_said_to_be_gone() -> None:
    one = all_of(whole(), DRY, ())
    assert [e.finding for e in one.ledger.evidence] == ["it is dry"]
    assert sizes(one.ledger) == (1, 0, 0, 0, 0, 0, 0)
    assert one.gone == {DRY}
    handoff = all_of(whole(), OLD.id, ())
    assert sizes(handoff.ledger) == (1, 1, 1, 1, 1, 0, 1)
    assert handoff.gone == {*past_of(whole()), "h3"}


def test_words_of_people_go_with_what_counts_no_more() -> None:
    said = Said("contest", DRY, "the gauge broke", by="me")
    one = all_of(whole(said), DRY, [said, Said("gap", "", "a new one", by="me")])
    assert [e.contested for e in one.ledger.evidence] == ["the gauge broke"]
    assert one.ledger.gaps == ()


@pytest.mark.parametrize(
    "part, shown",
    [
        (None, (3, 2, 2, 2, 2, 2, 1)),
        ("evidence", (3, 0, 0, 0, 0, 0, 0)),
        ("uncertain", (0, 2, 0, 0, 0, 0, 0)),
        ("gaps", (0, 0, 2, 0, 0, 0, 0)),
        ("artifacts", (0, 0, 0, 2, 0, 0, 0)),
        ("hypotheses", (0, 0, 0, 0, 2, 0, 0)),
        ("handoffs", (0, 0, 0, 0, 0, 2, 1)),
    ],
)
def test_one_part_is_shown_alone(part: str | None, shown: tuple[int, ...]) -> None:
    counted = folded(
        [FIRST, SECOND], equal, hypotheses={"h1": "untested", "h2": "untested"}, earlier=[OLD]
    )
    assert sizes(narrowed(counted, part, (), unanswered=False)) == shown


def test_one_step_is_shown_alone() -> None:
    assert sizes(narrowed(whole(), None, [A], unanswered=False))[:4] == (1, 1, 1, 1)
    assert sizes(narrowed(whole(), None, [B], unanswered=False))[5:] == (1, 0)
    assert set(narrowed(whole(), None, [A], unanswered=False).hypotheses) == {"h1"}


def test_what_was_answered_or_closed_is_not_open() -> None:
    closed = Said("resolve", WELL, "there is none", by="me")
    found = narrowed(whole(closed), None, (), unanswered=True)
    assert [one.question for one in found.uncertainties] == ["who pays?"]
    assert [one.item for one in found.gaps] == ["the roof"]
    assert sizes(narrowed(whole(closed), None, (), unanswered=False))[1:3] == (2, 2)


def test_of_what_is_shown_the_stale_is_told() -> None:
    ledger = whole(Said("contest", WET, "no", by="me"))
    assert ledger.stale  # what stands on the finding, in the other handoff
    assert narrowed(ledger, "gaps", (), unanswered=False).stale == ()
    shown = narrowed(ledger, None, (), unanswered=False)
    known = {*(one.id for one in shown.evidence), *shown.hypotheses}
    assert shown.stale == tuple(name for name in ledger.stale if name in known)


def test_words_are_about_an_entry_its_handoff_its_step_or_its_source() -> None:
    about = [
        Said("contest", name, "no", by="me")
        for name in (WET, FIRST.id, "a", "https://x.org/1", "x.org/1")
    ]
    elsewhere = [Said("contest", COLD, "no", by="me"), Said("gap", "", "mine", by="me")]
    shown = all_of(whole(), WET, ()).ledger
    found = words_about([*about, *elsewhere], shown)
    assert found[:4] == about[:4]
    assert not set(found) & set(elsewhere)
    assert words_about([Said("contest", "q", "no")], shown, [sid("q")]) != []
    own = Said("gap", "", "mine", by="me")
    mine = folded([], equal, said=[own])
    assert words_about([own], mine) == [own]
    split = Said("apart", COLD, WET, by="me")
    assert words_about([split], shown) == [split]
    gone = all_of(whole(), OLD.id, ()).ledger
    assert words_about([Said("contest", OLD.id, "no")], gone) != []


def test_what_was_said_of_a_step_is_about_what_it_told() -> None:
    one = told("a", changed=(Change("map", "map.svg"),))
    word = Said("contest", "a", "wrong")
    assert words_about([word, Said("contest", "b", "no")], folded([one], equal)) == [word]


def test_of_several_that_count_no_more_the_one_is_shown_that_told_it() -> None:
    later = told("b", observed=(Observation("it is hot", "gauge"), Observation("it is old")))
    both = folded([FIRST, SECOND], equal, earlier=[OLD, later])
    for name, finding in (
        (DRY, "it is dry"),
        (entry_id("e", B, "it is hot", "gauge"), "it is hot"),
    ):
        assert [e.finding for e in all_of(both, name, ()).ledger.evidence] == [finding]
