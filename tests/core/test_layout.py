"""Pictures are bounded, lose no step, and point forward."""

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.layout import layout, picture
from holdfast.core.waves import Graph, graph_of
from holdfast.model.plan import Need, Plan, Step, StepId


def graph_from(needs: list[set[int]]) -> Graph:
    steps = {}
    for number, above in enumerate(needs):
        step_id = StepId(f"s{number:04}")
        wanted = tuple(Need(StepId(f"s{a:04}")) for a in sorted(above))
        steps[step_id] = Step(step_id, run=("true",), needs=wanted)
    return graph_of(Plan("p", steps))


graphs = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        *[st.sets(st.integers(0, max(0, i - 1)), max_size=4 if i else 0) for i in range(n)]
    )
)


@settings(max_examples=60, deadline=None)
@given(graphs, st.integers(1, 20), st.integers(0, 30))
def test_a_picture_keeps_its_limits_and_every_step(
    needs: tuple[set[int], ...], boxes: int, arrows: int
) -> None:
    graph = graph_from(list(needs))
    drawn = picture(graph, graph.order, most_boxes=boxes, most_arrows=arrows)
    assert len(drawn.boxes) <= boxes
    assert len(drawn.arrows) <= arrows
    assert sorted(s for box in drawn.boxes for s in box.steps) == sorted(graph.order)
    placed = layout(drawn)
    assert len(set(placed.at)) == len(drawn.boxes)
    for one, other in drawn.arrows:
        assert placed.at[one][0] < placed.at[other][0]


def test_a_plan_that_fits_is_drawn_step_by_step() -> None:
    graph = graph_from([set(), {0}, {0}, {0, 1, 2}])
    drawn = picture(graph, graph.order, most_boxes=4, most_arrows=5)
    assert [box.name for box in drawn.boxes] == ["s0000", "s0001", "s0002", "s0003"]
    assert drawn.arrows == ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3))


def test_a_long_arrow_passes_beside_the_boxes_between() -> None:
    graph = graph_from([set(), {0}, {0, 1}])
    drawn = picture(graph, graph.order, most_boxes=9, most_arrows=9)
    placed = layout(drawn)
    passing = placed.paths[drawn.arrows.index((0, 2))]
    assert [rank for rank, _ in passing] == [1]
    assert passing[0] not in placed.at


def test_a_fan_out_is_one_box_before_whole_waves_are() -> None:
    graph = graph_from([set(), *[{0}] * 50, set(range(1, 51))])
    drawn = picture(graph, graph.order, most_boxes=10, most_arrows=100)
    assert [box.name for box in drawn.boxes] == ["s0000", "s0001 and 49 more", "s0051"]


def test_a_long_chain_is_drawn_in_bands_of_waves() -> None:
    graph = graph_from([set(), *[{n} for n in range(99)]])
    drawn = picture(graph, graph.order, most_boxes=30, most_arrows=99)
    assert len(drawn.boxes) == 25
    assert drawn.boxes[1].name == "waves 5 to 8: 4 steps"
