"""What people said about a ledger, and what of it they took back."""

import pytest

from holdfast.core.said import PERSON, Said, own_entry, upheld
from holdfast.model.handoff import entry_id
from holdfast.model.line import LedgerWord


def test_a_word_is_by_nobody_and_of_no_time_unless_it_says_so() -> None:
    assert Said("contest", "e-1", "wrong") == Said(
        "contest", "e-1", "wrong", by="", at=0, because="", place=0
    )


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("evidence", entry_id("e", PERSON, "rain", "me")),
        ("uncertainty", entry_id("u", PERSON, "rain")),
        ("gap", entry_id("g", PERSON, "rain")),
        ("contest", ""),
    ],
)
def test_an_entry_of_a_person_has_an_id_of_its_kind(word: LedgerWord, found: str) -> None:
    assert own_entry(Said(word, "", "rain", "me")) == found
    assert found[:2] in {f"{word[0]}-", ""}


@pytest.mark.parametrize("word", ["evidence", "uncertainty", "gap"])
def test_an_entry_is_withdrawn_and_no_other(word: LedgerWord) -> None:
    one, other = Said(word, "", "rain", "me"), Said(word, "", "sun", "me")
    back = Said("withdraw", own_entry(one), "")
    assert upheld([one, other]) == [one, other]
    assert upheld([one, other, back]) == [other]
    assert upheld([one, other, back, one]) == [other, one]


@pytest.mark.parametrize("word", ["contest", "resolve"])
def test_a_word_is_taken_back_where_it_was_said(word: LedgerWord) -> None:
    one, other = Said(word, "e-1", "wrong"), Said(word, "e-2", "wrong")
    assert upheld([one, other, Said("uphold", "e-1", "")]) == [other]
    assert upheld([one, other, Said("withdraw", "e-1", "")]) == [one, other]


def test_two_are_kept_apart_until_these_two_are_joined_again() -> None:
    one, other = Said("apart", "e-1", "e-2"), Said("apart", "e-1", "e-3")
    assert upheld([one, other, Said("rejoin", "e-2", "e-1")]) == [other]
    assert upheld([one, other, Said("rejoin", "e-3", "e-1")]) == [one]
