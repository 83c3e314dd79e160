"""Texts that say the same are found, with few comparisons."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from holdfast.core.likeness import LONG, Alike, Same, groups
from holdfast.model.digest import digest_json, digest_texts

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def alike(one: str, other: str) -> float:
    return fuzz.ratio(one, other) / 100


def heads(*texts: str) -> list[int]:
    return [one.head for one in groups(texts, alike)]


class Counting:
    """A measure that counts how often it is asked, and how many letters it sees."""

    def __init__(self) -> None:
        self.times = 0
        self.longest = 0

    def __call__(self, one: str, other: str) -> float:
        self.times += 1
        self.longest = max(self.longest, len(one), len(other))
        return alike(one, other)


def words(chance: random.Random, count: int) -> list[str]:
    return ["".join(chance.choices(LETTERS, k=chance.randint(3, 9))) for _ in range(count)]


def texts_of(kind: str, count: int) -> list[str]:
    chance = random.Random(3)
    few, many = words(chance, 12), words(chance, 2_000)
    one = chance.choices(many, k=12)
    said = []
    for _ in range(count):
        if kind == "near":
            said.append(" ".join([*one[:-2], *chance.choices(many, k=2)]))
        else:
            said.append(" ".join(chance.choices(few if kind == "few" else many, k=8)))
    return said


@pytest.mark.req("R127")
@pytest.mark.parametrize("kind", ["few", "many", "near"])
def test_each_text_is_compared_with_few_however_many_there_are(kind: str) -> None:
    for count in (500, 4_000):
        measure = Counting()
        groups(texts_of(kind, count), measure)
        assert measure.times <= 12 * count


def test_equal_texts_are_compared_with_none() -> None:
    measure = Counting()
    found = groups(["rain falls on the station"] * 1_000, measure)
    assert (measure.times, {one.head for one in found}) == (0, {0})


def test_the_letters_of_long_texts_are_not_compared() -> None:
    measure = Counting()
    chance = random.Random(3)
    one = chance.choices(words(chance, 5_000), k=2_000)
    found = groups([" ".join(one), " ".join(one[1:]), " ".join([*one[:1000], *one[:5]])], measure)
    assert [same.head for same in found] == [0, 0, 2]
    assert measure.longest <= LONG


@pytest.mark.req("R127")
def test_what_differs_in_a_word_or_two_is_found_among_many() -> None:
    chance = random.Random(3)
    said = texts_of("many", 2_000)
    again = []
    for text in said:
        parts = text.split()
        parts[chance.randrange(len(parts))] += "s"
        again.append(" ".join(parts))
    found = groups([*said, *again], alike)
    assert [one.head for one in found[2_000:]] == list(range(2_000))


@pytest.mark.req("R127")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the trend of the series is p < 0.05", "the trend of the series is p > 0.05"),
        ("the mean changes by -5 in the series", "the mean changes by 5 in the series"),
        (
            "the mean of the series increased in spring",
            "the mean of the series decreased in spring",
        ),
        ("the yearly mean was higher at the station", "the yearly mean was lower at the station"),
        ("the pump doesn't leak in the cold", "the pump does leak in the cold"),
        ("sales of the shop went from 12 to 40", "sales of the shop went from 40 to 12"),
        ("the shop sold 12 and then 40 pieces", "the shop sold 40 and then 12 pieces"),
        ("the nightly backup job is enabled", "the nightly backup job is disabled"),
        ("water rises at the gauge A of the river", "water rises at the gauge B of the river"),
        ("CPU use limits the run on this host", "GPU use limits the run on this host"),
        ("the gap of the sealed joint is 12 mm", "the gap of the sealed joint is 12 cm"),
        ("the cache of the server holds 12 MB", "the cache of the server holds 12 GB"),
        ("the ratio of the two sides is 3/2", "the ratio of the two sides is 2/3"),
        ("the share of the northern field is ½", "the share of the northern field is ¼"),
        ("the flow through the gate in m²", "the flow through the gate in m³"),
        ("the limit of the solver is 10⁻³", "the limit of the solver is 10⁻⁶"),
        ("in the second case x == y holds", "in the second case x != y holds"),
        ("the trial of phase II is done", "the trial of phase III is done"),
        ("a ticket to the island costs $12", "a ticket to the island costs €12"),
        ("the mean moves by +5 in the series", "the mean moves by 5 in the series"),
        ("aspirin works better than placebo here", "placebo works better than aspirin here"),
    ],
)
def test_signs_and_opposites_make_two_of_what_looks_alike(one: str, other: str) -> None:
    assert heads(one, other) == [0, 1]
    assert heads(one, one.upper()) == [0, 0]


def test_a_text_joins_the_first_that_says_the_same_also_after_others_were_kept_apart() -> None:
    text = "rain falls on the station in spring"
    found = groups([text, text, text], alike, {frozenset({0, 1})})
    assert found == [Same(0, 1.0), Same(1, 1.0), Same(0, 1.0)]


@pytest.mark.req("R127")
def test_two_that_joined_a_third_can_be_kept_apart() -> None:
    text = "snow covers the northern station"
    alone = groups([text, f"{text}s", text], alike)
    assert [one.head for one in alone] == [0, 0, 0]
    found = groups([text, f"{text}s", text], alike, {frozenset({1, 2})})
    assert [one.head for one in found] == [0, 0, 2]


@given(st.lists(st.text("ab <5-'.", max_size=8), max_size=12))
def test_a_head_comes_before_what_joins_it_and_joins_itself(said: list[str]) -> None:
    measure: Alike = alike
    found = groups(said, measure)
    for place, one in enumerate(found):
        assert one.head <= place
        assert found[one.head].head == one.head


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_the_digest_of_texts_is_that_of_their_list(said: list[str]) -> None:
    assert digest_texts(*said) == digest_json(said)
