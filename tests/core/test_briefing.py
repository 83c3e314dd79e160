"""What a step is told of the work before it."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.briefing import (
    BUDGET,
    LETTERS,
    SUMMED,
    Briefing,
    ancestors,
    briefing,
    ids_on,
    needed_by,
)
from holdfast.core.ledger import Ledger, folded
from holdfast.core.said import Said
from holdfast.core.waves import graph_of
from holdfast.model.handoff import Change, Handoff, Observation, Standing, Trial, Undone
from holdfast.model.plan import GATHER, StepId
from tests.core.builders import graph, step
from tests.core.test_ledger import alike, handoffs, told

NEEDS = [StepId("b")]


def a_ledger() -> Ledger:
    return folded(
        [
            told(
                "a",
                observed=(Observation("rain falls", "a.csv", 0.4),),
                not_done=(Undone("x", "y"),),
            ),
            told(
                "b",
                1,
                first="look at the map",
                observed=(
                    Observation("sun shines", "b.csv", 0.2),
                    Observation("wind blows", "c.csv", 0.9),
                ),
                changed=(Change("map", "map.svg"),),
                not_done=(Undone("the legend", "no time"),),
                uncertainty="who drew it",
                hypotheses={"H1": Trial("supported")},
            ),
        ],
        alike,
        {"H1": "untested"},
    )


@pytest.mark.req("R117")
def test_a_page_has_its_parts_in_the_order_of_their_worth() -> None:
    page = briefing(a_ledger(), NEEDS, ["H1"])
    lines = page.text.splitlines()
    assert page.left_out == 0
    plain = [
        " ".join(word for word in line.split() if word[1:2] != "-" or word == "-") for line in lines
    ]
    assert plain == [
        "## Do first, as the steps before advise",
        "- look at the map (b)",
        "",
        "## What the steps before did",
        "- b: look",
        "- changed map: map.svg",
        "- not done the legend: no time",
        "",
        "## Hypotheses",
        "- H1 is supported: 0 for, 0 against",
        "",
        "## Open questions",
        "- who drew it (open)",
        "",
        "## Evidence",
        "- wind blows (c.csv, 0.90)",
        "- sun shines (b.csv, 0.20)",
        "- rain falls (a.csv, 0.40)",
        "",
        "## Not done further above",
        "- x: y",
    ]


def test_what_was_contested_is_not_told() -> None:
    whole = a_ledger()
    word = Said("contest", whole.evidence[0].id, "wrong")
    assert "rain falls" not in briefing(folded(whole.handoffs, alike, said=[word]), NEEDS).text


LEAST = re.compile(r"(\d+) more, for want of room: `holdfast ledger`$")
MORE = re.compile(r"more, (\d+) entries: `holdfast ledger`$")
OTHER_WORDS = r" about [^()]*?(?=, \d| h-|$|;| \()|\(surest [0-9.]+\)|- [^:]+:"


def told_by(steps: list[Handoff]) -> Ledger:
    """A ledger of steps s0, s1, … each a wave below the one before."""
    given_ = [told(f"s{n}", n) for n in range(len(steps))]
    both = zip(given_, steps, strict=True)
    return folded([replace(one, handoff=handoff) for one, handoff in both], alike)


def entries(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.lstrip().startswith("-")]


@pytest.mark.req("R126")
@given(st.lists(handoffs, max_size=6), st.integers(0, 200))
def test_a_page_keeps_its_budget_and_sums_up_what_finds_no_room(
    steps: list[Handoff], budget: int
) -> None:
    whole = told_by(steps)
    needs = [StepId("s0"), StepId("s1")]
    page, all_of_it = briefing(whole, needs, budget=budget), briefing(whole, needs, budget=10**6)
    assert all_of_it.left_out == 0
    assert SUMMED not in all_of_it.text
    kept, _, summed = page.text.partition(SUMMED)
    everything = entries(all_of_it.text)
    assert entries(kept) == everything[: len(entries(kept))]
    assert len(entries(kept)) + page.left_out == len(everything)
    least = LEAST.search(page.text)
    assert len(page.text) <= budget * LETTERS or (least and least[0] == page.text)
    few = MORE.search(summed) or least
    counted = "" if least else re.sub(OTHER_WORDS, "", summed)
    numbers = [int(number) for number in re.findall(r"(?<![-\w])\d+(?= [a-z])", counted)]
    assert sum(numbers) + (int(few[1]) if few else 0) == page.left_out


@pytest.mark.req("R126")
@pytest.mark.parametrize("budget", [1, 10, 13, 20, 30, 40, 60, 100])
def test_a_page_of_many_findings_keeps_a_small_budget(budget: int) -> None:
    seen = tuple(Observation(f"station {n} reports {n} mm", "a.csv", 0.5) for n in range(80))
    page = briefing(folded([told("b", observed=seen, first="look")], alike), NEEDS, budget=budget)
    assert len(page.text) <= max(budget, 13) * LETTERS
    assert page.left_out
    if budget == 1:
        assert page.text == "82 more, for want of room: `holdfast ledger`"


@pytest.mark.req("R126")
def test_what_finds_no_room_is_summed_up_with_the_id_that_holds_it() -> None:
    far = [
        told(
            f"far{n}",
            observed=(
                Observation(f"rain falls on station {n}{n}", "a.csv", 0.4),
                Observation(f"rain is measured at station {n}{n} by hand", "b.csv", 0.7),
            ),
            not_done=(Undone("the map", "no time"),),
            uncertainty=f"who reads gauge {n}",
        )
        for n in range(3)
    ]
    near = told("near", 1, first="look at the map", observed=(Observation("sun shines"),))
    whole = folded([*far, near], alike)
    page = briefing(whole, [StepId("near")], budget=130).text
    kept, _, summed = page.partition(SUMMED)
    assert "look at the map" in kept
    assert "rain falls" not in page
    first, *_ = entries(summed)
    findings = "2 findings about station, rain, measured (surest 0.70)"
    assert first == f"- far0: {findings}, 1 gap {far[0].id}"


@pytest.mark.req("R126")
@given(st.lists(handoffs, max_size=6), st.integers(0, 60), st.randoms(use_true_random=False))
def test_the_order_in_which_steps_end_changes_no_summary(
    steps: list[Handoff], budget: int, chance: random.Random
) -> None:
    whole = told_by(steps)
    mixed = list(whole.handoffs)
    chance.shuffle(mixed)
    needs = [StepId("s0")]
    assert briefing(folded(mixed, alike), needs, budget=budget) == briefing(
        whole, needs, budget=budget
    )


@pytest.mark.req("R117")
def test_of_findings_that_say_the_same_the_surest_that_stands_is_told() -> None:
    rumour = told("a", observed=(Observation("the bridge to the island is closed", "rumour", 0.5),))
    police = told("b", observed=(Observation("the bridge to the island is closed", "police", 0.9),))
    both = folded([rumour, police], alike)
    assert "(police, 0.90, said 2 times)" in briefing(both, [StepId("a"), StepId("b")]).text
    doubt = [Said("contest", "rumour", "nobody saw it")]
    left = briefing(folded([rumour, police], alike, said=doubt), [StepId("a"), StepId("b")]).text
    assert "(police, 0.90)" in left
    assert "rumour" not in left


@pytest.mark.req("R117", "R127")
def test_every_wording_of_what_is_taken_for_one_is_told() -> None:
    names = ("William measured it", "Williams measured it", "WILLIAM measured it.")
    steps = [told(f"s{n}", observed=(Observation(text, "log"),)) for n, text in enumerate(names)]
    page = briefing(folded(steps, alike), [one.step for one in steps]).text
    others = 'also put as "Williams measured it", "WILLIAM measured it."'
    assert f"- William measured it (log, said 3 times), {others} e-" in page


@pytest.mark.req("R117", "R127")
def test_every_wording_of_a_question_is_told() -> None:
    asked = ("Williams paid for it?", "William paid for it?", "Has it rained?")
    steps = [told(f"s{n}", uncertainty=text) for n, text in enumerate(asked)]
    page = briefing(folded(steps, alike), [one.step for one in steps]).text
    assert '- Williams paid for it? (open), also put as "William paid for it?" u-' in page
    assert "- Has it rained? (open) u-" in page


def test_a_finding_without_a_number_stands_where_one_of_a_half_would() -> None:
    said = [("low", 0.3), ("unsaid", None), ("high", 0.6)]
    seen = tuple(Observation(text, text, sure) for text, sure in said)
    page = briefing(folded([told("a", observed=seen)], alike), [StepId("a")]).text
    assert page.index("- high") < page.index("- unsaid") < page.index("- low")


def test_who_needs_a_step_that_gathers_needs_what_it_gathers() -> None:
    gather = replace(step("g", "a", "~o", "h"), uses=GATHER)
    inner = replace(step("h", "b"), uses=GATHER)
    steps = {one.id: one for one in (gather, inner, step("a", "x"), *map(step, "obxp"))}
    assert needed_by(steps, step("s", "g", "p")) == {"g", "a", "h", "b", "p"}
    assert needed_by(steps, step("s")) == set()


@pytest.mark.req("R126")
def test_each_kind_is_summed_up_by_its_name() -> None:
    near = [
        told(
            f"a-step-with-a-long-name-{n}",
            first=f"look at map {n}, and at nothing else" * 20,  # so that no line finds room
            changed=(Change(f"map {n}", "map.svg"),),
            not_done=(Undone(f"part {n}", "no time"),),
            observed=(Observation(f"{n}", "a.csv"),),
            uncertainty=f"who drew {n}",
        )
        for n in range(6)
    ]
    whole = folded(near, alike, {f"H{n}": "untested" for n in range(6)})
    page = briefing(whole, [one.step for one in near], list(whole.hypotheses), budget=47).text
    assert page.partition(SUMMED)[2].strip() == (
        "- 7 steps more: 6 pieces of advice, 6 accounts, 6 changes, 6 gaps, 6 open questions, "
        "6 findings, 6 hypotheses; `holdfast ledger` lists them"
    )


@pytest.mark.req("R126")
def test_hypotheses_that_find_no_room_are_counted() -> None:
    tested: dict[str, Standing] = {f"H{n}": "untested" for n in range(60)}
    page = briefing(folded([], alike, tested), [], list(tested), budget=80).text
    kept, _, summed = page.partition(SUMMED)
    left = len(tested) - len(entries(kept))
    assert 0 < left < len(tested)
    assert summed.strip() == f"- {left} hypotheses: `holdfast ledger hypotheses`"


@pytest.mark.req("R126")
@pytest.mark.parametrize("more", range(LETTERS))
def test_a_page_that_just_finds_room_is_told_whole(more: int) -> None:
    whole = folded([told("b", first="look" + "!" * more, uncertainty="who drew it")], alike)
    text = briefing(whole, NEEDS).text
    least = -(-(len(text) + 2) // LETTERS)  # the line feeds behind it count
    assert briefing(whole, NEEDS, budget=least) == Briefing(text, 0)
    assert briefing(whole, NEEDS, budget=least - 1).left_out


def test_every_step_above_one_is_known() -> None:
    known = graph_of(graph("a>b>d c>d>e f"))
    assert ancestors(known, StepId("d")) == {"a", "b", "c"}


@pytest.mark.req("R117", "R127")
def test_of_many_wordings_some_are_told_and_the_others_counted() -> None:
    names = ["it rained", "It rained", "it rained.", "It rained.", "it rained!", "It rained!"]
    steps = [told(f"s{n}", observed=(Observation(text, "log"),)) for n, text in enumerate(names)]
    page = briefing(folded(steps, alike), [one.step for one in steps]).text
    others = 'also put as "It rained", "it rained.", "It rained." and 2 wordings more e-'
    assert f"- it rained (log, said 6 times), {others}" in page


@pytest.mark.req("R117")
def test_a_question_that_is_resolved_is_told_no_more() -> None:
    asked = told("a", uncertainty="who drew it", resolves=("who drew it",))
    open_one = told("b", 1, uncertainty="who paid for it")
    whole = folded([asked, open_one], alike)
    assert {one.status for one in whole.uncertainties} == {"resolved", "open"}
    page = briefing(whole, [StepId("a"), StepId("b")]).text
    assert "who paid for it" in page
    assert "who drew it" not in page


def test_what_people_found_stands_beside_what_the_first_steps_found() -> None:
    first = told("a", observed=(Observation("rain falls", "a.csv", 0.9),))
    person = Said("evidence", "", "sun shines", "me")
    page = briefing(folded([first], alike, said=[person]), []).text
    assert page.index("rain falls") < page.index("sun shines")


def test_a_page_has_room_for_four_thousand_tokens_if_nobody_says_otherwise() -> None:
    assert (BUDGET, LETTERS) == (4_000, 4)


def test_the_ids_on_a_page_are_those_that_end_an_entry() -> None:
    whole = folded([told("b", observed=(Observation("as e-0123456789ab says, rain"),))], alike)
    page = briefing(whole, NEEDS).text
    assert ids_on(page) == {whole.evidence[0].id, whole.handoffs[0].id}
