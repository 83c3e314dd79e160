"""How two versions of a plan differ."""

from dataclasses import replace

import pytest

from holdfast.core.versions import ChangeReport, compare
from holdfast.model.plan import Need, plan_from_json, plan_json
from tests.core.builders import plan, sid, step

BEFORE = plan(step("a"), step("b", "a"), step("gone", "b"))


@pytest.mark.req("R52")
def test_what_came_what_left_and_what_is_other_than_before() -> None:
    after = plan(
        replace(step("a"), contract="two lines", outputs=("n",)),
        replace(step("b"), needs=(Need(sid("a"), "sequence"),)),
        step("new", "b"),
    )
    report = compare(BEFORE, after, output_modified=(sid("a"),))
    assert report == ChangeReport(
        added=(sid("new"),),
        removed=(sid("gone"),),
        contract_changed=(sid("a"),),
        deps_changed=(sid("b"),),
        output_modified=(sid("a"),),
        edited={sid("a"): ("contract", "outputs"), sid("b"): ("needs",)},
    )
    assert report.all_changed == {"a", "b", "new"}, "what left the plan is no step of it"


@pytest.mark.req("R52")
@pytest.mark.parametrize("key", ["contract", "outputs", "produces", "schema"])
def test_these_keys_are_the_contract(key: str) -> None:
    value: object = {"type": "object"} if key == "schema" else ("x",)
    value = "text" if key == "contract" else value
    after = plan(replace(step("a"), **{key: value}), step("b", "a"), step("gone", "b"))  # type: ignore[arg-type]
    assert compare(BEFORE, after).contract_changed == (sid("a"),)


def test_other_keys_are_edits_but_neither_contract_nor_needs() -> None:
    after = plan(
        replace(step("a"), shell="echo", values={"n": 1}), step("b", "a"), step("gone", "b")
    )
    report = compare(BEFORE, after)
    assert report == ChangeReport(edited={sid("a"): ("shell", "with")})
    assert report.all_changed == frozenset()


def test_a_plan_equals_the_snapshot_that_was_kept_of_it() -> None:
    rich = plan(replace(step("a"), values={"deep": [1, [2.5]]}, timeout=1.5, run=("x", "y")))
    assert compare(plan_from_json(plan_json(rich)), rich) == ChangeReport()
    assert compare(None, rich) == ChangeReport()


def test_true_is_not_one_though_python_says_so() -> None:
    one, true = (plan(replace(step("a"), values={"x": x})) for x in (1, True))
    assert compare(one, true) == ChangeReport(edited={sid("a"): ("with",)})


def test_what_stayed_as_it_was_is_no_edit() -> None:
    one = replace(step("a"), contract="two lines", shell="echo")
    report = compare(plan(one), plan(replace(one, shell="true")))
    assert report.edited == {sid("a"): ("shell",)}
