"""The graphs that are measured, and the trivial step: a short digest of its id and its inputs."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

SHAPES = ("wide", "chain", "layered")
LAYERS = 10


def make(shape: str, size: int) -> list[tuple[int, tuple[int, ...]]]:
    """Steps in topological order with the steps they need; the last one needs all loose ends."""
    if shape == "wide":
        middle = range(1, size + 1)
        return [(0, ()), *((number, (0,)) for number in middle), (size + 1, tuple(middle))]
    if shape == "chain":
        return [(0, ()), *((number, (number - 1,)) for number in range(1, size))]
    return _layered(size)


def _layered(size: int) -> list[tuple[int, tuple[int, ...]]]:
    """Ten layers; each step needs three of the layer above, drawn with a fixed seed."""
    chance, width = random.Random(1), size // LAYERS
    graph: list[tuple[int, tuple[int, ...]]] = []
    used: set[int] = set()
    for number in range(width * LAYERS):
        above = (number // width - 1) * width
        needs = tuple(sorted(chance.sample(range(above, above + width), 3))) if above >= 0 else ()
        used.update(needs)
        graph.append((number, needs))
    graph.append((len(graph), tuple(n for n in range(len(graph)) if n not in used)))
    return graph


def body(number: int, needs: Sequence[str]) -> str:
    """What a step does."""
    return hashlib.sha256(f"{number}|{'|'.join(needs)}".encode()).hexdigest()[:16]


def expected(shape: str, size: int) -> str:
    """The right value of the last step."""
    values: dict[int, str] = {}
    last = 0
    for last, needs in make(shape, size):
        values[last] = body(last, [values[need] for need in needs])
    return values[last]
