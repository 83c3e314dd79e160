"""The plan file as one table: every key, its type, and whether this version can run it.

The loader reads by this table and the JSON Schema is written from it, so the two cannot differ. A
key without a shape is reserved: it belongs to the grammar, and this version refuses it by name.
"""

from __future__ import annotations

from typing import TypeVar, cast

from holdfast.formats.agentfile import contract_schema
from holdfast.formats.conditions import WHEN
from holdfast.formats.edges import INPUT, NEED, At, read_inputs, read_needs, read_produces
from holdfast.formats.expressions import TEMPLATE, VALUES
from holdfast.formats.foreach import FOR_EACH, KEY
from holdfast.formats.guardlist import GUARDS, guard_schema
from holdfast.formats.nodes import Mapping, Node, Scalar
from holdfast.formats.params import param_schema, params_schema
from holdfast.formats.premises import DEFS, PREMISES, STEP_PREMISES
from holdfast.formats.problems import quoted
from holdfast.formats.projectfiles import json_schema, prompt_text
from holdfast.formats.reading import Reading
from holdfast.formats.records import RESERVED, Key, record, record_schema
from holdfast.formats.shapes import (
    COMMAND,
    DURATION,
    FLAG,
    FUNCTION,
    GLOB,
    LINE,
    LINES,
    NAMES,
    PATH,
    PROSE,
    TEXT,
    Shape,
    as_is,
    decimal,
    each,
    list_of,
    text,
    twice,
    verbatim,
    whole,
    word,
)
from holdfast.formats.soundness import check_value
from holdfast.model.digest import Json
from holdfast.model.fixed import frozen
from holdfast.model.plan import CLI_AGENT, OF_MACHINES, PLAN_SCHEMA, PRIORITIES, Limits
from holdfast.model.size import SIZE, bytes_of

T = TypeVar("T")

USES = ("shell", "python", "human", "llm", "agent", CLI_AGENT, "plan", "gather")
MODEL_RETRIES = 2  # of steps that a model does, unless they say otherwise


