"""Guards that could never judge are found while the plan is read, without running anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import wire
from holdfast.errors import PlanError, Problem, UsageError
from holdfast.formats import soundness
from holdfast.formats.planfile import Asked, Loaded, load_text
from holdfast.guards.schema import schema_flaw
from holdfast.guards.schemaparts import is_plain
from holdfast.model.digest import Json
from holdfast.ports import Flaw
from holdfast.process.terms import Terms

pytestmark = pytest.mark.req("R16", "R180", "D32")


def load(text: str, root: Path | str = "/nowhere", check: object = wire.guard_flaw) -> Loaded:
    asked = Asked(check=check)  # type: ignore[arg-type]  # a check of the test's own
    return load_text(text.encode(), "plan.yaml", str(root), asked)


def problems(text: str, root: Path | str = "/nowhere") -> tuple[Problem, ...]:
    with pytest.raises(PlanError) as caught:
        load(text, root)
    return caught.value.problems


def guarded(guard: str) -> str:
    return f"steps:\n  a:\n    run: x\n    guards:\n    - {guard}\n"


@pytest.mark.parametrize(
    "guard, marked, says, hint",
    [
        ("regex: {pattern: '('}", "'('", "'(' is no pattern of re2: missing )", ""),
        (
            "regex: {must: absent, pattern: '(?<!x)h'}",
            "'(?<!x)h'",
            "'(?<!x)h' is no pattern of re2: invalid perl operator in '(?<!'",
            "re2 cannot look ahead or behind, nor refer back to a group",
        ),
        (
            "json-schema: {type: foo}",
            "foo",
            "the schema is no schema: 'type' is 'foo', which is no type",
            "one of array, boolean, integer, null, number, object, string",
        ),
        (
            "json-schema: {items: {type: [object, strnig]}}",
            "[object",
            "the schema is no schema: 'type' is ['object', 'strnig'], which is no type",
            "one of array, boolean, integer, null, number, object, string",
        ),
        (
            "json-schema: {properties: {n: {minimum: low}}}",
            "low",
            "the schema is no schema: 'minimum' must be of type number, not 'low'",
            "",
        ),
        (
            "json-schema: {required: [a, 1]}",
            "1",
            "the schema is no schema: an item of 'required' must be of type string, not 1",
            "",
        ),
        (
            "json-schema: {anyOf: []}",
            "[]",
            "the schema is no schema: 'anyOf' may not be []",
            "",
        ),
        (
            "json-schema: {properties: {n: {pattern: '(?=x)'}}}",
            "'(?=x)'",
            "'(?=x)' is no pattern of re2: invalid perl operator in '(?='",
            "re2 cannot look ahead or behind, nor refer back to a group",
        ),
        (
            "json-schema: {patternProperties: {'[': {type: string}}}",
            "'[': ",
            "'[' is no pattern of re2: missing ]",
            "",
        ),
        (
            "json-schema: {allOf: [{$ref: '#/$defs/none'}], $defs: {some: true}}",
            "'#/$defs/none'",
            "the schema refers to '#/$defs/none', which is not in it",
            "",
        ),
        (
            "json-schema: {$ref: 'https://example.org/x.json'}",
            "'https",
            "the schema refers to 'https://example.org/x.json', which is not in it",
            "",
        ),
        (
            "json-schema: {patternProperties: {x: true}, unevaluatedProperties: false}",
            "{patternProperties",
            "a schema may not have both 'patternProperties' and 'unevaluatedProperties'",
            "",
        ),
    ],
)
def test_a_guard_that_can_never_judge_is_marked_where_it_is_wrong(
    guard: str, marked: str, says: str, hint: str
) -> None:
    text = guarded(guard)
    (problem,) = problems(text)
    assert (problem.code, problem.message, problem.hint) == ("P049", says, hint)
    line = text.splitlines()[problem.line - 1]
    assert line[problem.column - 1 :].startswith(marked)


@pytest.mark.parametrize(
    "guard",
    [
        "regex: {pattern: '(?m)^# '}",
        "json-schema: {}",
        "json-schema: {type: [object, 'null'], required: [a], x-ours: 1}",
        "json-schema: {pattern: '\\p{L}+'}",
        "json-schema: {$ref: '#/$defs/n', $defs: {n: {items: {$ref: '#'}}}}",
        "json-schema: {$ref: '#here', $defs: {n: {$anchor: here}}}",
        "json-schema: {$ref: 'https://json-schema.org/draft/2020-12/schema'}",
        "json-schema: {$id: 'https://a.b/c', $ref: 'c#/$defs/n', $defs: {n: true}}",
        "json-schema: {$ref: d, $id: 'https://a.b/c', $defs: {n: {$id: d}}}",
        "json-schema: {enum: [{type: foo, pattern: '('}], const: {$ref: nowhere}}",
    ],
)
def test_a_guard_that_can_judge_is_let_through(guard: str) -> None:
    assert load(guarded(guard)).warnings == ()


def test_a_schema_that_is_nested_too_deeply_is_no_schema() -> None:
    schema: Json = {}
    for _ in range(2000):
        schema = {"not": schema}
    flaw = schema_flaw(schema)
    assert flaw is not None
    assert flaw.message == "the schema is nested too deeply"


def test_a_schema_file_is_named_with_the_place_in_it(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{\n  "type": "foo"\n}\n')
    text = "steps:\n  a: {run: x, schema: s.json}\n  b: {run: x, schema: s.json}\n"
    first = problems(text, tmp_path)[0]
    assert (first.code, first.line, first.column) == ("P049", 2, 23)
    says = "s.json:2:11: the schema is no schema: 'type' is 'foo', which is no type"
    assert first.message == says


def test_the_same_value_is_looked_at_once() -> None:
    asked: list[tuple[str, Json]] = []
    text = "defaults: {guards: [{regex: {pattern: b}}]}\nsteps:\n"
    rows = [f"  s{i}: {{run: x, schema: {{type: object}}}}\n" for i in range(50)]
    load(text + "".join(rows), check=lambda kind, value: asked.append((kind, value)))
    assert asked == [("regex", {"pattern": "b"}), ("json-schema", {"type": "object"})]


def test_a_library_that_is_not_there_is_a_warning() -> None:
    def lacking(kind: str, _value: Json) -> Flaw:
        return Flaw(f"a {kind} needs it", hint="pip install it", lacks=kind)

    text = guarded("regex: {pattern: '('}\n    - regex: {pattern: ')'}\n    - json-schema: {}")
    found = load(text, check=lacking).warnings
    assert [(item.code, item.line, item.message, item.hint) for item in found] == [
        ("P904", 5, "a regex needs it", "pip install it"),
        ("P904", 7, "a json-schema needs it", "pip install it"),
    ]


def test_without_its_library_a_schema_is_a_warning_and_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire.workshop, "is_installed", lambda _library: False)
    loaded = load(guarded("json-schema: {type: object}"))
    assert [(item.code, item.hint) for item in loaded.warnings] == [
        ("P904", "pip install 'holdfast[schema]'")
    ]
    with pytest.raises(UsageError, match="needs jsonschema, which is not installed"):
        wire.executor_for(loaded.plan, terms=Terms())


def test_checks_that_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundness, "MOST_SECONDS", -1.0)
    found = load(guarded("regex: {pattern: '('}\n    - regex: {pattern: ')'}")).warnings
    assert [(item.code, item.message) for item in found] == [
        ("P904", "the plan has too many schemas and patterns to check them all")
    ]


ODD: list[Json] = ["object", "foo", "", 0, -1, 1.5, True, None, [], ["a"], ["a", "a"], {}]
TYPES: list[Json] = [["object", "null"], ["string", "string"]]
KEYS = [
    *("type", "required", "enum", "examples", "uniqueItems", "const", "default", "title", "format"),
    *("minimum", "maxLength", "minItems", "maxProperties", "$defs", "properties", "anyOf", "if"),
    *("prefixItems", "items", "not", "additionalProperties", "unevaluatedItems", "description"),
]
SCHEMAS: st.SearchStrategy[Json] = st.recursive(
    st.sampled_from(ODD + TYPES),
    lambda inner: (
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=3) | st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), SCHEMAS, max_size=3))
def test_what_is_plainly_right_is_right_for_the_library_too(schema: dict[str, Json]) -> None:
    assert not is_plain(schema) or schema_flaw(schema) is None, json.dumps(schema)
