"""Large plans become few boxes: always the same ones, whatever happens to the steps, and none is lost."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.collapse import (
    MOST_ARROWS,
    MOST_BOXES,
    Level,
    around,
    depth_of,
    families,
    opened,
    scene,
    whole,
)
from holdfast.core.layout import Picture, layout
from holdfast.core.waves import Graph, graph_of
from holdfast.model.plan import GATHER, Need, Plan, Step, StepId

Needs = dict[str, list[str]]


def graph_from(needs: Needs, within: dict[str, str] | None = None) -> Graph:
    steps = {}
    for name, above in needs.items():
        step_id = StepId(name)
        wanted = tuple(Need(StepId(one)) for one in above)
        inner = (within or {}).get(name, "")
        gathers = name in (within or {}).values()
        uses = GATHER if gathers else "shell"
        steps[step_id] = Step(step_id, uses=uses, run=("true",), needs=wanted, within=inner)
    return graph_of(Plan("p", steps))


def fan(count: int) -> Needs:
    parts = [f"part{n:05}" for n in range(count)]
    return {"root": [], **{part: ["root"] for part in parts}, "end": parts}


def items(count: int) -> Needs:
    parts = [f"each[{n:05}]" for n in range(count)]
    return {"root": [], **{part: ["root"] for part in parts}, "each": parts, "end": ["each"]}


def chains(count: int, length: int) -> Needs:
    return {
        f"c{n:04}-{m}": [f"c{n:04}-{m - 1}"] if m else []
        for n in range(count)
        for m in range(length)
    }


def tangled(count: int) -> Needs:
    """Steps of which each needs three of the steps before it; no two have the same neighbours."""
    draw = random.Random(7)
    return {
        f"s{n:05}": sorted({f"s{draw.randrange(max(0, n - 300), n):05}" for _ in range(3)})
        if n
        else []
        for n in range(count)
    }


def names(drawn: Picture) -> list[str]:
    return [box.name for box in drawn.boxes]


def picture_of(graph: Graph) -> Picture:
    return opened(graph, families(graph.steps), "p", None, 0).picture


SHAPES: dict[str, Needs] = {
    "a fan": fan(1000),
    "items": items(1000),
    "a chain": chains(1, 1000),
    "chains": chains(400, 5),
    "no needs": {f"s{n:04}": [] for n in range(1000)},
    "a tangle": tangled(1000),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_plan_is_few_boxes_and_every_step_can_be_reached(shape: str) -> None:
    graph = graph_from(SHAPES[shape])
    kin = families(graph.steps)
    for step_id in graph.order[::249]:
        found = opened(graph, kin, "p", step_id, 99)
        assert (step_id,) in [box.steps for box in found.picture.boxes]
        assert len(found.levels) <= 5
        for depth in range(len(found.levels)):
            drawn = opened(graph, kin, "p", step_id, depth).picture
            assert len(drawn.boxes) <= MOST_BOXES
            assert len(drawn.arrows) <= MOST_ARROWS


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_in_which_a_plan_is_written_moves_nothing(shape: str) -> None:
    needs = SHAPES[shape]
    one = picture_of(graph_from(needs))
    two = picture_of(graph_from({name: needs[name][::-1] for name in reversed(needs)}))
    assert one == two
    assert layout(one) == layout(two)


small = st.integers(2, 60).flatmap(
    lambda n: st.tuples(
        *[st.sets(st.integers(0, max(0, i - 1)), max_size=4 if i else 0) for i in range(n)]
    )
)


@settings(max_examples=100, deadline=None)
@given(small, st.integers(4, 20), st.integers(6, 40))
def test_a_level_keeps_its_limits_and_all_its_steps(
    needs: tuple[set[int], ...], boxes: int, arrows: int
) -> None:
    graph = graph_from({f"s{n:03}": [f"s{a:03}" for a in above] for n, above in enumerate(needs)})
    kin = families(graph.steps)
    level = whole(graph, "p")
    drawn = scene(graph, kin, level, most_boxes=boxes, most_arrows=arrows)
    assert 2 <= len(drawn.boxes) <= boxes
    assert len(drawn.arrows) <= arrows
    assert sorted(step for box in drawn.boxes for step in box.steps) == sorted(graph.order)
    assert all(len(box.steps) < len(level.steps) for box in drawn.boxes)
    placed = layout(drawn)
    assert len(set(placed.at)) == len(drawn.boxes)


@settings(max_examples=100, deadline=None)
@given(small)
def test_arrows_point_to_the_right_where_no_boxes_are_joined(needs: tuple[set[int], ...]) -> None:
    graph = graph_from({f"s{n:03}": [f"s{a:03}" for a in above] for n, above in enumerate(needs)})
    drawn = picture_of(graph)
    placed = layout(drawn)
    assert all(placed.at[one][0] < placed.at[other][0] for one, other in drawn.arrows)


def test_items_are_one_box_with_the_step_that_gathers_them() -> None:
    graph = graph_from(items(24))
    drawn = picture_of(graph)
    assert names(drawn) == ["root", "each ×24", "end"]
    assert drawn.boxes[1].kind == "items"
    assert drawn.arrows == ((0, 1), (1, 2))


def test_opening_items_shows_each_of_them() -> None:
    graph = graph_from(items(3))
    found = opened(graph, families(graph.steps), "p", StepId("each[00001]"), 1)
    assert names(found.picture) == ["each[00000]", "each[00001]", "each[00002]", "each"]
    assert [level.name for level in found.levels] == ["p", "each ×3"]


def test_a_sub_plan_is_one_box_and_so_is_a_sub_plan_in_it() -> None:
    inner = {"out.in.a": [], "out.in.b": ["out.in.a"], "out.in": ["out.in.b"], "out.c": ["out.in"]}
    needs = {**inner, "out": ["out.c"], "end": ["out"]}
    within = {"out.in.a": "out.in", "out.in.b": "out.in", "out.c": "out"}
    graph = graph_from(needs, within)
    kin = families(graph.steps)
    assert kin[StepId("out.in")] == ("out", "out.in")
    assert names(opened(graph, kin, "p", None, 0).picture) == ["out: 5 steps", "end"]
    once = opened(graph, kin, "p", StepId("out.in.a"), 1).picture
    assert names(once) == ["out.in: 3 steps", "out.c", "out"]
    twice = opened(graph, kin, "p", StepId("out.in.a"), 2).picture
    assert names(twice) == ["out.in.a", "out.in.b", "out.in"]


def test_a_family_with_a_dot_in_a_step_beside_it_stays_a_family_of_its_own() -> None:
    graph = graph_from({"a": [], "a.b": ["a"]})
    assert names(picture_of(graph)) == ["a", "a.b"]


def test_the_surroundings_of_a_step_are_so_many_levels_up_and_down() -> None:
    graph = graph_from(chains(1, 9))
    assert around(graph, StepId("c0000-4"), 2, 1) == ("c0000-2", "c0000-3", "c0000-4", "c0000-5")


def test_the_step_in_the_middle_stays_a_box_of_its_own() -> None:
    graph = graph_from(items(1000))
    kin = families(graph.steps)
    middle = StepId("each[00500]")
    level = Level("around", around(graph, StepId("each"), 1, 1))
    drawn = scene(graph, kin, level, alone=(middle,))
    assert (middle,) in [box.steps for box in drawn.boxes]
    assert len(drawn.boxes) <= MOST_BOXES


def test_how_deep_a_step_lies() -> None:
    graph = graph_from(items(24))
    kin = families(graph.steps)
    assert depth_of(graph, kin, StepId("root")) == 0
    assert depth_of(graph, kin, StepId("each[00003]")) == 1


def test_a_hundred_thousand_steps_are_drawn() -> None:
    graph = graph_from(items(100_000))
    drawn = picture_of(graph)
    assert names(drawn) == ["root", "each ×100,000", "end"]


def test_a_box_that_is_nearly_all_of_what_was_opened_is_opened_along_with_it() -> None:
    parts = [f"out.in.{n:02}" for n in range(20)]
    needs: Needs = {**{part: [] for part in parts}, "out.in": parts, "out": ["out.in"]}
    needs |= {f"z{n}": [] for n in range(10)}
    within = {**dict.fromkeys(parts, "out.in"), "out.in": "out"}
    graph = graph_from(needs, within)
    found = opened(graph, families(graph.steps), "p", StepId(parts[3]), 1)
    assert [level.name for level in found.levels] == ["p", "out: 22 steps"]
    assert names(found.picture) == [*parts, "out.in"]
