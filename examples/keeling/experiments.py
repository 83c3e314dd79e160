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
LEAST = 3  # years that a fit needs
WHOLE = "the table has no holes"  # what the first plan takes for known

Row = tuple[int, float]
Model = Callable[[float], float]


def rows() -> list[Row]:
    """The years of the table with their means, in order."""
    lines = [line for line in _text() if not line.startswith("#")]
    table = sorted((int(row["year"]), float(row["ppm"])) for row in csv.DictReader(lines))
    early = sum(year < SPLIT for year, _ in table)
    if min(early, len(table) - early) < LEAST:
        message = f"{SOURCE} needs at least {LEAST} years before {SPLIT} and {LEAST} from then on"
        raise ValueError(message)
    return table


def origin() -> str:
    """Where the table comes from, as its lines say that begin with #."""
    return " ".join(line.lstrip("# ") for line in _text() if line.startswith("#"))


def _text() -> list[str]:
    return Path(SOURCE).read_text(encoding="utf-8").splitlines()


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
    holes = f"{len(missing)} missing ({_years(missing)})" if missing else "none missing"
    finding = (
        f"{len(table)} yearly means from {first[0]} ({first[1]:.2f} ppm) to {last[0]} "
        f"({last[1]:.2f} ppm), {holes}"
    )
    found(
        "read the table and look for holes",
        finding,
        0.99,
        **({"refutes": [WHOLE]} if missing else {}),
        not_done=[{"item": f"the year {year}", "reason": "it is missing"} for year in missing],
        highest_impact_uncertainty="Does one station stand for the air of the whole world?",
        next_agent_should_first="fit a straight line and look at what it leaves",
    )
    return {"finding": finding, "missing": missing, "first": list(first), "last": list(last)}


def _years(years: Sequence[int]) -> str:
    """A few years by name, of many the first and the last."""
    few = 5
    return ", ".join(map(str, years)) if len(years) <= few else f"{years[0]} to {years[-1]}"


# --- the first plan ---------------------------------------------------------------------------------


def straight() -> dict[str, Any]:
    """Fit a straight line; what it leaves must not go with the square of time."""
    table = rows()
    model = line_through(table)
    left = leaves(model, table)
    slope, bent = model(1) - model(0), bend(left, table)
    is_refuted = abs(bent) > BENT
    goes = "goes with" if is_refuted else "does not go with"
    finding = (
        f"a straight line of {slope:.3f} ppm a year leaves {spread(left):.2f} ppm (root mean square), at "
        f"most {worst(left):.2f} ppm, which {goes} the square of time: r = {bent:.2f}"
    )
    found(
        "fit a straight line by least squares",
        finding,
        0.95,
        **{"refutes" if is_refuted else "supports": ["linear"]},
        hypotheses={"linear": {"status": "refuted" if is_refuted else "supported"}},
        next_agent_should_first="try a curve" if is_refuted else "conclude",
    )
    told = {"slope": slope, "bent": bent, "is_refuted": is_refuted}
    return {"finding": finding, **told, **fitted(model, left, table)}


def decades() -> dict[str, Any]:
    """Compare what each decade adds, from the first of its years in the table to the last."""
    growth = {f"{start}s": rate for start, rate in _rates(rows()).items()}
    rates = list(growth.values())
    rises = sum(later > earlier for earlier, later in pairwise(rates))
    pairs = len(rates) - 1
    if pairs < 1:
        message = f"{SOURCE} has no two decades to compare"
        raise ValueError(message)
    status = "supported" if rises == pairs else "inconclusive" if rises >= 3 else "refuted"
    each = ", ".join(f"{name} {rate:.2f}" for name, rate in growth.items())
    finding = f"{rises} of {pairs} decades grew faster than the one before, in ppm a year: {each}"
    side = {"supported": {"supports": ["faster"]}, "refuted": {"refutes": ["faster"]}}
    found(
        "compare the growth of whole decades",
        finding,
        0.9,
        **side.get(status, {}),
        hypotheses={"faster": {"status": status}},
    )
    return {"finding": finding, "growth": growth, "rises": rises, "pairs": pairs}


