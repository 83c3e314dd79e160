"""What holds for every vendor of models, whatever language its servers speak: one suite for all."""

import gzip
import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from holdfast.testing.server import Asked, Fail, Hang, ModelServer, Raw, Reply, Say, Script
from tests.cli.models import LOADED
from tests.cli.project import LIBRARY, Project, Run, kill, until
from tests.cli.vendors import VENDORS, Vendor

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
NO_KEY = {"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
PROMPT = "answer in one word"
TOOL = '''
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package that is not there either
        return False


LIBRARIES = (
    *LOADED,
    *(
        f"holdfast.generators.vendors.{one.kind}"
        for one in VENDORS.values()
        if one.module and is_installed(one.module)
    ),
)


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    found: Vendor = VENDORS[request.param]
    if found.module and not is_installed(found.module):
        message = f"'{found.module}' is not installed: pip install 'holdfast[{found.extra}]'"
        if os.environ.get("HOLDFAST_REQUIRE_PARTS") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return found


@contextmanager
def served(
    project: Project, vendor: Vendor, script: Script | Sequence[Reply]
) -> Iterator[ModelServer]:
    """A server of the vendor that the person's configuration names `house`, with prices."""
    project.loaded = LIBRARIES
    with ModelServer(script, language=vendor.language) as server:
        folder = project.home / ".config" / "holdfast"
        folder.mkdir(parents=True, exist_ok=True)
        prices = "".join(
            f'[prices."house:{model}"]\ninput = 1\noutput = 2\ncached = 0.5\n'
            for model in filter(None, (vendor.model, vendor.plain))
        )
        (folder / "config.toml").write_text(
            f'[providers.house]\nkind = "{vendor.kind}"\nbase_url = "{server.url}"\n'
            f"{vendor.settings}\n{prices}"
        )
        yield server


@pytest.mark.req("R165")
def test_a_call_that_was_sent_is_known_to_be_when_its_engine_dies(
    project: Project, vendor: Vendor
) -> None:
    project.plan({"a": step(vendor)})
    with served(
        project, vendor, lambda asked: Hang() if asked.number == 1 else Say("said")
    ) as server:
        engine = project.start("run", "--yes", env=vendor.key)
        until(lambda: server.requests, "it is asked")
        kill(engine)
        done = project.resume("--yes", env=vendor.key)
        assert done.states == {"a": "done"}
        assert len(server.requests) == 2
    assert done.data["totals"]["interrupted_calls"] == 1


def step(vendor: Vendor, prompt: str = PROMPT, **more: Any) -> dict[str, Any]:
    return {"prompt": prompt, "model": f"house:{vendor.model or vendor.plain}", **more}


def run(project: Project, vendor: Vendor) -> Run:
    return project.run("--yes", env=vendor.key)


def of_kind(project: Project, kind: str) -> list[Any]:
    return [event for event in project.events() if event["event"] == kind]


def test_an_answer_is_the_artifact_and_its_facts_are_recorded(
    project: Project, vendor: Vendor
) -> None:
    project.plan({"a": step(vendor, model={"id": step(vendor)["model"], "max_tokens": 77})})
    text = "kelp holds fast — wherever it grows"
    with served(project, vendor, [Say(text, input=10, output=5, cached=4)]) as server:
        assert run(project, vendor).states == {"a": "done"}
    assert project.shown("a").decode() == text
    (asked,) = server.requests
    assert PROMPT in json.dumps(asked.body)
    assert "77" in json.dumps(asked.body)
    headers = {name.lower(): value for name, value in asked.headers.items()}
    assert headers[vendor.sent[0]] == vendor.sent[1]
    (answered,) = of_kind(project, "call_answered")
    assert (answered["input"], answered["output"], answered["cached"]) == (10, 5, 4)
    assert answered["cost"] == (0 if vendor.kind == "ollama" else 18)
    assert answered["id"] == vendor.language.id(asked)
    assert answered["finish"] == "stop"
    assert project.run("--yes").states == {"a": "reused"}, "needs no key"


STRUCTURED = [
    (name, which)
    for name, vendor in VENDORS.items()
    for which in ("model", "plain", "many")
    if (vendor.model if which == "model" else vendor.plain)
]


@pytest.mark.parametrize("vendor, which", STRUCTURED, indirect=["vendor"])
def test_a_structured_answer_is_asked_for_as_the_model_takes_it(
    project: Project, vendor: Vendor, which: str
) -> None:
    schema: Any = {"type": "array", "items": SCHEMA} if which == "many" else SCHEMA
    value: Any = [{"n": 3}, {"n": 4}] if which == "many" else {"n": 3}

    def script(asked: Asked) -> Reply:
        if which == "model":
            assert vendor.language.schema(asked)
            return Say(json.dumps(value))
        (name,) = vendor.language.offered(asked)
        return Say(tools=[(name, {"answer": value} if which == "many" else value)])

    model = vendor.model if which == "model" else vendor.plain
    project.plan({"a": step(vendor, model=f"house:{model}", schema=schema)})
    with served(project, vendor, script) as server:
        found = run(project, vendor)
    assert found.states == {"a": "done"}, found.err
    assert len(server.requests) == 1
    assert json.loads(project.shown("a")) == value
    (answered,) = of_kind(project, "call_answered")
    assert answered["finish"] == "stop"


SHAPES: dict[str, tuple[dict[str, Any], Any]] = {
    # a schema as people write it, and what it describes
    "list": ({"type": "array", "items": SCHEMA}, [{"n": 3}]),
    "open": (
        {"type": "array", "items": {"type": "object", "required": ["n", "of"]}},
        [{"n": 3, "of": "it"}],
    ),
    "no-properties": ({"type": "object", "required": ["n"]}, {"n": 3, "more": [1]}),
    "optional": (
        {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}}},
        {"n": 3},
    ),
    "any": ({"anyOf": [SCHEMA, {"type": "null"}]}, None),
    "number": ({"type": "number", "minimum": 1}, 2.50),
    "map": (
        {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}},
        {"a": 1},
    ),
    "shared": (
        {"type": "array", "items": {"$ref": "#/$defs/one"}, "$defs": {"one": SCHEMA}},
        [{"n": 3}],
    ),
    "tree": ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]]),
    "named": (
        {
            "anyOf": [
                {**SCHEMA, "properties": {"answer": {"type": "string"}}, "required": []},
                SCHEMA,
            ]
        },
        {"answer": "42"},
    ),
}


def test_any_schema_reaches_the_model_with_its_meaning(project: Project, vendor: Vendor) -> None:
    def script(asked: Asked) -> Reply:
        schema, value = SHAPES[spoken_of(asked, SHAPES)]
        name = "answer_" if '"answer"' in json.dumps(schema) else "answer"
        given = value if schema.get("type") == "object" else {name: value}
        sent: Any = vendor.language.schema(asked)
        if sent:
            validate(given, sent)
            return Say(json.dumps(given))
        (tool,) = vendor.language.offered(asked)
        return Say(tools=[(tool, given)])

    project.plan(
        {
            name: step(vendor, f"case {name}", schema=schema, retries=0)
            for name, (schema, _) in SHAPES.items()
        }
    )
    with served(project, vendor, script) as server:
        found = run(project, vendor)
    assert set(found.states.values()) == {"done"}, found.err
    assert len(server.requests) == len(SHAPES)
    shown = {name: json.loads(project.shown(name)) for name in SHAPES}
    assert shown == {name: value for name, (_, value) in SHAPES.items()}


def test_what_nobody_wrapped_is_not_taken_apart(project: Project, vendor: Vendor) -> None:
    """The server does not care for the schema that it is given."""
    open_object = {"type": "object", "required": ["answer"]}
    named = {"type": "object", "properties": {"answer": {"type": "string"}}}
    shapes = {"named": {"anyOf": [named, SCHEMA]}, "open": {"oneOf": [open_object, SCHEMA]}}

    def script(asked: Asked) -> Reply:
        offered = vendor.language.offered(asked)
        given = {"answer": "42"}
        return Say(tools=[(offered[0], given)]) if offered else Say(json.dumps(given))

    project.plan(
        {
            name: step(vendor, f"case {name}", schema=schema, retries=0)
            for name, schema in shapes.items()
        }
    )
    with served(project, vendor, script):
        found = run(project, vendor)
    assert set(found.states.values()) == {"done"}, found.err
    assert {json.loads(project.shown(name))["answer"] for name in shapes} == {"42"}


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["text", "schema"])
def test_an_agent_uses_a_tool(
    project: Project, vendor: Vendor, schema: dict[str, Any] | None
) -> None:
    project.write("work.py", TOOL)
    more: dict[str, Any] = {} if schema is None else {"schema": schema}
    project.plan({"a": step(vendor, uses="agent", tools=["work:add"], **more)})
    answer = '{"n": 5}' if schema else "it is 5"

    def script(asked: Asked) -> Reply:
        offered = vendor.language.offered(asked)
        if asked.number == 1:
            assert "add" in offered
            return Say("let me see", tools=[("add", {"a": 2, "b": 3})])
        last = [name for name in offered if name != "add"]
        return Say(tools=[(last[0], {"n": 5})]) if last else Say(answer)

    with served(project, vendor, script) as server:
        found = run(project, vendor)
    assert found.states == {"a": "done"}, found.err
    shown = project.shown("a").decode()
    assert (json.loads(shown) == {"n": 5}) if schema else (shown == answer)
    assert vendor.language.told(server.requests[1]) == ["5"]
    (used,) = of_kind(project, "tool_used")
    assert used["name"] == "add"


LONG = 2 * "a long answer that is cut before it comes to its end; "
AGAIN: dict[str, tuple[Reply, str]] = {
    # what the server does first, and what is recorded of it; then it answers
    "too-often": (Fail(429, headers={"retry-after": "2"}), "rate_limited"),
    "server-error": (Fail(500), "provider_error"),
    "ended-early": (Say(LONG, cut=5), "cut_off"),
    "broken-off": (Say(LONG, cut=5, chunked=True), "cut_off"),
    "nonsense": (Raw(b"<html>this is not what was asked for</html>"), "malformed"),
}
ENDED: dict[str, tuple[Reply, str]] = {
    # what the server always does, and the reason of the step
    "fine": (Say("ok"), "never_ran"),
    "refused": (Say("", finish="content_filter"), "model_refused"),
    "cut-at-its-limit": (Say("half", finish="length"), "answer_cut"),
    "no-such-model": (Fail(404), "call_refused"),
    "bad-request": (Fail(400, "what is this"), "call_refused"),
}


def spoken_of(asked: Asked, names: Collection[str]) -> str:
    (name,) = (name for name in names if f"case {name}" in json.dumps(asked.body))
    return name


@pytest.mark.req("R168")
def test_what_may_pass_is_asked_again_and_recorded(project: Project, vendor: Vendor) -> None:
    met: set[str] = set()

    def script(asked: Asked) -> Reply:
        name = spoken_of(asked, AGAIN)
        if name in met:
            return Say("ok")
        met.add(name)
        return AGAIN[name][0]

    project.plan({name: step(vendor, f"case {name}", retries=0) for name in AGAIN})
    with served(project, vendor, script) as server:
        found = run(project, vendor)
    failed = {event["step"]: event for event in of_kind(project, "call_failed")}
    assert {name: event["code"] for name, event in failed.items()} == {
        name: code for name, (_, code) in AGAIN.items()
    }
    assert set(found.states.values()) == {"done"}, found.err
    assert len(server.requests) == 2 * len(AGAIN), "nobody asks again behind our back"
    assert failed["too-often"]["wait_ms"] >= 2000, "what the provider wants is waited for"
    project.ok("verify")


def test_what_will_not_pass_ends_the_step(project: Project, vendor: Vendor) -> None:
    project.plan({name: step(vendor, f"case {name}", retries=0) for name in ENDED})
    with served(project, vendor, lambda asked: ENDED[spoken_of(asked, ENDED)][0]) as server:
        found = run(project, vendor)
    assert found.codes == {name: code for name, (_, code) in ENDED.items()}, found.err
    assert found.code == 1
    assert len(server.requests) == len(ENDED)
    project.ok("verify")


LARGE = b"a" * (3 << 20)
SMALL = gzip.compress(LARGE)
PACKED = {"content-encoding": "gzip"}
LARGE_ERRORS = {
    "plain": Raw(LARGE, status=400),
    "packed-once": Raw(SMALL, status=400, headers=PACKED),
    "packed-twice": Raw(
        gzip.compress(SMALL), status=400, headers={"content-encoding": "gzip, gzip"}
    ),
}


def test_no_more_of_an_error_is_unpacked_than_anybody_could_want(
    project: Project, vendor: Vendor
) -> None:
    project.plan({name: step(vendor, f"case {name}", retries=0) for name in LARGE_ERRORS})
    with served(project, vendor, lambda asked: LARGE_ERRORS[spoken_of(asked, LARGE_ERRORS)]) as it:
        found = run(project, vendor)
    assert len(it.requests) == len(LARGE_ERRORS), found.err
    for asked in it.requests:
        headers = {name.lower(): value for name, value in asked.headers.items()}
        assert headers["accept-encoding"] == "identity"
    assert found.codes == dict.fromkeys(LARGE_ERRORS, "answer_too_large"), found.err
    project.ok("verify")


def test_an_empty_answer_is_an_answer(project: Project, vendor: Vendor) -> None:
    project.plan({"a": step(vendor, retries=1, guards=[{"regex": {"pattern": "kelp"}}])})
    with served(project, vendor, [Say(""), Say("kelp")]) as server:
        found = run(project, vendor)
    assert found.states == {"a": "done"}, found.err
    assert len(server.requests) == 2
    answered = of_kind(project, "call_answered")
    assert [(one["input"], one["output"], one["finish"]) for one in answered] == [
        (10, 5, "stop")
    ] * 2
    assert of_kind(project, "call_failed") == []


REASONING = {
    "openai": "gpt-5",
    "anthropic": "claude-opus-4-7",
    "bedrock": "us.anthropic.claude-opus-4-7",
}


@pytest.mark.parametrize("vendor", REASONING, indirect=True)
def test_what_a_plan_says_about_sampling_is_sent(project: Project, vendor: Vendor) -> None:
    model = {"id": f"house:{REASONING[vendor.kind]}", "temperature": 0.25}
    project.plan({"a": step(vendor, model=model)})
    words = "temperature is not supported with this model"
    with served(project, vendor, [Fail(400, words)]) as server:
        found = run(project, vendor)
    assert '"temperature": 0.25' in json.dumps(server.requests[0].body)
    assert (found.code, found.codes["a"]) == (1, "call_refused")
    assert words in found.err


def test_a_key_that_is_refused_and_a_key_that_is_missing(project: Project, vendor: Vendor) -> None:
    project.plan({"a": step(vendor)})
    with served(project, vendor, [Fail(401, "who are you"), Say("ok")]) as server:
        found = run(project, vendor)
        assert (found.code, found.codes["a"]) == (4, "credentials_missing"), found.err
        assert "the-key" not in found.err
        if vendor.key:
            said = project.refused(4, "run", "--yes", env=NO_KEY)
            assert "error[credentials_missing]: there is no key for 'house' (asked by 'a')" in said
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["anthropic", "google", "mistral", "bedrock"])
def test_a_library_that_is_not_there_is_named_with_what_to_install(
    project: Project, tmp_path: Path, kind: str
) -> None:
    vendor = VENDORS[kind]
    hidden = tmp_path / "hidden"
    package = hidden / vendor.module.partition(".")[0]
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not installed')\n")
    project.plan({"a": step(vendor)})
    with served(project, vendor, []) as server:
        place = os.pathsep.join([str(hidden), *LIBRARY.values()])
        found = project.call("run", "--yes", env={**vendor.key, "PYTHONPATH": place})
    # What is there and broken is found when it is loaded, what is not there before.
    assert (found.code in {1, 2}, server.requests) == (True, [])
    assert f"pip install 'holdfast[{kind}]'" in found.err


@pytest.mark.parametrize("vendor", ["bedrock"], indirect=True)
def test_what_the_library_of_bedrock_does_not_find_is_said(
    project: Project, vendor: Vendor
) -> None:
    project.plan({"a": step(vendor)})
    with served(project, vendor, []) as server:
        found = project.run("--yes", env={"THE_KEY": "the-key"})
        assert (found.code, found.codes["a"]) == (1, "call_refused")
        assert "AWS_REGION" in found.err
    with served(project, replace(vendor, settings=""), []) as server:
        found = project.run("--yes", env=NO_KEY)
        assert (found.code, found.codes["a"]) == (4, "credentials_missing")
    assert server.requests == []


@pytest.mark.parametrize("vendor", ["bedrock"], indirect=True)
def test_bedrock_is_asked_with_what_its_library_finds(project: Project, vendor: Vendor) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "the-secret-of-aws"}
    project.plan({"a": step(vendor)})
    with served(project, replace(vendor, settings=""), [Say("ok")]) as server:
        assert project.run("--yes", env={**NO_KEY, **keys}).states == {"a": "done"}
    assert "Credential=an-id/" in server.requests[0].headers["Authorization"]


@pytest.mark.parametrize("vendor", ["bedrock"], indirect=True)
def test_a_library_that_waits_in_threads_keeps_nobody_waiting(
    project: Project, vendor: Vendor
) -> None:
    project.plan({"a": step(vendor, timeout="3s", retries=0)})
    fresh = {"PYTHONDEVMODE": ""}  # a process of its own, which ends as any other
    with served(project, vendor, lambda _: Hang()):
        found = project.run("--yes", env={**vendor.key, **fresh})
    assert (found.code, found.codes["a"]) == (1, "timed_out"), found.err
