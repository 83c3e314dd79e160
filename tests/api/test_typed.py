"""Types become JSON Schemas, and JSON becomes objects of them."""

import enum
import json
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    TypedDict,
    TypeVar,
)

import hypothesis
import jsonschema
import pydantic
import pytest
from hypothesis import strategies as st
from typing_extensions import TypeAliasType

from holdfast.api.typed import given, hints_of, plain, schema_of, typed
from holdfast.errors import UsageError
from holdfast.generators.child import encoded


class Kind(enum.Enum):
    OLD = "old"
    NEW = "new"


@dataclass
class Fact:
    quote: str
    page: int | None = None
    kinds: list[Kind] = field(default_factory=list)


class Facts(TypedDict):
    facts: list[Fact]
    sure: NotRequired[bool]


class Source(pydantic.BaseModel):
    url: str
    facts: list[Fact] = []


class Depth(enum.Enum):
    LOW = 1
    HIGH = "high"


class Spot(NamedTuple):
    place: str
    fact: Fact


T = TypeVar("T")


@dataclass
class Page(Generic[T]):
    items: list[T]
    first: T
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.count = len(self.items)


Quote = NewType("Quote", Fact)
Quotes = TypeAliasType("Quotes", list[Quote])  # as `type Quotes = …` makes it


@dataclass
class Tree:
    inner: "list[Tree]"


VALUES: list[tuple[Any, object]] = [
    (Fact, Fact("a", 3, [Kind.NEW])),
    (Facts, {"facts": [Fact("a")], "sure": True}),
    (list[Fact], [Fact("a"), Fact("b", 1)]),
    (dict[str, Fact], {"x": Fact("a")}),
    (tuple[int, Fact], (1, Fact("a"))),
    (tuple[Fact, ...], (Fact("a"), Fact("b"))),
    (Fact | None, None),
    (Fact | int, 3),
    (Literal["a", "b"], "a"),
    (Annotated[Fact, "note"], Fact("a")),
    (Kind, Kind.OLD),
    (Source, Source(url="u", facts=[Fact("a")])),
    (list[Source], [Source(url="u")]),
    (float, 0.5),
    (Depth, Depth.LOW),
    (Spot, Spot("reef", Fact("a"))),
    (set[int], {3, 1, 2}),
    (Page[Fact], Page([Fact("a")], Fact("b"))),
    (list[Page[int]], [Page([1], 2)]),
    (Quote, Fact("a")),
    (list[Quotes], [[Fact("a")]]),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda x: str(x)[:40])
def test_a_value_fits_its_schema_and_comes_back(kind: object, value: object) -> None:
    told = json.loads(json.dumps(plain(value)))
    schema: Any = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(told, schema)
    assert typed(kind, told) == value
    assert given(kind, json.dumps(told) if not isinstance(told, str) else told) == value


@pytest.mark.parametrize("kind", [str, bytes, None, Any, object, Path, dict, list])
def test_what_says_nothing_has_no_schema(kind: object) -> None:
    assert schema_of(kind) is None


def test_fields_that_are_not_there_are_refused() -> None:
    schema: Any = schema_of(Facts)
    assert schema["required"] == ["facts"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"facts": [], "more": 1}, schema)


@pytest.mark.parametrize("kind", [Tree, complex, dict[int, str], list[complex]])
def test_a_type_without_a_schema_is_refused(kind: object) -> None:
    with pytest.raises(UsageError, match="JSON Schema here"):
        schema_of(kind)


def test_a_parameter_gets_what_it_is_annotated_with() -> None:
    assert given(Path, Path("draft")) == Path("draft")
    assert given(bytes, b"\xff") == b"\xff"
    assert given(bytes, "HOLDFAST_INPUTS/draft") == b"HOLDFAST_INPUTS/draft"
    assert given(Path, "notes.md") == Path("notes.md")
    assert given(bytes, "text") == b"text"
    assert given(str, "3") == "3"
    assert given(int, "3") == 3
    assert given(str | None, "3") == "3"
    assert given(dict, "no JSON") == "no JSON"
    assert given(None, "[1]") == "[1]"
    assert given(Path | None, "draft") == Path("draft")
    assert given(bytes | None, None) is None
    assert given(Depth, "1") is Depth.LOW
    assert given(Depth, "high") is Depth.HIGH
    assert given(Literal["a", 1], "1") == 1
    assert isinstance(given(float, 1), float)


def test_one_name_for_type_checkers_leaves_the_other_annotations() -> None:
    def function(a: "Unknown", b: int) -> Fact: ...  # type: ignore[empty-body, name-defined]  # noqa: F821

    assert hints_of(function) == {"b": int, "return": Fact}


def _made(pair: tuple[Any, Any]) -> list[tuple[object, object]]:
    """Types made of a type, each with a value of it."""
    of, value = pair
    generic: Any = Page
    sequence: Any = tuple
    return [
        (types.GenericAlias(list, of), [value, value]),
        (sequence[of, ...], (value,)),
        (sequence[of, int], (value, 3)),
        (types.GenericAlias(dict, (str, of)), {"": value}),
        (of | None, value),
        (of | None, None),
        (generic[of], Page([value], value)),
    ]


simple = st.one_of(
    st.text(max_size=5).map(lambda value: (str, value)),
    st.integers().map(lambda value: (int, value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: (float, value)),
    st.booleans().map(lambda value: (bool, value)),
    st.sampled_from(Depth).map(lambda value: (Depth, value)),
    st.sets(st.integers()).map(lambda value: (set[int], value)),
    st.builds(Fact, st.text(max_size=5), st.none() | st.integers()).map(lambda x: (Fact, x)),
)


@pytest.mark.req("R181")
@hypothesis.given(pair=st.recursive(simple, lambda x: x.map(_made).flatmap(st.sampled_from)))
def test_any_value_comes_back_as_its_type(pair: tuple[Any, object]) -> None:
    kind, value = pair
    hypothesis.assume(value != "null")
    told = plain(value)
    found = given(kind, encoded(told).decode())
    assert found == value
    assert type(found) is type(value)
    schema: Any = schema_of(kind)
    if schema is not None:
        jsonschema.validate(json.loads(json.dumps(told)), schema)
