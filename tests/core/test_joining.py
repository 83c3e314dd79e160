"""How the boxes of a level are joined, which name each gets, and where it stands."""

from collections.abc import Collection

import pytest

from holdfast.core.collapse import Level, around, depth_of, families, inside, opened, scene, whole
from holdfast.core.layout import Box, Picture
from holdfast.core.waves import Graph
from holdfast.model.plan import StepId
from tests.core.test_collapse import Needs, chains, fan, graph_from, items, names, picture_of

MANY = 1000


def drawn(
    graph: Graph, boxes: int = MANY, arrows: int = MANY, alone: Collection[str] = ()
) -> Picture:
    kept = {StepId(name) for name in alone}
    kin = families(graph.steps)
    level = whole(graph, "p")
    return scene(graph, kin, level, alone=kept, most_boxes=boxes, most_arrows=arrows)


def loose(count: int) -> Graph:
    return graph_from({f"s{n:04}": [] for n in range(count)})


def ladder(layers: int) -> Graph:
    """Two steps in each wave, no two between the same neighbours."""
    needs: Needs = {"a0": [], "b0": []}
    for n in range(1, layers):
        needs |= {f"a{n}": [f"a{n - 1}"], f"b{n}": [f"a{n - 1}", f"b{n - 1}"]}
    return graph_from(needs)


@pytest.mark.parametrize(
    ("count", "columns"),
    [(1, [1]), (12, [12]), (13, [7, 6]), (30, [10] * 3), (100, [17] * 5 + [15])],
)
def test_steps_without_needs_stand_in_columns_of_twelve_or_more(
    count: int, columns: list[int]
) -> None:
    ranks = [box.rank for box in drawn(loose(count)).boxes]
    assert ranks == [number for number, size in enumerate(columns) for _ in range(size)]


def test_what_fits_is_not_joined() -> None:
    graph = graph_from(fan(3))
    assert len(drawn(graph, boxes=5, arrows=6).boxes) == 5
    assert len(drawn(graph, boxes=4, arrows=6).boxes) < 5
    assert len(drawn(graph, boxes=5, arrows=5).boxes) < 5
    assert [box.rank for box in drawn(graph).boxes] == [0, 1, 1, 1, 2]


def test_each_of_several_chains_is_a_box_named_by_its_ends() -> None:
    found = drawn(graph_from(chains(2, 3)), boxes=3)
    assert found.arrows == ()
    assert [(box.name, box.kind, len(box.steps)) for box in found.boxes] == [
        ("c0000-0 → c0000-2", "chain", 3),
        ("c0001-0 → c0001-2", "chain", 3),
    ]


def test_a_chain_ends_where_paths_part_or_meet() -> None:
    fork = graph_from({"a": [], "b": ["a"], "c": ["b"], "d": ["b"], "e": ["c", "d"], "f": ["e"]})
    found = drawn(fork, boxes=4)
    assert names(found) == ["a → b", "c", "d", "e → f"]
    assert found.arrows == ((0, 1), (0, 2), (1, 3), (2, 3))
    assert [box.kind for box in found.boxes] == ["chain", "steps", "steps", "chain"]
    assert [box.rank for box in found.boxes] == [0, 1, 1, 2]
    assert names(drawn(fork, boxes=3)) == ["a → b", "c and 1 more", "e → f"]


def test_steps_between_the_same_neighbours_are_one_box() -> None:
    found = drawn(graph_from(fan(5)), boxes=4)
    assert names(found) == ["root", "part00000 and 4 more", "end"]
    assert found.arrows == ((0, 1), (1, 2))


def test_a_step_that_shall_stand_alone_is_joined_with_nothing() -> None:
    found = drawn(graph_from(fan(5)), boxes=4, alone=["part00002"])
    assert names(found) == ["root", "part00000 and 3 more", "part00002", "end"]
    found = drawn(graph_from(chains(2, 5)), boxes=5, alone=["c0000-2"])
    assert sorted(names(found)) == [
        "c0000-0 → c0000-1",
        "c0000-2",
        "c0000-3 → c0000-4",
        "c0001-0 → c0001-4",
    ]
    found = drawn(graph_from(items(3)), alone=["each[00001]"])
    assert names(found) == ["root", "each ×2", "each[00001]", "end"]
    found = drawn(graph_from(chains(1, 7)), boxes=3, alone=["c0000-3"])
    assert names(found) == ["c0000-0 → c0000-2", "c0000-3", "c0000-4 → c0000-6"]


def test_a_lone_chain_becomes_bands_of_waves() -> None:
    found = drawn(graph_from(chains(1, 5)), boxes=3)
    assert names(found) == ["waves 1 to 2: 2 steps", "waves 3 to 4: 2 steps", "c0000-4"]
    assert [box.rank for box in found.boxes] == [0, 1, 2]


def test_one_wave_is_named_alone() -> None:
    found = drawn(ladder(3), boxes=3)
    assert names(found) == ["wave 1: 2 steps", "wave 2: 2 steps", "wave 3: 2 steps"]
    assert found.arrows == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    ("layers", "boxes", "arrows", "sizes"),
    [
        (8, 8, 99, [2] * 8),
        (8, 7, 99, [4] * 4),
        (8, 4, 3, [4] * 4),
        (8, 4, 2, [8, 8]),
        (8, 4, 0, [8, 8]),
        (9, 5, 1, [16, 2]),
        (9, 5, 2, [8, 8, 2]),
        (9, 5, 4, [4, 4, 4, 4, 2]),
    ],
)
def test_bands_are_as_wide_as_it_takes_and_never_all(
    layers: int, boxes: int, arrows: int, sizes: list[int]
) -> None:
    found = drawn(ladder(layers), boxes, arrows)
    assert [len(box.steps) for box in found.boxes] == sizes


