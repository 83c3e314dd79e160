"""How two plans, texts and values differ."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.compare import (
    LONGEST_LIST,
    LONGEST_TEXT,
    ValueChange,
    line_counts,
    plan_change,
    text_change,
    value_changes,
)
from holdfast.model.digest import Json
from holdfast.model.plan import Plan, Step, StepId

A = StepId("a")
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def plan(**shell: str) -> Plan:
    return Plan("p", {StepId(name): Step(StepId(name), shell=text) for name, text in shell.items()})


def test_steps_that_came_went_and_changed() -> None:
    found = plan_change(plan(a="1", b="2", c="3"), plan(b="2", c="4", d="5"))
    assert (found.added, found.removed) == (("d",), ("a",))
    assert [(c.step, c.keys) for c in found.changed] == [
        ("c", (ValueChange("shell", "changed", "3", "4"),))
    ]
    assert plan_change(plan(a="1"), plan(a="1")).is_empty


@given(VALUES, VALUES)
def test_values_differ_exactly_if_a_change_is_found(one: Json, two: Json) -> None:
    assert list(value_changes(one, one)) == []
    same = repr(one) == repr(two)
    if same:
        assert list(value_changes(one, two)) == []
    elif one != two:
        assert list(value_changes(one, two))


def test_an_item_that_only_moved_is_no_change() -> None:
    assert list(value_changes({"l": [1, 2, 3]}, {"l": [0, 1, 2, 3]})) == [
        ValueChange("l[0]", "added", None, 0)
    ]
    long: list[Json] = list(range(LONGEST_LIST + 1))
    assert len(list(value_changes(long, [*long, 7]))) == 1


def test_texts() -> None:
    assert text_change("a\nb\n", "a\nc\n", ("x", "y")) == [
        "--- x",
        "+++ y",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "+c",
    ]
    assert (text_change("a\n", "a", ("x", "y")) or [])[-1] == "(only line ends differ)"
    assert text_change("a\n" * LONGEST_TEXT, "b\n", ("x", "y")) is None


def test_true_is_not_one_though_python_says_so() -> None:
    one, true = ({"a": [{"x": x}]} for x in (1, True))
    assert list(value_changes(one, true)) == [ValueChange("a[0].x", "changed", 1, True)]
    plans = [Plan("p", {A: Step(A, values={"x": x})}) for x in (1, True)]
    (found,) = plan_change(*plans).changed
    assert found.keys == (ValueChange("values", "changed", {"x": 1}, {"x": True}),)


def test_added_and_removed_lines_are_counted() -> None:
    lines = text_change("a\nb\nc\n", "a\nx\n", ("one", "two"))
    assert lines is not None
    assert line_counts(lines) == (1, 2)


def test_one_item_among_many_equal_ones_is_one_change() -> None:
    many: list[Json] = ["x"] * 300
    other = [*many[:150], "y", *many[150:]]
    assert list(value_changes(many, other)) == [ValueChange("[150]", "added", None, "y")]


def test_each_difference_has_its_path_and_its_way() -> None:
    before: Json = {"a": {"x": 1, "gone": 2}, "l": [1, 2, 3], "same": 1}
    after: Json = {"a": {"x": 5, "new": 3}, "l": [1, 9, 3, 4], "same": 1}
    assert list(value_changes(before, after)) == [
        ValueChange("a.gone", "removed", 2, None),
        ValueChange("a.new", "added", None, 3),
        ValueChange("a.x", "changed", 1, 5),
        ValueChange("l[1]", "changed", 2, 9),
        ValueChange("l[3]", "added", None, 4),
    ]
    assert list(value_changes([1, 2, 3], [3])) == [
        ValueChange("[0]", "removed", 1, None),
        ValueChange("[1]", "removed", 2, None),
    ]
    assert list(value_changes([1], {"a": 1})) == [ValueChange("(all)", "changed", [1], {"a": 1})]
    assert list(value_changes({"a": {}}, {"a": []})) == [ValueChange("a", "changed", {}, [])]


def test_what_lies_deeper_than_sixty_four_levels_is_one_change() -> None:
    def nested(levels: int, value: Json) -> Json:
        for _ in range(levels):
            value = {"k": value}
        return value

    (deep,) = value_changes(nested(80, 1), nested(80, 2))
    assert (deep.path.count("k"), deep.before) == (65, nested(15, 1))
    (shallow,) = value_changes(nested(60, 1), nested(60, 2))
    assert (shallow.before, shallow.after) == (1, 2)
    listed: Json = 1
    other: Json = 2
    for _ in range(80):
        listed, other = [listed], [other]
    (deep,) = value_changes(listed, other)
    assert deep.path == "[0]" * 64


def test_long_lists_are_compared_place_by_place() -> None:
    fitting: list[Json] = list(range(LONGEST_LIST))
    assert [one.how for one in value_changes(fitting[1:], fitting)] == ["added"]
    long: list[Json] = list(range(LONGEST_LIST + 1))
    found = list(value_changes(long[1:], long))
    assert len(found) == LONGEST_LIST + 1
    assert found[-1] == ValueChange(f"[{LONGEST_LIST}]", "added", None, LONGEST_LIST)


def test_texts_of_the_longest_length_are_compared_still() -> None:
    half = "a\n" * (LONGEST_TEXT // 2)
    assert text_change(half, half, ("x", "y")) == []
    assert text_change(half, f"{half}a\n", ("x", "y")) is None
    assert text_change("a\n", "a", ("x", "y")) == ["--- x", "+++ y", "(only line ends differ)"]
    assert line_counts(["--- x", "+++ y", "@@", "+++", "---", " "]) == (1, 1)


def test_plans_that_differ_beside_their_steps_are_not_the_same() -> None:
    one = plan(a="1")
    described = replace(one, description="new")
    (found,) = plan_change(one, described).top
    assert (found.path, found.after) == ("description", "new")
    assert not plan_change(one, described).is_empty
    assert not plan_change(one, plan(a="1", b="2")).is_empty
    assert not plan_change(plan(a="1", b="2"), one).is_empty
    assert not plan_change(one, plan(a="2")).is_empty


def test_an_item_that_moved_is_the_same_whatever_the_order_of_its_keys() -> None:
    before: Json = [{"a": 1, "b": 2}]
    after: Json = [0, {"b": 2, "a": 1}]
    assert list(value_changes(before, after)) == [ValueChange("[0]", "added", None, 0)]
