"""Texts that say the same are found, with few comparisons."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from holdfast.core.likeness import (
    LONG,
    Alike,
    Same,
    equal,
    fits,
    groups,
    holds,
    nearest,
    spelled,
    topics,
)
from holdfast.model.digest import digest_json, digest_texts

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def alike(one: str, other: str) -> float:
    return fuzz.ratio(one, other) / 100


def heads(*texts: str) -> list[int]:
    return [one.head for one in groups(texts, alike)]


def words(chance: random.Random, count: int) -> list[str]:
    return ["".join(chance.choices(LETTERS, k=chance.randint(3, 9))) for _ in range(count)]


SAME = [
    ("the share is (a + b) / c", "The share is (a + b) / c."),
    ("the mean (of all wells) fell", "the mean of all wells fell"),
    ("The API rate limit is unknown", "API rate limit unknown"),
    ("What is the limit of the API?", "What is the API's limit?"),
    ("Sales rose 12% in 2024", "Sales rose 12 % in 2024."),
    ("It is unknown whether the cache is shared", "Unknown whether the cache is shared"),
    ("It may be biased toward urban areas", "It may be biased towards urban area"),
    ("p<0.05 in the trial", "p < 0.05, in the trial."),
    ("the pump doesn't leak", "The pump doesn\N{RIGHT SINGLE QUOTATION MARK}t leak."),
    ('"Rain" falls (often)', "rain falls often"),
    ("the delay was 5ms", "the delay was 5 ms"),
    ("A gauge drifts", "the gauge drifts"),
    ("Is the sample of the river large enough?", "is the river sample large enough"),
    ("the URLs are stale", "the URL is stale"),
    ("x = - 5", "x = -5"),
    ("12 Lakes froze in 2019", "12 Lakes froze, 2019"),
    ("RAIN fell", "rain fell"),
    ("12 Stations!", "12 stations"),
    ("* rain fell", "- rain fell"),
    ("rain fell - often", "rain fell, often"),
    ("p = m \N{MINUS SIGN} v", "p = m - v"),
    ("the trend is biased in areas", "the trend is biased in area"),
    ("the URLs in the log are stale", "URL in the log is stale"),
    ("sales rose by 5 in spring", "Sales rose by 5, in spring"),
    ("rain fell – often", "rain fell • often"),
    ("the change is – 5", "the change is - 5"),
    ("the change is — 5", "the change is - 5"),
    ("the ponies ate", "the pony ate"),
    ("both classes passed", "both class passed"),
    ("both benches and boxes", "both bench and box"),
    ("the gas bus", "The gas bus."),
    ("this analysis is done", "an analysis done"),
    ("the AI works", "the ai works"),
    ("sales rose by 5 in spring", "sales rose by 5 spring"),
    ("it is known: Rivers froze", "known: river froze"),
    ("the chiefs of the lakes", "lakes chiefs"),
]

EXTENTS = ("wide", "long", "deep", "high", "thick", "tall", "across")
TWO = [
    ("the share is (a + b) / c", "the share is a + b / c"),
    ("the share is (a + b) / c", "the share is a + (b / c)"),
    ("the rate is x * (y - z)", "the rate is (x * y) - z"),
    ("the trend of the series is p < 0.05", "the trend of the series is p > 0.05"),
    ("the mean changes by -5 in the series", "the mean changes by 5 in the series"),
    ("the mean changes by .5 in the series", "the mean changes by 5 in the series"),
    ("the mean increased in spring", "the mean decreased in spring"),
    ("the yearly mean was higher", "the yearly mean was lower"),
    ("the pump doesn't leak in the cold", "the pump does leak in the cold"),
    ("sales of the shop went from 12 to 40", "sales of the shop went from 40 to 12"),
    ("the nightly backup job is enabled", "the nightly backup job is disabled"),
    ("water rises at the gauge A of the river", "water rises at the gauge B of the river"),
    ("water rises at the gauge A of the river", "water rises at the gauge of the river"),
    ("CPU use limits the run on this host", "GPU use limits the run on this host"),
    ("the gap of the sealed joint is 12 mm", "the gap of the sealed joint is 12 cm"),
    ("the sender draws 5 mW at night", "the sender draws 5 MW at night"),
    ("the sender draws 5mW at night", "the sender draws 5MW at night"),
    ("the board is 5' long", 'the board is 5" long'),
    ("the ratio of the two sides is 3/2", "the ratio of the two sides is 2/3"),
    ("the share of the northern field is ½", "the share of the northern field is ¼"),
    ("the flow through the gate in m²", "the flow through the gate in m³"),
    ("the limit of the solver is 10⁻³", "the limit of the solver is 10⁻⁶"),
    ("in the second case x == y holds", "in the second case x != y holds"),
    ("the trial of phase II is done", "the trial of phase III is done"),
    ("a ticket to the island costs $12", "a ticket to the island costs €12"),
    ("the mean moves by +5 in the series", "the mean moves by 5 in the series"),
    ("aspirin works better than placebo here", "placebo works better than aspirin here"),
    ("wolves eat the deer of the park", "deer eat the wolves of the park"),
    ("high in spring, low in autumn", "low in spring, high in autumn"),
    ("rain, then frost", "frost, then rain"),
    ("check the limits of the API", "the API checks limits"),
    ("wolves eat the deer of the park", "park wolves eat the deer"),
    ("the cause of the death is known", "the death of the cause is known"),
    ("5 of 7 failed in the night", "7 of 5 failed in the night"),
    ("uploads are slow when compression is on", "uploads are slow when compression is off"),
    ("the sensor on the left side is faulty", "the sensor on the right side is faulty"),
    ("the function get_user returns stale rows", "the function set_user returns stale rows"),
    ("file src/parser.py holds the fault", "file src/parsers.py holds the fault"),
    ("host db-a refuses connections", "host db-b refuses connections"),
    ("n has water", "s has water"),
    ("der Umsatz stieg im letzten Jahr", "der Umsatz stieg nicht im letzten Jahr"),
    ("温度在夏天上升了很多", "温度在冬天上升了很多"),
    ("the law helps US", "the law helps us"),
    ("???", "!!!"),
    ("The login page uses HTTP", "The login page uses HTTPS"),
    ("the login page uses http", "the login page uses https"),
    ("The link gives 5 Mb/s", "the link gives 5 MB/s"),
    ("the rate is given in Mb/s", "the rate is given in MB/s"),
    ("dose is 5 mSv/h", "dose is 5 MSv/h"),
    ("pressure is 5 mbar", "pressure is 5 Mbar"),
    ("the scale is in mW", "the scale is in MW"),
    ("x = - 5", "x = 5"),
    ("the trend is - 5 ppm", "the trend is 5 ppm"),
    ("the trend is − 5 ppm", "the trend is 5 ppm"),
    ("the ratio is 3 / 4", "the ratio is 3 4"),
    ("the ratio is 3 : 4", "the ratio is 3 4"),
    ("n is 5!", "n is 5"),
    ("depth 12 in", "depth 12"),
    ("the pipe has lead", "the pipe is lead"),
    ("Die Maße stimmen", "Die Masse stimmen"),
    ("What has changed?", "Has it changed?"),
    ("What is in the tank?", "Is it in the tank?"),
    ("p = m / v", "p = m * v"),
    ("p = m - v", "p = m * v"),
    ("p = m - v", "p = m v"),
    ("p = m / v", "p = m v"),
    ("A & B", "A | B"),
    ("A & B", "A B"),
    ("the size is given in GB", "the size is given in Gb"),
    ("dose in mg", "dose in Mg"),
    ("pressure in mbar", "pressure in Mbar"),
    ("files per GB", "files per Gb"),
    ("the pipe is 5 in wide", "the pipe is 5 wide"),
    ("the news report is good", "the new report is good"),
    ("Did William pay?", "Did Williams pay?"),
    ("phase X is done", "phase x is done"),
    ("rain ~ snow", "rain snow"),
    ("goods arrive", "good arrive"),
    ("customs apply", "custom apply"),
    ("a gas leaks", "a ga leaks"),
    ("the virus stays", "the viru stays"),
    ("x ± 5", "x 5"),
    ("5 K", "5 k"),
    ("it weighs 5 kPa", "it weighs 5 KPa"),
    ("No is the answer", "NO is the answer"),
    *((f"the pipe is 5 in {word}", f"the pipe is 5 {word}") for word in EXTENTS),
]


@pytest.mark.req("R127")
@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_says_nothing_makes_no_difference(one: str, other: str) -> None:
    assert heads(one, other) == heads(other, one) == [0, 0]


@pytest.mark.req("R127")
@pytest.mark.parametrize(("one", "other"), TWO)
def test_one_word_that_says_something_makes_two(one: str, other: str) -> None:
    assert heads(one, other) == heads(other, one) == [0, 1]


@pytest.mark.req("R127")
def test_only_those_that_are_one_are_measured() -> None:
    asked = []

    def measure(one: str, other: str) -> float:
        asked.append((one, other))
        return alike(one, other)

    said = [text for pair in (*SAME, *TWO) for text in pair]
    groups([*said, *said], measure)
    assert len(asked) <= 2 * len(SAME) + len(TWO)


def test_the_words_of_long_texts_are_counted_not_their_letters() -> None:
    chance = random.Random(3)
    one = " ".join(words(chance, 2_000))
    found = groups([one, f"the {one}", f"{one} more"], lambda *_: pytest.fail("was measured"))
    assert [same.head for same in found] == [0, 0, 2]
    assert len(one) > LONG
    assert found[1].alike == pytest.approx(1, abs=0.001)


def test_a_word_said_a_thousand_times_is_read_at_once() -> None:
    said = [f"{'no ' * 20_000}{number}" for number in range(20)]
    assert heads(*said) == list(range(20))


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


def test_the_plainest_measure_knows_only_equal_texts() -> None:
    assert (equal("a", "a"), equal("a", "A")) == (1.0, 0.0)


def test_a_text_fits_one_that_says_the_same_in_other_forms() -> None:
    assert fits("The cities", ["a", "the city"])
    assert fits("classes", ["class"])
    assert fits("boxes and dishes", ["box and dish"])
    assert not fits("the city", ["the town"])
    assert not fits("the city", [])


def test_those_that_share_the_most_words_come_first_and_of_equals_the_later() -> None:
    others = ["rain of the north", "snow of the north", "rain and snow", "frost"]
    assert nearest("the rain in the north", others, 2) == ["rain of the north", "rain and snow"]
    assert nearest("snow and rain", others, 9) == [
        "rain and snow",
        "snow of the north",
        "rain of the north",
        "frost",
    ]
    assert nearest("of", ["ice of it", "frost"], 1) == ["frost"], "of says nothing here"


def test_every_word_is_spelled_with_the_places_where_one_begins() -> None:
    assert spelled("The self-made 5ms, and − 3") == (
        ("the", "self", "made", "5", "ms", "and", "-", "3"),
        (0, 1, 2, 3, 5, 6, 7, 8),
    )
    assert spelled("温度。上升") == (("温", "度", "上", "升"), (0, 1, 2, 3, 4))
    assert spelled("a - b") == (("a", "b"), (0, 1, 1, 2))
    assert spelled("") == ((), (0,))


@pytest.mark.parametrize(
    ("text", "other", "is_held"),
    [
        ("the mean of a fell", "mean of a", True),
        ("the mean fell", "the mean fell", True),
        ("the mean fell", "mean", True),
        ("the mean fell", "fell", True),
        ("the mean fell", "mean rose", False),
        ("the mean fell", "fell again", False),
        ("the mean fell", "", False),
        ("it took 5ms", "5", False),
        ("it took 5 ms", "5", True),
        ("x = 5 + a", "5", False),
        ("5 + a", "a", False),
        ("a > 5 holds", "a", False),
        ("mean, mean fell", "mean fell", True),
        ("温度在夏天上升", "夏天", True),
        ("温度在夏天上升", "冬天", False),
    ],
)
def test_a_text_holds_whole_words_and_no_part_of_a_formula(
    text: str, other: str, is_held: bool
) -> None:
    assert holds(text, spelled(other)) is is_held


def test_the_topics_are_the_words_that_most_texts_hold() -> None:
    said = ["Rain with river", "river and snowfall which rain", "the river, river; frost9 ice"]
    assert topics(said, 3) == ["river", "rain", "snowfall"]
    assert topics(said, 9) == ["river", "rain", "snowfall", "frost"]
    assert topics(["about also because both"], 5) == []


def test_a_thousand_letters_are_measured_and_more_are_counted() -> None:
    def half(*_: str) -> float:
        return 0.5

    fitting = f"{'ab ' * 332}The end"
    assert len(fitting) == LONG + 3
    (_, same) = groups([fitting[3:], f"{fitting[3:]}."], half)
    assert same.alike == 1.0, "one letter too many"
    (_, same) = groups([fitting[4:], f"{fitting[4:]}."], half)
    assert same == Same(0, 0.5)
    long = "x" * LONG
    (_, same) = groups([f"the {long} fell", f"{long} fell"], half)
    assert same.alike == pytest.approx(0.8), "two words of two, two of three"


@pytest.mark.parametrize("stop", ".!?:;")
def test_behind_a_stop_a_capital_letter_makes_no_name(stop: str) -> None:
    assert fits(f"it rains{stop} Samples fail", [f"it rains{stop} sample fail"])
    assert not fits("it rains on Samples", ["it rains on sample"])


@pytest.mark.parametrize(("unit", "is_one"), [("MVolt", False), ("MVolts", True)])
def test_a_unit_behind_in_has_five_letters_at_most(unit: str, *, is_one: bool) -> None:
    assert fits(f"shown in {unit}", [f"shown in {unit.lower()}"]) is is_one
