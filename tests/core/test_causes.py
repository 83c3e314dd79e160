"""The content behind changes, and the causes above a step."""

import json
from itertools import pairwise

import pytest

from holdfast.core.causes import (
    NOT_KEPT,
    Edit,
    Mark,
    Piece,
    causes,
    compare_files,
    counted,
    edits_of,
    files_in,
    pieces_of,
    unchanged_words,
)
from holdfast.core.changes import Change, differences
from holdfast.core.refs import encode_own
from holdfast.core.waves import graph_of
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Reason
from tests.core.builders import graph, ref, sid, step


def text(_: str, digest: Digest) -> str | None:
    return TEXTS.get(digest)


TEXTS = {ref("old"): "a\nb\nc\n", ref("new"): "a\nB\nc\nd\n"}


# --- texts ----------------------------------------------------------------------------------------------


@pytest.mark.req("R169")
def test_edits_have_their_place_in_the_newer_text() -> None:
    assert edits_of("a\nb\nc\n", "a\nB\nc\nd\n") == (
        Edit(2, ("b",), ("B",)),
        Edit(4, (), ("d",)),
    )
    assert edits_of("a\nb\n", "b\n") == (Edit(1, ("a",), ()),)
    assert edits_of("same\n", "same\n") == ()


def test_texts_that_are_slow_to_compare_count_as_replaced() -> None:
    old, new = "\n".join(f"x{n % 7}" for n in range(3000)), "\n".join("y" * 2000)
    (edit,) = edits_of(old, new)
    assert (len(edit.removed), len(edit.added)) == (3000, 2000)


# --- files ----------------------------------------------------------------------------------------------


def test_files_are_compared_by_their_lines_where_both_are_known() -> None:
    pieces = compare_files(
        {
            "a": Mark(ref("old")),
            "b": Mark(ref("old")),
            "c": Mark(ref("old")),
            "d": Mark(ref("old")),
        },
        {"a": Mark(ref("new")), "b": Mark(ref("lost")), "c": Mark(ref("old"), executable=True)},
        text,
        text,
    )
    assert [(p.name, p.how, p.added, p.removed, p.note) for p in pieces] == [
        ("a", "changed", 2, 1, ""),
        ("b", "changed", 0, 0, NOT_KEPT),
        ("c", "changed", 0, 0, "it is now executable"),
        ("d", "removed", 0, 3, ""),
    ]
    assert [counted(piece) for piece in pieces] == ["a (+2 −1)", "b", "c", "d (+0 −3)"]


def test_a_link_that_points_elsewhere_is_said_in_words() -> None:
    was, now = Mark(ref("old"), target="a"), Mark(ref("old"), target="b")
    (piece,) = compare_files({"l": was}, {"l": now}, text, text)
    assert piece.note == "it is a link to b, was to a"


def test_every_file_of_a_key_is_found_those_of_guards_inside_guards_too() -> None:
    seen: dict[str, Json] = {
        "inputs": {"in.txt": ["d" * 64, False], "gone.txt": [None, False]},
        "files": {"x.sh": "e" * 64 + "+x"},
        "code": {"work.py": "f" * 64},
        "guards": [{}, {"items": [{"files": {"check.sh": "a" * 64}}]}],
    }
    found = dict(files_in(seen))
    assert set(found) == {"in.txt", "gone.txt", "x.sh", "work.py", "check.sh"}
    assert found["x.sh"] == Mark(Digest("e" * 64), executable=True)
    assert found["gone.txt"] == Mark(None)


# --- values ---------------------------------------------------------------------------------------------


@pytest.mark.req("R169")
@pytest.mark.parametrize(
    "part, before, after, expected",
    [
        ("prompt", "one\ntwo", "one\n2", [("prompt", ("two",), ("2",))]),
        ("run", ["make"], ["make", "-j"], [("run", ("make",), ("make -j",))]),
        ("with", {"a": 1, "b": 2}, {"a": 1, "b": 3}, [("with.b", ("2",), ("3",))]),
        ("with", {"a": {"$decimal": "0.5"}}, {"a": 1}, [("with.a", ("0.5",), ("1",))]),
        ("needs", ["a", "b"], ["b", "c"], [("needs", ("a",), ()), ("needs", (), ("c",))]),
        ("uses", "shell", "python", [("uses", ("shell",), ("python",))]),
        (
            "guards",
            {"guards": [{"kind": "syntax", "config": "json"}]},
            {"guards": [{"kind": "syntax", "config": "yaml"}]},
            [
                (
                    "guards",
                    ('{"config": "json", "kind": "syntax"}',),
                    ('{"config": "yaml", "kind": "syntax"}',),
                )
            ],
        ),
    ],
)
def test_a_changed_value_is_shown_as_it_was_and_as_it_is(
    part: str, before: object, after: object, expected: list[object]
) -> None:
    change = Change(part, "x_changed", (), before, after)  # type: ignore[arg-type]  # plain JSON
    pieces = pieces_of(change, text, text)
    assert [(p.name, e.removed, e.added) for p in pieces for e in p.edits] == expected


