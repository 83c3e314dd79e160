"""The experiments of the example: each reads the table, tests a hypothesis, and hands over what it found."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import correlation, fmean, linear_regression
from typing import Any

SOURCE = "co2.csv"
BEFORE = 280  # ppm, about what there was before people burned coal
SPLIT = 2000  # years from here on are told from those before
BENT = 0.5  # more than this speaks against a straight line
GOOD, CLOSE = 1.0, 2.0  # ppm that a curve may leave, and may miss unseen years by

Row = tuple[int, float]
Model = Callable[[float], float]


def rows() -> list[Row]:
    """The years of the table with their means; lines that begin with # say where it comes from."""
    with Path(SOURCE).open(newline="", encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return [(int(row["year"]), float(row["ppm"])) for row in csv.DictReader(lines)]


def found(attempted: str, finding: str, confidence: float, **more: Any) -> None:
    """Tell those that come after this step what was found, and how sure it is."""
    sides = {key: more.pop(key) for key in ("supports", "refutes") if key in more}
    seen: dict[str, Any] = {"finding": finding, "source": SOURCE, "confidence": confidence, **sides}
    hand_over(attempted, observed=[seen], payload={"finding": finding}, **more)


def hand_over(attempted: str, **more: Any) -> None:
    """Write the handoff of this step."""
    handoff: dict[str, Any] = {
        "attempted": attempted,
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "",
        "next_agent_should_first": "",
        **more,
    }
    Path(os.environ["HOLDFAST_HANDOFF"]).write_text(json.dumps(handoff), encoding="utf-8")


def look() -> dict[str, Any]:
    """See what the table holds."""
    table = rows()
    first, last = table[0], table[-1]
    missing = sorted(set(range(first[0], last[0] + 1)) - {year for year, _ in table})
    holes = f"{len(missing)} missing" if missing else "none missing"
    finding = (
        f"{len(table)} yearly means from {first[0]} ({first[1]:.2f} ppm) to {last[0]} "
        f"({last[1]:.2f} ppm), {holes}"
    )
    found(
        "read the table and look for holes",
        finding,
        0.99,
        not_done=[{"item": f"the year {year}", "reason": "it is missing"} for year in missing],
        highest_impact_uncertainty="Does one station stand for the air of the whole world?",
        next_agent_should_first="fit a straight line and look at what it leaves",
    )
    return {"finding": finding, "years": len(table), "first": list(first), "last": list(last)}


# --- the first plan ---------------------------------------------------------------------------------


def straight() -> dict[str, Any]:
    """Fit a straight line; what it leaves must not go with the square of time."""
    table = rows()
    model = line_through(table)
    left = leaves(model, table)
    middle = fmean(year for year, _ in table)
    bent = correlation([(year - middle) ** 2 for year, _ in table], left)
    is_refuted = abs(bent) > BENT
    finding = f"what a straight line leaves goes with the square of time: r = {bent:.2f}"
    found(
        "fit a straight line by least squares",
        finding,
        0.95,
        **{"refutes" if is_refuted else "supports": ["linear"]},
        hypotheses={"linear": {"status": "refuted" if is_refuted else "supported"}},
        next_agent_should_first="try a curve" if is_refuted else "conclude",
    )
    slope = model(1) - model(0)
    return {"finding": finding, "slope": slope, "bent": bent, **fitted(model, left, table)}


def decades() -> dict[str, Any]:
    """Compare what each decade adds, from its first year to its last."""
    means = dict(rows())
    growth = {f"{start}s": (means[start + 9] - means[start]) / 9 for start in range(1960, 2020, 10)}
    rates = list(growth.values())
    rises = sum(later > earlier for earlier, later in pairwise(rates))
    pairs = len(rates) - 1
    status = "supported" if rises == pairs else "inconclusive" if rises >= 3 else "refuted"
    finding = (
        f"{rises} of {pairs} decades grew faster than the one before: from {rates[0]:.2f} to "
        f"{rates[-1]:.2f} ppm a year"
    )
    side = {"supported": {"supports": ["faster"]}, "refuted": {"refutes": ["faster"]}}
    found(
        "compare the growth of whole decades",
        finding,
        0.9,
        **side.get(status, {}),
        hypotheses={"faster": {"status": status}},
    )
    return {"finding": finding, "growth": growth, "rises": rises, "pairs": pairs}


# --- the second plan --------------------------------------------------------------------------------

QUESTION = f"Does what is above {BEFORE} ppm grow by a fixed percentage instead?"


def curve() -> dict[str, Any]:
    """Fit a parabola; it should leave little, and much less than a straight line."""
    table = rows()
    model = parabola_through(table)
    left, plain = leaves(model, table), leaves(line_through(table), table)
    fits = spread(left) <= GOOD and spread(left) < spread(plain) / 2
    finding = (
        f"a parabola leaves {spread(left):.2f} ppm (root mean square), "
        f"a straight line {spread(plain):.2f} ppm"
    )
    found(
        "fit a parabola by least squares",
        finding,
        0.9,
        **({"supports": ["curved"]} if fits else {}),
        hypotheses={"curved": {"status": "supported" if fits else "inconclusive"}},
        highest_impact_uncertainty=QUESTION,
        next_agent_should_first="let the early years tell the late ones",
    )
    rise = model(2) - 2 * model(1) + model(0)
    return {"finding": finding, "rise": rise, **fitted(model, left, table)}


def forecast() -> dict[str, Any]:
    """Fit the years before 2000 alone, in three ways, and see how far off they are afterwards."""
    table = rows()
    early = [row for row in table if row[0] < SPLIT]
    late = [row for row in table if row[0] >= SPLIT]
    models = {
        "straight line": line_through(early),
        "parabola": parabola_through(early),
        "fixed percentage": percentage_through(early),
    }
    missed = {name: spread(leaves(model, late)) for name, model in models.items()}
    best = min(missed, key=missed.__getitem__)
    is_close = best == "parabola" and missed["parabola"] <= CLOSE
    is_worse = missed["parabola"] > missed["straight line"]
    status = "supported" if is_close else "refuted" if is_worse else "inconclusive"
    finding = (
        f"from the years before {SPLIT} a parabola misses those after by {missed['parabola']:.2f} ppm "
        f"(root mean square), a straight line by {missed['straight line']:.2f}, "
        f"a fixed percentage by {missed['fixed percentage']:.2f}"
    )
    side = {"supported": {"supports": ["curved"]}, "refuted": {"refutes": ["curved"]}}
    found(
        f"tell the years from {SPLIT} on from those before",
        finding,
        0.9,
        **side.get(status, {}),
        hypotheses={"curved": {"status": status}},
        resolves=[QUESTION],
        highest_impact_uncertainty="How long does the growth go on rising?",
        next_agent_should_first="put the findings together",
    )
    told = {
        name: [[year, round(model(year), 3)] for year, _ in table] for name, model in models.items()
    }
    return {"finding": finding, "split": SPLIT, "missed": rounded(missed), "told": told}


# --- fits -------------------------------------------------------------------------------------------


def line_through(table: Sequence[Row]) -> Model:
    """The straight line of least squares."""
    fit = linear_regression([year for year, _ in table], [ppm for _, ppm in table])
    return lambda year: fit.intercept + fit.slope * year


def percentage_through(table: Sequence[Row]) -> Model:
    """Growth of what is above 280 ppm by a fixed percentage: a straight line of its logarithms."""
    logs = [(year, math.log(ppm - BEFORE)) for year, ppm in table]
    inner = line_through(logs)
    return lambda year: BEFORE + math.exp(inner(year))


def parabola_through(table: Sequence[Row]) -> Model:
    """The parabola of least squares; years are counted from their middle, for exact sums."""
    middle = fmean(year for year, _ in table)
    points = [(year - middle, ppm) for year, ppm in table]
    powers = [math.fsum(x**k for x, _ in points) for k in range(5)]
    sums = [math.fsum(y * x**k for x, y in points) for k in range(3)]
    a, b, c = solved([[*powers[k : k + 3], sums[k]] for k in range(3)])
    return lambda year: a + b * (year - middle) + c * (year - middle) ** 2


def solved(matrix: list[list[float]]) -> list[float]:
    """The solution of linear equations, each row with its right side at the end."""
    for i, row in enumerate(matrix):
        row[:] = [value / row[i] for value in row]
        for other in matrix:
            if other is not row:
                factor = other[i]
                other[:] = [x - factor * y for x, y in zip(other, row, strict=True)]
    return [row[-1] for row in matrix]


def leaves(model: Model, table: Sequence[Row]) -> list[float]:
    """What a model leaves of each year."""
    return [ppm - model(year) for year, ppm in table]


def spread(values: Sequence[float]) -> float:
    """The root of the mean square."""
    return math.sqrt(fmean(value * value for value in values))


def fitted(model: Model, left: Sequence[float], table: Sequence[Row]) -> dict[str, Any]:
    """What is kept of a fit: how much it leaves, in all and in each year."""
    return {
        "spread": spread(left),
        "worst": max(map(abs, left)),
        "left": [[year, round(value, 3)] for (year, _), value in zip(table, left, strict=True)],
        "line": [[year, round(model(year), 3)] for year, _ in table],
    }


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Numbers as they are kept."""
    return {name: round(value, 4) for name, value in values.items()}
