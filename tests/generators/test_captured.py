"""What a function captures is in its key, or disables reuse loudly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.generators.inline import InlineFunctions
from holdfast.model.plan import Step, StepId
from tests.api.flows import imported

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


def cells(*sources: str) -> dict[str, object]:
    """The identity of `f` after these cells of a notebook: they are in no file."""
    names: dict[str, object] = {"__name__": "__notebook__"}
    for number, source in enumerate(sources):
        exec(compile(source, f"<cell {number}>", "exec", dont_inherit=True), names)
    function = names["f"]
    assert callable(function)
    return identity(function)


FUNCTION = "def f(x): return [g(item) + K for item in x]"


@pytest.mark.req("R161", "E2")
def test_what_a_function_in_no_file_reads_is_part_of_its_key() -> None:
    first = cells("K = 1", "def g(x): return x", FUNCTION)
    assert first == cells("K = 1", "def g(x): return x", FUNCTION)
    assert first == cells("K = 1\nOTHER = 2", "def g(x): return x", FUNCTION)
    assert first != cells("K = 2", "def g(x): return x", FUNCTION)
    assert first != cells("K = 1", "def g(x): return x + 1", FUNCTION)
    assert first != cells("K = 1", "L = 2\ndef g(x): return x + L", FUNCTION)
    assert "unresolved" not in first
    found = cells("K = [1]", "def g(x): return f(x)", FUNCTION)
    assert found["unresolved"] == ["a value of type 'builtins.list' in 'f'"]


@pytest.mark.req("E2")
def test_a_class_in_no_file_is_part_of_the_key() -> None:
    made = "from dataclasses import dataclass\n@dataclass\nclass A:\n    a: int\n    b: int = {}\n"
    made += "    def g(self): return self.a + {}"
    function = "def f(x): return A(x).g()"
    assert cells(made.format(1, 1), function) == cells(made.format(1, 1), function)
    assert cells(made.format(1, 1), function) != cells(made.format(2, 1), function)
    assert cells(made.format(1, 1), function) != cells(made.format(1, 2), function)
    assert "unresolved" not in cells(made.format(1, 1), function)


def test_the_source_of_modules_that_a_function_in_no_file_reads_is_part_of_its_key(
    tmp_path: Path,
) -> None:
    names: dict[str, object] = {"__name__": "__notebook__"}
    (tmp_path / "kelp.py").write_text("def rock(): return 1\n")
    with imported(tmp_path, "kelp"):
        exec("import json\nfrom kelp import rock\ndef f(): return json, rock()", names)
        function = names["f"]
        assert callable(function)
        found = InlineFunctions({STEP.id: function}).identity(STEP, str(tmp_path))
    code = found["code"]
    assert isinstance(code, dict)
    assert list(code) == ["kelp.py"]
    assert "unresolved" not in found


def test_the_source_of_a_module_outside_the_project_enters_by_name() -> None:
    code = identity(adder(1))["code"]
    assert isinstance(code, dict)
    assert list(code) == ["test_captured.py"]


def test_keywords_take_every_need_that_is_not_named() -> None:
    from holdfast.generators.child import parameters

    def function(number: int, first: bytes, **rest: str) -> None: ...

    taken = parameters(function, ["number"], ["first", "second-one"])
    assert taken == {"first": ("first", "bytes"), "second_one": ("second-one", "text")}