def test_values_of_the_environment_are_never_shown() -> None:
    change = Change("env", "environment_changed", ("COLOUR",), {"COLOUR": "d1"}, {"COLOUR": "d2"})
    (piece,) = pieces_of(change, text, text)
    assert piece == Piece("COLOUR", "changed", note="its value changed (values are never kept)")


# --- causes ---------------------------------------------------------------------------------------------

PASSED = Reason("upstream_changed")


def upstream(*names: str) -> Reason:
    return Reason("upstream_changed", names)


@pytest.mark.req("R169")
def test_the_root_cause_is_found_through_everything_that_only_passes_it_on() -> None:
    chain = graph_of(graph("a>b>c>d"))
    reasons = {
        sid("a"): Reason("input_changed", ("x",)),
        sid("b"): upstream("a"),
        sid("c"): upstream("b"),
        sid("d"): upstream("c"),
    }
    (cause,) = causes(chain, sid("d"), reasons)
    assert (cause.step, cause.reason.code) == ("a", "input_changed")
    assert cause.way == ("a", "b", "c", "d")


def test_all_root_causes_are_found_the_nearest_first() -> None:
    net = graph_of(graph("a>c b>c c>d"))
    reasons = {
        sid("a"): Reason("input_changed", ("x",)),
        sid("b"): Reason("prompt_changed"),
        sid("c"): Reason("parameters_changed", ("n",)),
        sid("d"): upstream("c"),
    }
    assert [cause.step for cause in causes(net, sid("d"), reasons)] == ["c", "a", "b"]
    assert [cause.step for cause in causes(net, sid("a"), reasons)] == ["a"]
    assert causes(net, sid("d"), {}) == ()


def test_a_step_that_runs_for_the_first_time_is_its_own_cause() -> None:
    net = graph_of(graph("a>b"))
    never = Reason("never_ran")
    found = causes(net, sid("b"), {sid("a"): never, sid("b"): never})
    assert [cause.step for cause in found] == ["b"]


def test_a_long_chain_needs_no_recursion() -> None:
    names = [f"s{n}" for n in range(5000)]
    chain = graph_of(graph(">".join(names)))
    reasons = {sid(name): upstream(above) for above, name in pairwise(names)}
    reasons[sid("s0")] = Reason("input_changed")
    (cause,) = causes(chain, sid(names[-1]), reasons)
    assert (cause.step, len(cause.way)) == ("s0", 5000)


def test_many_causes_in_a_deep_plan_cost_no_more_than_the_plan() -> None:
    names = [f"s{n}" for n in range(20_000)]
    chain = graph_of(graph(">".join(names)))
    found = causes(chain, sid(names[-1]), {sid(name): Reason("prompt_changed") for name in names})
    assert len(found) == len(names)
    assert sum(len(cause.way) for cause in found) < len(names)


# --- what stayed ----------------------------------------------------------------------------------------


def test_what_stayed_is_said_in_words_and_numbers() -> None:
    seen: dict[str, Json] = {
        "inputs": {"a": ["d", False], "b": ["d", False]},
        "files": {"x.sh": "d"},
    }
    own = json.loads(encode_own(step("s", "t"), seen))
    words = unchanged_words(own, ("uses", "shell", "guards"), {"inputs": 1}, (2, 3))
    assert words == ["generator", "command", "1 script", "1 of 2 inputs", "2 of 3 steps above"]
    assert unchanged_words(own, (), {"inputs": 2, "files": 1}, (0, 0)) == []


def test_a_key_that_is_made_otherwise_says_so_and_nothing_else() -> None:
    old: dict[str, Json] = {"ext": {"v": 0, "uses": "shell"}}
    new: dict[str, Json] = {"ext": {"v": 1, "uses": "python"}}
    assert [change.code for change in differences(old, new, None, {})] == ["key_version"]


def test_true_is_not_one_though_python_says_so() -> None:
    change = Change("with", "parameters_changed", ("x",), {"x": 1, "y": 2}, {"x": True, "y": 2})
    (piece,) = pieces_of(change, lambda *_: None, lambda *_: None)
    assert (piece.name, piece.how, counted(piece)) == ("with.x", "changed", "with.x (+1 −1)")
