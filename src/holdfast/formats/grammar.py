"""The plan file as one table: every key, its type, and whether this version can run it.

The loader reads by this table and the JSON Schema is written from it, so the two cannot differ. A
key without a shape is reserved: it belongs to the grammar, and this version refuses it by name.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from holdfast.formats.expressions import TEMPLATE, VALUES
from holdfast.formats.guardlist import GUARDS, guard_schema
from holdfast.formats.nodes import Mapping, Node
from holdfast.formats.params import param_schema, params_schema
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.projectfiles import json_schema, prompt_text
from holdfast.formats.reading import Reading
from holdfast.formats.records import RESERVED, Key, record, record_schema
from holdfast.formats.shapes import (
    COMMAND,
    DURATION,
    FLAG,
    GLOB,
    LINE,
    LINES,
    NAMES,
    PATH,
    TEXT,
    Shape,
    as_is,
    each,
    text,
    twice,
    whole,
    word,
)
from holdfast.model.digest import Json
from holdfast.model.glob import parents
from holdfast.model.plan import PLAN_SCHEMA, PRIORITIES, Input, Limits, Need, NeedType, StepId

T = TypeVar("T")

USES = ("shell", "python")
USES_LATER = ("llm", "agent", "human", "cli-agent", "plan")


class At(NamedTuple):
    """A part of a step and its place, kept until the whole graph is known."""

    value: str
    node: Node


class NeedAt(NamedTuple):
    need: Need
    node: Placed


class InputAt(NamedTuple):
    input: Input
    node: Placed


_NEED: dict[str, Key] = {
    "step": Key(TEXT),
    "type": Key(word("data", "sequence", reserved=("approval",))),
    "key": Key(LINE),
    "from": RESERVED,
}


def _needs(reading: Reading, _key: str, node: Node) -> list[NeedAt] | None:
    found = []
    for item in each(node):
        need = _need(reading, item)
        if need is not None:
            found.append(need)
    return found


def _need(reading: Reading, node: Node) -> NeedAt | None:
    if not isinstance(node, Mapping):
        step = text(reading, "needs", node)
        return None if step is None else NeedAt(Need(StepId(step)), node)
    given = record(reading, "needs", node, _NEED) or {}
    step_node = node.pairs.get("step")
    if step_node is None:
        reading.problems.add("P033", node, "an item of 'needs' has no 'step'")
        return None
    if "step" not in given:
        return None
    kind: NeedType = "sequence" if given.get("type") == "sequence" else "data"
    key = str(given.get("key", ""))
    if key and kind == "sequence":
        message = "a need of type 'sequence' hands nothing over and can have no 'key'"
        reading.problems.add("P035", node.pairs["key"][0], message)
    return NeedAt(Need(StepId(str(given["step"])), kind, key), step_node[1])


_INPUT: dict[str, Key] = {"glob": Key(GLOB), "optional": Key(FLAG)}


def _inputs(reading: Reading, key: str, node: Node) -> list[InputAt] | None:
    found: list[InputAt] = []
    seen: dict[str, Node] = {}
    for item in each(node):
        place, optional = item, False
        if isinstance(item, Mapping):
            given = record(reading, key, item, _INPUT) or {}
            if "glob" not in item.pairs:
                reading.problems.add("P033", item, "an item of 'inputs' has no 'glob'")
                continue
            place, optional = item.pairs["glob"][1], given.get("optional") is True
            value = given.get("glob")
        else:
            value = GLOB.read(reading, key, item)
        if isinstance(value, str):
            twice(reading, key, value, place, seen)
            found.append(InputAt(Input(value, optional), place))
    return found


def _produces(reading: Reading, key: str, node: Node) -> list[At] | None:
    found: dict[str, Node] = {}
    for item in each(node):
        value = PATH.read(reading, key, item)
        if value is not None:
            twice(reading, key, value, item, found)
    if len(found) > 1:
        for value, item in found.items():
            outer = next((parent for parent in parents(value) if parent in found), None)
            if outer is not None:
                both = f"{reading.label(key)} names both"
                message = f"{quoted(value)} lies in {quoted(outer)}, and {both}"
                reading.problems.add("P044", item, message, "keep the directory")
    return [At(value, item) for value, item in found.items()]


_PROMPT: dict[str, Key] = {
    "role": Key(TEMPLATE),
    "constraints": Key(TEMPLATE),
    "task": Key(TEMPLATE),
    "feedback_wrapper": Key(TEMPLATE),
}


def _prompt(reading: Reading, key: str, node: Node) -> Json:
    if not isinstance(node, Mapping):
        return prompt_text(reading, key, node)
    given = record(reading, key, node, _PROMPT) or {}
    if "task" not in node.pairs:
        reading.problems.add("P033", node, f"{reading.label(key)} has no 'task'")
    return {name: str(value) for name, value in given.items()}


def _tool_versions(reading: Reading, key: str, node: Node) -> dict[str, tuple[str, ...]] | None:
    if not isinstance(node, Mapping):
        reading.wrong_type(key, node, "a mapping of names to commands")
        return None
    found = {}
    for name, (place, value) in node.pairs.items():
        argv = COMMAND.read(reading, key, value)
        if LINE.read(reading, key, place) is not None and argv is not None:
            found[name] = argv
    return found


def _schema_name(reading: Reading, key: str, node: Node) -> str | None:
    value = text(reading, key, node)
    if value is not None and value != PLAN_SCHEMA:
        message = f"'schema' is {quoted(value)}; this version reads '{PLAN_SCHEMA}'"
        reading.problems.add("P005", node, message)
    return value


def _limits(reading: Reading, key: str, node: Node) -> Limits | None:
    given = record(reading, key, node, LIMITS)
    return None if given is None else Limits(**given)  # type: ignore[arg-type]  # as LIMITS reads


def _defaults(reading: Reading, key: str, node: Node) -> dict[str, object] | None:
    return record(reading, key, node, DEFAULTS)


_NEED_SCHEMA: Json = {"anyOf": [TEXT.schema, record_schema(_NEED, ("step",))]}
_INPUT_SCHEMA: Json = {"anyOf": [GLOB.schema, record_schema(_INPUT, ("glob",))]}


def _one_or_many(item: Json) -> Json:
    return {"anyOf": [item, {"type": "array", "items": item}]}


_RETRIES = Key(whole(0))
_WORKSPACE = Key(word("shared", "scratch", reserved=("worktree",)))
_REUSE = Key(word("merkle", "content", "strict"))

LIMITS: dict[str, Key] = {
    "time": Key(DURATION),
    "attempts": Key(whole(1)),
    "parallel": Key(whole(1)),
    "usd": RESERVED,
    "tokens": RESERVED,
}

DEFAULTS: dict[str, Key] = {
    "model": Key(LINE),
    "retries": _RETRIES,
    "timeout": Key(DURATION),
    "workspace": _WORKSPACE,
    "guards": Key(GUARDS),
    "reuse": _REUSE,
    "budget": RESERVED,
}

STEP: dict[str, Key] = {
    "description": Key(TEXT),
    "contract": Key(TEXT),
    "constraints": Key(TEXT),
    "specification": Key(TEXT),
    "agent": Key(TEXT),
    "action": Key(TEXT),
    "uses": Key(word(*USES, reserved=USES_LATER)),
    "run": Key(Shape(as_is, COMMAND.schema)),
    "shell": Key(TEXT),
    "prompt": Key(Shape(_prompt, {"anyOf": [TEXT.schema, record_schema(_PROMPT, ("task",))]})),
    "model": Key(LINE),
    "with": Key(VALUES, "values"),
    "needs": Key(Shape(_needs, _one_or_many(_NEED_SCHEMA))),
    "inputs": Key(Shape(_inputs, _one_or_many(_INPUT_SCHEMA))),
    "produces": Key(Shape(_produces, _one_or_many(PATH.schema))),
    "outputs": Key(LINES),
    "schema": Key(Shape(json_schema, {"anyOf": [TEXT.schema, {"type": "object"}]})),
    "guards": Key(GUARDS),
    "retries": _RETRIES,
    "timeout": Key(DURATION),
    "fresh_for": Key(DURATION),
    "priority": Key(word(*PRIORITIES, any_case=True)),
    "effects": Key(word("none", "workspace", "external")),
    "idempotent": Key(FLAG),
    "workspace": _WORKSPACE,
    "reuse": _REUSE,
    "share": Key(FLAG),
    "env": Key(NAMES),
    "secrets": Key(NAMES),
    "tool_versions": Key(
        Shape(_tool_versions, {"type": "object", "additionalProperties": COMMAND.schema})
    ),
    **dict.fromkeys(
        (
            "tools",
            "resources",
            "runs_on",
            "when",
            "patience",
            "context",
            "approve",
            "budget",
            "for_each",
            "key",
            "handoff",
            "type",
            "hypotheses",
            "requirements",
            "optional",
        ),
        RESERVED,
    ),
}

PLAN: dict[str, Key] = {
    "schema": Key(Shape(_schema_name, {"const": PLAN_SCHEMA})),
    "name": Key(LINE),
    "goal": Key(TEXT),
    "description": Key(TEXT),
    "project": Key(LINE),
    "params": Key(Shape(as_is, params_schema())),
    "defaults": Key(Shape(_defaults, record_schema(DEFAULTS))),
    "limits": Key(Shape(_limits, record_schema(LIMITS))),
    "steps": Key(
        Shape(
            as_is,
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"$ref": "#/$defs/step"},
            },
        )
    ),
    **dict.fromkeys(("agents", "requirements", "hypotheses", "unknowns"), RESERVED),
}


def plan_schema() -> Json:
    """The JSON Schema of a plan file, as far as a schema can say it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": PLAN_SCHEMA,
        "$defs": {"step": record_schema(STEP), "guard": guard_schema(), "param": param_schema()},
        **record_schema(PLAN, ("steps",)),
    }
