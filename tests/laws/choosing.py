"""One way to make decisions: by Hypothesis, which shrinks them, or by the seed of a simulation."""

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choose(Protocol):
    """Takes one of several; the simplest stands first."""

    def __call__(self, among: Sequence[T], /) -> T: ...


def by_hypothesis(draw: st.DrawFn) -> Choose:
    def choose(among: Sequence[T], /) -> T:
        return draw(st.sampled_from(among))

    return choose


def by_seed(source: random.Random) -> Choose:
    def choose(among: Sequence[T], /) -> T:
        return among[source.randrange(len(among))]

    return choose


def several(choose: Choose, among: Sequence[T], most: int) -> list[T]:
    """Some of them, none twice, in any order."""
    left = list(among)
    many = choose(range(min(most, len(left)) + 1))
    return [left.pop(choose(range(len(left)))) for _ in range(many)]
