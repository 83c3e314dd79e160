"""The experiments of the example: each reads the table, tests one hypothesis, and hands over what it found."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import correlation, fmean, linear_regression
from typing import Any

SOURCE = "co2.csv"
Row = tuple[int, float]


def rows() -> list[Row]:
    """The yearly means."""
    with open(SOURCE, newline="", encoding="utf-8") as file:
        return [(int(row["year"]), float(row["ppm"])) for row in csv.DictReader(file)]


def hand_over(attempted: str, **told: Any) -> None:  # noqa: ANN401 - JSON
    """Tell those that come after this step."""
    handoff = {
        "attempted": attempted,
        "observed": [],
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "",
        "next_agent_should_first": "",
        **told,
    }
    Path(os.environ["HOLDFAST_HANDOFF"]).write_text(json.dumps(handoff), encoding="utf-8")


def look() -> dict[str, Any]:
    """See what the table holds."""
    table = rows()
    first, last = table[0], table[-1]
    gaps = [year for year, _ in table if year + 1 not in dict(table) and year != last[0]]
    hand_over(
        "read the table and look for holes",
        observed=[
            {
                "finding": f"{len(table)} yearly means from {first[0]} to {last[0]}, none missing",
                "source": SOURCE,
                "confidence": 0.99,
            }
        ],
        not_done=[] if not gaps else [{"item": "years", "reason": f"missing: {gaps}"}],
        highest_impact_uncertainty="Does one station stand for the whole air?",
        next_agent_should_first="fit a straight line and look at what is left",
    )
    return {"years": len(table), "from": list(first), "to": list(last)}


def straight() -> dict[str, Any]:
    """Fit a straight line; what is left must not depend on the year."""
    table = rows()
    years, values = [float(year) for year, _ in table], [ppm for _, ppm in table]
    line = linear_regression(years, values)
    left = [ppm - line.slope * year - line.intercept for year, ppm in zip(years, values, strict=True)]
    bent = correlation([(year - fmean(years)) ** 2 for year in years], left)
    refuted = abs(bent) > 0.5
    hand_over(
        "fit a straight line by least squares",
        observed=[
            {
                "finding": f"what a straight line leaves goes with the square of time, r = {bent:.2f}",
                "source": SOURCE,
                "confidence": 0.95,
                ("refutes" if refuted else "supports"): ["linear"],
            }
        ],
        hypotheses={"linear": {"status": "refuted" if refuted else "supported"}},
        next_agent_should_first="try a curve",
    )
    return {"slope": round(line.slope, 4), "bent": round(bent, 4), "left": [round(x, 3) for x in left]}


def decades() -> dict[str, Any]:
    """Compare what each decade adds."""
    means = dict(rows())
    grown = {
        f"{start}s": round((means[start + 9] - means[start]) / 9, 4)
        for start in range(1960, 2020, 10)
    }
    rates = list(grown.values())
    rises = sum(b > a for a, b in zip(rates, rates[1:], strict=False))
    status = "supported" if rises == len(rates) - 1 else "inconclusive"
    hand_over(
        "compare the growth of the decades",
        observed=[
            {
                "finding": f"{rises} of {len(rates) - 1} decades grew faster than the one before",
                "source": SOURCE,
                "confidence": 0.9,
                "supports": ["faster"],
            }
        ],
        hypotheses={"faster": {"status": status}},
    )
    return grown


def curve() -> dict[str, Any]:
    """Fit a parabola by least squares, about the middle of the years."""
    table = rows()
    middle = fmean([year for year, _ in table])
    a, b, c = _parabola([(year - middle, ppm) for year, ppm in table])
    left = [ppm - (a + b * (y - middle) + c * (y - middle) ** 2) for y, ppm in table]
    worst = max(map(abs, left))
    hand_over(
        "fit a parabola by least squares",
        observed=[
            {
                "finding": f"a parabola leaves at most {worst:.2f} ppm in any year",
                "source": SOURCE,
                "confidence": 0.9,
                "supports": ["curved"],
            }
        ],
        hypotheses={"curved": {"status": "supported" if worst < 2.5 else "inconclusive"}},
    )
    return {"middle": middle, "a": a, "b": b, "c": c, "left": [round(x, 3) for x in left]}


def _parabola(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Least squares for a + b x + c x²; x is centred, so the odd sums vanish nearly."""
    n = float(len(points))
    s1, s2, s3, s4 = (sum(x**k for x, _ in points) for k in (1, 2, 3, 4))
    t0, t1, t2 = (sum(y * x**k for x, y in points) for k in (0, 1, 2))
    matrix = [[n, s1, s2, t0], [s1, s2, s3, t1], [s2, s3, s4, t2]]
    for i in range(3):
        pivot = matrix[i][i]
        matrix[i] = [value / pivot for value in matrix[i]]
        for j in range(3):
            if j != i:
                factor = matrix[j][i]
                matrix[j] = [x - factor * y for x, y in zip(matrix[j], matrix[i], strict=True)]
    return matrix[0][3], matrix[1][3], matrix[2][3]
