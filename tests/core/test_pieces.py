"""What is shown of a change: which lines, which words, and what is said where no content is known."""

import pytest

from holdfast.core.causes import (
    MOST_WAYS,
    NOT_KEPT,
    Edit,
    Mark,
    Piece,
    as_text,
    causes,
    compare_files,
    counted,
    edits_of,
    files_in,
    only,
    part_word,
    pieces_of,
    unchanged_words,
)
from holdfast.core.changes import PARTS, Change
from holdfast.core.waves import graph_of
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Reason
from tests.core.builders import graph, ref, sid
from tests.core.test_causes import text

OLD, NEW = ref("old"), ref("new")


def pieces(part: str, before: Json, after: Json, *names: str) -> list[tuple[str, str, str]]:
    change = Change(part, "x_changed", names, before, after)
    return [(one.name, one.how, one.note) for one in pieces_of(change, text, text)]


# --- texts ---------------------------------------------------------------------------------------------


def test_an_edit_is_counted_from_the_first_line_that_differs() -> None:
    assert edits_of("", "") == ()
    assert edits_of("", "a\nb") == (Edit(1, (), ("a", "b")),)
    assert edits_of("a\nb\na\n", "a\na\n") == (Edit(2, ("b",), ()),)
    assert edits_of("a\nx\nb\ny\nc", "a\nX\nb\nY\nc") == (
        Edit(2, ("x",), ("X",)),
        Edit(4, ("y",), ("Y",)),
    )
    assert edits_of("b\na\nb", "x\nb\nb") == (Edit(1, (), ("x",)), Edit(3, ("a",), ()))
    assert edits_of("x\nb\nb", "b\na\nb") == (Edit(1, ("x",), ()), Edit(2, (), ("a",)))


def test_a_large_block_counts_as_replaced_from_where_it_begins() -> None:
    old = ["head", *(f"x{n}" for n in range(1001)), "tail"]
    new = ["head", *(f"y{n}" for n in range(1000)), "tail"]
    (edit,) = edits_of("\n".join(old), "\n".join(new))
    assert edit == Edit(2, tuple(old[1:-1]), tuple(new[1:-1]))
    shared = ["both" if n == 500 else one for n, one in enumerate(new)]
    assert len(edits_of("\n".join(["both", *old]), "\n".join(shared))) == 1
    small = ["both" if n == 500 else one for n, one in enumerate(new[:-1])]
    small_old = ["both" if n == 500 else one for n, one in enumerate(old[:1001])]
    assert len(edits_of("\n".join(small_old), "\n".join(small))) == 2


# --- files ---------------------------------------------------------------------------------------------


def test_a_file_is_known_by_digest_bit_and_target_however_a_key_spells_it() -> None:
    parts: dict[str, Json] = {
        "inputs": {"plain": ["d" * 64, False], "run": ["d" * 64, True], "l": ["d", 0, "t"]},
        "files": {"script": "e" * 64 + "+x", "text": "e" * 64},
        "code": {"odd": 5, "none": [], "unread": [None, False]},
        "observed": {"inputs": {"seen": ["f", False]}},
        "guards": ({"code": {"deep": "a" * 64}},),
    }
    assert dict(files_in(parts)) == {
        "plain": Mark(Digest("d" * 64)),
        "run": Mark(Digest("d" * 64), executable=True),
        "l": Mark(Digest("d"), target="t"),
        "script": Mark(Digest("e" * 64), executable=True),
        "text": Mark(Digest("e" * 64)),
        "odd": Mark(None),
        "none": Mark(None),
        "unread": Mark(None),
        "seen": Mark(Digest("f")),
        "deep": Mark(Digest("a" * 64)),
    }


@pytest.mark.parametrize(
    ("was", "now", "how", "note"),
    [
        (Mark(OLD), Mark(NEW), "changed", ""),
        (None, Mark(NEW), "added", ""),
        (Mark(OLD), None, "removed", ""),
        (Mark(OLD), Mark(OLD, executable=True), "changed", "it is now executable"),
        (Mark(OLD, executable=True), Mark(OLD), "changed", "it is no longer executable"),
        (Mark(OLD), Mark(OLD, target="b"), "changed", "it is a link to b, was to nothing"),
        (Mark(OLD, target="a"), Mark(OLD), "changed", "it is a link to nothing, was to a"),
        (Mark(ref("?")), Mark(NEW), "changed", NOT_KEPT),
        (Mark(OLD), Mark(ref("?")), "changed", NOT_KEPT),
        (None, Mark(ref("?")), "added", NOT_KEPT),
        (Mark(None), Mark(NEW), "changed", NOT_KEPT),
        (Mark(OLD), Mark(None), "changed", NOT_KEPT),
    ],
)
def test_a_file_that_differs_says_how_or_why_nothing_is_shown(
    was: Mark | None, now: Mark | None, how: str, note: str
) -> None:
    before = {} if was is None else {"f": was}
    after = {} if now is None else {"f": now}
    (piece,) = compare_files(before, after, text, text)
    assert (piece.name, piece.how, piece.note) == ("f", how, note)
    assert bool(piece.edits) is not bool(note)
    if was is None and not note:
        assert piece.edits == (Edit(1, (), ("a", "B", "c", "d")),)
    if now is None:
        assert piece.edits == (Edit(1, ("a", "b", "c"), ()),)


