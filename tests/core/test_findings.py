"""Findings of several reviewers become one list."""

import json
import random
from typing import Any

import pytest

from holdfast.core.findings import Finding, alike, finding_from, merge, report
from holdfast.findings import merge as merge_step
from holdfast.model.agent import Rules
from holdfast.model.digest import Json

pytestmark = pytest.mark.req("R85", "C30")

RULES = Rules()
INJECTION = "user input reaches the query unescaped in find_user and can change its meaning"


def finding(source: str, title: str, confidence: Json = 90, **more: Json) -> Finding:
    return finding_from(source, {"title": title, "confidence": confidence, **more})


def titles(findings: list[Finding]) -> list[str]:
    return [str(one.finding.given["title"]) for one in merge(findings, RULES)[0]]


def test_duplicates_are_folded_into_the_surest_which_keeps_its_confidence() -> None:
    kept, left = merge(
        [
            finding("r1", INJECTION, 82, location="db.py:41", severity="CRITICAL"),
            finding("r2", INJECTION + " badly", 0.97, location="db.py:42", severity="HIGH"),
            finding("r3", INJECTION.upper(), 12, location="db.py"),
        ],
        RULES,
    )
    (only,) = kept
    assert left == []
    assert only.finding.source == "r2"
    assert only.finding.confidence == 0.97
    assert only.severity == "critical"
    assert only.sources == ("r1", "r2", "r3")


def test_below_eighty_is_dropped_and_eighty_stays() -> None:
    kept, left = merge([finding("r1", "one thing", 80), finding("r1", "other stuff", 79)], RULES)
    assert [one.finding.given["title"] for one in kept] == ["one thing"]
    assert [one.finding.given["title"] for one in left] == ["other stuff"]


def test_a_finding_of_which_nobody_said_how_sure_it_is_stays() -> None:
    assert titles([finding("r1", "one thing", None)]) == ["one thing"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("db.py:41", "api.py:41"), ("db.py:41", "db.py:47")],
    ids=["other file", "far away"],
)
def test_the_same_words_about_another_place_are_another_finding(first: str, second: str) -> None:
    both = [finding("r1", INJECTION, location=first), finding("r2", INJECTION, location=second)]
    assert len(titles(both)) == 2


def test_alike_means_more_than_four_fifths_not_just_as_much() -> None:
    one, other = "a b c d e", "a b c d x"
    assert alike(frozenset(one.split()), frozenset(other.split())) == 0.8
    assert len(titles([finding("r1", one), finding("r2", other)])) == 2
    assert len(titles([finding("r1", one + " f"), finding("r2", other + " f")])) == 1


def test_no_pair_that_is_alike_is_missed_whatever_the_order() -> None:
    """The index of rare words compares less than everything with everything, and finds the same."""
    dice = random.Random(7)
    words = [f"w{number}" for number in range(14)]
    for _ in range(200):
        found = [
            finding(f"r{n}", " ".join(dice.sample(words, dice.randint(0, 9))), dice.randint(80, 99))
            for n in range(12)
        ]
        kept, _ = merge(found, RULES)
        naive: list[Finding] = []
        for merged in sorted(found, key=lambda f: (-f.sure, f.source, sorted(f.words))):
            if all(alike(head.words, merged.words) <= RULES.similarity for head in naive):
                naive.append(merged)
        assert [one.finding for one in kept] == naive
        dice.shuffle(found)
        assert merge(found, RULES)[0] == kept


def test_ten_thousand_different_findings_are_not_all_compared() -> None:
    calls = 0

    class Counted(frozenset[str]):
        def __and__(self, other: object) -> frozenset[str]:
            nonlocal calls
            calls += 1
            return super().__and__(other)  # type: ignore[operator]  # only sets come here

    many = [
        Finding(f"r{n}", {}, Counted([f"w{n}", f"v{n}", "in", "the", "file"]), ("", 0), "low", 0.9)  # type: ignore[arg-type]  # a tuple is a place
        for n in range(10_000)
    ]
    assert len(merge(many, RULES)[0]) == 10_000
    assert calls < 20_000