_PROMPT: dict[str, Key] = {
    "role": Key(TEMPLATE, words="Who the reader of the prompt is."),
    "constraints": Key(TEMPLATE, words="What has to be kept to."),
    "task": Key(TEMPLATE, words="What is to be done."),
    "feedback_wrapper": Key(TEMPLATE, words="How feedback is told; {feedback} stands for it."),
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


@frozen
class ModelChoice:
    """A model and how to sample it."""

    name: str
    parameters: dict[str, Json]


_MODEL: dict[str, Key] = {
    "id": Key(LINE, words="The model, as provider:name or by tier."),
    "temperature": Key(decimal(0, 2), words="How freely it chooses its words, from 0 to 2."),
    "top_p": Key(decimal(0, 1), words="The part of the likeliest words it chooses from."),
    "max_tokens": Key(whole(1), words="How long an answer may be."),
    "seed": Key(whole(0), words="Where its dice begin, if the provider lets one say."),
}


def _model(reading: Reading, key: str, node: Node) -> ModelChoice | None:
    if not isinstance(node, Mapping):
        name = LINE.read(reading, key, node)
        return None if name is None else ModelChoice(name, {})
    given = record(reading, key, node, _MODEL)
    if given is None:
        return None
    if "id" not in node.pairs:
        reading.problems.add("P033", node, f"{reading.label(key)} has no 'id'")
    name = str(given.pop("id", ""))
    return ModelChoice(name, cast("dict[str, Json]", given)) if name else None


MODEL: Shape[ModelChoice] = Shape(_model, {"anyOf": [LINE.schema, {"$ref": "#/$defs/model"}]})
MONEY = decimal(0, 1_000_000)

BUDGET: dict[str, Key] = {
    "attempts": Key(whole(1), words="How many attempts."),
    "usd": Key(MONEY, words="How many dollars its calls may cost."),
    "tokens": Key(whole(1), words="How many tokens its calls may use."),
}


def _budget(reading: Reading, key: str, node: Node) -> dict[str, object] | None:
    return record(reading, key, node, BUDGET)


TOOLS_LATER = ("read", "search", "run", "edit")


def _tool(reading: Reading, key: str, node: Node) -> str | None:
    """A function of the project that a model may use."""
    value = text(reading, key, node)
    if value is None:
        return None
    if value in TOOLS_LATER:
        message = f"the tool '{value}' is not available in this version"
        hint = "name a function of the project: module:function"
        reading.problems.add("P031", node, message, hint)
        return None
    found = FUNCTION.read(reading, key, node)
    if found is not None:
        given: Json = {"target": found, "root": str(reading.root)}
        check_value(reading, "tool", given, node, code="P065")
    return found


TOOLS = list_of(_tool, FUNCTION.schema)


def _amount(reading: Reading, key: str, name: str, node: Node) -> int | None:
    """How much of a resource: a number; of memory also a size. A machine's processors may be left alone."""
    given = node.value if isinstance(node, Scalar) else None
    if name == "memory" and isinstance(given, str):
        size = bytes_of(given)
        if not size:
            message = f"'memory' in {reading.label(key)} is {quoted(given)}, which is not a size"
            reading.problems.add("P036", node, message, "write it like 512MB or 4GB")
        return size or None
    return whole(0 if name in OF_MACHINES else 1).read(reading, key, node)


def _amounts(reading: Reading, key: str, node: Node) -> dict[str, int] | None:
    if not isinstance(node, Mapping):
        reading.wrong_type(key, node, "a mapping of names to numbers")
        return None
    found = {}
    for name, (place, value) in node.pairs.items():
        amount = _amount(reading, key, name, value)
        if LINE.read(reading, key, place) is not None and amount is not None:
            found[name] = amount
    return found


_COUNT: dict[str, Json] = {"type": "integer", "minimum": 0}
_AMOUNTS: Shape[dict[str, int]] = Shape(
    _amounts,
    {
        "type": "object",
        "properties": {
            "cpus": {**_COUNT, "description": "Processors."},
            "gpus": {**_COUNT, "description": "Graphics processors."},
            "memory": {
                "anyOf": [_COUNT, {"type": "string", "pattern": f"^{SIZE}$"}],
                "description": "Bytes, or a size like 512MB.",
            },
        },
        "additionalProperties": whole(1).schema,
    },
)


def _escalate(reading: Reading, key: str, node: Node) -> list[At] | None:
    found: dict[str, Node] = {}
    for item in each(node):
        value = text(reading, key, item)
        if value is not None:
            twice(reading, key, value, item, found)
    return [At(value, item) for value, item in found.items()]


def _context(reading: Reading, key: str, node: Node) -> Json:
    if isinstance(node, Scalar) and node.value in (True, False, "in-ref"):
        return node.value
    reading.wrong_type(key, node, "true, false or in-ref")
    return None


def _origin(reading: Reading, key: str, node: Node) -> Json:
    if not isinstance(node, Mapping):
        reading.wrong_type(key, node, "a mapping")
        return None
    return verbatim(reading, node)


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


_NEED_SCHEMA: Json = {"anyOf": [TEXT.schema, {"$ref": "#/$defs/need"}]}
_INPUT_SCHEMA: Json = {"anyOf": [GLOB.schema, {"$ref": "#/$defs/input"}]}


def _one_or_many(item: Json) -> Json:
    return {"anyOf": [item, {"type": "array", "items": item}]}


_RETRIES = Key(whole(0), words="How often to try again after the first time.")
_WORKSPACE = Key(
    word("shared", "scratch", "worktree"),
    words="Where the step runs: in the project, in a fresh directory, or in a git worktree of it.",
)
_CONTEXT_TOKENS = Key(
    whole(1),
    words="How many tokens, roughly, it is told of the work before it (4000); the rest is summed up.",
)
_REUSE = Key(
    word("merkle", "content", "strict"),
    words="When an artifact is reused: nothing above changed, equal content, or also equal guards.",
)

LIMITS: dict[str, Key] = {
    "time": Key(DURATION, words="How long a run may take, like 2h."),
    "attempts": Key(whole(1), words="How many attempts a run may make."),
    "parallel": Key(whole(1), words="How many steps run at once, whatever they do."),
    "resources": Key(
        _AMOUNTS, words="How much there is of each named resource; of one not named, 1."
    ),
    "agents": Key(_AMOUNTS, words="How many steps of each agent run at once."),
    "usd": Key(MONEY, words="How many dollars the calls of a run may cost."),
    "tokens": Key(whole(1), words="How many tokens the calls of a run may use."),
}

DEFAULTS: dict[str, Key] = {
    "model": Key(MODEL, words="The model of steps that name none."),
    "retries": _RETRIES,
    "timeout": Key(DURATION, words="The time of one attempt, like 5m."),
    "workspace": _WORKSPACE,
    "guards": Key(GUARDS, words="The guards of steps that have no list of their own."),
    "reuse": _REUSE,
    "context_tokens": _CONTEXT_TOKENS,
    "budget": RESERVED,
}

STEP: dict[str, Key] = {
    "description": Key(PROSE, words="What the step is for; changes nothing."),
    "contract": Key(PROSE, words="What the artifact promises."),
    "constraints": Key(PROSE, words="What the step has to keep to."),
    "specification": Key(PROSE, words="What the step was made from."),
    "agent": Key(TEXT, words="Who does it."),
    "action": Key(TEXT, words="What kind of work it is."),
    "uses": Key(
        word(*USES),
        words="What makes the artifact: a command, a function, a person, a model, an agent.",
    ),
    "run": Key(
        Shape(as_is, COMMAND.schema),
        words="A command, as a list or as text that no shell sees; with python, module:function; "
        "with plan, a plan file; with cli-agent, a coding agent.",
    ),
    "shell": Key(TEXT, words="One line for /bin/sh."),
    "prompt": Key(
        Shape(_prompt, {"anyOf": [TEXT.schema, {"$ref": "#/$defs/prompt"}]}),
        words="A text, a file, or its parts; ${{ … }} is filled in.",
    ),
    "model": Key(MODEL, words="The model, as provider:name or by tier; or how to ask it."),
    "with": Key(
        VALUES,
        "values",
        words="Values for the step; ${{ params.X }} and ${{ steps.ID.output }} are filled in.",
    ),
    "needs": Key(Shape(read_needs, _one_or_many(_NEED_SCHEMA)), words="Steps that come first."),
    "inputs": Key(
        Shape(read_inputs, _one_or_many(_INPUT_SCHEMA)),
        words="Files that the step reads, as globs; their content decides the result.",
    ),
    "produces": Key(
        Shape(read_produces, _one_or_many(PATH.schema)),
        words="Files or directories that the step makes; without it stdout is the artifact.",
    ),
    "outputs": Key(LINES, words="Keys that the artifact must have as a JSON object."),
    "schema": Key(
        Shape(json_schema, {"anyOf": [TEXT.schema, {"type": "object"}]}),
        words="The JSON Schema of the artifact, or the file it is in.",
    ),
    "guards": Key(GUARDS, words="What must accept the artifact."),
    "retries": _RETRIES,
    "timeout": Key(DURATION, words="How long one attempt may take, like 90s, 5m or 2h."),
    "fresh_for": Key(
        DURATION, words="How long the artifact stands before it is made again, like 7d."
    ),
    "priority": Key(
        word(*PRIORITIES, any_case=True), words="Who starts first when there is no room for all."
    ),
    "effects": Key(
        word("none", "workspace", "external"),
        words="What else the step changes: nothing, project files, or the outside world.",
    ),
    "idempotent": Key(
        FLAG, words="Whether an effect may be repeated when nobody knows if it happened."
    ),
    "approve": Key(
        word("never", "always", "on_change", "over_budget"),
        words="When a person must say yes first: each time, for new content, or beyond the budget.",
    ),
    "budget": Key(
        Shape(_budget, {"$ref": "#/$defs/budget"}),
        words="What the step may use before 'approve: over_budget' asks.",
    ),
    "patience": Key(
        whole(1), words="How many attempts may end with the same feedback before it is given up."
    ),
    "escalate": Key(
        Shape(_escalate, _one_or_many(TEXT.schema)),
        words="Steps above that are made again, in turn, when this one cannot get through.",
    ),
    "rounds": Key(
        whole(1), words="How often to go through 'escalate' before a person is asked; else once."
    ),
    "on_fatal": Key(
        word("fail", "escalate"),
        words="When a guard refuses it for good: the step fails, or the whole run stops for a person.",
    ),
    "resources": Key(
        _AMOUNTS,
        words="Named resources that it takes while it runs, and how much of each; "
        "cpus, gpus and memory (512MB) are asked of a cluster.",
    ),
    "runs_on": Key(
        LINE, words="Which machines do it, by a name that they go by; see docs/howto/cluster.md."
    ),
    "workspace": _WORKSPACE,
    "reuse": _REUSE,
    "handoff": Key(
        FLAG,
        words="Whether it is done only with a handoff: what it tells those that come after it.",
    ),
    "context": Key(
        Shape(_context, {"enum": [True, False, "in-ref"]}),
        words="Whether it is told what steps above handed over; in-ref lets that decide the result.",
    ),
    "context_tokens": _CONTEXT_TOKENS,
    "share": Key(FLAG, words="Whether other lines may reuse the artifact."),
    "env": Key(
        NAMES, words="Names of variables that the step sees; their values decide the result."
    ),
    "secrets": Key(
        NAMES, words="Names of variables that the step sees and nobody else; allowed by --secret."
    ),
    "tool_versions": Key(
        Shape(_tool_versions, {"type": "object", "additionalProperties": COMMAND.schema}),
        words="Commands whose answers decide the result, by name.",
    ),
    "tools": Key(TOOLS, words="What the model of an agent may use: functions, as module:function."),
    "turns": Key(whole(1), words="How often an agent may ask its model in one attempt; else 20."),
    "for_each": Key(
        FOR_EACH,
        words="Runs once for each item: a list, {files: GLOB}, ${{ params.X }}, ${{ steps.ID.output.X }}.",
    ),
    "key": Key(KEY, words="What tells the items apart from run to run, like ${{ item.url }}."),
    "when": Key(
        WHEN,
        words="Runs only if this holds: {steps.ID.output.X: {equals: 1}}; also not, in, at_least, exists.",
    ),
    "optional": Key(
        FLAG, words="Whether those that need it go on without it if it fails or is left out."
    ),
    "within": Key(
        LINE,
        words="The sub-plan that it came from: what it needs of it has the names of that file.",
    ),
    **STEP_PREMISES,
}

PLAN: dict[str, Key] = {
    "schema": Key(Shape(_schema_name, {"const": PLAN_SCHEMA}), words="The version of this format."),
    "name": Key(LINE, words="The line: versions and runs of one plan follow each other under it."),
    "goal": Key(PROSE, words="What the plan is for."),
    "description": Key(PROSE, words="A note for readers."),
    "project": Key(LINE, words="Whose plan it is, in a store that several projects share."),
    "params": Key(
        Shape(as_is, params_schema()),
        words="Values that the plan is given, by --param NAME=VALUE or by default.",
    ),
    "defaults": Key(
        Shape(_defaults, {"$ref": "#/$defs/defaults"}),
        words="What holds for every step that does not say otherwise.",
    ),
    "limits": Key(Shape(_limits, {"$ref": "#/$defs/limits"}), words="Bounds of a run."),
    "steps": Key(
        Shape(
            as_is,
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$"},
                "additionalProperties": {"$ref": "#/$defs/step"},
            },
        ),
        words="The steps by their ids.",
    ),
    "agents": Key(
        Shape(as_is, {"anyOf": [TEXT.schema, {"$ref": "#/$defs/agents"}]}),
        words="The contracts that steps are held to: 'default', a file, or contracts by name.",
    ),
    "origin": Key(
        Shape(_origin, {"type": "object"}),
        words="Where an imported plan comes from; kept for export, changes nothing.",
    ),
    **PREMISES,
}


def plan_schema() -> Json:
    """The JSON Schema of a plan file, as far as a schema can say it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": PLAN_SCHEMA,
        "description": "A plan of guarded steps; holdfast check says what a schema cannot.",
        "$defs": {
            "step": record_schema(STEP),
            "need": record_schema(NEED, ("step",)),
            "input": record_schema(INPUT, ("glob",)),
            "prompt": record_schema(_PROMPT, ("task",)),
            "budget": record_schema(BUDGET),
            "model": record_schema(_MODEL, ("id",)),
            "guard": guard_schema(),
            "param": param_schema(),
            "defaults": record_schema(DEFAULTS),
            "limits": record_schema(LIMITS),
            "agents": {"type": "object", "additionalProperties": contract_schema()},
            **DEFS,
        },
        **record_schema(PLAN, ("steps",)),
    }
