"""A plan as a picture: which boxes, which arrows, where each box stands. Bounded, and the same each time.

A box is one step, or several that are drawn as one because there are too many: first steps of one
wave with the same needs and the same dependents, then whole waves, then neighbouring waves. Boxes
stand in ranks, one rank per wave; inside a rank each box moves to the mean of its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.core.waves import Graph
from holdfast.model.plan import StepId

_SWEEPS = 4
_MOST_BENDS = 4000  # points that long arrows pass; above that they are drawn straight


@dataclass(frozen=True, slots=True)
class Box:
    """One or several steps; `rank` is the wave they are in, the first if there are several.

    `kind` says what several steps have in common: the items of one step, a sub-plan, a chain, or nothing.
    """

    name: str
    steps: tuple[StepId, ...]
    rank: int
    kind: str = "steps"


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes in order, and arrows between their places in that order."""

    boxes: tuple[Box, ...]
    arrows: tuple[tuple[int, int], ...]


def picture(graph: Graph, steps: Sequence[StepId], *, most_boxes: int, most_arrows: int) -> Picture:
    """Draw the given steps (in the order of the graph) with no more boxes and arrows than allowed."""
    drawn = _joined(graph, [Box(s, (s,), graph.wave[s]) for s in steps])
    if _fits(drawn, most_boxes, most_arrows):
        return drawn
    drawn = _joined(graph, _alike(graph, steps))
    bands = 1
    while not _fits(drawn, most_boxes, most_arrows):
        drawn = _joined(graph, _bands(graph, steps, bands))
        bands *= 2
    return drawn


def _fits(drawn: Picture, most_boxes: int, most_arrows: int) -> bool:
    return len(drawn.boxes) <= max(1, most_boxes) and len(drawn.arrows) <= most_arrows


def _alike(graph: Graph, steps: Sequence[StepId]) -> list[Box]:
    """Steps of one wave between the same neighbours become one box."""
    groups: dict[object, list[StepId]] = {}
    for step in steps:
        needs = frozenset(need.step for need in graph.steps[step].needs)
        key = (graph.wave[step], needs, graph.dependents.get(step, ()))
        groups.setdefault(key, []).append(step)
    return [_group(graph, members) for members in groups.values()]


def _group(graph: Graph, members: list[StepId]) -> Box:
    name = members[0] if len(members) == 1 else f"{members[0]} and {len(members) - 1} more"
    return Box(name, tuple(members), graph.wave[members[0]])


def _bands(graph: Graph, steps: Sequence[StepId], waves: int) -> list[Box]:
    """So many neighbouring waves become one box."""
    bands: dict[int, list[StepId]] = {}
    for step in steps:
        bands.setdefault(graph.wave[step] // waves, []).append(step)
    boxes = []
    for band, members in bands.items():
        first, last = band * waves + 1, max(graph.wave[s] for s in members) + 1
        span = f"wave {first}" if first == last else f"waves {first} to {last}"
        name = members[0] if len(members) == 1 else f"{span}: {len(members)} steps"
        boxes.append(Box(name, tuple(members), band))
    return boxes


def _joined(graph: Graph, boxes: Sequence[Box]) -> Picture:
    place = {step: index for index, box in enumerate(boxes) for step in box.steps}
    arrows = {
        (place[need.step], index): None
        for index, box in enumerate(boxes)
        for step in box.steps
        for need in graph.steps[step].needs
        if need.step in place and place[need.step] != index
    }
    return Picture(tuple(boxes), tuple(sorted(arrows)))


@dataclass(frozen=True, slots=True)
class Layout:
    """`at` gives each box (rank, position in its rank); `path` the points an arrow passes between."""

    at: tuple[tuple[int, int], ...]
    paths: tuple[tuple[tuple[int, int], ...], ...]
    sizes: tuple[int, ...]  # of each rank, points that arrows pass included


def layout(drawn: Picture) -> Layout:
    """Where each box stands, and where a long arrow passes so that it crosses no box."""
    compact = {rank: n for n, rank in enumerate(sorted({box.rank for box in drawn.boxes}))}
    rank = [compact[box.rank] for box in drawn.boxes]
    chains = _chains(drawn, rank)
    ranks: list[list[int]] = [[] for _ in compact]
    for point, level in enumerate(rank):
        ranks[level].append(point)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for chain in chains:
        for one, other in pairwise(chain):
            below.setdefault(one, []).append(other)
            above.setdefault(other, []).append(one)
    position = _ordered(ranks, above, below)
    return Layout(
        at=tuple((rank[i], position[i]) for i in range(len(drawn.boxes))),
        paths=tuple(tuple((rank[p], position[p]) for p in chain[1:-1]) for chain in chains),
        sizes=tuple(len(level) for level in ranks),
    )


def _chains(drawn: Picture, rank: list[int]) -> list[list[int]]:
    """Each arrow as points in neighbouring ranks; `rank` grows by the points in between."""
    spans = sum(max(0, rank[b] - rank[a] - 1) for a, b in drawn.arrows)
    bent = spans <= _MOST_BENDS
    chains = []
    for one, other in drawn.arrows:
        chain = [one]
        for level in range(rank[one] + 1, rank[other]) if bent else ():
            chain.append(len(rank))
            rank.append(level)
        chains.append([*chain, other])
    return chains


def _ordered(
    ranks: list[list[int]], above: Mapping[int, list[int]], below: Mapping[int, list[int]]
) -> dict[int, int]:
    position = {point: place for level in ranks for place, point in enumerate(level)}
    for sweep in range(_SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        for level in ranks if sweep % 2 == 0 else reversed(ranks):
            level.sort(key=lambda point: (_mean(neighbours.get(point, ()), position, point), point))
            position.update({point: place for place, point in enumerate(level)})
    return position


def _mean(points: Iterable[int], position: Mapping[int, int], own: int) -> float:
    places = [position[point] for point in points]
    return sum(places) / len(places) if places else float(position[own])