def test_a_file_whose_lines_are_the_same_says_so() -> None:
    texts = {Digest("unix"): "a\nb\n", Digest("dos"): "a\r\nb\r\n"}
    (piece,) = compare_files(
        {"f": Mark(Digest("unix"))},
        {"f": Mark(Digest("dos"))},
        lambda _, digest: texts.get(digest),
        lambda _, digest: texts.get(digest),
    )
    assert piece == Piece("f", "changed", (), "only its line ends or its kind changed")


def test_files_are_shown_by_path_and_only_those_that_differ() -> None:
    before = {"z": Mark(OLD), "same": Mark(OLD), "a": Mark(OLD)}
    after = {"z": Mark(NEW), "same": Mark(OLD), "b": Mark(NEW)}
    found = compare_files(before, after, text, text)
    assert [(one.name, one.how) for one in found] == [
        ("a", "removed"),
        ("b", "added"),
        ("z", "changed"),
    ]


def test_a_change_of_many_files_can_be_narrowed_to_some() -> None:
    change = Change(
        "inputs", "input_changed", ("a", "b"), {"a": "1", "b": "1"}, {"a": "2", "c": "2"}
    )
    narrowed = only(change, ["a", "c"])
    assert narrowed == Change(
        "inputs", "input_changed", ("a", "b"), {"a": "1"}, {"a": "2", "c": "2"}
    )
    assert only(change._replace(before=None), ["b"])[3:] == ({}, {})


# --- values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["inputs", "files", "code", "tools", "output"])
def test_a_part_that_names_files_is_shown_file_by_file(part: str) -> None:
    assert pieces(part, {"f": OLD, "g": OLD}, {"f": NEW, "g": OLD}) == [("f", "changed", "")]


def test_other_parts_are_shown_each_in_its_own_way() -> None:
    assert pieces("context", OLD, NEW) == [("what it is told", "changed", "")]
    assert pieces("context", None, NEW) == [("what it is told", "added", "")]
    assert pieces("upstream", {"a": "1"}, {"a": "2"}) == []
    kept = "its value changed (values are never kept)"
    assert pieces("env", {}, {}, "A", "B") == [("A", "changed", kept), ("B", "changed", kept)]
    guards: dict[str, Json] = {"guards": ["x"], "observed": {"files": {"f": OLD}}}
    assert pieces("guards", guards, {"guards": ["y"], "observed": {"files": {"f": NEW}}}) == [
        ("guards", "changed", ""),
        ("f", "changed", ""),
    ]
    assert pieces("guards", guards, {**guards, "observed": {"files": {"f": NEW}}}) == [
        ("f", "changed", "")
    ]
    for part in ("with", "parameters", "prompt"):
        assert pieces(part, {"a": 1, "c": 1, "d": 1}, {"b": 2, "c": 3, "d": 1}) == [
            (f"{part}.a", "removed", ""),
            (f"{part}.b", "added", ""),
            (f"{part}.c", "changed", ""),
        ]
        assert pieces(part, None, {"b": 2}) == [(f"{part}.b", "added", "")]
    assert pieces("schema", {"a": 1}, {"a": 2}) == [("schema", "changed", "")]
    assert pieces("uses", None, "shell") == [("uses", "added", "")]
    assert pieces("uses", "shell", None) == [("uses", "removed", "")]
    assert pieces("uses", "shell", "shell") == []


