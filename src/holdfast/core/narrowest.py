"""The narrowest cut through pipes: what limits how much flows through all of them together.

A pipe has a width and leads into others; one that leads nowhere ends outside. The most that can flow is the
width of the narrowest set of pipes through which every way leads (Ford and Fulkerson). It is found as Dinic
does: along shortest ways only, until none of them has room, then along the next longer ones. Nothing is
chosen by chance, so equal pipes in an equal order have the same cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

_LEAST = 1e-12  # less room is none
_START, _END = 0, 1


class Pipe(NamedTuple):
    """How much it lets through, and which pipes it leads into."""

    width: float
    into: Sequence[str] = ()


def narrowest(pipes: Mapping[str, Pipe], begins: Iterable[str]) -> list[str]:
    """The pipes of the narrowest cut behind those where it begins; no way is infinitely wide."""
    net = _Net()
    place = {name: net.add() for name in pipes}
    for name, (width, into) in pipes.items():
        net.join(place[name], place[name] + 1, width)
        for one in into:
            net.join(place[name] + 1, place[one], inf)
        if not into:
            net.join(place[name] + 1, _END, inf)
    for name in begins:
        net.join(_START, place[name], inf)
    while (depth := net.depths())[_END]:
        net.fill(depth)
    return [name for name in pipes if depth[place[name]] and not depth[place[name] + 1]]


class _Net:
    """Both ends of each pipe, and the room that is left between ends; an edge and its way back are a pair."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]
        self._to: list[int] = []
        self._room: list[float] = []

    def add(self) -> int:
        """The place of a pipe: where it begins; it ends at the next place."""
        self._edges += [[], []]
        return len(self._edges) - 2

    def join(self, one: int, other: int, width: float) -> None:
        self._edges[one].append(len(self._to))
        self._edges[other].append(len(self._to) + 1)
        self._to += [other, one]
        self._room += [width, 0.0]

    def depths(self) -> list[int]:
        """How far each place is from the start, counted from one; 0 if no way has room left."""
        depth = [0] * len(self._edges)
        depth[_START] = 1
        queue = [_START]
        for one in queue:
            for edge in self._edges[one]:
                other = self._to[edge]
                if not depth[other] and self._room[edge] > _LEAST:
                    depth[other] = depth[one] + 1
                    queue.append(other)
        return depth

    def fill(self, depth: Sequence[int]) -> None:
        """Let flow what can along the shortest ways; an edge that was of no use is not tried again."""
        left = [[*reversed(edges)] for edges in self._edges]
        way: list[int] = []
        at = _START
        while True:
            if at == _END:
                most = min(self._room[edge] for edge in way)
                for edge in way:
                    self._room[edge] -= most
                    self._room[edge ^ 1] += most
                full = next(n for n, edge in enumerate(way) if self._room[edge] <= _LEAST)
                at = self._to[way[full] ^ 1]
                del way[full:]
            elif left[at]:
                edge = left[at][-1]
                if self._room[edge] > _LEAST and depth[self._to[edge]] == depth[at] + 1:
                    way.append(edge)
                    at = self._to[edge]
                else:
                    left[at].pop()
            elif way:
                at = self._to[way.pop() ^ 1]
                left[at].pop()
            else:
                return
