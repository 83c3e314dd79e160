"""The regression guard: ratios of a run beside those of the committed table; less is better in all.

Times differ from machine to machine, ratios taken in one run hardly do. One that got worse by more
than the tolerance, and by more than a twentieth of what it is divided by, is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.results import Cell, Results

TOLERANCE = 25.0  # percent; timings on a shared machine vary by as much
LEAST = 0.05  # a ratio that is worse by less than this says nothing
WORDS = {
    "cold": "cold",
    "noop": "nothing changed",
    "shortcut": "nothing changed, as a whole",
    "change": "one leaf changed",
}


@dataclass(frozen=True, slots=True)
class Worse:
    """A ratio that got worse."""

    name: str
    before: float
    now: float

    def __str__(self) -> str:
        percent = (self.now / self.before - 1) * 100 if self.before else float("inf")
        return f"{self.name}: {self.now:.3g}, was {self.before:.3g} (+{percent:.0f} %)"


def ratios(found: Results) -> dict[str, float]:
    """Every ratio that a run has."""
    return {name: value for part in (_cells, _others) for name, value in part(found)}


def worse(before: Results, now: Results, tolerance: float = TOLERANCE) -> tuple[list[Worse], int]:
    """What got worse, the worst first, and how many ratios both have."""
    old, new = ratios(before), ratios(now)
    common = [name for name in old if name in new]
    found = [
        Worse(name, old[name], new[name])
        for name in common
        if new[name] > old[name] * (1 + tolerance / 100) and new[name] - old[name] > LEAST
    ]
    return sorted(found, key=lambda row: row.before / row.now), len(common)


def _cells(found: Results) -> Iterator[tuple[str, float]]:
    for key in dict.fromkeys(cell.key for cell in found.cells if cell.tool == "holdfast"):
        _, shape, phase, size = key
        name = f"{shape}, {size:,} steps, {WORDS[phase]}"
        same = "noop" if phase == "shortcut" else phase
        for tool in dict.fromkeys(cell.tool for cell in found.cells):
            theirs = (tool, "chain" if tool == "burr" else shape, same, size)
            pair = None if tool == "holdfast" else found.pair(key, theirs)
            if pair is not None and pair[1].cpu:
                yield f"{name}: CPU per step × {tool}", _per_step(*pair)
        memory = found.pair(key, ("bare", shape, same, size))
        if memory is not None and memory[1].peak_mb:
            yield f"{name}: memory × bare", memory[0].peak_mb / memory[1].peak_mb
    for cell in found.cells:
        noop = found.cell("holdfast", cell.shape, "noop", cell.size, cell.part)
        if (cell.tool, cell.phase) == ("holdfast", "change") and noop and noop.cpu:
            name = f"{cell.shape}, {cell.size:,} steps, one leaf changed: CPU × nothing changed"
            yield name, cell.cpu / noop.cpu


def _per_step(ours: Cell, theirs: Cell) -> float:
    return ours.cpu / ours.steps / (theirs.cpu / theirs.steps)


def _others(found: Results) -> Iterator[tuple[str, float]]:
    for row in found.resumes:
        if row.tool == "holdfast" and row.noop:
            name = f"{row.size:,} steps, resume until the first step: CPU × nothing changed"
            yield name, row.first / row.noop
    for start in found.starts:
        if start.tool == "holdfast" and start.nothing:
            yield f"`holdfast` {start.what}: CPU × `python -c pass`", start.cpu / start.nothing
    for own in found.own:
        if own.reference:
            yield f"{own.name}: wall × what stands beside it", own.value / own.reference
    for claims in found.claims:
        name = f"{claims.store}, {claims.processes} processes: bare SQL × claims"
        yield name, claims.bare / claims.per_second
    for beside in found.besides:
        yield f"PostgreSQL, {beside.shape}: {beside.peer} ×", beside.peers / beside.per_second
