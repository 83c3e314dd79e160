"""Artifacts that a model found: what is wrong with them, and which tier makes each."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.place import PLAN_NAMES
from holdfast.config.settings import PROJECT_FILE
from holdfast.planner.found import (
    COMMANDS,
    Bounds,
    Found,
    circle_in,
    flaws,
    levels,
    read_found,
    tiers,
)

NAMES = [f"a{number}" for number in range(8)]


def found(name: str, *requires: str, tier: str = "") -> Found:
    return Found(name, "what it is", "what it must fulfil", requires, tier=tier)


@st.composite
def graphs(draw: st.DrawFn) -> list[Found]:
    """Artifacts that require any of each other, in circles or not."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8, unique=True))
    return [
        found(name, *draw(st.lists(st.sampled_from(names), max_size=3, unique=True)))
        for name in names
    ]


@given(graphs())
def test_what_has_no_flaw_can_be_made_in_an_order(graph: list[Found]) -> None:
    """Nothing is refused but circles here; and where none is told, everything has its place."""
    level = levels(graph)
    told = flaws(graph, Bounds())
    assert bool(told) == (len(level) < len(graph))
    for one in graph:
        if one.id in level:
            assert all(level[need] < level[one.id] for need in one.requires)
    circle = circle_in(graph)
    by_id = {one.id: one for one in graph}
    for name, following in zip(circle, circle[1:] + circle[:1], strict=True):
        assert following in by_id[name].requires


@given(graphs())
def test_an_answer_is_read_as_it_was_meant(graph: list[Found]) -> None:
    answer = [
        {
            "id": one.id,
            "description": one.description,
            "contract": one.contract,
            "requires": list(one.requires),
        }
        for one in graph
    ]
    assert read_found(json.loads(json.dumps({"artifacts": answer}))) == graph


@pytest.mark.parametrize(
    "graph, told",
    [
        ([], "the plan is empty"),
        ([found("a"), found("a")], "'a' is there more than once"),
        ([found("a", "a")], "'a' requires itself"),
        ([found("a", "z")], "'a' requires 'z', which is not among the artifacts"),
        ([found("a b")], "'a b' cannot be an id"),
        ([Found("a", "", "c")], "'a' has no description"),
        ([Found("a", "d", "")], "'a' has no contract"),
        ([Found("a", "d", "c", tests="\x00")], "'tests' of 'a' has the character U+0000"),
        ([found("a", tier="huge")], "none of small, medium, large"),
        ([found("a", "b", "b"), found("b")], "'a' requires 'b' more than once"),
        ([found(name) for name in "abcd"], "at most 3 are allowed"),
        ([found("a"), found("b", "a"), found("c", "b")], "the longest chain has 3"),
        ([found("a", "b"), found("b", "c"), found("c", "a")], "a → b → c → a"),
    ],
)
def test_each_flaw_is_told(graph: list[Found], told: str) -> None:
    assert told in "\n".join(flaws(graph, Bounds(artifacts=3, depth=2)))


def test_all_flaws_are_told_at_once() -> None:
    graph = [Found("a", "", "", ("b",)), found("b", "a"), found("c", "z")]
    assert len(flaws(graph, Bounds())) == 4


@pytest.mark.parametrize(
    "value", [{}, [], {"artifacts": {}}, {"artifacts": [1]}, {"artifacts": [{"requires": "a"}]}]
)
def test_what_is_no_list_of_artifacts_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="artifact"):
        read_found(value)  # type: ignore[arg-type]  # whatever a model says


@pytest.mark.req("R106", "C32")
def test_a_tier_follows_from_the_place_unless_the_planner_says_one() -> None:
    graph = [
        found("UserProtocol"),
        found("AuthInterface"),
        found("UserModel", "UserProtocol"),
        found("AuthService", "AuthInterface"),
        found("App", "UserModel", "AuthService"),
        found("All", "UserProtocol", "AuthInterface", "Extra"),
        found("Extra", tier="large"),
    ]
    assert tiers(graph) == {
        "UserProtocol": "small",
        "AuthInterface": "small",
        "UserModel": "medium",
        "AuthService": "medium",
        "App": "large",
        "All": "large",
        "Extra": "large",
    }


def test_every_file_that_a_bare_run_reads_is_known_here() -> None:
    assert {*PLAN_NAMES, PROJECT_FILE} == COMMANDS