def _rates(table: Sequence[Row]) -> dict[int, float]:
    """The growth of each decade that has two years or more, rounded so that noise is no growth."""
    found: dict[int, list[Row]] = {}
    for year, ppm in table:
        found.setdefault(year - year % 10, []).append((year, ppm))
    return {
        start: round((several[-1][1] - several[0][1]) / (several[-1][0] - several[0][0]), 6)
        for start, several in found.items()
        if len(several) > 1
    }


# --- the second plan --------------------------------------------------------------------------------

QUESTION = f"Does what is above {BEFORE} ppm grow by a fixed percentage instead?"


def curve() -> dict[str, Any]:
    """Fit a parabola; it should leave little, and much less than a straight line."""
    table = rows()
    model = parabola_through(table)
    left, plain = leaves(model, table), leaves(line_through(table), table)
    fits = spread(left) <= GOOD and spread(left) < spread(plain) / 2
    rise = model(2) - 2 * model(1) + model(0)
    finding = (
        f"a parabola whose growth changes by {rise:+.4f} ppm from year to year leaves "
        f"{spread(left):.2f} ppm (root mean square), at most {worst(left):.2f} ppm, "
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
    told = {"rise": rise, "fits": fits, "plain": spread(plain)}
    return {"finding": finding, **told, **fitted(model, left, table)}


def forecast() -> dict[str, Any]:
    """Fit the years before 2000 alone, in three ways, and see how far off they are afterwards."""
    table = rows()
    early = [row for row in table if row[0] < SPLIT]
    late = [row for row in table if row[0] >= SPLIT]
    models = {"straight line": line_through(early), "parabola": parabola_through(early)}
    if all(ppm > BEFORE for _, ppm in early):
        models["fixed percentage"] = percentage_through(early)
    missed = {name: spread(leaves(model, late)) for name, model in models.items()}
    best = min(missed, key=missed.__getitem__)
    is_close = best == "parabola" and missed["parabola"] <= CLOSE
    is_worse = missed["parabola"] > missed["straight line"]
    status = "supported" if is_close else "refuted" if is_worse else "inconclusive"
    others = [f"a {name} by {missed[name]:.2f} ppm" for name in models if name != "parabola"]
    finding = (
        f"from the {len(early)} years before {SPLIT} a parabola misses the {len(late)} from {SPLIT} on by "
        f"{missed['parabola']:.2f} ppm (root mean square), {', '.join(others)}"
    )
    side = {"supported": {"supports": ["curved"]}, "refuted": {"refutes": ["curved"]}}
    found(
        f"tell the years from {SPLIT} on from those before",
        finding,
        0.9,
        **side.get(status, {}),
        hypotheses={"curved": {"status": status}},
        **({"resolves": [QUESTION]} if "fixed percentage" in missed else {}),
        highest_impact_uncertainty="How long does it go on like that?",
        next_agent_should_first="put the findings together",
    )
    told = {
        name: [[year, round(model(year), 3)] for year, _ in table] for name, model in models.items()
    }
    kept = {"split": SPLIT, "years": len(late), "is_close": is_close}
    return {"finding": finding, **kept, "missed": rounded(missed), "told": told}


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
    """The root of the mean square, rounded so that the noise of sums is nothing."""
    return round(math.sqrt(fmean(value * value for value in values)), 9)


def worst(values: Sequence[float]) -> float:
    """The farthest from zero."""
    return max(map(abs, values))


def bend(left: Sequence[float], table: Sequence[Row]) -> float:
    """How much what is left goes with the square of time; not at all if nothing is left but noise."""
    if worst(left) < 1e-6:
        return 0.0
    middle = fmean(year for year, _ in table)
    return round(correlation([(year - middle) ** 2 for year, _ in table], left), 6) + 0.0


def fitted(model: Model, left: Sequence[float], table: Sequence[Row]) -> dict[str, Any]:
    """What is kept of a fit: how much it leaves, in all and in each year."""
    return {
        "spread": spread(left),
        "worst": worst(left),
        "left": [[year, round(value, 3)] for (year, _), value in zip(table, left, strict=True)],
        "line": [[year, round(model(year), 3)] for year, _ in table],
    }


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Numbers as they are kept."""
    return {name: round(value, 4) for name, value in values.items()}