@pytest.mark.parametrize(
    ("part", "value", "shown"),
    [
        ("run", None, ""),
        ("run", "a b", "a b"),
        ("run", ["echo", "a b"], "echo 'a b'"),
        ("needs", ["a", "b"], "a\nb"),
        ("produces", ("a", "b"), "a\nb"),
        ("outputs", ["a", "b"], "a\nb"),
        ("absent", ["a", "b"], "a\nb"),
        ("unresolved", ["a", "b"], "a\nb"),
        ("guards", [{"kind": "é"}, "x"], '{"kind": "é"}\nx'),
        ("with", ["a", "b"], '["a", "b"]'),
        ("with", {"b": [{"$decimal": "1.5"}], "a": 2}, '{"a": 2, "b": [1.5]}'),
        ("with", {"$decimal": "1.5", "x": 1}, '{"$decimal": "1.5", "x": 1}'),
        ("with", ["é" * 68], '["' + "é" * 68 + '"]'),
        ("with", ["é" * 69], '[\n "' + "é" * 69 + '"\n]'),
        ("with", {"b": "x" * 70, "a": 1}, '{\n "a": 1,\n "b": "' + "x" * 70 + '"\n}'),
    ],
)
def test_a_value_is_shown_in_lines_that_can_be_compared(part: str, value: Json, shown: str) -> None:
    assert as_text(part, value) == shown


def test_how_much_of_a_piece_differs_is_counted() -> None:
    assert counted(Piece("f", "changed", (Edit(1, ("a", "b"), ("c",)), Edit(5, (), ("d",))))) == (
        "f (+2 −2)"
    )
    assert counted(Piece("f", "changed")) == "f"
    assert counted(Piece("f", "added")) == "f (added)"


# --- causes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ["upstream_changed", "dependency_failed", "dependency_skipped", "awaiting_person"]
)
def test_a_step_that_passes_on_is_a_cause_only_if_nothing_above_is_known(code: str) -> None:
    net = graph_of(graph("a>b"))
    own = Reason("prompt_changed")
    for passed in (Reason(code, ("a",)), Reason(code)):
        (cause,) = causes(net, sid("b"), {sid("a"): own, sid("b"): passed})
        assert (cause.step, cause.reason, cause.way) == ("a", own, ("a", "b"))
        (alone,) = causes(net, sid("b"), {sid("b"): passed})
        assert (alone.step, alone.way) == ("b", ("b",))


def test_the_shortest_way_to_a_cause_is_told_once() -> None:
    net = graph_of(graph("a>b b>d a>d c>d a>c"))
    changed = Reason("input_changed")
    passed = Reason("upstream_changed")
    found = causes(
        net, sid("d"), {sid("a"): changed, sid("b"): passed, sid("c"): passed, sid("d"): passed}
    )
    assert [(one.step, one.way) for one in found] == [("a", ("a", "d"))]
    forced = causes(net, sid("d"), {sid("a"): changed, sid("d"): Reason("forced")})
    assert [one.step for one in forced] == ["d"], "it would run whatever is above"


def test_ways_are_worked_out_for_the_nearest_causes_only() -> None:
    names = [f"s{n:03}" for n in range(MOST_WAYS + 2)]
    net = graph_of(graph(">".join(names)))
    found = causes(net, sid(names[-1]), {sid(one): Reason("prompt_changed") for one in names})
    assert [bool(one.way) for one in found] == [True] * 50 + [False] * 2


# --- what stayed ---------------------------------------------------------------------------------------


def test_every_part_of_a_key_has_the_word_that_people_say() -> None:
    own: dict[str, Json] = {
        "model": {"id": "p:m"},
        "guard_config": {"guards": [{"kind": "syntax"}]},
        "ext": {"files": {"a": "1"}, "code": {"b": "1", "c": "1"}, "inputs": {"d": "1"}},
    }
    assert unchanged_words(own, PARTS, {}, (1, 1)) == [
        "prompt",
        "model p:m",
        "sampling",
        "generator",
        "tools of the model",
        "command",
        "parameters",
        "tool versions",
        "environment",
        "workspace",
        "effects",
        "contract",
        "produces",
        "schema",
        "handoff",
        "context",
        "specification",
        "guards",
        "1 script",
        "2 source files",
        "1 input",
        "1 step above",
    ]
    for part, word in {
        "run": "command",
        "shell": "command",
        "contract": "contract",
        "outputs": "contract",
        "constraints": "specification",
        "specification": "specification",
        "agent": "specification",
        "action": "specification",
        "output": "output",
        "inputs": "inputs",
        "files": "script",
        "code": "source",
        "absent": "source",
        "unresolved": "source",
        "needs": "needs",
        "model": "model",
        "key": "way keys are made",
        "other": "other",
    }.items():
        assert part_word(part) == word


def test_what_is_not_there_did_not_stay() -> None:
    own: dict[str, Json] = {"ext": {"inputs": {"a": "1", "b": "1"}, "code": {"c": "1"}}}
    assert unchanged_words(own, ["guards", "model"], {"inputs": 1}, (0, 2)) == [
        "model",
        "1 source file",
        "1 of 2 inputs",
    ]
    assert unchanged_words(own, [], {"inputs": 3, "code": 1}, (2, 2)) == ["2 steps above"]
