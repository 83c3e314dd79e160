"""Guards that only look at bytes: syntax, file, outputs, regex, json-schema."""

import pytest

from holdfast.guards.content import FileGuard, OutputsGuard, SyntaxGuard
from holdfast.guards.pattern import RegexGuard
from holdfast.guards.schema import JsonSchemaGuard
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import GuardKind
from tests.generators.builders import Project
from tests.guards.builders import accepted, broken, candidate, identity, judge, rejected, tree

DEEP = "[" * 100_000


def call(project: Project, kind: GuardKind, config: Json, content: bytes | str) -> tuple[str, str]:
    verdict = judge(project, kind, Guard("kind", config), candidate(content))
    assert verdict.guard == "kind"
    return verdict.call, verdict.feedback


# --- syntax -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "language, content",
    [
        ("python", "raise SystemExit  # not run\n"),
        ("python", "x = '\\d'  # a warning is no error\n"),
        ("json", '{"a": [1, 2.5, null]}'),
        ("yaml", "a: &x [1]\nb: *x\n---\nc: !!python/object:os.system {}\n"),
    ],
)
def test_good_syntax_is_accepted(project: Project, language: str, content: str) -> None:
    assert call(project, SyntaxGuard(), language, content) == ("accept", "")


@pytest.mark.parametrize(
    "language, content, says",
    [
        ("python", "x = 1\ndef f(:", "not Python: line 2: invalid syntax"),
        ("python", "a\0b", "not Python: source code string cannot contain null bytes"),
        ("python", DEEP, "not Python: "),
        ("json", '{"a": }', "not JSON: Expecting value: line 1 column 7 (char 6)"),
        ("json", "NaN", "not JSON: NaN is not a number of JSON"),
        ("json", b"\xff", "not JSON: not UTF-8"),
        ("json", DEEP, "not JSON: nested too deeply"),
        ("json", "9" * 5000, "not JSON: "),
        ("yaml", "a: [1", "not YAML: "),
        ("yaml", "a: *x", "not YAML: the alias '*x' has no anchor"),
        ("yaml", "a: &x 1\n---\nb: *x", "not YAML: the alias '*x' has no anchor"),
        ("yaml", b"\xff\xfe\xfa", "not YAML: "),
        ("yaml", DEEP, "not YAML: nested too deeply"),
    ],
)
def test_bad_syntax_is_rejected(
    project: Project, language: str, content: bytes | str, says: str
) -> None:
    verdict, feedback = call(project, SyntaxGuard(), language, content)
    assert verdict == "reject"
    assert feedback.startswith(says)


def test_of_several_files_those_of_the_language_are_read(project: Project) -> None:
    guard = Guard("syntax", "python")
    good, bad = tree(a_py="x = 1", b_txt="def"), tree(a_py="x = 1", b_py="def")
    assert judge(project, SyntaxGuard(), guard, good) == accepted(guard)
    verdict = judge(project, SyntaxGuard(), guard, bad)
    assert verdict == rejected(guard, "b.py: not Python: line 1: invalid syntax")
    none = judge(project, SyntaxGuard(), guard, tree(a_txt="x"))
    assert none == rejected(guard, "no file of the artifact ends in .py or .pyi")


def test_an_unknown_language_breaks_the_guard(project: Project) -> None:
    says = broken(project, SyntaxGuard(), Guard("syntax", "cobol"), candidate(""))
    assert says == "'cobol' is no language of a syntax guard\nhint: one of json, python, yaml"


# --- file ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config, verdict",
    [
        ({"min_bytes": 3, "max_bytes": 3}, ("accept", "")),
        ({"min_bytes": 4}, ("reject", "the artifact has 3 bytes; at least 4 are wanted")),
        ({"max_bytes": 2}, ("reject", "the artifact has 3 bytes; at most 2 are allowed")),
        ({"path": "x"}, ("reject", "the artifact has no file at 'x'")),
    ],
)
def test_the_size_of_the_whole_artifact(
    project: Project, config: Json, verdict: tuple[str, str]
) -> None:
    assert call(project, FileGuard(), config, "abc") == verdict


