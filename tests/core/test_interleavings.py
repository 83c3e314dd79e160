"""However the steps of a run end, crash and run again, and whenever people speak: one ledger."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from holdfast.core.ledger import Ledger, folded
from holdfast.core.said import Said
from holdfast.core.told import Told
from holdfast.model.handoff import STANDINGS, Observation, Trial, Undone, entry_id
from holdfast.model.plan import StepId
from tests.core.test_ledger import WORDS, alike, told

STEPS, RUN_AGAIN = 40, 10
Happening = Told | Said


def fifty_handoffs() -> list[Told]:
    """Of forty steps in four waves; the first ten run twice, and tell something else then."""
    chance = random.Random(7)
    order = [*range(STEPS), *range(RUN_AGAIN)]

    def say(words: int) -> str:
        return " ".join(chance.choices(WORDS, k=words))

    return [
        told(
            f"s{n:02d}",
            n % 4,
            observed=(Observation(say(2), f"s{n - 1:02d}" if n % 4 else "a.csv", 0.5, ("H1",)),),
            not_done=(Undone(say(2), "no time"),) if n % 5 == 0 else (),
            uncertainty=say(2) if n % 2 else "",
            resolves=(say(2),) if n % 3 == 0 else (),
            testing=(say(2),) if n % 7 == 0 else (),
            hypotheses={"H1": Trial(chance.choice(STANDINGS))} if n % 9 == 0 else {},
        )
        for n in order
    ]


def words_of_people(given: Sequence[Told]) -> list[Said]:
    """What people say, in the order in which they say it."""
    seen = given[20].handoff.observed[0]
    entry = entry_id("e", given[20].step, seen.finding, seen.source)
    asked = entry_id("u", given[11].step, given[11].handoff.uncertainty)
    return [
        Said("evidence", "", "station 7 is closed", "somebody"),
        Said("contest", entry, "counted twice", "somebody"),
        Said("contest", "s03", "the sensor was broken", "somebody"),
        Said("uncertainty", "", "who owns the pump", "somebody"),
        Said("uphold", entry, "", "somebody"),
        Said("contest", "s21", "read from the wrong file", "somebody"),
        Said("resolve", asked, "it is known", "somebody"),
    ]


def afters(given: Sequence[Told], said: Sequence[Said]) -> dict[int, list[int]]:
    """What must come before what: handoffs of a step, words of people, a word after what it is about."""
    before: dict[int, list[int]] = {n: [] for n in range(len(given) + len(said))}
    for again in range(STEPS, STEPS + RUN_AGAIN):
        before[again].append(again - STEPS)
    for n in range(1, len(said)):
        before[len(given) + n].append(len(given) + n - 1)
    before[len(given) + 5].append(21)  # the contest of s21
    broken = len(given) + 2  # the contest of s03: after what it told first, before it tells again
    before[broken].append(3)
    before[STEPS + 3].append(broken)
    return before


def interleaved(chance: random.Random, before: Mapping[int, Sequence[int]]) -> list[int]:
    """A random order that keeps what must come before what."""
    open_needs = {n: len(needs) for n, needs in before.items()}
    opens: dict[int, list[int]] = {}
    for n, needs in before.items():
        for need in needs:
            opens.setdefault(need, []).append(n)
    ready = [n for n, needs in open_needs.items() if not needs]
    order = []
    while ready:
        place = chance.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        one = ready.pop()
        order.append(one)
        for n in opens.get(one, ()):
            open_needs[n] -= 1
            if not open_needs[n]:
                ready.append(n)
    return order


def journal(happened: Sequence[Happening], order: Sequence[int]) -> list[Happening]:
    """What happened in this order, each with its place in the journal."""
    return [replace(happened[n], place=place) for place, n in enumerate(order, 1)]


def fold(written: Sequence[Happening]) -> Ledger:
    handoffs = [one for one in written if isinstance(one, Told)]
    said = [one for one in written if isinstance(one, Said)]
    return folded(handoffs, alike, {"H1": "untested"}, said)


def content(found: Ledger) -> list[object]:
    """A ledger without the places of its handoffs in the journal."""
    return [
        [(one.id, one.step, one.handoff.attempted) for one in found.handoffs],
        sorted(one.id for one in found.superseded),
        found.evidence,
        found.uncertainties,
        found.gaps,
        found.hypotheses,
        found.stale,
        found.unmatched,
    ]


@pytest.mark.req("R114", "R124", "C6")
@pytest.mark.parametrize("times", [1_000, pytest.param(10_000, marks=pytest.mark.soak("law"))])
def test_all_interleavings_of_fifty_handoffs_give_one_ledger(times: int) -> None:
    chance = random.Random(11)
    given = fifty_handoffs()
    happened: list[Happening] = [*given, *words_of_people(given)]
    before = afters(given, words_of_people(given))
    first = content(fold(journal(happened, interleaved(chance, before))))
    for number in range(times):
        written = journal(happened, interleaved(chance, before))
        if number % 10 == 0:  # an engine that died half way had folded what there was until then
            fold(written[: chance.randrange(len(written))])
        assert content(fold(written)) == first


def test_the_ledger_of_the_interleavings_holds_something_of_everything() -> None:
    given = fifty_handoffs()
    happened: list[Happening] = [*given, *words_of_people(given)]
    before = afters(given, words_of_people(given))
    found = fold(journal(happened, interleaved(random.Random(11), before)))
    assert len(found.superseded) == RUN_AGAIN
    assert any(one.head != one.id for one in found.evidence)
    assert {one.contested for one in found.evidence} == {"", "read from the wrong file"}
    assert any(one.stale for one in found.evidence)
    assert {"open", "resolved"} <= {one.status for one in found.uncertainties}
    assert found.unmatched
    assert found.hypotheses["H1"].tested_by
    assert {one.step for one in found.evidence} >= {StepId(""), StepId("s39")}
