"""What came of cases: kept in a file each as soon as it is known, and summed up."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

from holdfast.model.digest import Json
from holdfast.model.fixed import fixed

SCHEMA = "holdfast.bench.worker/1"
_FILE = "result.json"


@fixed
class Result:
    """What came of one case. `usd` is None if a price is not known. The task tree is not counted."""

    name: str
    solved: bool
    why: str  # it is not solved, or counts for nothing
    status: str  # of the run of the ticket; empty if it was not worked on
    usd: float | None = 0.0
    tokens: int = 0
    seconds: float = 0.0
    cycles: int = 0
    attempts: int = 0
    commits: int = 0
    files: int = 0
    added: int = 0
    removed: int = 0

    @property
    def counts(self) -> bool:
        """Whether it was a case at all: its hidden tests failed before, the others passed."""
        return bool(self.status)


def keep(place: str, result: Result) -> None:
    """Write a result into the folder of its case, whole or not at all."""
    fresh = os.path.join(place, f"{_FILE}.new")
    with open(fresh, "w", encoding="utf-8") as file:
        json.dump(asdict(result), file, indent=1)
        file.write("\n")
    os.replace(fresh, os.path.join(place, _FILE))


def kept(place: str) -> Result | None:
    """The result in the folder of a case, if there is one."""
    try:
        with open(os.path.join(place, _FILE), encoding="utf-8") as file:
            return Result(**json.load(file))
    except FileNotFoundError:
        return None


def report(results: Sequence[Result], hands: str, dropped: Mapping[str, str]) -> dict[str, Json]:
    """All of it as one value; `dropped` says why what looked like a case is none."""
    counted = [result for result in results if result.counts]
    gone = {**dropped, **{one.name: one.why for one in results if not one.counts}}
    return {
        "schema": SCHEMA,
        "hands": hands,
        "tickets": [cast("dict[str, Json]", asdict(result)) for result in counted],
        "dropped": [{"name": name, "why": why} for name, why in gone.items()],
        "total": sums(counted),
    }


def sums(results: Sequence[Result]) -> dict[str, Json]:
    """Counts and sums; the cost is None as soon as one is not known."""
    prices = [result.usd for result in results]
    known = [price for price in prices if price is not None]
    numbers = ("tokens", "cycles", "attempts", "commits", "files", "added", "removed")
    return {
        "tickets": len(results),
        "solved": sum(result.solved for result in results),
        "usd": sum(known) if len(known) == len(prices) else None,
        "seconds": round(sum(result.seconds for result in results), 3),
        **{name: sum(getattr(result, name) for result in results) for name in numbers},
    }
