"""Expressions are read as paths, written again as they were, and filled with values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.digest import Json
from holdfast.model.expression import (
    Part,
    Reference,
    Wrong,
    fill,
    literal,
    literals,
    parse,
    parts,
    write,
)

pytestmark = pytest.mark.req("R180")


def shape(part: Part) -> object:
    return (part.root, part.name, part.fields) if isinstance(part, Reference) else part


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("plain $ {{ }} text", ["plain $ {{ }} text"]),
        ("${{ params.topic }}", [("params", "topic", ())]),
        ("${{steps.a-b.c.output}}", [("steps", "a-b.c", ())]),
        ("${{ steps.a.output.b.0.c-d }}", [("steps", "a", ("b", "0", "c-d"))]),
        ("${{ steps.a.output.output.output }}", [("steps", "a", ("output", "output"))]),
        ("${{ item }} and ${{ item.a }}", [("item", "", ()), " and ", ("item", "", ("a",))]),
        ("$${{ params.x }}", ["${{ params.x }}"]),
        ("$$${{ params.x }}", ["$", ("params", "x", ())]),
        ("$$$${{ x", ["$${{ x"]),
        ("a $$ b", ["a $$ b"]),
        ("}} ${{\n params.x\t}} {{", ["}} ", ("params", "x", ()), " {{"]),
    ],
)
def test_a_text_is_read_into_its_parts(text: str, wanted: list[object]) -> None:
    assert [shape(part) for part in parse(text)] == wanted


@pytest.mark.parametrize(
    "inside, message",
    [
        ("", "an expression is empty"),
        ("params.x | upper", "'params.x | upper' is not a path"),
        ("f(x)", "'f(x)' is not a path"),
        ("steps['a'].output", "'steps['a'].output' is not a path"),
        ("params.x + 1", "'params.x + 1' is not a path"),
        ("steps.a", "'steps.a' names no artifact"),
        ("steps.a.outputs", "'steps.a.outputs' names no artifact"),
        ("steps", "'steps' is not a whole path"),
        ("steps.a.output.", "'steps.a.output.' is not a whole path"),
        ("params.", "'params.' is not a whole path"),
        ("params.x.y", "'params.x.y' goes into a param, and a param is one value"),
        ("inputs.topic", "'inputs.topic' starts with nothing that is known here"),
        ("a" * 1001, "an expression has more than 1,000 characters"),
    ],
)
def test_anything_but_a_path_is_wrong(inside: str, message: str) -> None:
    text = f"x ${{{{ {inside} }}}} y"
    (found,) = (part for part in parse(text) if isinstance(part, Wrong))
    assert found.message == message
    assert text[found.begin :][: found.length] == text[2:-2]


def test_an_expression_that_is_never_closed_is_wrong() -> None:
    assert isinstance(parse("a ${{ params.x")[-1], Wrong)


def test_a_reference_knows_where_its_pieces_stand() -> None:
    text = "see ${{ steps.extract.output.facts.0 }}"
    found = parse(text)[1]
    assert isinstance(found, Reference)
    pieces = [text[start : start + length] for start, length in map(found.place, range(3))]
    assert pieces == ["extract", "facts", "0"]


PIECES = st.sampled_from(["$", "$$", "{", "{{", "}}", "${{", "$${{", " params.x ", "a", "\n"])
TEXTS = st.lists(PIECES, max_size=6).map("".join)


@given(TEXTS)
def test_a_text_as_a_template_stands_for_itself(text: str) -> None:
    assert "".join(str(part) for part in parse(literal(text))) == text
    assert fill(literals({"a": [text]}), lambda _: None) == {"a": [text]}


@given(st.lists(TEXTS | st.just(None), max_size=5))
def test_a_template_is_written_as_it_was_read(pieces: list[str | None]) -> None:
    reference = Reference("params", "x", (), "params.x", 0, 0)
    template: list[Part] = [reference if piece is None else piece for piece in pieces]
    again = parse(write(template))
    joined: list[object] = []
    for part in map(shape, template):
        if joined and isinstance(joined[-1], str) and isinstance(part, str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    assert [shape(part) for part in again] == joined


@given(TEXTS, TEXTS, TEXTS)
def test_a_value_never_becomes_an_expression(before: str, value: str, after: str) -> None:
    filled = fill(write([before, value, after]), lambda _: "evaluated")
    assert filled == before + value + after


@pytest.mark.parametrize("value", ["text", 3, 1.5, True, None, [1, "a"], {"b": 1, "a": None}])
def test_a_single_expression_keeps_the_type_of_its_value(value: Json) -> None:
    assert fill({"v": ["${{ params.x }}"]}, lambda _: value) == {"v": [value]}


def test_inside_a_longer_text_values_are_rendered() -> None:
    values: dict[str, Json] = {"a": "as it is", "b": {"y": [1, True], "x": None}, "c": "é"}
    text = "${{ params.a }}|${{ params.b }}|${{ params.c }}|$${{"
    assert fill(text, lambda part: values[part.name]) == 'as it is|{"x":null,"y":[1,true]}|é|${{'


def test_keys_of_a_mapping_stay_what_they_are() -> None:
    assert fill({"${{ params.x }}": 1}, lambda _: "no") == {"${{ params.x }}": 1}


def test_every_expression_of_a_value_is_found() -> None:
    value: Json = {
        "a": ["${{ steps.x.output }}", {"b": "c ${{ steps.y.output.z }} ${{ }}"}],
        "n": 1,
    }
    found = [part.name if isinstance(part, Reference) else "wrong" for part in parts(value)]
    assert found == ["x", "y", "wrong"]


@pytest.mark.req("D32")
@pytest.mark.parametrize("text", ["$" * 300_000, "${" * 200_000, "$${{" * 200_000, "{{" * 200_000])
def test_a_hostile_text_takes_no_time(text: str) -> None:
    assert fill(literal(text), lambda _: "") == text
