"""The graphs that are measured, and the trivial step: a short digest of its id and its inputs."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

SHAPES = ("wide", "chain", "layered")
LAYERS = 10
Graph = list[tuple[int, tuple[int, ...]]]


def make(shape: str, size: int) -> Graph:
    """Steps in topological order with the steps they need; the last one needs all loose ends."""
    if shape == "wide":
        middle = range(1, size + 1)
        return [(0, ()), *((number, (0,)) for number in middle), (size + 1, tuple(middle))]
    if shape == "chain":
        return [(0, ()), *((number, (number - 1,)) for number in range(1, size))]
    return _layered(size)


def _layered(size: int) -> Graph:
    """Ten layers; each step needs three of the layer above, drawn with a fixed seed."""
    chance, width = random.Random(1), size // LAYERS
    graph: Graph = []
    used: set[int] = set()
    for number in range(width * LAYERS):
        above = (number // width - 1) * width
        needs = tuple(sorted(chance.sample(range(above, above + width), 3))) if above >= 0 else ()
        used.update(needs)
        graph.append((number, needs))
    graph.append((len(graph), tuple(n for n in range(len(graph)) if n not in used)))
    return graph


def leaf(shape: str, size: int) -> int:
    """The step that is changed: only the last step needs it, so two steps are affected."""
    return {"wide": 1, "chain": size - 2, "layered": (LAYERS - 1) * (size // LAYERS)}[shape]


def layers(graph: Graph) -> list[Graph]:
    """The steps by their distance from the top."""
    depth: dict[int, int] = {}
    found: dict[int, Graph] = {}
    for number, needs in graph:
        depth[number] = 1 + max((depth[need] for need in needs), default=-1)
        found.setdefault(depth[number], []).append((number, needs))
    return [found[level] for level in sorted(found)]


def body(number: int, needs: Sequence[str], salt: str = "") -> str:
    """What a step does."""
    return hashlib.sha256(f"{number}{salt}|{'|'.join(needs)}".encode()).hexdigest()[:16]


def expected(shape: str, size: int, salt: str = "") -> str:
    """The right value of the last step, after the leaf was changed to `salt`."""
    values: dict[int, str] = {}
    changed, last = leaf(shape, size), 0
    for last, needs in make(shape, size):
        inputs = [values[need] for need in needs]
        values[last] = body(last, inputs, salt if last == changed else "")
    return values[last]
