"""How two plans, texts and values differ."""

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
