"""What a function captures is in its key, or disables reuse loudly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.generators.inline import InlineFunctions
from holdfast.model.plan import Step, StepId

STEP = Step(StepId("step"))


def identity(function: Callable[..., object]) -> dict[str, object]:
    return dict(InlineFunctions({STEP.id: function}).identity(STEP, "/nowhere"))


def adder(amount: object) -> Callable[[], object]:
    return lambda: amount


@pytest.mark.req("R161", "E2")
def test_a_captured_object_that_has_no_spelling_disables_reuse() -> None:
    assert "unresolved" not in identity(adder(1))
    assert identity(adder([1]))["unresolved"] == ["a value of type 'builtins.list' in '<lambda>'"]


@pytest.mark.req("E2")
def test_a_captured_constant_is_part_of_the_key() -> None:
    assert identity(adder(1)) != identity(adder(2))
    assert identity(adder(1)) == identity(adder(1))


def test_the_source_of_a_module_outside_the_project_enters_by_name() -> None:
    code = identity(adder(1))["code"]
    assert isinstance(code, dict)
    assert list(code) == ["test_captured.py"]


def test_keywords_take_every_need_that_is_not_named() -> None:
    from holdfast.generators.child import parameters

    def function(number: int, first: bytes, **rest: str) -> None: ...

    taken = parameters(function, ["number"], ["first", "second-one"])
    assert taken == {"first": ("first", "bytes"), "second_one": ("second-one", "text")}