@pytest.mark.parametrize(
    "config, says",
    [
        ({"path": "./a.txt", "max_bytes": 1}, ""),
        ({"min_bytes": 3, "max_bytes": 3}, ""),
        ({"path": "b.txt", "max_bytes": 1}, "'b.txt' has 2 bytes; at most 1 are allowed"),
        ({"path": "c.txt"}, "the artifact has no file at 'c.txt'"),
    ],
)
def test_the_size_of_one_file_of_several(project: Project, config: Json, says: str) -> None:
    verdict = judge(project, FileGuard(), Guard("file", config), tree(a_txt="1", b_txt="22"))
    assert verdict.feedback == says


def test_the_path_of_a_single_produced_file(project: Project) -> None:
    guard = Guard("file", {"path": "out/x", "min_bytes": 1})
    verdict = judge(project, FileGuard(), guard, candidate(""), produces=("./out/x",))
    assert verdict == rejected(guard, "'out/x' has 0 bytes; at least 1 are wanted")


def test_a_bound_that_is_no_number_breaks_the_guard(project: Project) -> None:
    assert broken(project, FileGuard(), Guard("file", {"min_bytes": "1"}), candidate("")) == (
        "'min_bytes' of a file guard must be a whole number"
    )


# --- outputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, verdict",
    [
        ('{"a": null, "b": 1, "c": 2}', ("accept", "")),
        ('{"a": 1}', ("reject", "keys are missing: 'b'")),
        ("{}", ("reject", "keys are missing: 'a', 'b'")),
        ("[1]", ("reject", "the artifact is JSON, but not an object")),
        ("a", ("reject", "not JSON: Expecting value: line 1 column 1 (char 0)")),
    ],
)
def test_outputs_are_keys_of_a_json_object(
    project: Project, content: str, verdict: tuple[str, str]
) -> None:
    assert call(project, OutputsGuard(), ["a", "b"], content) == verdict


def test_several_files_have_no_keys(project: Project) -> None:
    guard = Guard("outputs", ["a"])
    verdict = judge(project, OutputsGuard(), guard, tree(a="{}"))
    assert verdict == rejected(guard, "the artifact is several files, not JSON")


# --- regex --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config, content, verdict",
    [
        ("b+", "abc", ("accept", "")),
        ({"pattern": "b+", "must": "match"}, "abc", ("accept", "")),
        ({"pattern": "^b"}, "abc", ("reject", "nothing matches '^b'")),
        ({"pattern": "TODO", "must": "absent"}, "done", ("accept", "")),
        (
            {"pattern": "TODO", "must": "absent"},
            "a\nü TODO",
            ("reject", "line 2 matches 'TODO', which must be absent"),
        ),
        ({"pattern": "ü."}, "xüy", ("accept", "")),
        ({"pattern": "."}, b"\xff", ("reject", "the artifact is not UTF-8")),
    ],
)
def test_a_pattern_is_searched_in_the_text(
    project: Project, config: Json, content: bytes | str, verdict: tuple[str, str]
) -> None:
    assert call(project, RegexGuard(), config, content) == verdict


def test_several_files_are_no_text(project: Project) -> None:
    guard = Guard("regex", "x")
    verdict = judge(project, RegexGuard(), guard, tree(a="x"))
    assert verdict == rejected(guard, "the artifact is several files")


@pytest.mark.req("D35")
def test_a_pattern_cannot_run_away(project: Project) -> None:
    """With a backtracking engine this would not end."""
    verdict = call(project, RegexGuard(), {"pattern": "^(a+)+$"}, "a" * 5000 + "!")
    assert verdict == ("reject", "nothing matches '^(a+)+$'")


@pytest.mark.parametrize("config", [{"pattern": "(a"}, {"pattern": "(?=a)"}, {"pattern": "(a)\\1"}])
def test_a_pattern_that_re2_does_not_know_breaks_the_guard(project: Project, config: Json) -> None:
    assert "is no pattern of re2" in broken(
        project, RegexGuard(), Guard("regex", config), candidate("")
    )


@pytest.mark.parametrize("config", [{}, {"pattern": 1}, {"pattern": "a", "must": "maybe"}])
def test_a_config_without_a_pattern_breaks_the_guard(project: Project, config: Json) -> None:
    assert broken(project, RegexGuard(), Guard("regex", config), candidate("")) == (
        "a regex guard needs 'pattern', and 'must' as 'match' or 'absent'"
    )


# --- json-schema --------------------------------------------------------------------------------