def test_the_report_counts_what_became_of_each_finding() -> None:
    found = [
        finding("r1", INJECTION, 95, severity="HIGH"),
        finding("r2", INJECTION, 90, severity="HIGH"),
        finding("r3", "something else entirely", 20),
    ]
    made = report(found, RULES)
    assert made["summary"] == {
        "found": 3,
        "kept": 1,
        "folded": 1,
        "dropped": 1,
        "by_severity": {"HIGH": 1},
    }
    (only,) = json.loads(json.dumps(made["merged_findings"]))
    assert only["sources"] == ["r1", "r2"]


def kept(made: Any) -> int:
    return int(made["summary"]["kept"])


def test_the_step_takes_objects_and_lists_and_thresholds_in_percent() -> None:
    reviews: dict[str, Any] = {
        "r1": json.dumps({"findings": [{"title": INJECTION, "confidence": 75}]}),
        "r2": json.dumps([{"title": "other", "confidence": 71}]),
    }
    assert kept(merge_step(**reviews)) == 0
    assert kept(merge_step(**reviews, confidence=70)) == 2


@pytest.mark.parametrize("text", ["{", '"x"', '{"findings": {}}', "[1]"])
def test_the_step_says_which_review_it_cannot_read(text: str) -> None:
    with pytest.raises((ValueError, TypeError), match="'r1'"):
        merge_step(r1=text)


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("db.py:41", "db.py:46", 1),
        ("db.py:46", "db.py:41", 1),
        ("db.py:41", "db.py", 1),
        ("db.py:41", "", 1),
        ("db.py:41-90", "db.py:46:7", 1),
        (" db.py:41 ", "db.py:41", 1),
        ("db.py:41", "db.py:47", 2),
        ("db.py", "api.py", 2),
    ],
)
def test_a_place_is_near_within_five_lines(first: str, second: str, count: int) -> None:
    both = [finding("r1", INJECTION, location=first), finding("r2", INJECTION, location=second)]
    assert len(titles(both)) == count


def test_a_finding_is_read_as_it_was_given() -> None:
    given: dict[str, Json] = {
        "title": "One Thing",
        "description": "and two",
        "agent": "critic",
        "confidence": 80,
        "severity": "high",
        "location": "f.py:3",
    }
    found = finding_from("r1", given)
    assert (found.source, found.place, found.severity) == ("critic", ("f.py", 3), "high")
    assert found.words == {"one", "thing", "and", "two"}
    assert (found.confidence, found.sure) == (0.8, 0.8)
    bare = finding_from("r1", {"title": "x", "confidence": True, "location": 5})
    assert (bare.source, bare.place, bare.confidence, bare.sure) == ("r1", ("", 0), None, 2.0)
    assert finding_from("r1", {}).words == set()


def test_a_merged_finding_tells_the_gravest_the_surest_and_all_who_found_it() -> None:
    one = finding("r2", INJECTION, 95, severity="low", note="kept")
    other = finding("r1", INJECTION, 90, severity="medium")
    assert report([other, one], RULES)["merged_findings"] == [
        {
            "title": INJECTION,
            "note": "kept",
            "severity": "MEDIUM",
            "confidence": 0.95,
            "sources": ["r1", "r2"],
            "duplicates": 1,
        }
    ]


def test_the_surest_stand_first_then_the_gravest_then_by_place() -> None:
    found = [
        finding("r1", "alpha", 85, severity="critical"),
        finding("r1", "beta", 95, severity="low", location="b.py:9"),
        finding("r1", "gamma", 95, severity="high", location="z.py"),
        finding("r1", "delta", 95, severity="low", location="b.py:2"),
        finding("r1", "epsilon", None, severity="low"),
    ]
    assert titles(found) == ["epsilon", "gamma", "delta", "beta", "alpha"]


def test_two_texts_without_words_are_equal() -> None:
    none: frozenset[str] = frozenset()
    assert (alike(none, none), alike(none, frozenset({"a"}))) == (1.0, 0.0)


def test_a_confidence_that_is_no_number_doubts_nothing() -> None:
    assert finding("a", "title", float("nan")).confidence == 1.0
