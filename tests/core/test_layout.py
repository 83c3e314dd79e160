"""Pictures are bounded, lose no step, and point forward."""

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.layout import Box, Picture, layout, picture
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


def boxes(*ranks: int) -> tuple[Box, ...]:
    return tuple(Box(f"b{n}", (StepId(f"b{n}"),), rank) for n, rank in enumerate(ranks))


def test_boxes_move_to_the_mean_of_their_neighbours() -> None:
    crossing = Picture(boxes(0, 0, 1, 1), ((0, 3), (1, 2)))
    placed = layout(crossing)
    assert placed.at == ((0, 0), (0, 1), (1, 1), (1, 0)), "no arrow crosses another"
    assert placed.sizes == (2, 2)
    assert placed.paths == ((), ())
    apart = Picture(boxes(0, 0, 0, 5, 5, 5), ((0, 5), (1, 4), (2, 3)))
    assert layout(apart).at == ((0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0))


def test_below_moves_what_is_above_too() -> None:
    fan = Picture(boxes(0, 0, 0, 1, 1), ((2, 3), (0, 4), (1, 4)))
    placed = layout(fan)
    ends = [(placed.at[one][1], placed.at[other][1]) for one, other in fan.arrows]
    assert sorted(ends) == [(0, 0), (1, 0), (2, 1)], "no arrow crosses another"


def test_a_long_arrow_has_a_point_in_every_rank_between() -> None:
    long = Picture(boxes(0, 1, 2, 3), ((0, 1), (1, 2), (2, 3), (0, 3)))
    placed = layout(long)
    assert placed.sizes == (1, 2, 2, 1)
    assert [rank for rank, _ in placed.paths[3]] == [1, 2]
    assert placed.paths[:3] == ((), (), ())


def test_too_many_points_are_drawn_straight() -> None:
    ranks = list(range(102))
    most = ((0, 101),) * 40  # each passes a hundred ranks
    fitting = Picture(boxes(*ranks), (*most, (0, 1)))
    assert {len(path) for path in layout(fitting).paths} == {100, 0}
    many = Picture(boxes(*ranks), (*most, (0, 2)))
    assert {len(path) for path in layout(many).paths} == {0}


def test_bands_of_waves_are_named_by_the_first_and_the_last() -> None:
    graph = graph_from([set(), {0}, {1}, {2}, {3}, set()])
    drawn = picture(graph, graph.order, most_boxes=3, most_arrows=9)
    assert [(box.name, box.rank) for box in drawn.boxes] == [
        ("waves 1 to 2: 3 steps", 0),
        ("waves 3 to 4: 2 steps", 1),
        ("s0004", 2),
    ]
    assert drawn.arrows == ((0, 1), (1, 2))
    one = picture(graph, graph.order, most_boxes=0, most_arrows=0)
    assert [box.name for box in one.boxes] == ["waves 1 to 5: 6 steps"]
    wide = graph_from([set(), set(), {0}, {1}, {0, 1}])
    drawn = picture(wide, wide.order, most_boxes=2, most_arrows=9)
    assert [box.name for box in drawn.boxes] == ["wave 1: 2 steps", "wave 2: 3 steps"]


def test_short_arrows_far_down_leave_long_ones_their_bends() -> None:
    chain = [(number, number + 1) for number in range(99)]
    boxes = tuple(Box(str(number), (StepId(str(number)),), number) for number in range(100))
    placed = layout(Picture(boxes, (*chain, (0, 3))))
    assert [level for level, _ in placed.paths[-1]] == [1, 2]


def test_a_box_holds_steps_unless_it_says_what_else() -> None:
    assert Box("a", (StepId("a"),), 0).kind == "steps"
