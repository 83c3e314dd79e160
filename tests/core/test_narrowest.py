"""The narrowest cut is what every way leads through, and nothing narrower does."""

from collections.abc import Collection, Mapping
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.narrowest import Pipe, narrowest

NAMES = "abcdef"


def width(pipes: Mapping[str, Pipe], names: Collection[str]) -> float:
    return sum(pipes[name].width for name in names)


def is_cut(pipes: Mapping[str, Pipe], begins: Collection[str], without: Collection[str]) -> bool:
    """Whether no way leads outside through the others."""
    queue = [name for name in begins if name not in without]
    for one in queue:
        if not pipes[one].into:
            return False
        queue += [name for name in pipes[one].into if name not in without and name not in queue]
    return True


@st.composite
def systems(draw: st.DrawFn) -> dict[str, Pipe]:
    count = draw(st.integers(1, len(NAMES)))
    widths = st.sampled_from([0.0, 0.25, 1.0, 2.0, 5.0])
    return {
        name: Pipe(draw(widths), draw(st.lists(st.sampled_from(NAMES[n + 1 : count]), unique=True)))
        if n + 1 < count
        else Pipe(draw(widths))
        for n, name in enumerate(NAMES[:count])
    }


@given(systems(), st.sets(st.sampled_from(NAMES), min_size=1))
def test_it_is_as_narrow_as_the_narrowest_of_all_cuts(
    pipes: dict[str, Pipe], wanted: set[str]
) -> None:
    begins = sorted(wanted & pipes.keys())
    found = narrowest(pipes, begins)
    every = chain.from_iterable(combinations(pipes, n) for n in range(len(pipes) + 1))
    best = min(width(pipes, one) for one in every if is_cut(pipes, begins, one))
    assert is_cut(pipes, begins, [*found, *(n for n, one in pipes.items() if not one.width)])
    assert width(pipes, found) == best
    assert len(found) == len(set(found))


def test_equal_pipes_have_the_cut_that_is_nearest_to_where_they_begin() -> None:
    row = {"a": Pipe(1.0, "b"), "b": Pipe(1.0, "c"), "c": Pipe(1.0)}
    assert narrowest(row, ["a"]) == ["a"]
    assert narrowest({**row, "a": Pipe(2.0, "b")}, ["a"]) == ["b"]
    assert narrowest(row, []) == []


def test_what_flows_one_way_may_have_to_be_led_another() -> None:
    pipes = {
        "a": Pipe(1.0, ["x", "y"]),
        "b": Pipe(1.0, ["x"]),
        "x": Pipe(1.0),
        "y": Pipe(1.0),
    }
    assert width(pipes, narrowest(pipes, ["a", "b"])) == 2.0
