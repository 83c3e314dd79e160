"""Values of a step are filled from the artifacts it needs, or the attempt says what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from holdfast.core.values import (
    INPUTS,
    Content,
    condition_unmet,
    file_values,
    filled,
    has_expressions,
    listed,
    read_by,
)
from holdfast.errors import AttemptError
from holdfast.model.digest import Json
from holdfast.model.plan import Need, Step, StepId
from tests.core import builders
from tests.core.builders import sid

pytestmark = pytest.mark.req("R180")

ARTIFACTS: Mapping[str, bytes | None] = {
    "text": b"hello\n",
    "json": b'{"facts": ["x", {"q": null}], "n": 1.5, "none": null, "deep": {"a": {}}}',
    "bytes": b"\xff",
    "tree": None,
    "nan": b'{"a": NaN}',
    "deep": b"[" * 100_000,
    "nested": b"[" * 900 + b"]" * 900,
    "half": b'{"a": "\\uD800"}',
    "many": b"{" + b",".join(b'"k%d": 1' % i for i in range(30)) + b"}",
}


def with_values(values: Mapping[str, Json], prompt: Json = None) -> Step:
    needs = tuple(Need(StepId(name)) for name in ARTIFACTS)
    return Step(StepId("s"), run=("x",), values=values, prompt=prompt, needs=needs)


def fill(template: str) -> Json:
    return filled(with_values({"v": template}), lambda need: ARTIFACTS[need]).values["v"]


@pytest.mark.parametrize(
    "template, value",
    [
        ("${{ steps.text.output }}", "hello\n"),
        ("<${{ steps.text.output }}>", "<hello\n>"),
        ("${{ steps.json.output.facts }}", ["x", {"q": None}]),
        ("${{ steps.json.output.facts.1.q }}", None),
        ("${{ steps.json.output.n }}", 1.5),
        ("n=${{ steps.json.output.n }} ${{ steps.json.output.deep }}", 'n=1.5 {"a":{}}'),
        ("$${{ steps.json.output.n }}", "${{ steps.json.output.n }}"),
    ],
)
def test_a_reference_gives_the_text_or_what_the_json_has(template: str, value: Json) -> None:
    assert fill(template) == value


@pytest.mark.parametrize(
    "path, story",
    [
        ("json.output.fact", "has no 'fact'; it has: facts, n, none, deep"),
        ("json.output.deep.b", "has no 'b' in 'deep'; it has: a"),
        ("json.output.deep.a.b", "has no 'b' in 'deep.a'; it has no fields"),
        ("json.output.facts.2", "has no '2' in 'facts'; it is a list of 2, counted from 0"),
        ("json.output.facts.x", "has no 'x' in 'facts'; it is a list of 2, counted from 0"),
        ("json.output.n.x", "has no 'x' in 'n'; it is a number"),
        ("json.output.none.x", "has no 'x' in 'none'; it is null"),
        ("json.output.facts.0.x", "has no 'x' in 'facts.0'; it is text"),
        ("text.output.a", "is not JSON and has no 'a'; it begins with 'hello'"),
        ("nan.output.a", "is not JSON (NaN is not a number of JSON) and has no 'a'"),
        ("deep.output.a", "is not JSON (nested too deeply) and has no 'a'"),
        ("nested.output.0", "is not JSON (nested too deeply) and has no '0'"),
        ("half.output.a", "is not JSON (a text holds a lone surrogate) and has no 'a'"),
        ("bytes.output", "is not UTF-8 text"),
        ("bytes.output.a", "is not UTF-8 text"),
        ("tree.output", "is several files"),
        ("many.output.x", "k19 and 10 more"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(path: str, story: str) -> None:
    with pytest.raises(AttemptError) as caught:
        fill(f"${{{{ steps.{path} }}}}")
    name = path.partition(".")[0]
    start = f"'${{{{ steps.{path} }}}}' cannot be filled in: the artifact of '{name}' "
    assert caught.value.message.startswith(start)
    assert story in caught.value.message
    assert caught.value.reason == "command_failed"


def test_a_prompt_is_filled_too_and_artifacts_are_read_once() -> None:
    asked: list[str] = []

    def read(need: StepId) -> bytes | None:
        asked.append(need)
        return ARTIFACTS[need]

    twice = "${{ steps.json.output.n }} ${{ steps.json.output.n }}"
    step = filled(with_values({"a": twice, "b": twice}, {"task": twice, "role": "r"}), read)
    assert step.prompt == {"task": "1.5 1.5", "role": "r"}
    assert asked == ["json"]


@pytest.mark.parametrize(
    "template, story",
    [
        ("${{ params.x }}", "'${{ params.x }}' cannot be filled in here"),
        ("${{ item }}", "'${{ item }}' cannot be filled in here"),
        ("${{ steps.json.output", "'${{' is never closed"),
        (
            "${{ steps.other.output }}",
            "'${{ steps.other.output }}' reads 'other', which is not needed as data",
        ),
    ],
)
def test_a_step_made_by_a_program_is_checked_too(template: str, story: str) -> None:
    with pytest.raises(AttemptError, match=r".") as caught:
        fill(template)
    assert story in caught.value.message


def test_a_step_without_expressions_is_the_same_step() -> None:
    for step in (with_values({}), with_values({"a": ["{{ x }}", 1]}, "prompt")):
        assert filled(step, lambda _: b"") is step
    needs = Step(StepId("s"), run=("x",), needs=(Need(StepId("a")),))
    assert filled(needs, lambda _: b"") is needs


def test_the_needs_that_a_step_reads_by_itself_are_known() -> None:
    one = replace(
        builders.step("s", "a", "b", "c"),
        prompt="use ${{ steps.a.output }}",
        values={"x": "${{ steps.b.output }}", "y": "${{ params.c }}"},
    )
    assert read_by(one) == {sid("a"), sid("b")}


def test_a_value_that_is_the_path_of_a_need_stands_for_its_files() -> None:
    one = replace(
        builders.step("s", "a", "b"), uses="python", values={"x": f"{INPUTS}a", "y": "a", "z": 1}
    )
    assert file_values(one) == {"x": sid("a")}
    assert file_values(replace(one, uses="shell")) == {}


def several(name: StepId) -> Content:
    made: dict[str, Content] = {
        "items": [b"1", b"text\n", [b"2"], None],
        "named": {"a": b'{"x": 1}', "b": b"t"},
        "bad": [b"\xff"],
        "text": b"hello\n",
        "json": b'{"n": 1}',
        "tree": None,
    }
    return made[name]


def asked(when: Json) -> Step:
    return replace(builders.step("s", "items", "named", "bad", "text", "json", "tree"), when=when)


def test_what_was_gathered_is_a_list_or_a_mapping_of_what_each_made() -> None:
    assert listed("${{ steps.items.output }}", several) == [1, "text\n", [2], None]
    assert listed("${{ steps.named.output }}", several) == {"a": {"x": 1}, "b": "t"}
    assert listed("${{ steps.named.output.a.x }}", several) == 1
    assert listed("${{ steps.items.output.1 }}", several) == "text\n"
    assert listed("${{ steps.json.output }}", several) == {"n": 1}
    assert listed("${{ steps.json.output.n }}", several) == 1
    with pytest.raises(AttemptError, match="has an item that is not UTF-8 text"):
        listed("${{ steps.bad.output }}", several)
    with pytest.raises(AttemptError, match=r"is not JSON; it begins with 'hello'") as caught:
        listed("${{ steps.text.output }}", several)
    assert caught.value.message.endswith("\nhint: print JSON in 'text'")
    with pytest.raises(AttemptError) as caught:
        listed("${{ steps.text.output.a }}", several)
    whole = "or take the whole text: ${{ steps.text.output }}"
    assert caught.value.message.endswith(f"\nhint: print JSON in 'text', {whole}")


def test_a_lost_step_is_null_in_a_value_and_absent_in_a_condition() -> None:
    step = replace(asked(None), values={"v": "${{ steps.json.output.n }}"})
    assert filled(step, several, {sid("json")}).values["v"] is None
    assert filled(step, several, {sid("text")}).values["v"] == 1


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        (None, True),
        ({"steps.json.output.n": {"equals": 1}}, True),
        ({"steps.json.output.n": {"equals": 2}}, False),
        ({"steps.text.output": {"equals": "hello"}}, True),
        ({"steps.text.output": {"equals": "hello\n"}}, False),
        ({"steps.json.output.missing": {"equals": 1}}, False),
        ({"steps.tree.output": {"equals": "x"}}, False),
        ({"steps.tree.output": {"exists": False}}, True),
        ({"steps.items.output.0": {"equals": 1}}, True),
        ({"steps.items.output": {"equals": [1, "text\n", [2], None]}}, True),
    ],
)
def test_a_condition_reads_the_value_or_the_text_without_its_last_line_end(
    when: Json, holds: bool
) -> None:
    assert bool(condition_unmet(asked(when), several)) is not holds


def test_a_condition_does_not_hold_on_what_is_lost() -> None:
    step = asked({"steps.json.output.n": {"equals": 1}})
    assert condition_unmet(step, several) == ""
    assert condition_unmet(step, several, {sid("json")})
    absent = asked({"steps.json.output.n": {"exists": False}})
    assert condition_unmet(absent, several, {sid("json")}) == ""


def test_templates_are_found_however_deep_they_lie() -> None:
    template = "${{ steps.a.output }}"
    some: list[Json] = [
        template,
        [1, template],
        {"a": 1, "b": template},
        {"x": [{"y": template}]},
    ]
    assert all(has_expressions(with_values({"v": value})) for value in some)
    none: list[Json] = ["text", 5, True, None, [], {}, ["x"], {"a": {"b": "x"}}]
    assert not any(has_expressions(with_values({"v": value})) for value in none)
    assert has_expressions(with_values({}, template))


def test_names_that_are_too_long_to_read_are_cut() -> None:
    long = {"k" * 61: 1, "k" * 60: 2}
    step = replace(asked(None), values={"v": "${{ steps.json.output.x }}"})
    with pytest.raises(AttemptError) as caught:
        filled(step, lambda _: json.dumps(long).encode())
    assert caught.value.message.endswith(f"it has: {'k' * 59}…, {'k' * 60}")


def test_what_cannot_be_read_names_no_need() -> None:
    assert read_by(replace(builders.step("s", "a"), prompt="use ${{ steps.a.output")) == set()
    assert read_by(replace(builders.step("s", "a"), prompt="use ${{ + }}")) == set()
