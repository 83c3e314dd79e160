"""The ledger of many handoffs, folded once: CPU seconds. What a second fold finds in memory it has not.

`common` handoffs are written in words as people use them, the first words often and the last seldom. The
others are what a fold fears: `few` words in all, findings that are all `equal`, and all `near` one another.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from itertools import accumulate

from holdfast.core.ledger import folded
from holdfast.core.told import Told
from holdfast.model.handoff import (
    STANDINGS,
    Change,
    Handoff,
    Observation,
    Trial,
    Undone,
    entry_id,
)
from holdfast.model.plan import StepId
from holdfast.wire import alike, seldom_collected

SIZES = (1_000, 10_000, 100_000)
WORDS = ("common", "few", "equal", "near")
FINDINGS = 3
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def told(count: int, words: str) -> list[Told]:
    """Handoffs of so many steps in twenty waves: three findings, a question, a change and a gap each."""
    chance = random.Random(5)
    say = _speaker(chance, words)
    asked: list[str] = []
    made = []
    for number in range(count):
        step = StepId(f"s{number:06}")
        findings = (
            Observation(say(), f"{number % 50}.csv", chance.random(), ("H1",))
            for _ in range(FINDINGS)
        )
        question = say()
        handoff = Handoff(
            attempted="look",
            observed=tuple(findings),
            changed=(Change("file", f"{number}.csv"),),
            not_done=(Undone(f"item {number}", "no time"),),
            uncertainty=question,
            resolves=(chance.choice(asked),) if asked and number % 2 else (),
            hypotheses={"H1": Trial(chance.choice(STANDINGS), (step,))},
        )
        asked.append(entry_id("u", step, question))
        wave = 20 * number // count
        made.append(Told(f"h-{number:012}", step, wave, handoff, place=number + 1))
    return made


def _speaker(chance: random.Random, words: str) -> Callable[[], str]:
    many = 12 if words == "few" else 5_000
    known = ["".join(chance.choices(_LETTERS, k=chance.randint(3, 9))) for _ in range(many)]
    often = list(accumulate(1 / (place + 1) for place in range(many)))
    one = chance.choices(known, k=12)

    def say() -> str:
        said = chance.choices(known, cum_weights=often, k=6 if words == "few" else 10)
        if words in {"equal", "near"}:
            said = list(one)
        if words == "near":
            said[chance.randrange(len(said))] = chance.choice(known)
        return " ".join(said)

    return say


def main() -> None:
    count, words = int(sys.argv[1]), sys.argv[2]
    given = told(count, words)
    with seldom_collected():
        began = time.process_time()
        found = folded(given, alike, {"H1": "untested"})
        cpu = time.process_time() - began
    assert len(found.handoffs) == count
    assert words != "common" or len(found.evidence) == FINDINGS * count
    print(json.dumps({"cpu": cpu}))


if __name__ == "__main__":
    main()
