"""A pattern, a schema or a text that takes long is judged where it can be ended, with the same verdict."""

import json
import random

import pytest

from holdfast.guards.content import SyntaxGuard
from holdfast.guards.pattern import RegexGuard
from holdfast.guards.schema import JsonSchemaGuard
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import GuardKind
from tests.generators.builders import Project
from tests.guards.builders import accepted, broken, candidate, judge, rejected, tree

LETTERS = random.Random(35).randbytes(4_000_000).translate(b"ab" * 128).decode()
UNLUCKY = {"pattern": "a[ab]{900}c"}  # ten microseconds for each letter of such a text
DOUBLING: Json = {
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    | {"d40": {"type": "string"}},
    "$ref": "#/$defs/d0",
}
MANY_SEARCHES: Json = {
    "items": {"not": {"anyOf": [{"pattern": f"a[ab]{{{n}}}c"} for n in range(897, 901)]}}
}
UNCOUNTED: Json = {  # twice as many ways at every step
    "unevaluatedProperties": False,
    "$ref": "#/$defs/a0",
    "$defs": {
        **{
            f"a{n}": {"$ref": f"#/$defs/a{n + 1}", "$dynamicRef": f"#/$defs/a{n + 1}"}
            for n in range(30)
        },
        "a30": {},
    },
}
TAGS = "".join(f"%TAG !a{n}! x\n" for n in range(40_000)) + "--- a\n"
PIECES = "f'" + "{1}" * 200_000 + "'"  # every piece is parsed from the beginning


@pytest.mark.req("D35", "I16")
@pytest.mark.parametrize(
    "kind, config, content",
    [
        (RegexGuard(), UNLUCKY, LETTERS),
        (JsonSchemaGuard(), {"pattern": UNLUCKY["pattern"]}, json.dumps(LETTERS[:1_000_000])),
        (JsonSchemaGuard(), DOUBLING, '"x"'),
        (JsonSchemaGuard(), MANY_SEARCHES, json.dumps([LETTERS[:10_000]] * 90)),
        (JsonSchemaGuard(), UNCOUNTED, "{}"),
        (SyntaxGuard(), "python", PIECES),
        (SyntaxGuard(), "yaml", TAGS),
    ],
    ids=["pattern", "one pattern", "schema", "patterns", "dynamic", "source", "yaml"],
)
def test_what_would_take_for_ever_ends_at_the_time_of_its_guard(
    project: Project, kind: GuardKind, config: Json, content: str
) -> None:
    guard = Guard("kind", config, name="slow", timeout=0.3)
    said = broken(project, kind, guard, candidate(content))
    assert said.startswith("'slow' gave no verdict within 0.3 s")


@pytest.mark.parametrize(
    "letters, feedback", [("a", ""), ("b", "nothing matches 'a[ab]{900}'")], ids=["a", "b"]
)
def test_a_large_pattern_gets_its_verdict(project: Project, letters: str, feedback: str) -> None:
    guard = Guard("regex", {"pattern": "a[ab]{900}"})
    wanted = rejected(guard, feedback) if feedback else accepted(guard)
    assert judge(project, RegexGuard(), guard, candidate(letters * 30_000)) == wanted


def test_a_large_source_gets_its_verdict(project: Project) -> None:
    guard = Guard("syntax", "python")
    many = "x = 1\n" * 10_000
    made = tree(**{"a.py": many, "b.py": f"{many}def f(:", "c.txt": "def"})
    said = rejected(guard, "b.py: not Python: line 10001: invalid syntax")
    assert judge(project, SyntaxGuard(), guard, made) == said
    assert judge(project, SyntaxGuard(), guard, candidate(many)) == accepted(guard)


def test_a_large_value_gets_its_verdict(project: Project) -> None:
    guard = Guard("json-schema", {"items": {"type": "integer"}, "maxItems": 30_000})
    numbers = list(range(30_000))
    assert judge(project, JsonSchemaGuard(), guard, candidate(str(numbers))) == accepted(guard)
    said = rejected(guard, "$[30000]: 'x' is not of type 'integer'\n$: ")
    found = judge(project, JsonSchemaGuard(), guard, candidate(json.dumps([*numbers, "x"])))
    assert found.feedback.startswith(said.feedback)


def test_a_schema_that_is_none_is_said_of_a_large_value_too(project: Project) -> None:
    guard = Guard("json-schema", {"type": "nothing"})
    large = candidate(json.dumps("x" * (1 << 20)))
    assert "which is no type" in broken(project, JsonSchemaGuard(), guard, large)


@pytest.mark.parametrize(
    "items, unique",
    [
        ("[]", True),
        ('[1, true, 0, false, null, "1"]', True),
        ("[1, 1.0]", False),
        ("[[1], [true]]", True),
        ("[[1], [1.0]]", False),
        ('[{"a": 1, "b": [2]}, {"b": [2], "a": 1}]', False),
        ('[{"a": 1}, {"a": 2}, [["a", 1]], "a"]', True),
        ("[[], {}]", True),
        (json.dumps([{"n": n} for n in range(5_000)]), True),
    ],
)
def test_items_are_unique_as_json_means_it(project: Project, items: str, unique: bool) -> None:
    guard = Guard("json-schema", {"uniqueItems": True})
    verdict = judge(project, JsonSchemaGuard(), guard, candidate(items))
    assert verdict.passed is unique
    assert unique or "has non-unique elements" in verdict.feedback


def test_numbers_that_have_one_hash_are_told_apart_quickly(project: Project) -> None:
    guard = Guard("json-schema", {"uniqueItems": True})
    colliding = [number * (2**61 - 1) for number in range(41_000)]
    assert judge(project, JsonSchemaGuard(), guard, candidate(json.dumps(colliding))) == accepted(
        guard
    )
    mixed = candidate('[1, true, "1", [1], 1.5, null]')
    assert judge(project, JsonSchemaGuard(), guard, mixed) == accepted(guard)
    for twice in ("[1, 1.0]", "[1e3, 1000]", '[{"a": 1}, {"a": 1.0}]', "[true, true]"):
        assert judge(project, JsonSchemaGuard(), guard, candidate(twice)).call == "reject"