PERSON: Json = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "age": {"minimum": 0}},
    "patternProperties": {"^x_": {"type": "integer"}},
    "additionalProperties": False,
    "required": ["name"],
}


def test_a_fitting_value_is_accepted(project: Project) -> None:
    assert call(project, JsonSchemaGuard(), PERSON, '{"name": "ada", "x_1": 1}') == ("accept", "")


def test_every_error_is_listed_with_its_path(project: Project) -> None:
    content = '{"age": -1, "name": "Ada", "x_1": "no", "more": 1}'
    verdict, feedback = call(project, JsonSchemaGuard(), PERSON, content)
    assert verdict == "reject"
    assert sorted(feedback.splitlines()) == [
        "$.age: -1 is less than the minimum of 0",
        "$.name: 'Ada' does not match '^[a-z]+$'",
        "$.x_1: 'no' is not of type 'integer'",
        '$: the key "more" is not allowed',
    ]


def test_at_most_twenty_errors_are_listed(project: Project) -> None:
    schema: Json = {"items": {"type": "string"}}
    _, feedback = call(project, JsonSchemaGuard(), schema, str(list(range(50))))
    assert len(feedback.splitlines()) == 20


@pytest.mark.parametrize("schema, verdict", [(True, "accept"), (False, "reject"), ({}, "accept")])
def test_a_schema_may_be_true_or_false(project: Project, schema: Json, verdict: str) -> None:
    assert call(project, JsonSchemaGuard(), schema, "1")[0] == verdict


@pytest.mark.req("D35")
def test_a_pattern_of_a_schema_cannot_run_away(project: Project) -> None:
    evil = "^(a+)+$"
    schema: Json = {
        "properties": {"v": {"pattern": evil}},
        "patternProperties": {evil: False},
        "additionalProperties": {"type": "string"},
        "propertyNames": {"pattern": ".*"},
    }
    text = "a" * 5000 + "!"
    verdict, feedback = call(project, JsonSchemaGuard(), schema, f'{{"v": "{text}", "{text}": 1}}')
    assert verdict == "reject"
    assert len(feedback.splitlines()) == 2


@pytest.mark.parametrize(
    "schema, says",
    [
        ({"type": "nothing"}, "the schema is no schema: 'type' is 'nothing', which is no type"),
        ({"$ref": "http://127.0.0.1:9/x"}, "the schema refers to 'http://127.0.0.1:9/x'"),
        ({"$ref": "#/$defs/none"}, "the schema refers to '#/$defs/none'"),
        ({"pattern": "(?=x)"}, "'(?=x)' is no pattern of re2: invalid perl operator in '(?='"),
        ([1], "a schema must be a JSON object, true or false"),
        (
            {"patternProperties": {}, "unevaluatedProperties": False},
            "a schema may not have both 'patternProperties' and 'unevaluatedProperties'",
        ),
        ("none.json", "the schema file 'none.json' cannot be read"),
        ("bad.json", "the schema file 'bad.json' is not JSON"),
        (
            "../outside.json",
            "the schema file '../outside.json' cannot be read: '../",
        ),
    ],
)
def test_a_schema_that_is_none_breaks_the_guard(project: Project, schema: Json, says: str) -> None:
    project.write("bad.json", "{")
    guard = Guard("json-schema", schema)
    assert broken(project, JsonSchemaGuard(), guard, candidate('"x"')).startswith(says)


def test_a_value_that_is_nested_too_deeply_is_rejected(project: Project) -> None:
    schema: Json = {"items": {"$ref": "#"}}
    for depth, said in ((900, ("reject", "not JSON: nested too deeply")), (190, ("accept", ""))):
        content = "[" * depth + "]" * depth
        assert call(project, JsonSchemaGuard(), schema, content) == said


def test_no_json_is_rejected(project: Project) -> None:
    assert call(project, JsonSchemaGuard(), {}, "no")[1].startswith("not JSON")


@pytest.mark.req("R4", "R161")
def test_a_schema_file_is_part_of_the_identity(project: Project) -> None:
    kind, root = JsonSchemaGuard(), str(project.root)
    assert identity(kind, "s.json", root) == {"unresolved": ["s.json"]}
    project.write("s.json", "{}")
    before = identity(kind, "s.json", root)
    project.write("s.json", "true")
    assert before != identity(kind, "s.json", root)
    assert call(project, kind, "s.json", "1") == ("accept", "")