def test_a_band_leaves_out_who_stands_alone() -> None:
    found = drawn(ladder(8), boxes=4, alone=["a0"])
    assert names(found)[0] == "a0"
    assert found.boxes[0].steps == ("a0",)
    assert [len(box.steps) for box in found.boxes] == [1, 5, 6, 4]


def test_steps_without_needs_become_runs_in_the_order_of_the_plan() -> None:
    found = drawn(loose(10), boxes=3)
    assert names(found) == [
        "s0000 … s0003: 4 steps",
        "s0004 … s0007: 4 steps",
        "s0008 … s0009: 2 steps",
    ]
    assert len(drawn(loose(10), boxes=1).boxes) == 2, "never one box for all"
    alone = drawn(loose(10), boxes=3, alone=["s0001", "s0002", "s0003"])
    assert names(alone) == ["s0000 and 6 more", "s0001", "s0002", "s0003"]


def test_boxes_that_need_each_other_stand_in_the_order_of_their_first_waves() -> None:
    needs = {
        "root": [],
        "each[0]": ["root"],
        "mid": ["each[0]"],
        "each[1]": ["mid"],
        "each": ["each[0]", "each[1]"],
        "end": ["each"],
    }
    found = picture_of(graph_from(needs))
    assert [(box.name, box.rank) for box in found.boxes] == [
        ("root", 0),
        ("each ×2", 1),
        ("mid", 2),
        ("end", 2),
    ]
    assert found.arrows == ((0, 1), (1, 2), (1, 3), (2, 1))


def test_a_box_stands_behind_all_that_it_needs_though_a_part_of_it_could_begin_at_once() -> None:
    needs = {
        "r": [],
        "y": ["r"],
        "each[0]": [],
        "each[1]": ["y"],
        "each": ["each[0]", "each[1]"],
    }
    found = picture_of(graph_from(needs))
    assert {box.name: box.rank for box in found.boxes} == {"r": 0, "y": 1, "each ×2": 2}


def test_a_rank_is_one_more_than_the_highest_above() -> None:
    found = picture_of(graph_from({"a": [], "b": ["a"], "c": ["a", "b"], "d": ["a"], "x": []}))
    assert {box.name: box.rank for box in found.boxes} == {"a": 0, "b": 1, "c": 2, "d": 1, "x": 0}


# --- levels --------------------------------------------------------------------------------------------


def nested() -> Graph:
    inner = [f"out.in.s{n:02}" for n in range(18)]
    needs: Needs = {
        **{one: [] for one in inner},
        "out.in": inner,
        "out": ["out.in"],
        "end": ["out"],
    }
    return graph_from(needs, {**dict.fromkeys(inner, "out.in"), "out.in": "out"})


def test_a_box_with_nearly_all_of_a_level_is_opened_along_with_it() -> None:
    graph = nested()
    kin = families(graph.steps)
    toward = StepId("out.in.s03")
    assert kin[toward] == ("out", "out.in")
    found = opened(graph, kin, "p", toward, 1)
    assert [level.name for level in found.levels] == ["p", "out: 20 steps"]
    assert len(found.picture.boxes) == 19
    assert found.levels[-1].depth == 2
    assert depth_of(graph, kin, toward) == 1
    closed = opened(graph, kin, "p", toward, 0)
    assert names(closed.picture) == ["out: 20 steps", "end"]
    assert closed.levels == (whole(graph, "p"),)
    assert whole(graph, "p").depth == 0


def test_opening_stops_at_a_step_of_its_own_or_one_that_is_not_there() -> None:
    graph = graph_from(items(3))
    kin = families(graph.steps)
    for name in ("root", "nowhere"):
        found = opened(graph, kin, "p", StepId(name), 5)
        assert len(found.levels) == 1
        assert len(found.picture.boxes) == 3
    assert len(opened(graph, kin, "p", None, 5).levels) == 1


@pytest.mark.parametrize(
    ("kind", "depth"), [("items", 3), ("sub-plan", 3), ("chain", 2), ("steps", 2)]
)
def test_only_a_family_leads_deeper(kind: str, depth: int) -> None:
    box = Box("b", (StepId("x"),), 0, kind)
    assert inside(Level("p", (), 2), box) == Level("b", (StepId("x"),), depth)


def test_families_are_known_by_items_sub_plans_and_who_gathers() -> None:
    graph = graph_from(
        {"a.b[0]": [], "a.b": ["a.b[0]"], "a.c": [], "a": ["a.b", "a.c"], "x.y": [], "x": []},
        {"a.c": "a", "a.b": "a"},
    )
    assert families(graph.steps) == {
        "a.b[0]": ("a", "a.b"),
        "a.b": ("a", "a.b"),
        "a.c": ("a",),
        "a": ("a",),
        "x.y": (),
        "x": (),
    }


def test_the_surroundings_are_told_apart_by_direction_and_distance() -> None:
    graph = graph_from({"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c"], "e": ["d"], "x": ["a"]})

    def near(up: int, down: int) -> str:
        return "".join(around(graph, StepId("c"), up, down))

    assert near(0, 0) == "c"
    assert near(1, 0) == "abc"
    assert near(0, 1) == "cd"
    assert near(2, 2) == "abcde", "x is beside it, not above"
