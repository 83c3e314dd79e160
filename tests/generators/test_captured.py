"""What a function captures is in its key, or disables reuse loudly."""

from __future__ import annotations

import functools
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


class Client:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def get(self) -> str:
        return self.prefix


def by_helper(prefix: str) -> Callable[[], object]:
    def helper() -> str:
        return prefix

    return lambda: helper() + "."


def by_method(prefix: str) -> Callable[[], object]:
    bound = Client(prefix).get
    return lambda: bound() + "."


def by_lookup(prefix: str) -> Callable[[], object]:
    lookup = {"k": prefix}.get
    return lambda: lookup("k")


def by_text(prefix: str) -> Callable[[], object]:
    join = prefix.join
    return lambda: join("ab")


def by_class(prefix: str) -> Callable[[], object]:
    class Local:
        url = prefix

    return lambda: Local.url


def by_annotation(prefix: str) -> Callable[..., object]:
    class Local:
        url = prefix

    def function(given: object) -> object:
        return given

    function.__annotations__ = {"given": Local}
    return function


def by_attribute(prefix: str) -> Callable[[], object]:
    def function() -> object:
        return function.prefix  # type: ignore[attr-defined]  # set below

    vars(function)["prefix"] = prefix
    return function


def by_wrapper(prefix: str) -> Callable[[], object]:
    def inner() -> str:
        return ""

    @functools.wraps(inner)
    def wrapper() -> str:
        return prefix + inner()

    return wrapper


def by_cache(prefix: str) -> Callable[[], object]:
    @functools.cache
    def cached() -> str:
        return prefix

    return lambda: cached() + "."


def by_member(prefix: str) -> Callable[[], object]:
    class Text(str):
        __slots__ = ("more",)
        more: str

    text = Text("same")
    text.more = prefix
    return lambda: text.more


MAKERS = [
    by_helper,
    by_method,
    by_lookup,
    by_text,
    by_class,
    by_annotation,
    by_attribute,
    by_wrapper,
    by_cache,
    by_member,
    lambda prefix: Client(prefix).get,
    lambda prefix: functools.partial(Client.get, Client(prefix)),
]


@pytest.mark.req("R161", "E2")
@pytest.mark.parametrize("make", MAKERS)
def test_whatever_holds_a_value_is_in_the_key_or_named(
    make: Callable[[str], Callable[[], object]],
) -> None:
    first, second = identity(make("a")), identity(make("b"))
    assert first != second or first["unresolved"]


@pytest.mark.req("E2")
@pytest.mark.parametrize("make", [by_helper, by_text, by_class, by_wrapper, by_cache])
def test_what_holds_constants_alone_can_be_reused(
    make: Callable[[str], Callable[[], object]],
) -> None:
    assert identity(make("a")) == identity(make("a"))
    assert "unresolved" not in identity(make("a"))


@pytest.mark.req("E2")
def test_an_object_behind_a_method_is_named() -> None:
    kind = f"{__name__}.Client"
    assert identity(Client("a").get)["unresolved"] == [f"a value of type '{kind}' in 'get'"]


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


WRAPS = """
import functools
def twice(function):
    @functools.wraps(function)
    def wrapper(x): return function(x) * {}
    return wrapper
@twice
def g(x): return x
"""
HOLDERS = {
    "list": "class A:\n    a = [{}]",
    "property": "class A:\n    @property\n    def a(self): return {}",
    "cached": "import functools\nclass A:\n    @functools.cached_property\n    def a(self): return {}",
    "static": "class A:\n    @staticmethod\n    def a(): return {}",
    "class": "class A:\n    @classmethod\n    def a(cls): return {}",
    "inner": "class A:\n    class a:\n        b = {}",
    "above": "class B:\n    a = {}\nclass A(B): pass",
    "meta": "class M(type):\n    a = {}\nclass A(metaclass=M): pass",
    "member": "import enum\nclass A(enum.Enum):\n    a = {}",
    "default": "class A:\n    def a(self, b={}): return b",
    "field": "import dataclasses as d\n"
    "@d.dataclass\nclass A:\n    a: int = d.field(default_factory=lambda: {})",
}


@pytest.mark.req("R161", "E2")
@pytest.mark.parametrize("holder", HOLDERS)
def test_all_of_a_class_in_no_file_is_in_the_key_or_named(holder: str) -> None:
    for function in ("def f(x): return A.a", "def f(x: 'list[A]'): return x"):
        first, second = (cells(HOLDERS[holder].format(n), function) for n in (1, 2))
        assert first != second or first["unresolved"]
        assert ("unresolved" in first) == (holder == "list")
        assert first == cells(HOLDERS[holder].format(1), function)


@pytest.mark.req("E2")
def test_what_is_wrapped_around_a_function_in_no_file_is_part_of_the_key() -> None:
    function = "def f(x): return g(x)"
    assert cells(WRAPS.format(1), function) == cells(WRAPS.format(1), function)
    assert cells(WRAPS.format(1), function) != cells(WRAPS.format(2), function)
    assert cells(WRAPS.format(1), "f = g") != cells(WRAPS.format(2), "f = g")
    assert "unresolved" not in cells(WRAPS.format(1), function)


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
